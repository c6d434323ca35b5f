"""rescheduling: move running pods to better nodes, by strategies that are looked up by name."""

from pumice.plugins.rescheduling.low_node_utilization import LowNodeUtilization
from pumice.plugins.rescheduling.plugin import Rescheduling
from pumice.plugins.rescheduling.strategy import Strategy

__all__ = ["LowNodeUtilization", "Rescheduling", "Strategy"]
