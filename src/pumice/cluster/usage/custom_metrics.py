"""Node usage from the custom metrics API of Kubernetes, which Prometheus' adapter serves.

Two requests for all nodes together: the rules of the adapter must offer ``node_cpu_usage_avg`` and
``node_memory_usage_avg`` as parts of one.
"""

import reprlib
from collections.abc import Sequence
from typing import Any, Final

from pumice.api.nodes import Node
from pumice.api.quantity import parse_quantity
from pumice.api.times import epoch
from pumice.cluster.usage.endpoint import JsonService
from pumice.cluster.usage.source import DroppedSamples, Sample, Usage, is_percent, joined
from pumice.errors import HttpError, InputError

_GROUP: Final = "/apis/custom.metrics.k8s.io"
_VERSIONS: Final = ("v1beta2", "v1beta1")
_CPU: Final = "node_cpu_usage_avg"
_MEMORY: Final = "node_memory_usage_avg"


class CustomMetricsUsage:
    """Load of the last minutes, as the rules of the adapter average it."""

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
        deadline, dropped = self._service.deadline(), DroppedSamples()
        cpu = self._ask(_CPU, names, deadline, dropped)
        memory = self._ask(_MEMORY, names, deadline, dropped)
        dropped.log(self._service.address)
        return joined(cpu, memory, now)

    def _ask(
        self, metric: str, names: set[str], deadline: float, dropped: DroppedSamples
    ) -> dict[str, Sample]:
        answer = self._answer(metric, deadline)
        items = answer.get("items")
        if not isinstance(items, list):
            shown = reprlib.repr(answer)
            raise HttpError(self._service.address, f"wanted values of {metric}, found {shown}")
        found: dict[str, Sample] = {}
        for item in items:
            name, sample = _name(item), _sample(item)
            if name is not None and name not in names:
                continue
            if name is None or sample is None:
                dropped.add(name, item)
            else:
                found.setdefault(name, sample)
        return found

    def _answer(self, metric: str, deadline: float) -> dict[str, Any]:
        """Ask in the version that the server has; the first one found is kept."""
        for version in (self._version,) if self._version else _VERSIONS:
            path = f"{_GROUP}/{version}/nodes/*/{metric}"
            try:
                answer = self._service.get(path, deadline=deadline)
            except HttpError as error:
                if error.status != 404 or version == _VERSIONS[-1]:
                    self._version = ""
                    raise
            else:
                self._version = version
                return answer
        raise HttpError(self._service.address, f"{metric} does not exist any more")


def _name(item: Any) -> str | None:
    described = item.get("describedObject") if isinstance(item, dict) else None
    name = described.get("name") if isinstance(described, dict) else None
    return name if isinstance(name, str) else None


def _sample(item: Any) -> Sample | None:
    """Read a value; None if it is not a fraction with a time."""
    if not isinstance(item, dict):
        return None
    value, when = item.get("value"), item.get("timestamp")
    if not isinstance(value, str) or not isinstance(when, str):
        return None
    try:
        percent = parse_quantity(value) / 10**7
        return (percent, epoch(when)) if is_percent(percent) else None
    except InputError:
        return None
