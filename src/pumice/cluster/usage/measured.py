"""What measures the use of nodes: Prometheus, its adapter, metrics-server, Elasticsearch.

Each asks for all nodes together; Volcano asks for each node.  A node that is not measured is left
out; in Volcano it counts as idle.  Answers are not trusted: a sample that cannot be used is dropped
and counted.
"""

import logging
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from pumice.api.nodes import Node
from pumice.api.quantity import parse_quantity
from pumice.api.times import epoch
from pumice.cluster.usage.endpoint import Endpoint, JsonService
from pumice.cluster.usage.source import Sample, Usage, is_percent, joined
from pumice.errors import HttpError, InputError

log = logging.getLogger(__name__)

_T = TypeVar("_T")

_LATEST: Final = 1e11  # seconds; a time beyond it is invalid
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,4})?")


def _at(value: Any, *path: str) -> Any:
    """Return what is at a path of keys; None where there is no mapping or no key."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


class _Reading(Generic[_T]):
    """One reading of a service: its samples by node, and those that could not be used."""

    def __init__(
        self, nodes: Collection[str], name: tuple[str, ...], read: Callable[[str, Any], _T | None]
    ) -> None:
        self._nodes = nodes
        self._name = name
        self._read = read
        self._dropped = 0
        self._first_dropped = ""

    def by_node(self, items: Iterable[Any], strangers: list[str] | None = None) -> dict[str, _T]:
        """Return the samples of known nodes; of several of a node the first that can be used."""
        found: dict[str, _T] = {}
        for item in items:
            name = _at(item, *self._name)
            if isinstance(name, str) and name not in self._nodes:
                if strangers is not None:
                    strangers.append(name)
                continue
            sample = self._read(name, item) if isinstance(name, str) else None
            if sample is not None:
                found.setdefault(name, sample)
                continue
            if not self._dropped:
                shown = name if isinstance(name, str) else None
                self._first_dropped = f"{reprlib.repr(shown)}: {reprlib.repr(item)}"
            self._dropped += 1
        return found

    def log(self, where: str) -> None:
        """Report what was dropped, in one line of the log."""
        if self._dropped:
            log.warning(
                "%s: left out %d samples that cannot be used, the first of %s",
                where,
                self._dropped,
                self._first_dropped,
            )


class PrometheusUsage:
    """Node exporter's load of the last minutes; the label ``instance`` must name the node."""

    PATH: Final = "/api/v1/query"
    CPU: Final = (
        "avg_over_time(clamp_min(100 - 100 * avg by (instance) "
        '(rate(node_cpu_seconds_total{mode="idle"}[5m])), 0)[%dms:30s])'
    )
    MEMORY: Final = (
        "100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)"
        "[%dms:30s])"
    )

    def __init__(self, service: JsonService, *, period_s: float = 600.0) -> None:
        self._service = service
        self._period_ms = round(period_s * 1000)

    def read(self, nodes: Sequence[Node], now: float) -> dict[str, Usage]:
        """Ask for cpu and memory of all nodes.

        Raises:
            HttpError: one of the two queries failed.
        """
        if not nodes:
            return {}
        names = {node.metadata.name for node in nodes}
        deadline, reading = (
            self._service.deadline(),
            _Reading(names, ("metric", "instance"), _point),
        )
        cpu, memory = (
            self._ask(query, now, deadline, reading) for query in (self.CPU, self.MEMORY)
        )
        reading.log(self._service.address)
        return joined(cpu, memory, now)

    def _ask(
        self, query: str, now: float, deadline: float, reading: _Reading[Sample]
    ) -> dict[str, Sample]:
        asked = {"query": query % self._period_ms, "time": f"{now:.3f}"}
        strangers: list[str] = []
        answer = self._service.get(self.PATH, asked, deadline=deadline)
        found = reading.by_node(self._vector(answer), strangers)
        if strangers and not found:
            log.warning(
                "%s: no sample is for a node of this cluster; the label instance must be the name "
                "of the node, found %.80r",
                self._service.address,
                strangers[0],
            )
        return found

    def _vector(self, answer: dict[str, Any]) -> list[Any]:
        result = _at(answer, "data", "result")
        is_vector = _at(answer, "data", "resultType") == "vector" and isinstance(result, list)
        if answer.get("status") != "success" or not is_vector:
            url, found = f"{self._service.address}{self.PATH}", reprlib.repr(answer)
            raise HttpError(url, f"expected a vector of samples, got {found}")
        vector: list[Any] = result
        return vector


def _point(_: str, item: Any) -> Sample | None:
    """Read a sample of Prometheus; None unless it is a percentage with a time."""
    value = _at(item, "value")
    if not isinstance(value, list) or len(value) != 2:
        return None
    when, text = value
    if isinstance(when, bool) or not isinstance(when, int | float) or not 0 <= when <= _LATEST:
        return None
    if not isinstance(text, str) or not _NUMBER.fullmatch(text) or not is_percent(float(text)):
        return None
    return float(text), float(when)


class CustomMetricsUsage:
    """Load from the custom metrics API, which Prometheus' adapter serves and averages by its rules.

    The rules must offer ``node_cpu_usage_avg`` and ``node_memory_usage_avg`` as parts of one.
    """

    VERSIONS: Final = ("v1beta2", "v1beta1")

    def __init__(self, service: JsonService) -> None:
        self._service = service
        self._version = ""

    def read(self, nodes: Sequence[Node], now: float) -> dict[str, Usage]:
        """Ask for cpu and memory of all nodes.

        Raises:
            HttpError: one of the two metrics is not available.
        """
        if not nodes:
            return {}
        names = {node.metadata.name for node in nodes}
        deadline = self._service.deadline()
        reading = _Reading(names, ("describedObject", "name"), _fraction)
        cpu, memory = (
            reading.by_node(self._items(metric, deadline))
            for metric in ("node_cpu_usage_avg", "node_memory_usage_avg")
        )
        reading.log(self._service.address)
        return joined(cpu, memory, now)

    def _items(self, metric: str, deadline: float) -> list[Any]:
        answer = self._answer(metric, deadline)
        items = answer.get("items")
        if not isinstance(items, list):
            shown = reprlib.repr(answer)
            raise HttpError(self._service.address, f"expected values of {metric}, got {shown}")
        return items

    def _answer(self, metric: str, deadline: float) -> dict[str, Any]:
        """Ask in the version that the server has; the first one found is kept."""
        for version in (self._version,) if self._version else self.VERSIONS:
            path = f"/apis/custom.metrics.k8s.io/{version}/nodes/*/{metric}"
            try:
                answer = self._service.get(path, deadline=deadline)
            except HttpError as error:
                if error.status != 404 or version == self.VERSIONS[-1]:
                    self._version = ""
                    raise
            else:
                self._version = version
                return answer
        raise HttpError(self._service.address, f"{metric} does not exist any more")


def _fraction(_: str, item: Any) -> Sample | None:
    """Read a value of the custom metrics API; None if it is not a fraction with a time."""
    value, when = _at(item, "value"), _at(item, "timestamp")
    if not isinstance(value, str) or not isinstance(when, str):
        return None
    try:
        percent = parse_quantity(value) / 10**7
        return (percent, epoch(when)) if is_percent(percent) else None
    except InputError:
        return None


class MetricsServerUsage:
    """What nodes used a moment ago, from metrics-server, as percent of their capacity."""

    PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"

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
        answer = self._service.get(self.PATH, deadline=self._service.deadline())
        items = answer.get("items")
        if not isinstance(items, list):
            url, shown = f"{self._service.address}{self.PATH}", reprlib.repr(answer)
            raise HttpError(url, f"expected a list of node metrics, got {shown}")

        def usage(name: str, item: Any) -> Usage | None:
            return _of_capacity(item, by_name[name], now)

        reading = _Reading(by_name, ("metadata", "name"), usage)
        found = reading.by_node(items)
        reading.log(self._service.address)
        return found


def _of_capacity(item: Any, node: Node, now: float) -> Usage | None:
    """Read an item; None if a number in it, or the capacity of the node, is missing or wrong."""
    when, usage = _at(item, "timestamp"), Usage()
    if not isinstance(when, str):
        return None
    try:
        for resource in ("cpu", "memory"):
            amount, capacity = _at(item, "usage", resource), node.status.capacity.get(resource)
            if not isinstance(amount, str) or capacity is None:
                return None
            usage[resource] = 100.0 * parse_quantity(amount) / parse_quantity(capacity)
        usage["metricsTime"] = min(epoch(when), now)
    except (InputError, ZeroDivisionError):
        return None
    return usage if is_percent(usage["cpu"]) and is_percent(usage["memory"]) else None


class ElasticsearchUsage:
    """Metricbeat's load of the last minutes; a field of its documents must name the node."""

    BATCH = 10_000
    """Nodes of one search; a server refuses more than 65,536 terms or groups."""

    def __init__(self, service: Endpoint, *, index: str, host_field: str, period_s: float) -> None:
        self._service = service
        self._path = f"/{quote(index, safe='*,')}/_search"
        self._host_field = host_field
        self._period_s = round(period_s)

    def read(self, nodes: Sequence[Node], now: float) -> dict[str, Usage]:
        """Search for cpu and memory of all nodes: averages by the field that names the host.

        Raises:
            HttpError: a search failed.
        """
        names = [node.metadata.name for node in nodes]
        deadline = self._service.deadline()
        reading = _Reading(set(names), ("key",), lambda _, bucket: _averages(bucket, now))
        found: dict[str, Usage] = {}
        for first in range(0, len(names), self.BATCH):
            found |= reading.by_node(self._search(names[first : first + self.BATCH], deadline))
        reading.log(self._service.address)
        return found

    def _search(self, names: list[str], deadline: float) -> list[Any]:
        """Search once; return the result of each host."""
        answer = self._service.post(self._path, self._question(names), deadline=deadline)
        where = f"{self._service.address}{self._path}"
        if answer.get("timed_out") is True:
            raise HttpError(where, "searched only part of the documents, for lack of time")
        buckets = _at(answer, "aggregations", "nodes", "buckets")
        if not isinstance(buckets, list):
            raise HttpError(where, f"expected averages by node, got {reprlib.repr(answer)}")
        return buckets

    def _question(self, names: list[str]) -> dict[str, Any]:
        recent = {"range": {"@timestamp": {"gte": f"now-{self._period_s}s", "lt": "now"}}}
        averages = {
            "cpu": {"avg": {"field": "host.cpu.usage"}},
            "mem": {"avg": {"field": "system.memory.actual.used.pct"}},
            "latest": {"max": {"field": "@timestamp"}},
        }
        by_node = {"field": self._host_field, "size": len(names)}
        return {
            "size": 0,
            "query": {"bool": {"filter": [recent, {"terms": {self._host_field: names}}]}},
            "aggs": {"nodes": {"terms": by_node, "aggs": averages}},
        }


def _averages(bucket: Any, now: float) -> Usage | None:
    """Read the result of a host; None without both averages and a time."""
    cpu, memory, latest = (
        _aggregated(_at(bucket, key, "value")) for key in ("cpu", "mem", "latest")
    )
    if cpu is None or memory is None or latest is None:
        return None
    usage = {"cpu": 100 * cpu, "memory": 100 * memory, "metricsTime": min(latest / 1000, now)}
    return usage if is_percent(usage["cpu"]) and is_percent(usage["memory"]) else None


def _aggregated(value: Any) -> float | None:
    """Read the value of an aggregation; it is null if no document has the field."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return None
    return float(value) if value < 1e15 else None
