"""Limits by weight: each queue deserves a part of the cluster, and holds no more."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import (
    PODS,
    STEP,
    Column,
    dominant_share,
    dominant_share_of_one,
    fits,
    is_empty,
    within_requested,
)
from pumice.core.snapshot import Snapshot
from pumice.framework.queue_limits.limits import (
    QueueLimits,
    QueueTree,
    flat_real_capability,
    listed_guarantees,
)

FEW: Final = 48
"""Queues up to which plain numbers are faster than columns."""
_AT_ONCE: Final = 8
"""Sums that NumPy keeps side by side while it adds up a row."""


def divide(
    snapshot: Snapshot, rows: NDArray[np.intp], request: Column, total: Column, limit: Column
) -> Column:
    """Divide the cluster among the queues that have jobs (R, Q).

    A part is never more than the queue asks for or its ``limit``, nor less than it is guaranteed;
    what one queue leaves goes to the others.
    """
    in_order = sorted(rows.tolist(), key=snapshot.queues.names.__getitem__)
    # sums in one order, whatever queue came first
    rows = np.array(in_order, dtype=np.intp)
    weights = snapshot.queues.weight[rows].tolist()
    if not is_for_numbers(weights):
        return _divide_many(snapshot, rows, request, total, limit)
    queues, deserved = snapshot.queues, np.zeros_like(limit)
    if in_order:
        columns = request, limit, queues.guarantee
        requests, *stated = (each.take(rows, axis=1).T.tolist() for each in columns)
        terms = [*map(Terms, weights, *stated)]
        deserved[:, rows] = np.array(FewQueues(terms, total.tolist()).parts(requests)).T
    return deserved


def is_for_numbers(weights: Sequence[int]) -> bool:
    """Return whether queues of some weights are few, and their parts only grow."""
    return len(weights) <= FEW and min(weights, default=0) >= 0


def _divide_many(
    snapshot: Snapshot, rows: NDArray[np.intp], request: Column, total: Column, limit: Column
) -> Column:
    queues, remaining, n_rounds = snapshot.queues, total, 0
    deserved, most = np.zeros_like(limit), np.minimum(limit, request)
    while True:
        weights = queues.weight[rows]
        weight = weights.sum()
        if weight == 0:
            return deserved
        old = deserved[:, rows]
        new = np.minimum(old + remaining[:, None] * (weights / weight), most[:, rows])
        new = np.maximum(new, queues.guarantee[:, rows])
        deserved[:, rows] = new
        met = fits(request[:, rows], new)
        if n_rounds:  # Volcano: the first part is a change even if it is nothing
            met |= (new == old).all(axis=0)
        if met.all():
            return deserved
        more, less = np.maximum(new - old, 0.0), np.maximum(old - new, 0.0)
        before = remaining
        remaining = np.maximum(before + less.sum(axis=1) - more.sum(axis=1), 0.0)
        if is_empty(remaining) or np.array_equal(remaining, before):
            return deserved
        rows = rows[~met]
        n_rounds += 1


class Terms(NamedTuple):
    """What a queue may get of each resource, whatever it asks for."""

    weight: int
    most: Sequence[float]
    least: Sequence[float]
    """Its guarantee."""


class FewQueues:
    """Divides the cluster among few queues, in the order of their names, on plain numbers.

    The parts are those that columns give, to the last bit.
    """

    def __init__(self, terms: Sequence[Terms], total: Sequence[float]) -> None:
        weights, most, least = zip(*terms, strict=True)
        self._weights: Sequence[int] = weights
        columns = (zip(*each, strict=True) for each in (most, least))
        self._resources = list(zip(total, *columns, strict=True))
        """What there is of each, and the limits and guarantees of queues."""

    def parts(self, requests: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return for each queue what it deserves of each resource."""
        offers, others = {}, False
        for at, asked in enumerate(zip(*requests, strict=True)):
            amount, most, least = self._resources[at]
            if any(asked) or any(least):
                offers[at] = _Offer(asked, most, least, amount)
            else:  # of what nobody asks for nothing is given away
                others |= at != PODS and amount >= STEP
        scarce = [offer for at, offer in offers.items() if at != PODS]
        self._divide(list(offers.values()), None if others else scarce)
        nothing = [0.0] * len(requests)
        found = [offers[at].parts if at in offers else nothing for at in range(len(requests[0]))]
        return [[*parts] for parts in zip(*found, strict=True)]

    def _divide(self, offers: list["_Offer"], scarce: list["_Offer"] | None) -> None:
        """Offer what is left round by round; it is used up as soon as nothing scarce is left."""
        weights, lacking, is_first = self._weights, list(range(len(self._weights))), True
        while weight := sum([weights[at] for at in lacking]):
            parts = [weights[at] / weight for at in lacking]
            # Volcano: the first part is a change even if it is nothing
            changed: set[int] = set(lacking) if is_first else set()
            short: set[int] = set()
            moved = [each.take(lacking, parts, short, changed) for each in offers]
            lacking = [at for at in lacking if at in short and at in changed]
            is_used_up = scarce is not None and all(offer.left < STEP for offer in scarce)
            if not lacking or is_used_up or not any(moved):
                break
            is_first = False


class _Offer:
    """What is left of one resource, and the parts that queues have of it by now."""

    __slots__ = ("_asked", "_is_over", "_least", "_most", "left", "parts")

    def __init__(
        self, asked: Sequence[float], most: Sequence[float], least: Sequence[float], left: float
    ) -> None:
        self._asked, self._least = asked, least
        self._most = [*map(min, most, asked)]
        self.left = left
        self.parts = [0.0] * len(asked)
        self._is_over = False
        """Whether queues that lack something have all that they ask for of this."""

    def take(
        self, queues: list[int], weights: list[float], short: set[int], changed: set[int]
    ) -> bool:
        """Add to queues their part of the rest; note which lack some still and whose part changed.

        Return whether less is left.
        """
        if self._is_over:
            return False
        left, parts, steps, is_over = self.left, self.parts, [], True
        asked, most, least = self._asked, self._most, self._least
        for at, weight in zip(queues, weights, strict=True):
            old = parts[at]
            new = old + left * weight
            if new > most[at]:  # noqa: PLR1730  # twice as fast as ``min``
                new = most[at]
            if new < least[at]:  # noqa: PLR1730
                new = least[at]
            if new < asked[at]:
                is_over = False
                if asked[at] - new >= STEP:
                    short.add(at)
            if new != old:
                changed.add(at)
                parts[at] = new
            steps.append(new - old)  # a part never shrinks
        self.left = max(left - _sum(steps), 0.0)
        self._is_over = is_over
        return self.left != left


def _sum(amounts: list[float]) -> float:
    """Add amounts up in the order in which NumPy adds up a row: it decides the last bit."""
    n = len(amounts) - len(amounts) % _AT_ONCE
    total = 0.0
    if n:
        sums = amounts[:_AT_ONCE]
        for at in range(_AT_ONCE, n):
            sums[at % _AT_ONCE] += amounts[at]
        a, b, c, d, e, f, g, h = sums
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for amount in amounts[n:]:  # ``sum`` corrects its result in later Pythons
        total += amount
    return total


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
