"""Limits of queues: their tree, what they may hold, and reservations.

Used by the plugins that enforce limits, by the metrics and by the simulator's bounds.
"""
