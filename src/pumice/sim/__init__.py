"""Workloads run to the end on a virtual clock, with the policies that run live."""
