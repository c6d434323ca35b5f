"""Admission: defaults and checks for the objects users write, as Volcano's webhooks apply them.

Pure functions of the object and of what else exists; only the server module does input and output.
"""
