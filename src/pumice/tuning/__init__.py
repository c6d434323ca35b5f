"""A search for a better configuration on traces and recorded days."""
