"""When the pods that hold nodes end: the run times of their jobs, as columns."""

import math
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pumice.api.run_times import run_time
from pumice.core.resources import Column, IndexArray
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, N_STATUS, Status
from pumice.core.tables import NOWHERE

_KEPT: Final = "run times"
_HOLDS: Final = np.isin(np.arange(N_STATUS), [int(status) for status in ALLOCATED_CLASS])
_STIRS: Final = (int(Status.RELEASING), int(Status.PIPELINED))
OVERDUE_S: Final = 1.0
"""A pod that has outlived its bound, or is leaving, is expected to end so much later: at the next
cycle."""


def snapped(seconds: Any) -> Any:
    """Return times to the microsecond, so that sums of equal ones are equal."""
    return np.round(seconds, 6)


class RunTimes:
    """The longest run times of jobs, read again only where an object was replaced."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._seen: dict[int, tuple[Any, ...]] = {}
        self._seconds = np.full(0, np.nan)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "RunTimes":
        """Return those of a snapshot; they outlive a session."""
        found = snapshot.derived.get(_KEPT)
        if not isinstance(found, cls):
            found = snapshot.derived[_KEPT] = cls(snapshot)
        return found

    def longest(self, jobs: IndexArray, unknown_s: float) -> Column:
        """Return how long jobs (rows) run at most (n,); ``unknown_s`` where nobody states it."""
        size = len(self._snapshot.jobs.phase)
        if len(self._seconds) < size:
            more = np.full(size - len(self._seconds), np.nan)
            self._seconds = np.concatenate([self._seconds, more])
        seen, groups = self._seen, self._snapshot.jobs.groups
        for row in jobs.tolist():
            known = seen.get(row)
            if known is None or known[0] is not groups[row] or known[1] is not self._queue(row):
                self._read(row)
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
        self._seconds[job] = math.nan if seconds is None else seconds


class RunEnds:
    """The pods that hold nodes at a moment, in the order of their ends."""

    def __init__(self, snapshot: Snapshot, now: float, unknown_s: float) -> None:
        tasks = snapshot.tasks
        held = (tasks.node != NOWHERE) & _HOLDS[tasks.status]
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
        known = np.flatnonzero(np.isfinite(ends))
        order = known[np.argsort(ends[known], kind="stable")]
        self._snapshot = snapshot
        self.now = now
        self.rows: IndexArray = rows[order]
        self.times: Column = ends[order]
        """When each ends; those without a known end are not among them."""
        self.is_settled = not any((tasks.status == each).any() for each in _STIRS)
        """Whether no pod is leaving and none is promised a place."""

    @cached_property
    def nodes(self) -> NDArray[np.intp]:
        """The node of each (n,)."""
        return self._snapshot.tasks.node[self.rows].astype(np.intp)

    @cached_property
    def freed(self) -> Column:
        """The amounts of each (R, n)."""
        return self._snapshot.requests(self.rows)
