"""capacity: stated amounts for queues in a flat list or in a tree."""

from pumice.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
