"""Devices for resource claims: what there is, who gets what, and on which nodes."""
