"""How many jobs of a class could get something in the next cycle, at most.

Upper bounds that cost little.  They hold if all plugins and actions declare that they are bounded;
otherwise every job takes part in every cycle.
"""

import math

import numpy as np

from pumice.core.resources import STEP, Column
from pumice.core.snapshot import Snapshot
from pumice.framework.queue_limits.limits import AdmissionLimit, QueueLimits
from pumice.sim.job_classes import Amounts, JobClass, JobClasses
from pumice.sim.shortcuts import Shortcuts

UNBOUNDED = 1 << 60
"""More jobs than there are."""
_ROUNDING = 1e-9
"""A quotient that falls short of a whole number by less is that number."""


class Bounds:
    """Bounds for the cluster as it is; ``refresh`` before each use.

    Nodes and queues stay as they are during a simulation, so that what follows from them alone is
    worked out once.
    """

    def __init__(self, snapshot: Snapshot, classes: JobClasses, shortcuts: Shortcuts) -> None:
        self._snapshot = snapshot
        self._classes = classes
        self._evicts = shortcuts.evicts
        total = snapshot.total()
        limits = (plugin.queue_limits(snapshot, total) for plugin in shortcuts.limiting)
        self._limits = next((each for each in limits if each is not None), None)
        self._admission = _admission_limit(snapshot, total, shortcuts)
        self.refresh()

    @property
    def follow_demand(self) -> bool:
        """Whether bounds may grow because jobs have come: what queues may hold then changes."""
        return self._limits is not None and self._limits.follows_demand

    def refresh(self) -> None:
        """Look at the cluster anew."""
        nodes = self._snapshot.nodes
        self._room = nodes.allocatable if self._evicts else nodes.future_idle
        self._room_in_all: list[float] = (self._room.sum(axis=1) + STEP * nodes.n).tolist()
        self._pods_by_shape: dict[int, int] = {}
        self._holdable: list[list[float]] | None = None
        self._reservable: list[list[float]] | None = None

    def startable(self, kind: JobClass) -> int:
        """Return how many jobs of a class could start, if all room were theirs."""
        n = _times_within(kind.least_amounts, self._room_in_all)
        if n < 1:
            return 0
        n = min(n, self._within_queue(kind))
        if n < 1 or kind.pod_shape < 0:
            return int(n)
        return min(int(n), self._pods(kind.pod_shape) // kind.to_start)

    def _within_queue(self, kind: JobClass) -> int:
        """Return how many jobs of a class their queue may hold."""
        row = self._snapshot.queues.row_of.get(kind.queue)
        if self._evicts or self._limits is None or row is None:
            return UNBOUNDED
        if self._holdable is None:
            self._holdable = self._limits.current().holdable().T.tolist()
        return max(
            math.floor(_times_within(kind.quota_amounts, self._holdable[row]) + _ROUNDING), 0
        )

    def _pods(self, shape: int) -> int:
        """Count the equal pods that fit on all nodes together."""
        known = self._pods_by_shape.get(shape)
        if known is None:
            request = self._classes.pod_requests[shape]
            rows = np.flatnonzero(request > 0)
            copies = np.floor((self._room[rows] + STEP) / request[rows, None]).min(axis=0)
            known = self._pods_by_shape[shape] = int(np.maximum(copies, 0.0).sum())
        return known

    def admissible(self, kind: JobClass) -> int:
        """Return how many jobs of a class could be admitted, if all room were theirs."""
        row = self._snapshot.queues.row_of.get(kind.queue)
        if self._admission is None or row is None:
            return UNBOUNDED
        if self._reservable is None:
            self._reservable = self._admission.reservable().T.tolist()
        return max(int(_times_within(kind.reserved_amounts, self._reservable[row]) + _ROUNDING), 0)


def _admission_limit(
    snapshot: Snapshot, total: Column, shortcuts: Shortcuts
) -> AdmissionLimit | None:
    """Choose one limit of those that must all be kept; one for the whole cluster costs least."""
    limits = [plugin.admission_limit(snapshot, total) for plugin in shortcuts.admitting]
    known = [limit for limit in limits if limit is not None]
    return min(known, key=lambda limit: isinstance(limit, QueueLimits), default=None)


def _times_within(amounts: Amounts, room: list[float]) -> float:
    """Return how often amounts are contained in others, not always a whole number of times."""
    return min([UNBOUNDED, *(room[row] / amount for row, amount in amounts)])
