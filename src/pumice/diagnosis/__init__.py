"""Answers about a cluster: why a job waits, which job goes first, what if, what changed.

Every answer comes from running the deciding core on a copy; nothing here prints or changes a
cluster.  Each answer has a module of its own, so that a command loads the one it gives.
"""
