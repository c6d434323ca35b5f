"""Settings for all tests: the same hypothesis examples on every machine."""

from hypothesis import settings

settings.register_profile("pumice", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("pumice")
