"""A scheduler at work on a cluster: watch, decide, write, and recover from failures."""
