"""What each command takes, and the words of its help; what it does is loaded once it runs.

A module here imports click, this package and plain values at its top, nothing that decides, so
that help, completion and mistyped commands answer at once.
"""
