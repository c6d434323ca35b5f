"""A check of a cluster: what an installation needs, whether it is there, and what to do if not."""
