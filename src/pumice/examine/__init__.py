"""Why one job waits, from the session that decided: causes, nodes, evictions."""
