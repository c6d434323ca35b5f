"""Room over time: what pods leave when they end, less what is promised by then."""

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import PODS, STEP, Column
from pumice.core.snapshot import Snapshot
from pumice.framework.future.promises import Demand, Promise
from pumice.framework.future.run_ends import RunEnds


class Room:
    """The room for pods at one moment and later, if nothing starts that is not promised.

    It is counted for each kind of pod by node, and for all nodes as one pool: where it is too
    little the job cannot start; where it is enough, that is certain for plain pods of one kind.
    """

    def __init__(self, snapshot: Snapshot, ends: RunEnds) -> None:
        self._snapshot = snapshot
        self._ends = ends
        self._slots: dict[Hashable, NDArray[np.float64]] = {}

    @cached_property
    def _times(self) -> Column:
        """Now, and every time at which pods end."""
        return np.unique(np.concatenate([[self._ends.now], self._ends.times]))

    def earliest(
        self, demand: Demand, seconds: float, promises: Sequence[Promise], after: float
    ) -> float:
        """Return the first time from ``after`` on at which a job may fit for so long."""
        points = self._points(promises, after)
        fits = np.ones(len(points), dtype=bool)
        if demand.kind is not None:
            taken = _taken(points, ((p, p.demand.count) for p in promises if _same(p, demand)))
            fits &= self._slots_at(demand, points) - taken >= demand.count
        pool, wanted = self._pool_at(points), demand.amounts
        for row in np.flatnonzero(wanted > 0).tolist():
            taken = _taken(points, ((p, float(p.demand.amounts[row])) for p in promises))
            fits &= wanted[row] - (pool[row] - taken) < STEP
        closed = np.append(points[~fits], np.inf)
        free_until = closed[np.searchsorted(closed, points)]
        starts = np.flatnonzero(free_until >= points + seconds)
        return float(points[starts[0]]) if len(starts) else np.inf

    def next_after(self, moment: float, promises: Sequence[Promise]) -> float:
        """Return the next time at which room appears; infinite if none does."""
        points = self._points(promises, moment)
        return float(points[1]) if len(points) > 1 else np.inf

    def short_for(self, promises: Sequence[Promise]) -> Promise | None:
        """Return the first promise that cannot be kept any more for want of room."""
        if not promises:
            return None
        points = self._points(promises, self._ends.now)
        short = np.zeros(len(points), dtype=bool)
        for demand in {
            p.demand.kind: p.demand for p in promises if p.demand.kind is not None
        }.values():
            taken = _taken(points, ((p, p.demand.count) for p in promises if _same(p, demand)))
            short |= (taken > 0) & (self._slots_at(demand, points) < taken)
        pool = self._pool_at(points)
        for row in np.flatnonzero(sum(p.demand.amounts for p in promises)).tolist():
            taken = _taken(points, ((p, float(p.demand.amounts[row])) for p in promises))
            short |= (taken > 0) & (taken - pool[row] >= STEP)
        if not short.any():
            return None
        at = points[np.argmax(short)]
        active = (each for each in promises if each.start <= at < each.end)
        return next(active, promises[0])

    def _points(self, promises: Iterable[Promise], after: float) -> Column:
        """Return the times from ``after`` on at which room changes, in order."""
        times = self._times
        times = times[np.searchsorted(times, after, side="right") :]
        more = [t for p in promises for t in (p.start, p.end) if after < t < np.inf]
        if more:
            times = np.union1d(times, more)
        return np.concatenate([[after], times])

    def _slots_at(self, demand: Demand, points: Column) -> Column:
        """Return for how many pods of a kind nodes have room at some times."""
        slots = self._slots.get(demand.kind)
        if slots is None:
            slots = self._slots[demand.kind] = self._count(demand)
        return slots[np.searchsorted(self._ends.times, points, side="right")]

    def _count(self, demand: Demand) -> Column:
        """Count room for pods of a kind now, and after the end of each pod (n + 1,)."""
        asked = np.flatnonzero(demand.need > 0)
        asked = asked[asked != PODS]
        need = demand.need[asked, None]
        order, later = self._idle_by_node
        gained = _pods(later[asked], need)
        gained -= _pods(later[asked] - self._ends.freed[asked][:, order], need)
        first = _pods(self._snapshot.nodes.idle[asked], need)[: self._snapshot.nodes.n]
        if demand.allowed is not None:
            gained = gained * demand.allowed[self._ends.nodes[order]]
            first = first[demand.allowed]
        in_time = np.empty_like(gained)
        in_time[order] = gained
        return np.concatenate([[first.sum()], first.sum() + np.cumsum(in_time)])

    @cached_property
    def _idle_by_node(self) -> tuple[NDArray[np.intp], Column]:
        """Return the ends node by node, and what is idle on the node after each (R, n)."""
        nodes, freed = self._ends.nodes, self._ends.freed
        order = np.argsort(nodes, kind="stable")
        sums = np.cumsum(freed[:, order], axis=1)
        if not len(order):
            return order, sums
        begins = np.flatnonzero(np.diff(nodes[order], prepend=-1))
        before = np.where(begins > 0, sums[:, begins - 1], 0.0)
        base = np.repeat(before, np.diff(np.append(begins, len(order))), axis=1)
        return order, self._snapshot.nodes.idle[:, nodes[order]] + sums - base

    @cached_property
    def _pool(self) -> Column:
        """What all nodes have idle now, and after the end of each pod (R, n + 1)."""
        idle = self._snapshot.nodes.idle[:, : self._snapshot.nodes.n].sum(axis=1, keepdims=True)
        return np.concatenate([idle, idle + np.cumsum(self._ends.freed, axis=1)], axis=1)

    def _pool_at(self, points: Column) -> Column:
        return self._pool[:, np.searchsorted(self._ends.times, points, side="right")]


def _same(promise: Promise, demand: Demand) -> bool:
    return promise.demand.kind == demand.kind


def _pods(idle: Column, need: Column) -> Column:
    """Return how many pods fit into idle amounts (R, n), one after the other (n,)."""
    if not len(need):
        return np.full(idle.shape[1], np.inf)
    return np.maximum(np.ceil((idle + STEP) / need).min(axis=0) - 1, 0)


def _taken(points: Column, amounts: Iterable[tuple[Promise, float]]) -> Column:
    """Add up what promises take at some times."""
    steps = np.zeros(len(points) + 1)
    for promise, amount in amounts:
        steps[np.searchsorted(points, promise.start)] += amount
        steps[np.searchsorted(points, promise.end)] -= amount
    return np.cumsum(steps[:-1])
