"""A scheduler at work on a cluster: follow, decide, write, and recover what goes wrong."""
