"""Whether every session of a test run checks its tables; off where checking would be timed."""

enabled = True
