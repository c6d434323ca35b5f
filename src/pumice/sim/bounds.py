"""How many jobs of a class could get something in the next cycle, at most.

Upper bounds that cost little.  They hold for plugins and actions that are known here; under any
other configuration every job takes part in every cycle.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.api.conf import PluginConf, SchedulerConf
from pumice.core.resources import STEP, Column
from pumice.core.snapshot import Snapshot
from pumice.framework.admission import (
    Reservations,
    divide_by_weight,
    elastic_by_queue,
    real_capability,
)
from pumice.plugins.capacity.limits import Limits
from pumice.plugins.capacity.tree import QueueTree
from pumice.sim.job_classes import Items, JobClass, JobClasses

ALL = 1 << 60
"""More jobs than there are."""
_ROUNDING = 1e-9
"""A quotient that falls short of a whole number by less is that number."""

_BOUNDED = frozenset(
    {
        *("binpack", "capacity", "conformance", "drf", "gang", "network-topology-aware"),
        *("nodegroup", "nodeorder", "numaaware", "overcommit", "pdb", "predicates", "priority"),
        *("proportion", "resource-strategy-fit", "resourcequota", "task-topology", "usage"),
        *("deviceshare", "cdp"),
    }
)
"""Plugins that let no job in beyond the room there is, and whatever the hour."""

_EVICTING = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim"})
_PLACING = frozenset({"enqueue", "allocate", "backfill"})
_TIMED = frozenset({"cdp", "usage"})
"""Plugins whose answers change with time alone."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a configuration lets the simulator take for granted."""

    shows_all: bool
    """Whether every waiting job must take part in every cycle."""
    ticks: bool
    """Whether a cycle may do something though nothing has happened since the last."""
    settles: bool
    """Whether a job that a cycle refused is refused until something is given back."""
    evicts: bool
    admission: str
    """What holds jobs back before they are admitted: overcommit, queues, nothing, unknown."""
    overcommit: float = 1.0
    voter: str = ""
    """Which plugin holds jobs back by their queue: proportion, capacity."""
    quota: str = ""
    """Who holds queues to a limit while nodes are given away: proportion, capacity, nobody."""
    has_tree: bool = False

    @classmethod
    def of(cls, conf: SchedulerConf) -> "Rules":
        """Read them from a configuration."""
        names = {plugin.name for tier in conf.tiers for plugin in tier.plugins}
        actions = frozenset(conf.actions)
        strange = bool(names - _BOUNDED) or bool(actions - _PLACING - _EVICTING)
        admission, factor, voter = _admission(conf)
        limiting = [
            plugin
            for tier in conf.tiers
            for plugin in tier.plugins
            if plugin.name in ("proportion", "capacity")
            and plugin.switches.get("enabledAllocatable", True)
        ]
        return cls(
            shows_all=strange,
            ticks=strange or bool(names & _TIMED),
            settles=not strange and not names & _TIMED and not actions & _EVICTING,
            evicts=bool(actions & _EVICTING),
            admission=admission,
            overcommit=factor,
            voter=voter,
            quota=limiting[0].name if limiting else "",
            has_tree=any(plugin.switches.get("enableHierarchy", False) for plugin in limiting),
        )


def _admission(conf: SchedulerConf) -> tuple[str, float, str]:
    """Find who votes on admitting jobs: the first tier with a vote decides alone."""
    if "enqueue" not in conf.actions:
        return "nothing", 1.0, ""
    voters: dict[str, PluginConf] = {}
    for tier in conf.tiers:
        voters = {
            plugin.name: plugin
            for plugin in tier.plugins
            if plugin.name in ("overcommit", "proportion", "capacity", "resourcequota")
            and plugin.switches.get("enableJobEnqueued", True)
        }
        if voters:
            break
    if "overcommit" in voters:
        return "overcommit", _factor(voters["overcommit"].arguments), ""
    if not voters:
        return "nothing", 1.0, ""
    voter = next((name for name in voters if name in ("proportion", "capacity")), "")
    return ("queues" if voter else "unknown"), 1.0, voter


def _factor(arguments: Mapping[str, Any]) -> float:
    try:
        return max(1.0, float(arguments.get("overcommit-factor", 1.2)))
    except (TypeError, ValueError):
        return 1.2


class Bounds:
    """Bounds for the cluster as it is; ``refresh`` before each use.

    Nodes and queues stay as they are during a simulation, so that what follows from them alone is
    worked out once.
    """

    def __init__(self, snapshot: Snapshot, book: JobClasses, rules: Rules) -> None:
        self._snapshot = snapshot
        self._book = book
        self._rules = rules
        self._total = snapshot.total()
        self._quotas = _quotas(rules.quota, snapshot, self._total, rules)
        self._doors = _quotas(rules.voter, snapshot, self._total, rules)
        self.refresh()

    def refresh(self) -> None:
        """Look at the cluster anew."""
        nodes = self._snapshot.nodes
        self._room = nodes.allocatable if self._rules.evicts else nodes.future_idle
        self._in_all: list[float] = (self._room.sum(axis=1) + STEP * nodes.n).tolist()
        self._copies: dict[int, int] = {}
        self._to_admit: list[float] | None = None
        self._enterable: list[list[float]] | None = None
        self._left: list[list[float]] | None = None

    def startable(self, kind: JobClass) -> int:
        """Say how many jobs of a class could start, if all room were theirs."""
        n = _times(kind.least_items, self._in_all)
        if n < 1:
            return 0
        n = min(n, self._within_quota(kind))
        if n < 1 or kind.pod_shape < 0:
            return int(n)
        return min(int(n), self._pods(kind.pod_shape) // kind.to_start)

    def _within_quota(self, kind: JobClass) -> float:
        """Say how many jobs of a class their queue may take."""
        row = self._snapshot.queues.row_of.get(kind.queue)
        if self._rules.evicts or self._quotas is None or row is None:
            return ALL
        if self._left is None:
            self._left = self._quotas.to_take().T.tolist()
        return max(math.floor(_times(kind.quota_items, self._left[row]) + _ROUNDING), 0)

    def _pods(self, shape: int) -> int:
        """Count the equal pods that fit on all nodes together."""
        known = self._copies.get(shape)
        if known is None:
            request = self._book.pod_requests[shape]
            rows = np.flatnonzero(request > 0)
            copies = np.floor((self._room[rows] + STEP) / request[rows, None]).min(axis=0)
            known = self._copies[shape] = int(np.maximum(copies, 0.0).sum())
        return known

    def admissible(self, kind: JobClass) -> int:
        """Say how many jobs of a class could be admitted, if all room were theirs."""
        match self._rules.admission:
            case "overcommit":
                room = self._overcommitted()
            case "queues":
                room = self._queue_room(kind.queue)
            case _:
                return ALL
        return max(int(_times(kind.reserve_items, room) + _ROUNDING), 0)

    def _overcommitted(self) -> list[float]:
        if self._to_admit is None:
            snapshot = self._snapshot
            room = self._total * self._rules.overcommit - snapshot.nodes.used.sum(axis=1)
            self._to_admit = (room - Reservations(snapshot).total()).tolist()
        return self._to_admit

    def _queue_room(self, queue: str) -> list[float]:
        snapshot = self._snapshot
        row = snapshot.queues.row_of.get(queue)
        if self._doors is None or row is None:
            return [math.inf] * len(self._total)
        if self._enterable is None:
            self._enterable = self._doors.to_admit().T.tolist()
        return self._enterable[row]


def _times(items: Items, room: list[float]) -> float:
    """Say how often amounts are contained in others, not always a whole number of times."""
    return min([ALL, *(room[row] / amount for row, amount in items)])


class _ByWeight:
    """Queues that are held to their part of the cluster by weight."""

    def __init__(self, snapshot: Snapshot, total: Column) -> None:
        self._snapshot = snapshot
        self._total = total
        self._limit = real_capability(snapshot, total)

    def to_take(self) -> Column:
        """Say what each queue may still hold (R, Q)."""
        part = divide_by_weight(self._snapshot, self._total, self._limit)
        return np.asarray(part - self._snapshot.queues.allocated_or_pipelined)

    def to_admit(self) -> Column:
        """Say what each queue may still reserve (R, Q)."""
        return self._limit - _spoken_for(self._snapshot)


class _Stated:
    """Queues that are held to stated limits, their own and those of all queues above."""

    def __init__(self, snapshot: Snapshot, total: Column, *, has_tree: bool) -> None:
        self._snapshot = snapshot
        self._tree = QueueTree.grow(snapshot) if has_tree else QueueTree.flat(snapshot)
        limits = (
            Limits.of_tree(snapshot, total, self._tree)
            if has_tree
            else Limits.flat(snapshot, total)
        )
        self._real = limits.real

    def to_take(self) -> Column:
        """Say what each queue may still hold (R, Q)."""
        return self._left(self._snapshot.queues.allocated_or_pipelined)

    def to_admit(self) -> Column:
        """Say what each queue may still reserve (R, Q)."""
        return self._left(_spoken_for(self._snapshot))

    def _left(self, used: Column) -> Column:
        out = np.full_like(self._real, np.inf)
        for row in self._tree.above:
            chain = self._tree.chain(row)
            out[:, row] = (self._real[:, chain.rows] - used @ chain.members).min(axis=1)
        return out


def _spoken_for(snapshot: Snapshot) -> Column:
    """Sum by queue what is held or reserved and will not be given back first (R, Q)."""
    reserved = Reservations(snapshot).by_queue()
    return np.asarray(
        snapshot.queues.allocated_or_pipelined + reserved - elastic_by_queue(snapshot)
    )


def _quotas(
    name: str, snapshot: Snapshot, total: Column, rules: Rules
) -> _ByWeight | _Stated | None:
    """Take up the limits that a plugin sets."""
    if name == "proportion":
        return _ByWeight(snapshot, total)
    return _Stated(snapshot, total, has_tree=rules.has_tree) if name == "capacity" else None
