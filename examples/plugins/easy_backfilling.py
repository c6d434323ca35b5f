"""EASY backfilling: later jobs may start early if they do not delay the first one that waits."""

from dataclasses import dataclass

import numpy as np

from pumice.plugin import (
    Cause,
    Column,
    Job,
    Jobs,
    Plugin,
    PluginSession,
    Queue,
    Refusal,
    SimulatorAssumptions,
    Task,
    Tasks,
    Verdict,
    Why,
)


@dataclass(kw_only=True)
class EasyBackfilling(Plugin, name="easy-backfilling"):
    """Start jobs in the order of their arrival, and reserve room for the first that finds none.

    Its start is foreseen from the times that users asked for (``pumice.dev/run-seconds``). A job
    behind it starts now if it ends by then, or if it needs only what is left over then. All nodes
    count as one pool, as on a parallel machine: where pods are large, a gang may fit the pool and
    yet no node. Made for one queue.
    """

    simulator = SimulatorAssumptions(all_jobs=True)

    def on_open(self, ssn: PluginSession) -> None:
        """List the jobs that wait, in the order of their arrival, and when jobs end."""
        self._ssn = ssn
        jobs = [ssn.job(row) for row in ssn.jobs()]
        waiting = [job for job in jobs if job.ready < job.min_member]
        self._line = sorted(waiting, key=lambda job: (job.created, job.key))
        self._place = {job.row: place for place, job in enumerate(self._line)}
        ends = np.array([self._end(job) for job in jobs])
        order = np.argsort(ends, kind="stable")
        self._jobs = Jobs(ssn.snapshot, np.array([job.row for job in jobs], dtype=np.intp)[order])
        self._times = np.concatenate([[ssn.now], ends[order]])
        self._known: tuple[tuple[int, int], tuple[float, Column]] | None = None

    def order_jobs(self, jobs: Jobs) -> Column:
        """Put further pods of running jobs first, then the job that came first."""
        return np.array([self._place.get(row, -1) for row in jobs.index.tolist()], dtype=float)

    def allocatable(self, queue: Queue, task: Task) -> Verdict:
        """Allow a pod up to the first job that waits; behind it, one that does not delay it."""
        first = self._first()
        if self._place.get(task.job, -1) <= first:
            return True
        job = self._ssn.job(task.job)
        start, left = self._reservation(first)
        if self._ssn.now + _walltime(job) <= start or (job.pending <= left).all():
            return True
        return Refusal(Why.QUEUE_POSITION, {"queue": queue.row}, Cause.JOB_AHEAD)

    def _first(self) -> int:
        waiting = (
            place
            for place, job in enumerate(self._line)
            if job.phase != "Pending" and job.ready < job.min_member
        )
        return next(waiting, len(self._line))

    def _reservation(self, first: int) -> tuple[float, Column]:
        """Return when the first waiting job can start, and what it leaves over by then (R,)."""
        moment = (first, len(self._ssn.journal.moved))  # until a pod is placed or given up
        if self._known is None or self._known[0] != moment:
            self._known = (moment, self._reserve(self._line[first]))
        return self._known[1]

    def _reserve(self, job: Job) -> tuple[float, Column]:
        free = self._ssn.nodes().idle.sum(axis=1)
        freed = np.cumsum(self._jobs.allocated, axis=1)
        room = np.column_stack([free, free[:, None] + freed])
        enough = np.flatnonzero((room >= job.pending[:, None]).all(axis=0))
        if not len(enough):  # it never fits, and nobody can delay it
            return np.inf, np.zeros_like(free)
        start = float(self._times[enough[0]])
        last = np.searchsorted(self._times, start, side="right") - 1  # jobs that end together
        return start, room[:, last] - job.pending

    def _end(self, job: Job) -> float:
        """Return when a job ends that runs, or that starts now."""
        started = Tasks(self._ssn.snapshot, np.array(job.tasks, dtype=np.intp)).started
        begun = started[~np.isnan(started)]
        since = begun.max() if len(begun) else self._ssn.now
        return max(self._ssn.now, float(since) + _walltime(job))


def _walltime(job: Job) -> float:
    """Return the time that the user of a job asked for; infinite if that is not known."""
    try:
        return float(job.annotations.get("pumice.dev/run-seconds", "inf"))
    except ValueError:
        return np.inf
