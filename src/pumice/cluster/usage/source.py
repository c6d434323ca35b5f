"""The one method of all sources of node usage, the source without a network, and a cache.

The result of a source is the ``node_usage`` of ``Scheduler.cycle``.  Whether a measurement is
too old is decided by the plugins, from its ``metricsTime``.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from pumice.api.nodes import Node
from pumice.api.usage_conf import UsageConf
from pumice.errors import PumiceError

log = logging.getLogger(__name__)

Usage: TypeAlias = dict[str, float]
"""``cpu`` and ``memory`` in percent of the node's capacity, ``metricsTime`` in epoch seconds."""

Sample: TypeAlias = tuple[float, float]
"""Percent and when."""

_MOST: Final = 1000.0


class UsageSource(Protocol):
    """A source of node usage."""

    def read(self, nodes: Sequence[Node], now: float) -> dict[str, Usage]:
        """Return the usage of those nodes for which both cpu and memory are known.

        Raises:
            PumiceError: no node could be read.
        """


class StaticUsage:
    """Stated usage, as in a scenario; without a time it is current."""

    def __init__(self, values: Mapping[str, Mapping[str, float]] | None = None) -> None:
        self._values = dict(values or {})

    def read(self, nodes: Sequence[Node], now: float) -> dict[str, Usage]:
        """Return the stated usage of these nodes."""
        names = [node.metadata.name for node in nodes]
        return {
            name: {"metricsTime": now, **self._values[name]}
            for name in names
            if name in self._values
        }


class UsageCache:
    """The last measurement of each node; a source that fails leaves the older ones in place.

    One thread may refresh while another reads the latest.
    """

    def __init__(self, source: UsageSource, period: float = UsageConf().interval_s) -> None:
        self._source = source
        self._period = period
        self._asked: float | None = None
        self._latest: dict[str, Usage] = {}

    def refresh(self, now: float, nodes: Sequence[Node]) -> bool:
        """Read the source if a period has passed since the last time; return whether it did."""
        if self._asked is not None and 0 <= now - self._asked < self._period:
            return False
        self._asked = now
        try:
            found = self._source.read(nodes, now)
        except PumiceError as error:
            log.warning("node usage could not be read: %s", error)
            return False
        names = [node.metadata.name for node in nodes]
        known = {name: self._latest[name] for name in names if name in self._latest}
        self._latest = known | found
        return True

    def latest(self) -> dict[str, Usage]:
        """Return the last measurement of each node."""
        return dict(self._latest)


def joined(cpu: Mapping[str, Sample], memory: Mapping[str, Sample], now: float) -> dict[str, Usage]:
    """Return the usage of nodes with a sample of either resource; the older one sets the time."""
    return {
        name: {
            "cpu": cpu[name][0],
            "memory": memory[name][0],
            "metricsTime": min(cpu[name][1], memory[name][1], now),
        }
        for name in cpu
        if name in memory
    }


def is_percent(number: float) -> bool:
    """Return whether a load is plausible; a little above 100 is real, a hundred times is not."""
    return 0.0 <= number <= _MOST  # false for nan
