"""rescheduling: move running pods to better nodes, by strategies that are looked up by name."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from pumice.api.qos import qos_class
from pumice.api.wording import nearest
from pumice.core.resources import CPU, MEMORY, Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.framework.arguments import Duration, Fault, arg, bind_arguments
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession, node_load


@dataclass(kw_only=True)
class Strategy:
    """A strategy that finds tasks which should run elsewhere.

    The class line names it: ``class Spread(Strategy, name="spread")``.  Fields declared with
    ``arg`` are read from the strategy's ``params``.
    """

    name: ClassVar[str] = ""

    def __init_subclass__(cls, name: str = "", **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if name:
            cls.name = name

    def victims(self, ssn: PluginSession, running: list[int]) -> list[int]:
        """Choose among running tasks (rows) those to evict."""
        raise NotImplementedError


_BOTH = slice(CPU, MEMORY + 1)
_UNIT = np.array([0.001, 1.0])
"""Cpu in whole units and bytes; Volcano: shares are rounded in these units."""


@dataclass(kw_only=True, frozen=True)
class Percents:
    """A bound on measured load."""

    cpu: int = arg("cpu", default=100, doc="percent of CPU")
    memory: int = arg("memory", default=100, doc="percent of memory")

    @property
    def column(self) -> Column:
        """Both as (2, 1)."""
        return np.array([[self.cpu], [self.memory]], dtype=float)


@dataclass(kw_only=True)
class LowNodeUtilization(Strategy, name="lowNodeUtilization"):
    """Evict from nodes above a target, down to it, as long as idle nodes could take the pods.

    Idle is a node below every threshold and not cordoned.  An unmeasured node is
    neither busy nor idle.
    """

    thresholds: Percents = arg("thresholds", default_factory=Percents)
    target_thresholds: Percents = arg("targetThresholds", default_factory=Percents)

    def victims(self, ssn: PluginSession, running: list[int]) -> list[int]:
        """Choose tasks on busy nodes, the busiest first, equal ones by name."""
        nodes, load = ssn.snapshot.nodes, node_load(ssn)
        target = self.target_thresholds.column
        below = (load.percent < self.thresholds.column).all(axis=0)
        idle = below & load.known & ~nodes.unschedulable[: nodes.n]
        busy = ~idle & load.known & (load.percent > target).any(axis=0)
        if not idle.any() or not busy.any():
            return []
        room = _room(ssn.snapshot, idle, load.percent, target)
        on_node: dict[int, list[int]] = {}
        for row in running:
            on_node.setdefault(int(ssn.snapshot.tasks.node[row]), []).append(row)
        chosen: list[int] = []
        busiest_first = sorted(
            np.flatnonzero(busy).tolist(), key=lambda i: (-load.percent[:, i].sum(), nodes.names[i])
        )
        for node in busiest_first:
            rows = on_node.get(node, [])
            chosen += self._drain(ssn.snapshot, node, rows, load.percent[:, node].copy(), room)
        return chosen

    def _drain(
        self, snapshot: Snapshot, node: int, rows: list[int], percent: Column, room: Column
    ) -> list[int]:
        """Choose tasks of one node, the least valuable first; ``room`` shrinks with them.

        Volcano: only room of exactly zero ends it, overdrawn room does not.
        """
        target = self.target_thresholds.column[:, 0]
        capacity = snapshot.nodes.capacity_amounts[_BOTH, node] * _UNIT
        whole = np.where(capacity > 0, capacity, np.inf)
        chosen = []
        for row in sorted(rows, key=lambda row: _worth(snapshot, row)):
            if not (percent >= target).any() or (room == 0).any():
                break
            request = np.trunc(snapshot.request(row)[_BOTH])
            room -= request
            percent -= request * _UNIT * 100 / whole
            chosen.append(row)
        return chosen


def _room(snapshot: Snapshot, idle: Mask, percent: Column, target: Column) -> Column:
    """Add up what idle nodes can take before they reach the target (2,)."""
    nodes = snapshot.nodes
    offered = nodes.allocatable[_BOTH, : nodes.n]
    stated = nodes.allocatable[:, : nodes.n].any(axis=0)
    offered = np.where(stated, offered, nodes.capacity_amounts[_BOTH, : nodes.n])
    room = np.trunc(target * offered * 0.01) - np.trunc(percent * offered * 0.01)
    return np.asarray(room[:, idle].sum(axis=1))


def _worth(snapshot: Snapshot, row: int) -> tuple[bool, int, int]:
    """Order pods of a node: no priority, then low priority, then QoS class."""
    spec = snapshot.tasks.pods[row].spec  # type: ignore[attr-defined]
    return (spec.priority is not None, spec.priority or 0, qos_class(spec))


@dataclass(kw_only=True)
class Rescheduling(Plugin, name="rescheduling"):
    """Name victims for shuffle, by every strategy of the configuration.

    To add a strategy, derive a plugin with a longer ``registry`` and pass it to the scheduler
    under the same name, directly or by entry point.
    """

    simulator = SimulatorAssumptions(all_jobs=True)
    registry: ClassVar[Mapping[str, type[Strategy]]] = MappingProxyType(
        {LowNodeUtilization.name: LowNodeUtilization}
    )
    """Strategies by the name the configuration uses."""

    interval: Duration = arg(
        "interval",
        default=Duration(300.0),
        doc="shortest time between two runs, and from the start of the process to the first",
    )
    metrics_period: Duration = arg(
        "metricsPeriod",
        default=Duration(300.0),
        doc="accepted and without effect: `period` of the section `metrics` is used",
    )
    strategies: list[Any] = arg(
        "strategies",
        default_factory=list,
        doc="name and params of each; lowNodeUtilization if none is given",
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Make the strategies if it is time to run."""
        self._ssn = ssn
        self._due: list[Strategy] = []
        self._idle = False
        last = ssn.memory.get(self.name, ssn.started_at)
        if last is None or last + self.interval < ssn.now:
            ssn.memory[self.name] = ssn.now
            faults = [f"expected {fault.wanted}, got {fault.found}" for fault in self.faults()]
            ssn.warn(self.name, faults)
            self._due = self._make()

    def victims(self, running: list[int]) -> list[int]:
        """Join the choices of the strategies."""
        chosen: dict[int, None] = {}
        for strategy in self._due:
            chosen.update(dict.fromkeys(strategy.victims(self._ssn, running)))
        self._idle = bool(self._due) and not chosen
        return list(chosen)

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return when it runs next; a run that found nothing finds nothing later either."""
        last = ssn.memory.get(self.name, ssn.started_at)
        if last is None or self._idle:
            return None
        return float(last) + math.floor(self.interval) + 1.0

    def passed_over(self, memory: dict[str, Any], now: float) -> None:
        """Advance the time of the last run: runs happen whether or not there is a pod to move."""
        turn = math.floor(self.interval) + 1.0
        if self.name in memory:
            memory[self.name] += max(0, (now - 1.0 - memory[self.name]) // turn) * turn

    def faults(self) -> Iterator[Fault]:
        """Report strategies that do not exist and params they cannot use."""
        for entry in self.strategies:
            name, cls, params = self._read(entry)
            if cls is None:
                near = nearest(name, self.registry)
                hint = f"did you mean '{near}'?" if near else f"known: {', '.join(self.registry)}"
                yield Fault("strategies", "a known strategy", name or entry, hint)
            elif params is None:
                yield Fault("strategies", f"a mapping as params of {name}", entry["params"])
            else:
                for problem in bind_arguments(cls, params, path=name)[1]:
                    hint = f"{problem.field}; {problem.hint}".removesuffix("; ")
                    yield Fault("strategies", problem.wanted, problem.found, hint)

    def _read(self, entry: Any) -> tuple[str, type[Strategy] | None, Mapping[str, Any] | None]:
        """Return the name, the class and the params of an entry; None for a malformed one."""
        given: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {}
        name = given.get("name")
        name = name if isinstance(name, str) else ""
        params = given.get("params") or {}
        return name, self.registry.get(name), params if isinstance(params, Mapping) else None

    def _make(self) -> list[Strategy]:
        """Make each configured strategy; of two entries with one name the last counts."""
        made: dict[str, Strategy] = {}
        for entry in self.strategies or [{"name": LowNodeUtilization.name}]:
            name, cls, params = self._read(entry)
            if cls is not None and params is not None:
                made[name] = cls(**bind_arguments(cls, params)[0])
        return list(made.values())
