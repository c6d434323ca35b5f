"""A recorded cluster played again: the same decisions, one after the other."""
