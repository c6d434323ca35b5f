"""drf: dominant resource fairness among jobs, and among queues that stand in a tree."""

from pumice.plugins.drf.plugin import Drf

__all__ = ["Drf"]
