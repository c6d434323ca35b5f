"""The one HTTP client: to API servers, to sources of node usage, to extenders."""
