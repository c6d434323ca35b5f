"""Policy tests: a cluster, a configuration and the decisions expected, in one file."""
