"""Upper bounds on how many jobs of a class could get something in the next cycle.

They cost little.  They hold if all plugins and actions declare that they are bounded;
otherwise every job takes part in every cycle.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pumice.actions import ACTIONS
from pumice.core.resources import STEP, Column, has_exact_sums
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin
from pumice.framework.queue_limits.limits import AdmissionLimit, ClusterLimit, QueueLimits
from pumice.framework.queue_limits.weighted import WeightedLimits, queues_with_jobs
from pumice.sim.eviction_rules import EvictionRules
from pumice.sim.job_classes import Amounts, JobClass, JobClasses
from pumice.sim.job_run import JobRun
from pumice.sim.queue_ledger import QueueLedger
from pumice.sim.sim_cluster import SimCluster

_ABOUT_NODES = [
    hook.__name__
    for hook in (
        Plugin.filter_shape,
        Plugin.filter_nodes,
        Plugin.score_shape,
        Plugin.score_nodes,
    )
]
"""Hooks whose answers about nodes may be kept."""
_OF_GANGS = [hook.__name__ for hook in (Plugin.job_valid, Plugin.job_ready, Plugin.on_close)]
"""Hooks that together start gangs whole and report it."""


@dataclass(frozen=True, slots=True)
class Shortcuts:
    """The shortcuts that all plugins and actions of a configuration allow."""

    leave_jobs_out: bool
    """Whether jobs that could get nothing need not take part in a cycle."""
    await_events: bool
    """Whether no cycle is needed as long as nothing happens."""
    refusals_last: bool
    """Whether a job that a cycle refused is refused until something is released."""
    evicts: bool
    evictions: EvictionRules | None = None
    """Who may be evicted, if that is known of a configuration that evicts."""
    keep_fits: bool = False
    """Whether the answer of a node holds until a pod is added to it or leaves it."""
    admitting: tuple[Plugin, ...] = ()
    """The plugins that decide whether a job is admitted; none: every job is."""
    limiting: tuple[Plugin, ...] = ()
    """The plugins that may refuse a queue one more task."""
    starts_alone: bool = False
    """Whether a gang of equal pods starts on its best nodes as soon as all limits allow it."""
    oldest_first: bool = False
    """Whether queues take jobs of equal priority by age."""
    by_share: bool = False
    """Whether queues are taken by their share of what they deserve, and not merely by age."""

    @classmethod
    def of(cls, actions: Sequence[str], tiers: Iterable[Iterable[Enabled]]) -> "Shortcuts":
        """Ask the plugins and actions of a configuration."""
        tiers = [list(tier) for tier in tiers]
        entries = [entry for tier in tiers for entry in tier]
        declared = [entry.plugin.simulator for entry in entries]
        declared += [ACTIONS[action].simulator for action in actions]
        bounded = all(each.bounded for each in declared)
        timed = any(each.timed for each in declared)
        evicts = any(each.evicts for each in declared)
        forgets = any(each.forgets for each in declared)
        all_jobs = any(each.all_jobs for each in declared)
        asked = [entry for entry in entries if any(map(entry.offers, _ABOUT_NODES))]
        keep_fits = all(entry.plugin.simulator.nodes_alone for entry in asked)
        limiting = [entry for entry in entries if entry.offers("allocatable")]
        ordering = [entry for entry in entries if entry.offers("order_queues")]
        lasts = bounded and not (timed or forgets or all_jobs)
        refusals_last = lasts and not evicts
        starts_alone = refusals_last and keep_fits and _starts_alone(actions, entries)
        return cls(
            leave_jobs_out=bounded and not all_jobs,
            await_events=bounded and not timed,
            refusals_last=refusals_last,
            evicts=evicts,
            evictions=EvictionRules.of(actions, tiers) if lasts and evicts else None,
            keep_fits=keep_fits,
            admitting=_admitting(tiers) if "enqueue" in actions else (),
            limiting=tuple(entry.plugin for entry in limiting),
            starts_alone=starts_alone,
            oldest_first=starts_alone and ordering in ([], limiting) and _oldest_first(entries),
            by_share=bool(ordering),
        )


def _admitting(tiers: Iterable[Iterable[Enabled]]) -> tuple[Plugin, ...]:
    """Find the plugins that vote on admitting jobs: the first tier with a vote decides alone."""
    for tier in tiers:
        voters = tuple(entry.plugin for entry in tier if entry.offers("job_enqueueable"))
        if voters:
            return voters
    return ()


def _starts_alone(actions: Sequence[str], entries: Sequence[Enabled]) -> bool:
    """Return whether gangs start whole, one after the other, and each limit is known."""
    if tuple(actions) not in (("enqueue", "allocate"), ("enqueue", "allocate", "backfill")):
        return False
    limiting = [entry for entry in entries if entry.offers("allocatable")]
    holding_back = [entry for entry in entries if entry.offers("overused")]
    gangs = [entry for entry in entries if entry.plugin.name == "gang"]
    return (
        all(entry.plugin.simulator.starts_alone and not entry.plugin.hierarchy for entry in entries)
        and len(limiting) < 2
        and holding_back == limiting
        and any(all(map(entry.offers, _OF_GANGS)) for entry in gangs)
        and any(entry.plugin.name == "predicates" for entry in entries)
    )


def _oldest_first(entries: Sequence[Enabled]) -> bool:
    """Return whether jobs of equal priority are ordered by age, and queues are not in pairs."""
    ordering = [entry.plugin for entry in entries if entry.offers("order_jobs")]
    return all(plugin.simulator.oldest_first for plugin in ordering) and not any(
        entry.offers("compare_queues") for entry in entries
    )


UNBOUNDED = 1 << 60
"""A number above any number of jobs."""
_ROUNDING = 1e-9
"""A quotient that falls short of a whole number by less is that number."""


class Bounds:
    """Bounds for the cluster as it is; ``refresh`` before each use.

    Nodes and queues stay as they are during a simulation, so that what follows from them alone is
    computed once.
    """

    def __init__(
        self,
        cluster: SimCluster,
        classes: JobClasses,
        shortcuts: Shortcuts,
    ) -> None:
        self._cluster = cluster
        self.snapshot = snapshot = cluster.snapshot
        self._classes = classes
        self._evicts = shortcuts.evicts
        self.by_share = shortcuts.by_share
        total = snapshot.total()
        limits = (plugin.queue_limits(snapshot, total) for plugin in shortcuts.limiting)
        self.limits = next((each for each in limits if each is not None), None)
        self.admission_limits = [
            plugin.admission_limit(snapshot, total) for plugin in shortcuts.admitting
        ]
        known = [limit for limit in self.admission_limits if limit is not None]
        # of those that must all be kept, one for the whole cluster costs least
        self._admission = min(known, key=lambda each: isinstance(each, QueueLimits), default=None)
        self._spares: dict[int, list[float]] = {}
        self._room_without_jobs: list[float] | None = None
        """What all nodes together could hold if there were no jobs (R,), where sums are exact."""
        self.refresh()

    @property
    def follow_demand(self) -> bool:
        """Whether bounds may grow because jobs have arrived: limits of queues then change."""
        return self.limits is not None and self.limits.follows_demand

    def refresh(self) -> None:
        """Read the cluster again; expensive bounds are computed on first use."""
        self._ledger: QueueLedger | None = self._cluster.ledger()
        self._room: Column | None = None
        self._in_all: list[float] | None = None
        self._pods_by_shape: dict[int, int] = {}
        self._holdable: list[list[float]] | None = None
        self._reservable: list[list[float]] | None = None
        self._committed: list[list[float]] | None = None
        self._clear: dict[int, list[float]] = {}
        self._parts: Mapping[int, list[float]] | None = None
        self._idle_and_reserved: tuple[ClusterLimit, tuple[list[float], list[float]]] | None = None

    def startable(self, kind: JobClass) -> int:
        """Return how many jobs of a class could start, if all room were theirs."""
        n = times_within(kind.least_amounts, self._room_in_all())
        if n < 1:
            return 0
        n = min(n, self._within_queue(kind))
        if n < 1 or kind.pod_shape < 0:
            return int(n)
        return min(int(n), self._pods(kind.pod_shape) // kind.to_start)

    def knows_limits(self, runs: Iterable[JobRun]) -> bool:
        """Return whether every limit on jobs, of queues that are open, is a known one."""
        if not self._are_limits_known:
            return False
        queues = self.snapshot.queues
        rows = {queues.row_of.get(run.kind.queue) for run in runs}
        return all(row is not None and queues.open[row] for row in rows)

    @cached_property
    def _are_limits_known(self) -> bool:
        limits = self.limits
        return (limits is None or isinstance(limits, WeightedLimits)) and all(
            isinstance(limit, ClusterLimit | WeightedLimits) for limit in self.admission_limits
        )

    def clear_room(self, queue: str) -> list[float]:
        """Return what jobs of a queue may reserve for certain; more may be possible."""
        row = self.snapshot.queues.row_of[queue]
        known = self._clear.get(row)
        if known is None:
            if self._admission is None:
                known = [math.inf] * len(self.snapshot.resources)
            else:
                pairs = zip(self._left(row), self._spare(row), strict=True)
                known = [left - spare for left, spare in pairs]
            self._clear[row] = known
        return known

    def held(self, queue: int) -> list[float]:
        """Return what a queue holds or was promised (R,)."""
        queues = self.snapshot.queues
        if self._ledger is not None:
            return self._ledger.of(queues.names[queue]).held
        self._cluster.write_due()
        return queues.allocated_or_pipelined[:, queue].tolist()

    def deserved(self, limits: WeightedLimits, queue: int) -> list[float]:
        """Return what a queue deserves at this moment (R,); without jobs that is nothing."""
        if self._parts is None:
            self._parts = self._divide(limits)
        return self._parts.get(queue) or [0.0] * len(self.snapshot.resources)

    @property
    def is_divided(self) -> bool:
        """Whether it is known what queues deserve."""
        return self._parts is not None

    def _divide(self, limits: WeightedLimits) -> Mapping[int, list[float]]:
        busy = {} if self._ledger is None else self._ledger.busy()
        rows = self.snapshot.queues.row_of
        parts = limits.parts({rows[queue]: sums.asked for queue, sums in busy.items()})
        if parts is None:
            self._cluster.write_due()
            parts = dict(enumerate(limits.current().deserved.T.tolist()))
        return parts

    def _spare(self, queue: int) -> list[float]:
        """Return how much must be left of the chosen limit, so that no other one is exceeded.

        What a queue holds and reserves is never more than what is used and reserved in all.
        """
        known = self._spares.get(queue)
        if known is None:
            own, spare = self._admission, np.ones(len(self.snapshot.resources))
            for limit in self.admission_limits:
                if isinstance(own, ClusterLimit) and isinstance(limit, WeightedLimits):
                    spare = np.maximum(spare, own.total - limit.real_capability[:, queue] + 1.0)
                elif limit is not own:
                    spare = np.full_like(spare, np.inf)
            known = self._spares[queue] = spare.tolist()
        return known

    def _free_room(self) -> Column:
        """Return what pods could hold on each node (R, N)."""
        if self._room is None:
            self._cluster.write_due()
            nodes = self.snapshot.nodes
            self._room = nodes.allocatable if self._evicts else nodes.future_idle
        return self._room

    def _room_in_all(self) -> list[float]:
        """Return what pods could hold on all nodes together, and somewhat more (R,)."""
        if self._in_all is None:
            held = None if self._evicts or self._ledger is None else self._ledger.held
            if held is None or self._room_without_jobs is None:
                room = self._free_room().sum(axis=1)
                if held is not None and has_exact_sums(self.snapshot.nodes.allocatable):
                    self._room_without_jobs = (room + held).tolist()
            else:
                room = np.subtract(self._room_without_jobs, held)
            self._in_all = (room + STEP * self.snapshot.nodes.n).tolist()
        return self._in_all

    def _within_queue(self, kind: JobClass) -> int:
        row = self.snapshot.queues.row_of.get(kind.queue)
        if self._evicts or self.limits is None or row is None:
            return UNBOUNDED
        left = self._left_to_hold(self.limits, row)
        return max(math.floor(times_within(kind.quota_amounts, left) + _ROUNDING), 0)

    def _left_to_hold(self, limits: QueueLimits, queue: int) -> list[float]:
        """Return what a queue may still hold (R,)."""
        if isinstance(limits, WeightedLimits):  # there is no limit above it
            pairs = zip(self.deserved(limits, queue), self.held(queue), strict=True)
            return [part - held for part, held in pairs]
        if self._holdable is None:
            self._cluster.write_due()
            self._holdable = limits.current().holdable().T.tolist()
        return self._holdable[queue]

    def _pods(self, shape: int) -> int:
        """Count the equal pods that fit on all nodes together."""
        known = self._pods_by_shape.get(shape)
        if known is None:
            request = self._classes.pod_requests[shape]
            rows = np.flatnonzero(request > 0)
            copies = np.floor((self._free_room()[rows] + STEP) / request[rows, None]).min(axis=0)
            known = self._pods_by_shape[shape] = int(np.maximum(copies, 0.0).sum())
        return known

    def admissible(self, kind: JobClass) -> int:
        """Return how many jobs of a class could be admitted, if all room were theirs."""
        row = self.snapshot.queues.row_of.get(kind.queue)
        if self._admission is None or row is None:
            return UNBOUNDED
        return max(int(times_within(kind.reserved_amounts, self._left(row)) + _ROUNDING), 0)

    def committed(self, limit: QueueLimits, queue: int) -> list[float]:
        """Return what a queue holds or has reserved (R,), apart from pods, which no limit counts.

        Jobs without rows hold what they reserved, once they have started.
        """
        if self._ledger is not None:
            sums = self._ledger.of(self.snapshot.queues.names[queue])
            return [held + more for held, more in zip(sums.held, sums.reserved, strict=True)]
        if self._committed is None:  # it does not depend on the limit
            self._cluster.write_due()
            self._committed = limit.committed().T.tolist()
        return self._committed[queue]

    def may_admit(self, reserved: Amounts) -> bool:
        """Return whether a job that reserves amounts might be admitted in some queue."""
        if not isinstance(self._admission, ClusterLimit):
            return True
        return times_within(reserved, self._left(0)) + _ROUNDING >= 1.0

    def _left(self, queue: int) -> list[float]:
        """Return what jobs of a queue may still reserve."""
        if self._reservable is None:
            assert self._admission is not None  # noqa: S101  # else there is no bound
            self._reservable = self._read_left(self._admission)
        return self._reservable[queue if len(self._reservable) > 1 else 0]

    def _read_left(self, limit: AdmissionLimit) -> list[list[float]]:
        """Return the same by queue, or once for all of them."""
        if not isinstance(limit, ClusterLimit):
            self._cluster.write_due()
            return limit.reservable().T.tolist()
        idle, reserved = self.idle_and_reserved(limit)
        return [[each - taken for each, taken in zip(idle, reserved, strict=True)]]

    def idle_and_reserved(self, limit: ClusterLimit) -> tuple[list[float], list[float]]:
        """Return what is unused, and what jobs have reserved of it (R,)."""
        if self._idle_and_reserved is None or self._idle_and_reserved[0] is not limit:
            if self._ledger is None:
                self._cluster.write_due()
                found = limit.idle().tolist(), limit.reserved().tolist()
            else:
                pairs = zip(limit.total.tolist(), self._ledger.held, strict=True)
                found = [amount - held for amount, held in pairs], [*self._ledger.reserved]
            self._idle_and_reserved = limit, found
        return self._idle_and_reserved[1]

    def meets_demand(self, limits: WeightedLimits, queue: int) -> bool:
        """Return whether a queue gets all that its jobs hold and ask for, for certain."""
        queues = self.snapshot.queues
        if self._ledger is not None:
            busy = self._ledger.busy()
            return limits.meets_demand(
                queue, busy[queues.names[queue]].asked, map(queues.row_of.__getitem__, busy)
            )
        self._cluster.write_due()
        asked = queues.allocated_or_pipelined[:, queue] + queues.pending[:, queue]
        return limits.meets_demand(queue, asked.tolist(), queues_with_jobs(self.snapshot).tolist())


def times_within(amounts: Amounts, room: list[float]) -> float:
    """Return how often amounts are contained in others, not always a whole number of times."""
    least: float = UNBOUNDED
    for row, amount in amounts:
        times = room[row] / amount
        least = min(times, least)
    return least
