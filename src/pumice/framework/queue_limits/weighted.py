"""Limits by weight: each queue deserves a part of the cluster, and holds no more."""

from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, fits, is_empty
from pumice.core.snapshot import Snapshot
from pumice.framework.queue_limits.limits import (
    QueueLimits,
    flat_real_capability,
    listed_guarantees,
)
from pumice.framework.queue_limits.tree import QueueTree

_DIVIDED: Final = "divided by weight"
"""The key under which the snapshot keeps the last division and its input."""


@dataclass(frozen=True, kw_only=True)
class WeightedLimits(QueueLimits):
    """Limits of queues that share the cluster by weight, in a flat list."""

    follows_demand: ClassVar[bool] = True

    total: Column

    @classmethod
    def of(cls, snapshot: Snapshot, total: Column) -> "WeightedLimits":
        """Divide the cluster for the present requests of jobs."""
        guarantee = listed_guarantees(snapshot)
        real = flat_real_capability(snapshot, total, guarantee)
        return cls(
            snapshot=snapshot,
            tree=QueueTree.flat(snapshot),
            guarantee=guarantee,
            deserved=divide_by_weight(snapshot, total, real),
            real_capability=real,
            capability=snapshot.queues.capability,
            total=total,
        )

    @property
    def ceiling(self) -> Column:
        """The most that a queue may hold: its part."""
        return self.deserved

    def current(self) -> Self:
        """Divide the cluster again."""
        deserved = divide_by_weight(self.snapshot, self.total, self.real_capability)
        return replace(self, deserved=deserved)


def divide_by_weight(snapshot: Snapshot, total: Column, limit: Column) -> Column:
    """Divide the cluster among the queues that have jobs, round by round (R, Q).

    A part is never more than the queue asks for or its ``limit``, nor less than it is guaranteed;
    what one queue leaves goes to the others.  The last division is cached.
    """
    queues, rows = snapshot.queues, _queues_with_jobs(snapshot)
    request = queues.allocated_or_pipelined + queues.pending
    asked = (rows, request, total, limit, queues.weight, queues.guarantee)
    key = (*queues.names, *[column.tobytes() for column in asked])
    known = snapshot.derived.get(_DIVIDED)
    if known is None or known[0] != key:
        known = snapshot.derived[_DIVIDED] = key, _divide(snapshot, rows, request, total, limit)
    return np.asarray(known[1])


def _divide(
    snapshot: Snapshot, rows: NDArray[np.intp], request: Column, total: Column, limit: Column
) -> Column:
    queues, remaining, n_rounds = snapshot.queues, total, 0
    rows = rows[np.argsort(np.array([queues.names[row] for row in rows.tolist()]))]
    deserved = np.zeros_like(limit)  # sums in one order, whatever queue came first
    while True:
        weight = queues.weight[rows].sum()
        if weight == 0:
            return deserved
        old = deserved[:, rows]
        new = old + remaining[:, None] * (queues.weight[rows] / weight)
        new = np.minimum(np.minimum(new, limit[:, rows]), request[:, rows])
        new = np.maximum(new, queues.guarantee[:, rows])
        deserved[:, rows] = new
        met = fits(request[:, rows], new)
        if n_rounds:  # Volcano: the first part is a change even if it is nothing
            met |= (new == old).all(axis=0)
        more, less = np.maximum(new - old, 0.0), np.maximum(old - new, 0.0)
        before = remaining
        remaining = np.maximum(before + less.sum(axis=1) - more.sum(axis=1), 0.0)
        if is_empty(remaining) or np.array_equal(remaining, before):
            return deserved
        rows = rows[~met]
        n_rounds += 1


def _queues_with_jobs(snapshot: Snapshot) -> NDArray[np.intp]:
    jobs = snapshot.jobs
    return np.flatnonzero(np.bincount(jobs.queue[jobs.listed]))
