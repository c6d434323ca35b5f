"""Upper bounds on how many jobs of a class could get something in the next cycle.

They cost little, and hold unless a plugin lets jobs that have no room matter to others: then every
job takes part in every cycle.
"""

import math
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np

from pumice.core.resources import STEP, Column, has_exact_sums
from pumice.framework.queue_limits.limits import AdmissionLimit, ClusterLimit, QueueLimits
from pumice.framework.queue_limits.weighted import WeightedLimits, queues_with_jobs
from pumice.sim.job_classes import Amounts, JobClass, JobClasses
from pumice.sim.job_run import JobRun
from pumice.sim.sessionless_jobs import QueueLedger
from pumice.sim.shortcuts import Shortcuts
from pumice.sim.sim_cluster import SimCluster

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
