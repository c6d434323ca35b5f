"""Room over time: when pods that hold nodes end and what they leave, less what is promised."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pumice.api.run_times import run_time
from pumice.api.times import epoch
from pumice.core.resources import PODS, STEP, Column, IndexArray, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, N_STATUS, Status
from pumice.core.tables import NOWHERE
from pumice.framework.future.promises import Demand, Profile, Promise

_KEPT: Final = "run times"
_HOLDS: Final = np.isin(
    np.arange(N_STATUS), [int(status) for status in (*ALLOCATED_CLASS, Status.RELEASING)]
)
_READY: Final = [*map(int, ALLOCATED_CLASS), int(Status.SUCCEEDED)]
OVERDUE_S: Final = 1.0
"""A pod that has outlived its bound, or its time of grace, is expected to end so much later: at the
next cycle."""


def snapped(seconds: Any) -> Any:
    """Return times to the microsecond, so that sums of equal ones are equal."""
    return np.round(seconds, 6)


class RunTimes:
    """The longest run times of jobs, read again only where an object was replaced."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._seen: dict[int, tuple[Any, ...]] = {}
        self._seconds = np.full(0, np.nan)
        self._looked = np.full(0, NOWHERE)
        """The session in which each was looked at last: objects stay as they are in it."""
        self.learned: Callable[[int], float | None] | None = None
        """Returns how long jobs (rows) run that state nothing; None: nobody knows."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "RunTimes":
        """Return those of a snapshot; they outlive a session."""
        found = snapshot.derived.get(_KEPT)
        if not isinstance(found, cls):
            found = snapshot.derived[_KEPT] = cls(snapshot)
        return found

    def longest(self, jobs: IndexArray, unknown_s: float) -> Column:
        """Return how long jobs (rows) run at most (n,); ``unknown_s`` where nobody states it."""
        session, size = self._snapshot.journal.session, len(self._snapshot.jobs.phase)
        if len(self._seconds) < size:
            more = size - len(self._seconds)
            self._seconds = np.concatenate([self._seconds, np.full(more, np.nan)])
            self._looked = np.concatenate([self._looked, np.full(more, NOWHERE)])
        seen, groups = self._seen, self._snapshot.jobs.groups
        for row in jobs[self._looked[jobs] != session].tolist():
            known = seen.get(row)
            if known is None or known[0] is not groups[row] or known[1] is not self._queue(row):
                self._read(row)
        self._looked[jobs] = session
        found = self._seconds[jobs]
        return np.where(np.isnan(found), unknown_s, found)

    def _queue(self, job: int) -> Any:
        queue = self._snapshot.jobs.queue[job]
        return None if queue == NOWHERE else self._snapshot.queues.objects[queue]

    def _read(self, job: int) -> None:
        jobs, tasks = self._snapshot.jobs, self._snapshot.tasks
        group: Any = jobs.groups[job]
        queue = self._queue(job)
        places = [each.metadata.annotations for each in (group, queue) if each is not None]
        deadline = None
        if jobs.tasks[job]:
            first = jobs.tasks[job][0]
            pod: Any = tasks.pods[first]
            deadline = self._snapshot.shapes[tasks.shape[first]].spec.active_deadline_seconds
            if pod is not None:
                places.insert(0, pod.metadata.annotations)
            self._seen[job] = group, queue
        else:
            self._seen.pop(job, None)  # its pods may state more once they are there
        seconds = run_time(places, deadline).longest
        if seconds is None and self.learned is not None and jobs.tasks[job]:
            seconds = self.learned(job)
        self._seconds[job] = math.nan if seconds is None else seconds


class RunEnds:
    """The pods that hold nodes at a moment, in the order of their ends."""

    def __init__(self, snapshot: Snapshot, now: float, unknown_s: float) -> None:
        tasks = snapshot.tasks
        held = (tasks.node != NOWHERE) & _HOLDS[tasks.status]
        held &= ~_set_aside(snapshot)
        rows = np.flatnonzero(held)
        jobs = tasks.job[rows]
        owned = jobs != NOWHERE
        seconds = np.full(len(rows), math.inf)
        owners, which = np.unique(jobs[owned], return_inverse=True)
        seconds[owned] = RunTimes.of(snapshot).longest(owners, unknown_s)[which]
        started = tasks.started[rows]
        begun = np.where(np.isnan(started), now, started)
        ends = snapped(begun + seconds)
        ends = np.where((ends > now) | (begun >= now), np.maximum(ends, now), now + OVERDUE_S)
        for place in np.flatnonzero(tasks.status[rows] == Status.RELEASING).tolist():
            ends[place] = max(now + OVERDUE_S, _gone_at(tasks.pods[rows[place]]))
        known = np.flatnonzero(np.isfinite(ends))
        order = known[np.argsort(ends[known], kind="stable")]
        self._snapshot = snapshot
        self.now = now
        self.rows: IndexArray = rows[order]
        self.times: Column = ends[order]
        """When each ends; those without a known end are not among them."""
        self.set_aside: IndexArray = np.flatnonzero(_set_aside(snapshot))
        """Places that count as free: they are kept for jobs that wait for pods to leave."""
        self.is_settled = not (len(self.set_aside) or (tasks.status == Status.RELEASING).any())
        """Whether no pod is leaving and none is promised a place."""
        self.leaving: IndexArray = _leaving(snapshot)
        """Pods that are being deleted: they hold their nodes until then."""

    @cached_property
    def nodes(self) -> NDArray[np.intp]:
        """The node of each (n,)."""
        return self._snapshot.tasks.node[self.rows].astype(np.intp)

    @cached_property
    def freed(self) -> Column:
        """The amounts of each (R, n)."""
        return self._snapshot.requests(self.rows)


def _set_aside(snapshot: Snapshot) -> Mask:
    """Mark tasks with places that are kept in this session for jobs that do not start now (n,)."""
    tasks, jobs = snapshot.tasks, snapshot.jobs
    found: Mask = tasks.status == Status.PIPELINED
    placed = np.flatnonzero((tasks.status == Status.ALLOCATED) & (tasks.job != NOWHERE))
    if len(placed) and found.any():
        owners = tasks.job[placed]
        waiting = np.unique(tasks.job[found])
        lacks = jobs.counts[_READY].sum(axis=0) < np.maximum(jobs.min_member, 1)
        found[placed[lacks[owners] & np.isin(owners, waiting)]] = True
    return found


def _leaving(snapshot: Snapshot) -> IndexArray:
    """Return the pods that are being deleted and hold a node."""
    tasks = snapshot.tasks
    rows = np.flatnonzero((tasks.status == Status.RELEASING) & (tasks.node != NOWHERE))
    pods: list[Any] = tasks.pods
    gone = [row for row in rows.tolist() if pods[row] and pods[row].metadata.deletion_timestamp]
    return np.array(gone, dtype=np.intp)


def _gone_at(pod: Any) -> float:
    """Return when a pod that is being deleted has gone at the latest: its time of grace is over."""
    at = None if pod is None else pod.metadata.deletion_timestamp
    return epoch(at) if at else 0.0


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
    def _idle(self) -> Column:
        """What is idle on each node now (R, N)."""
        nodes, kept = self._snapshot.nodes, self._ends.set_aside
        idle: Column = nodes.idle[:, : nodes.n]
        placed = kept[self._snapshot.tasks.status[kept] == Status.ALLOCATED]
        if len(placed):
            idle = idle.copy()
            np.add.at(idle.T, self._snapshot.tasks.node[placed], self._snapshot.requests(placed).T)
        return idle

    @cached_property
    def _times(self) -> Column:
        """Now, and every time at which pods end."""
        return np.unique(np.concatenate([[self._ends.now], self._ends.times]))

    def earliest(
        self, demand: Demand, seconds: float, promises: Sequence[Promise], after: float
    ) -> float:
        """Return the first time from ``after`` on at which a job may fit for so long."""
        taken = _Taken(promises)
        points = self._points(taken, after)
        fits = np.ones(len(points), dtype=bool)
        if demand.kind is not None:
            fits &= self._slots_at(demand, points) - taken.pods(demand, points) >= demand.count
        if not (demand.plain and taken.is_all(demand)):
            pool, wanted = self._pool_at(points), demand.amounts
            for row in np.flatnonzero(wanted > 0).tolist():
                fits &= wanted[row] - (pool[row] - taken.amount(row, points)) < STEP
        closed = np.append(points[~fits], np.inf)
        free_until = closed[np.searchsorted(closed, points)]
        starts = np.flatnonzero(free_until >= points + seconds)
        return float(points[starts[0]]) if len(starts) else np.inf

    def profile(self, demand: Demand) -> Profile:
        """Return the room for plain pods of a kind from now on, promises aside."""
        return Profile(self._times, self._slots_at(demand, self._times))

    def slots_now(self, demand: Demand) -> float:
        """Return for how many pods of a kind nodes have room now, at most."""
        return float(self._slots_at(demand, self._times[:1])[0])

    def places(self, promises: Sequence[Promise]) -> dict[int, list[int]]:
        """Return nodes for promised plain pods of one kind, those with room now first."""
        taken, found = np.zeros(self._snapshot.nodes.n), dict[int, list[int]]()
        running: list[Promise] = []
        for promise in sorted(promises, key=lambda each: each.start):
            over = [each for each in running if each.end <= promise.start]
            for each in over:
                running.remove(each)
                np.subtract.at(taken, found[each.job], 1)
            demand = promise.demand
            free = np.maximum(self._slots_by_node(demand, promise.start) - taken, 0)
            now = self._slots_by_node(demand, self._ends.now) - taken
            order = np.argsort(now <= 0, kind="stable")
            nodes = np.repeat(order, np.minimum(free, demand.count)[order].astype(np.intp))
            found[promise.job] = nodes[: demand.count].tolist()
            np.add.at(taken, found[promise.job], 1)
            running.append(promise)
        return found

    def _slots_by_node(self, demand: Demand, at: float) -> Column:
        """Return for how many pods of a kind each node has room at a time (N,)."""
        asked = np.flatnonzero(demand.need > 0)
        asked = asked[asked != PODS]
        n, last = self._snapshot.nodes.n, int(np.searchsorted(self._ends.times, at, side="right"))
        nodes, freed = self._ends.nodes[:last], self._ends.freed[asked, :last]
        more = [np.bincount(nodes, weights=each, minlength=n) for each in freed]
        idle = self._idle[asked] + np.array(more).reshape(len(asked), n)
        slots = _pods(idle, demand.need[asked, None])
        return slots if demand.allowed is None else np.where(demand.allowed, slots, 0.0)

    def next_after(self, moment: float, promises: Sequence[Promise]) -> float:
        """Return the next time at which room appears; infinite if none does."""
        points = self._points(_Taken(promises), moment)
        later = points[np.searchsorted(points, moment, side="right") :]
        return float(later[0]) if len(later) else np.inf

    def short_for(self, promises: Sequence[Promise]) -> Promise | None:
        """Return the first promise that cannot be kept any more for want of room."""
        if not promises:
            return None
        taken = _Taken(promises)
        points = self._points(taken, self._ends.now)
        short = np.zeros(len(points), dtype=bool)
        demands = {p.demand.kind: p.demand for p in promises if p.demand.kind is not None}
        for demand in demands.values():
            pods = taken.pods(demand, points)
            short |= (pods > 0) & (self._slots_at(demand, points) < pods)
        if not (promises[0].demand.plain and taken.is_all(promises[0].demand)):
            pool = self._pool_at(points)
            for row in np.flatnonzero(taken.amounts.any(axis=1)).tolist():
                amount = taken.amount(row, points)
                short |= (amount > 0) & (amount - pool[row] >= STEP)
        if not short.any():
            return None
        at = points[np.argmax(short)]
        active = (each for each in promises if each.start <= at < each.end)
        return next(active, promises[0])

    def _points(self, taken: "_Taken", after: float) -> Column:
        """Return the times from ``after`` on at which room changes, in order; some twice."""
        more = np.concatenate([[after], taken.starts, taken.ends])
        more = np.sort(more[(more >= after) & (more < np.inf)])
        times = self._times[np.searchsorted(self._times, after) :]
        points: Column = np.insert(times, np.searchsorted(times, more), more)
        return points

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
        first = _pods(self._idle[asked], need)
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
        return order, self._idle[:, nodes[order]] + sums - base

    @cached_property
    def _pool(self) -> Column:
        """What all nodes have idle now, and after the end of each pod (R, n + 1)."""
        idle = self._idle.sum(axis=1, keepdims=True)
        return np.concatenate([idle, idle + np.cumsum(self._ends.freed, axis=1)], axis=1)

    def _pool_at(self, points: Column) -> Column:
        return self._pool[:, np.searchsorted(self._ends.times, points, side="right")]


def _pods(idle: Column, need: Column) -> Column:
    """Return how many pods fit into idle amounts (R, n), one after the other (n,)."""
    if not len(need):
        return np.full(idle.shape[1], np.inf)
    return np.maximum(np.ceil((idle + STEP) / need).min(axis=0) - 1, 0)


class _Taken:
    """What promises take over time."""

    def __init__(self, promises: Sequence[Promise]) -> None:
        self.starts = np.array([each.start for each in promises])
        self.ends = np.array([each.end for each in promises])
        self._promises = promises

    @cached_property
    def amounts(self) -> Column:
        """What each takes (R, n)."""
        return np.stack([each.demand.amounts for each in self._promises], axis=1)

    def is_all(self, demand: Demand) -> bool:
        """Return whether all are of one kind."""
        return all(each.demand.kind == demand.kind for each in self._promises)

    def pods(self, demand: Demand, points: Column) -> Column:
        """Return how many pods of a kind are promised places at some times."""
        counts = [p.demand.count * (p.demand.kind == demand.kind) for p in self._promises]
        return self._over(points, np.array(counts, dtype=np.float64))

    def amount(self, row: int, points: Column) -> Column:
        """Return how much of a resource is promised at some times."""
        return self._over(points, self.amounts[row]) if self._promises else np.zeros(len(points))

    def _over(self, points: Column, each: Column) -> Column:
        steps = np.zeros(len(points) + 1)
        np.add.at(steps, np.searchsorted(points, self.starts), each)
        np.subtract.at(steps, np.searchsorted(points, self.ends), each)
        return np.cumsum(steps[:-1])


def overdue_pods(snapshot: Snapshot, running: Iterable[int], now: float) -> list[int]:
    """Return those of the running pods (rows) that have outlived their bound.

    An estimate is no bound: who states only that is not among them.
    """
    tasks, jobs, queues = snapshot.tasks, snapshot.jobs, snapshot.queues
    bounds: dict[int, float | None] = {}
    late = []
    for row in running:
        job = int(tasks.job[row])
        if job not in bounds:
            pod: Any = tasks.pods[row]
            queue = int(jobs.queue[job])
            objects: list[Any] = [pod, jobs.groups[job]]
            objects += [] if queue == NOWHERE else [queues.objects[queue]]
            places = [each.metadata.annotations for each in objects if each is not None]
            bounds[job] = run_time(places, pod.spec.active_deadline_seconds).bound
        bound, begun = bounds[job], tasks.started[row]
        if bound is not None and begun + bound <= now:
            late.append(row)
    return late
