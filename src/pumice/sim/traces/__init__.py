"""Traces as files: described, sampled, written in another form."""
