"""Options and help of each command; the command itself is loaded when it runs.

A module here imports click, this package and plain values at its top, nothing that decides, so
that help, completion and mistyped commands answer at once.
"""
