"""Node usage from Prometheus and compatible services: node exporter's load, averaged.

Two queries for all nodes together.  Volcano sends them for each node; there a node
that is not measured counts as idle, here it is left out.
"""

import logging
import re
import reprlib
from collections.abc import Sequence
from typing import Any, Final

from pumice.api.nodes import Node
from pumice.cluster.usage.endpoint import JsonService
from pumice.cluster.usage.source import DroppedSamples, Sample, Usage, is_percent, joined
from pumice.errors import HttpError

log = logging.getLogger(__name__)

_PATH: Final = "/api/v1/query"
_LABEL: Final = "instance"
_CPU: Final = (
    "avg_over_time(clamp_min(100 - 100 * avg by (instance) "
    '(rate(node_cpu_seconds_total{mode="idle"}[5m])), 0)[%dms:30s])'
)
_MEMORY: Final = (
    "100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)"
    "[%dms:30s])"
)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,4})?")
_LATEST: Final = 1e11  # seconds; a time beyond it is invalid


class PrometheusUsage:
    """Load of the last minutes; the label ``instance`` must be the name of the node."""

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
        deadline, dropped = self._service.deadline(), DroppedSamples()
        cpu = self._ask(_CPU, now, deadline, names, dropped)
        memory = self._ask(_MEMORY, now, deadline, names, dropped)
        dropped.log(self._service.address)
        return joined(cpu, memory, now)

    def _ask(
        self, query: str, now: float, deadline: float, names: set[str], dropped: DroppedSamples
    ) -> dict[str, Sample]:
        """Ask one query; of several samples of a node the first that can be used counts."""
        asked = {"query": query % self._period_ms, "time": f"{now:.3f}"}
        answer = self._service.get(_PATH, asked, deadline=deadline)
        found: dict[str, Sample] = {}
        strangers: list[str] = []
        for each in self._vector(answer):
            name, sample = _name(each), _sample(each)
            if name is not None and name not in names:
                strangers.append(name)
            elif name is None or sample is None:
                dropped.add(name, each)
            else:
                found.setdefault(name, sample)
        if strangers and not found:
            log.warning(
                "%s: no sample is for a node of this cluster; the label instance must be the name "
                "of the node, found %.80r",
                self._service.address,
                strangers[0],
            )
        return found

    def _vector(self, answer: dict[str, Any]) -> list[Any]:
        data = answer.get("data")
        if answer.get("status") == "success" and isinstance(data, dict):
            result = data.get("result")
            if data.get("resultType") == "vector" and isinstance(result, list):
                return result
        url, found = f"{self._service.address}{_PATH}", reprlib.repr(answer)
        raise HttpError(url, f"wanted a vector of samples, found {found}")


def _name(each: Any) -> str | None:
    metric = each.get("metric") if isinstance(each, dict) else None
    name = metric.get(_LABEL) if isinstance(metric, dict) else None
    return name if isinstance(name, str) else None


def _sample(each: Any) -> Sample | None:
    """Read a sample; None unless it is a percentage with a time."""
    value = each.get("value") if isinstance(each, dict) else None
    if not isinstance(value, list) or len(value) != 2:
        return None
    when, text = value
    if isinstance(when, bool) or not isinstance(when, int | float) or not 0 <= when <= _LATEST:
        return None
    if not isinstance(text, str) or not _NUMBER.fullmatch(text) or not is_percent(float(text)):
        return None
    return float(text), float(when)
