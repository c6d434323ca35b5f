"""capacity: stated amounts for queues that stand side by side or in a tree."""

from pumice.plugins.capacity.plugin import Capacity

__all__ = ["Capacity"]
