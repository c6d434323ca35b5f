"""Devices for resource claims: inventory, allocation, and nodes."""
