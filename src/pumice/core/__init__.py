"""Columns: the cluster as NumPy arrays, with a journal that can take every write back."""
