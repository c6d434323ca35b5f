"""Pictures, cycles and runs as small JSON documents, one module a page; pure functions."""
