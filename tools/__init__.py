"""Checks of the source that no installed tool does; run from the root of a checkout."""
