"""What queues may hold and reserve: the tree they stand in, their limits, and reservations.

Used by the plugins that hold queues to limits, by the metrics and by the simulator's bounds.
"""
