"""Node usage from Elasticsearch, where Metricbeat stores it: averages by host.

One search answers for many nodes: an aggregation by the field with the name of the host.  Volcano
searches once for each node.
"""

import reprlib
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

from pumice.api.nodes import Node
from pumice.cluster.usage.endpoint import Endpoint
from pumice.cluster.usage.source import DroppedSamples, Usage, is_percent
from pumice.errors import HttpError

_CPU: Final = "host.cpu.usage"
_MEMORY: Final = "system.memory.actual.used.pct"
_TIME: Final = "@timestamp"
_BATCH: Final = 10_000
"""Nodes of one search; a server refuses more than 65,536 terms or groups."""


class ElasticsearchUsage:
    """Load of the last minutes; a field of the documents must hold the name of the node."""

    def __init__(self, service: Endpoint, *, index: str, host_field: str, period_s: float) -> None:
        self._service = service
        self._path = f"/{quote(index, safe='*,')}/_search"
        self._host_field = host_field
        self._period_s = round(period_s)

    def read(self, nodes: Sequence[Node], now: float) -> dict[str, Usage]:
        """Search for cpu and memory of all nodes.

        Raises:
            HttpError: a search failed.
        """
        names = [node.metadata.name for node in nodes]
        known = set(names)
        deadline, dropped = self._service.deadline(), DroppedSamples()
        found: dict[str, Usage] = {}
        for first in range(0, len(names), _BATCH):
            for bucket in self._search(names[first : first + _BATCH], deadline):
                name = _name(bucket)
                if name is not None and name not in known:
                    continue
                usage = _usage(bucket, now) if name is not None else None
                if name is None or usage is None:
                    dropped.add(name, bucket)
                else:
                    found[name] = usage
        dropped.log(self._service.address)
        return found

    def _search(self, names: list[str], deadline: float) -> Iterator[Any]:
        """Search once; yield the result of each host."""
        answer = self._service.post(self._path, self._question(names), deadline=deadline)
        where = f"{self._service.address}{self._path}"
        if answer.get("timed_out") is True:
            raise HttpError(where, "searched only part of the documents, for lack of time")
        groups = answer.get("aggregations")
        nodes = groups.get("nodes") if isinstance(groups, dict) else None
        buckets = nodes.get("buckets") if isinstance(nodes, dict) else None
        if not isinstance(buckets, list):
            raise HttpError(where, f"wanted averages by node, found {reprlib.repr(answer)}")
        yield from buckets

    def _question(self, names: list[str]) -> dict[str, Any]:
        recent = {"range": {_TIME: {"gte": f"now-{self._period_s}s", "lt": "now"}}}
        averages = {
            "cpu": {"avg": {"field": _CPU}},
            "mem": {"avg": {"field": _MEMORY}},
            "latest": {"max": {"field": _TIME}},
        }
        by_node = {"field": self._host_field, "size": len(names)}
        return {
            "size": 0,
            "query": {"bool": {"filter": [recent, {"terms": {self._host_field: names}}]}},
            "aggs": {"nodes": {"terms": by_node, "aggs": averages}},
        }


def _name(bucket: Any) -> str | None:
    name = bucket.get("key") if isinstance(bucket, dict) else None
    return name if isinstance(name, str) else None


def _usage(bucket: dict[str, Any], now: float) -> Usage | None:
    """Read the result of a host; None without both averages and a time."""
    cpu, memory, latest = (_number(bucket.get(key)) for key in ("cpu", "mem", "latest"))
    if cpu is None or memory is None or latest is None:
        return None
    usage = {"cpu": 100 * cpu, "memory": 100 * memory, "metricsTime": min(latest / 1000, now)}
    return usage if is_percent(usage["cpu"]) and is_percent(usage["memory"]) else None


def _number(part: Any) -> float | None:
    """Read the value of an aggregation; it is null if no document has the field."""
    value = part.get("value") if isinstance(part, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return float(value) if value < 1e15 else None
