"""A cluster looked over: what an installation needs, whether it is there, and what to do if not."""
