"""Measured use of nodes, from the program that measures it; all sources behind one method."""

from pumice.cluster.usage.conf import refresh_period, usage_source
from pumice.cluster.usage.custom_metrics import CustomMetricsUsage
from pumice.cluster.usage.elasticsearch import ElasticsearchUsage
from pumice.cluster.usage.endpoint import Endpoint, JsonService, ServiceWithin
from pumice.cluster.usage.metrics_server import MetricsServerUsage
from pumice.cluster.usage.prometheus import PrometheusUsage
from pumice.cluster.usage.source import StaticUsage, Usage, UsageCache, UsageSource

__all__ = [
    "CustomMetricsUsage",
    "ElasticsearchUsage",
    "Endpoint",
    "JsonService",
    "MetricsServerUsage",
    "PrometheusUsage",
    "ServiceWithin",
    "StaticUsage",
    "Usage",
    "UsageCache",
    "UsageSource",
    "refresh_period",
    "usage_source",
]
