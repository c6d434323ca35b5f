"""The one HTTP client: to API servers, sources of node usage, extenders, fabric managers."""
