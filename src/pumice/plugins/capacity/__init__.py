"""capacity: queues with stated deserved, guaranteed and largest amounts, side by side or in a tree."""

from pumice.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
