"""Metrics about a serving process for Prometheus: Volcano's by their exact names, and our own.

Any layer from the cluster up may fill them; no decision depends on them.
"""

from pumice.metrics.catalogue import CATALOGUE, Group, MetricFamily, exponential_buckets
from pumice.metrics.recorder import CONTENT_TYPE, Metrics, expose

__all__ = [
    "CATALOGUE",
    "CONTENT_TYPE",
    "Group",
    "MetricFamily",
    "Metrics",
    "exponential_buckets",
    "expose",
]
