"""Benchmarks: each proves its result before it is timed."""
