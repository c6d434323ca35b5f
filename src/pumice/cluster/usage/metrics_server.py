"""Node usage from the resource metrics API of Kubernetes, which metrics-server serves."""

import reprlib
from collections.abc import Sequence
from typing import Any, Final

from pumice.api.nodes import Node
from pumice.api.quantity import parse_quantity
from pumice.api.times import epoch
from pumice.cluster.usage.endpoint import JsonService
from pumice.cluster.usage.source import DroppedSamples, Usage, is_percent
from pumice.errors import HttpError, InputError

_PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"


class MetricsServerUsage:
    """What the nodes used a moment ago, as percent of their capacity."""

    def __init__(self, service: JsonService) -> None:
        self._service = service

    def read(self, nodes: Sequence[Node], now: float) -> dict[str, Usage]:
        """Ask for the usage of all nodes.

        Raises:
            HttpError: the API server did not return it.
        """
        if not nodes:
            return {}
        by_name = {node.metadata.name: node for node in nodes}
        answer = self._service.get(_PATH, deadline=self._service.deadline())
        items = answer.get("items")
        if not isinstance(items, list):
            url, shown = f"{self._service.address}{_PATH}", reprlib.repr(answer)
            raise HttpError(url, f"wanted a list of node metrics, found {shown}")
        found: dict[str, Usage] = {}
        dropped = DroppedSamples()
        for item in items:
            name = _name(item)
            if name is not None and name not in by_name:
                continue
            usage = _usage(item, by_name[name], now) if name is not None else None
            if name is None or usage is None:
                dropped.add(name, item)
            else:
                found[name] = usage
        dropped.log(self._service.address)
        return found


def _name(item: Any) -> str | None:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


def _usage(item: dict[str, Any], node: Node, now: float) -> Usage | None:
    """Read an item; None if a number in it, or the capacity of the node, is missing or wrong."""
    used, when = item.get("usage"), item.get("timestamp")
    if not isinstance(used, dict) or not isinstance(when, str):
        return None
    usage: Usage = {}
    try:
        for resource in ("cpu", "memory"):
            amount, capacity = used.get(resource), node.status.capacity.get(resource)
            if not isinstance(amount, str) or capacity is None:
                return None
            usage[resource] = 100.0 * parse_quantity(amount) / parse_quantity(capacity)
        usage["metricsTime"] = min(epoch(when), now)
    except (InputError, ZeroDivisionError):
        return None
    return usage if is_percent(usage["cpu"]) and is_percent(usage["memory"]) else None
