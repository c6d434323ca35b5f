"""How many jobs of a class could get something in the next cycle, at most.

Upper bounds that cost little.  They hold for plugins and actions that are known here; under any
other configuration every job takes part in every cycle.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.api.conf import PluginConf, SchedulerConf
from pumice.core.resources import STEP, Column
from pumice.core.snapshot import Snapshot
from pumice.framework.admission import Reservations, divide_by_weight, real_capability
from pumice.plugins.capacity.limits import Limits
from pumice.plugins.capacity.tree import QueueTree
from pumice.sim.classes import ClassBook, JobClass

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
    """What holds jobs back before they are let in: overcommit, queues, nothing, unknown."""
    overcommit: float = 1.0
    quota: str = ""
    """Who holds queues to a limit while nodes are given away: proportion, capacity, nobody."""
    has_tree: bool = False

    @classmethod
    def of(cls, conf: SchedulerConf) -> "Rules":
        """Read them from a configuration."""
        names = {plugin.name for tier in conf.tiers for plugin in tier.plugins}
        actions = frozenset(conf.actions)
        strange = bool(names - _BOUNDED) or bool(actions - _PLACING - _EVICTING)
        admission, factor = _admission(conf)
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
            quota=limiting[0].name if limiting else "",
            has_tree=bool(limiting) and limiting[0].switches.get("enableHierarchy", False),
        )


def _admission(conf: SchedulerConf) -> tuple[str, float]:
    """Find who votes on letting jobs in: the first tier with a vote decides alone."""
    if "enqueue" not in conf.actions:
        return "nothing", 1.0
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
        return "overcommit", _factor(voters["overcommit"].arguments)
    if not voters:
        return "nothing", 1.0
    return ("queues" if voters.keys() & {"proportion", "capacity"} else "unknown"), 1.0


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

    def __init__(self, snapshot: Snapshot, book: ClassBook, rules: Rules) -> None:
        self._snapshot = snapshot
        self._book = book
        self._rules = rules
        self._total = snapshot.total()
        self._quotas = _quotas(snapshot, self._total, rules)
        self.refresh()

    def refresh(self) -> None:
        """Look at the cluster anew."""
        nodes = self._snapshot.nodes
        self._room = nodes.allocatable if self._rules.evicts else nodes.future_idle
        self._in_all: Column = self._room.sum(axis=1) + STEP * nodes.n
        self._copies: dict[int, int] = {}
        self._to_admit: Column | None = None
        self._reserved: Column | None = None
        self._left: Column | None = None

    def startable(self, kind: JobClass) -> int:
        """Say how many jobs of a class could start, if all room were theirs."""
        n = (self._in_all[kind.least_rows] / kind.least_amounts).min()
        if n < 1:
            return 0
        n = min(n, self._within_quota(kind))
        if n < 1 or kind.pod_shape < 0:
            return int(n)
        return min(int(n), self._pods(kind.pod_shape) // kind.to_start)

    def _within_quota(self, kind: JobClass) -> float:
        """Say how many jobs of a class their queue may take."""
        row = self._snapshot.queues.row_of.get(kind.queue)
        rows = kind.reserve_rows
        if self._rules.evicts or self._quotas is None or row is None or not len(rows):
            return ALL
        if self._left is None:
            self._left = self._quotas()
        found: float = (self._left[rows, row] / kind.reserve_amounts).min()
        return max(np.floor(found + _ROUNDING), 0.0)

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
        """Say how many jobs of a class could be let in, if all room were theirs."""
        match self._rules.admission:
            case "nothing":
                return self.startable(kind)
            case "overcommit":
                room = self._overcommitted()
            case "queues":
                room = self._queue_room(kind.queue)
            case _:
                return ALL
        rows = kind.reserve_rows
        if not len(rows):
            return ALL
        return max(int((room[rows] / kind.reserve_amounts).min() + _ROUNDING), 0)

    def _overcommitted(self) -> Column:
        if self._to_admit is None:
            snapshot = self._snapshot
            room = self._total * self._rules.overcommit - snapshot.nodes.used.sum(axis=1)
            self._to_admit = room - Reservations(snapshot).total()
        return self._to_admit

    def _queue_room(self, queue: str) -> Column:
        snapshot = self._snapshot
        if self._reserved is None:
            self._reserved = Reservations(snapshot).by_queue()
        row = snapshot.queues.row_of.get(queue)
        taken = 0.0 if row is None else self._reserved[:, row]
        return np.asarray(self._total - taken)


def _quotas(snapshot: Snapshot, total: Column, rules: Rules) -> Callable[[], Column] | None:
    """Give a way to ask what each queue may still take (R, Q)."""
    queues = snapshot.queues
    if rules.quota == "proportion":
        limit = real_capability(snapshot, total)
        return lambda: divide_by_weight(snapshot, total, limit) - queues.booked
    if rules.quota != "capacity":
        return None
    tree = QueueTree.grow(snapshot) if rules.has_tree else QueueTree.flat(snapshot)
    of_tree = rules.has_tree
    limits = Limits.of_tree(snapshot, total, tree) if of_tree else Limits.flat(snapshot, total)

    def left() -> Column:
        out = np.full_like(limits.real, np.inf)
        for row in tree.above:
            chain = tree.chain(row)
            held = queues.booked @ chain.members
            out[:, row] = (limits.real[:, chain.rows] - held).min(axis=1)
        return out

    return left
