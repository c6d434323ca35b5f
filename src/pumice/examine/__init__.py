"""What keeps one job waiting, asked of the session that decided: causes, nodes, evictions."""
