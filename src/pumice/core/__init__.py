"""Columns: the cluster as NumPy arrays, with a journal that can undo every write."""
