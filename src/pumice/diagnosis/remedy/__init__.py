"""Remedies for a waiting job: changes for each cause, each proved by running it."""
