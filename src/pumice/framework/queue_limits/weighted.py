"""Limits by weight: each queue deserves a part of the cluster, and holds no more."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, dominant_share, dominant_share_of_one, within_requested
from pumice.core.snapshot import Snapshot
from pumice.framework.queue_limits.division import FewQueues, Terms, divide, is_for_numbers
from pumice.framework.queue_limits.limits import (
    QueueLimits,
    flat_real_capability,
    listed_guarantees,
)
from pumice.framework.queue_limits.tree import QueueTree

_STATED: Final = "limits by weight"
"""The key under which the snapshot keeps what follows from nodes and queues alone."""
_DIVIDED: Final = "divided by weight"
"""The key under which the snapshot keeps the last division and its input."""


@dataclass(frozen=True, kw_only=True)
class WeightedLimits(QueueLimits):
    """Limits of queues that share the cluster by weight, in a flat list."""

    follows_demand: ClassVar[bool] = True

    total: Column
    stated: tuple[object, ...]
    """Everything that the limits follow from, except the requests of jobs."""

    @classmethod
    def of(cls, snapshot: Snapshot, total: Column) -> "WeightedLimits":
        """Divide the cluster for the present requests of jobs."""
        queues = snapshot.queues
        columns = (queues.listed, queues.weight, queues.guarantee, queues.capability, total)
        stated = (*queues.names, *[column.tobytes() for column in columns])
        known: WeightedLimits | None = snapshot.derived.get(_STATED)
        if known is None or known.stated != stated:
            known = snapshot.derived[_STATED] = cls._of_queues(snapshot, total, stated)
        return known.current()

    @classmethod
    def _of_queues(
        cls, snapshot: Snapshot, total: Column, stated: tuple[object, ...]
    ) -> "WeightedLimits":
        """Return the limits as they are as long as nobody asks for anything."""
        guarantee = listed_guarantees(snapshot)
        real = flat_real_capability(snapshot, total, guarantee)
        return cls(
            snapshot=snapshot,
            tree=QueueTree.flat(snapshot),
            guarantee=guarantee,
            deserved=guarantee,
            real_capability=real,
            capability=snapshot.queues.capability,
            total=total,
            stated=stated,
        )

    @property
    def ceiling(self) -> Column:
        """The most that a queue may hold: its part."""
        return self.deserved

    def may_reclaim(self, queue: int, request: Column) -> bool:
        """Return whether a request keeps the queue within its part."""
        return within_requested(self.held(queue) + request, self.deserved[:, queue], request)

    def meets_demand(self, queue: int, asked: Sequence[float], busy: Iterable[int]) -> bool:
        """Return whether a queue gets all that its jobs hold and ask for (R,), for certain.

        It does if the first round, among the queues that have jobs, already offers as much; more is
        never taken back.
        """
        weight, most, _ = self._terms[queue]
        all_weights = sum([self._terms[row].weight for row in busy])
        if weight <= 0 or all_weights <= 0:
            return False
        part = weight / all_weights
        return all(
            amount <= limit and amount <= total * part
            for amount, limit, total in zip(asked, most, self._total, strict=True)
        )

    def order(self, held: Column, rows: NDArray[np.intp]) -> Column:
        """Return keys of queues that hold amounts (R, n): priority, then how much of their part."""
        priority = -self.snapshot.queues.priority[rows].astype(float)
        return np.stack([priority, dominant_share(held, self.deserved[:, rows])])

    def key_of(
        self, queue: int, held: Sequence[float], part: Sequence[float]
    ) -> tuple[float, float]:
        """Return the same keys of one queue that holds amounts of its part (R,)."""
        return -float(self.snapshot.queues.priority[queue]), dominant_share_of_one(held, part)

    def parts(self, asked: Mapping[int, Sequence[float]]) -> dict[int, list[float]] | None:
        """Return what queues deserve that ask for amounts, by row; others have no jobs.

        None if that is for columns to tell.
        """
        known = self._divided_among.get(tuple(asked))
        if known is None:
            rows = sorted(asked, key=self.snapshot.queues.names.__getitem__)
            terms = [self._terms[row] for row in rows]
            is_few = bool(rows) and is_for_numbers([each.weight for each in terms])
            known = rows, FewQueues(terms, self._total) if is_few else None
            self._divided_among.clear()  # queues come up and disappear now and then
            self._divided_among[tuple(asked)] = known
        rows, queues = known
        if queues is None:
            return None
        return dict(zip(rows, queues.parts([asked[row] for row in rows]), strict=True))

    @cached_property
    def _total(self) -> list[float]:
        return self.total.tolist()

    @cached_property
    def _divided_among(self) -> dict[tuple[int, ...], tuple[list[int], FewQueues | None]]:
        """The queues of the last division."""
        return {}

    @cached_property
    def _terms(self) -> list[Terms]:
        queues = self.snapshot.queues
        columns = queues.weight, self.real_capability.T, queues.guarantee.T
        return list(map(Terms, *[column.tolist() for column in columns]))

    def current(self) -> Self:
        """Divide the cluster again, unless the requests of jobs are those of the last time."""
        queues, rows = self.snapshot.queues, queues_with_jobs(self.snapshot)
        request = queues.allocated_or_pipelined + queues.pending
        key = (self.stated, rows.tobytes(), request.tobytes())
        known = self.snapshot.derived.get(_DIVIDED)
        if known is None or known[0] != key:
            deserved = divide(self.snapshot, rows, request, self.total, self.real_capability)
            known = self.snapshot.derived[_DIVIDED] = key, deserved
        return replace(self, deserved=known[1])


def queues_with_jobs(snapshot: Snapshot) -> NDArray[np.intp]:
    """Return the rows of queues that have jobs."""
    jobs = snapshot.jobs
    return np.bincount(jobs.queue[jobs.listed]).nonzero()[0]
