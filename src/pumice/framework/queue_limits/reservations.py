"""Reservations of admitted jobs, by job, by queue and in all.

Reads the snapshot as it is when asked and works on whole columns; only jobs with gated tasks are
examined one by one.
"""

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, is_empty, sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, PHASE_CODE, Status
from pumice.core.tables import JobTable
from pumice.core.views import Job, Task
from pumice.framework.queue_limits.queue_gates import has_only_queue_gate

_ALLOCATED = sorted(ALLOCATED_CLASS)


class Reservations:
    """Reservations of jobs, without gated tasks."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._gated = _gated_requests(snapshot)

    def of_job(self, job: int) -> Column:
        """Return what a job reserves when it is admitted (R,): all it needs to start."""
        return self._without_gated(job, self._snapshot.jobs.min_resources[:, job])

    def total(self) -> Column:
        """Sum over all jobs (R,); jobs in phase Inqueue count with all they need to start."""
        jobs = self._snapshot.jobs
        inqueue, running = self._reserving_jobs()
        amounts = np.concatenate(
            [self._amounts(inqueue, jobs.min_resources), self._amounts(running, _lacking(jobs))],
            axis=1,
        )
        return np.asarray(amounts.sum(axis=1))

    def by_queue(self) -> Column:
        """Sum by queue (R, Q); what a job already holds is not reserved again."""
        jobs = self._snapshot.jobs
        rows = np.concatenate(self._reserving_jobs())
        amounts = self._amounts(rows, _lacking(jobs))
        return sum_by(amounts, jobs.queue[rows], self._snapshot.queues.capacity)

    def _reserving_jobs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Find jobs in phase Inqueue, and running ones with their minimum number of tasks placed.

        Volcano: a running job below that number has finished tasks; it will not ask again.
        """
        jobs = self._snapshot.jobs
        asks = jobs.listed & jobs.has_min_resources
        complete = np.add.reduce([jobs.counts[s] for s in _ALLOCATED]) >= jobs.min_member
        inqueue = asks & (jobs.phase == PHASE_CODE["Inqueue"])
        running = asks & (jobs.phase == PHASE_CODE["Running"]) & complete
        return np.flatnonzero(inqueue), np.flatnonzero(running)

    def _amounts(self, rows: NDArray[np.intp], column: Column) -> Column:
        out = column[:, rows]
        if self._gated:
            for i, job in enumerate(rows.tolist()):
                out[:, i] = self._without_gated(job, out[:, i])
        return out

    def _without_gated(self, job: int, amounts: Column) -> Column:
        gated = self._gated.get(job)
        if gated is None or is_empty(gated):
            return amounts
        return np.maximum(amounts - gated, 0.0)


class QueueCommitments:
    """Used and promised amounts of each queue, kept up to date while jobs are admitted.

    Reservations are those of the moment it is made, plus those of jobs admitted since.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._queues = snapshot.queues
        self._reservations = Reservations(snapshot)
        self._reserved = self._reservations.by_queue()
        self._elastic = _elastic_by_queue(snapshot)

    def by_queue(self) -> Column:
        """Return what queues hold or reserve beyond elastic amounts (R, Q)."""
        return self._queues.allocated_or_pipelined + self._reserved - self._elastic

    def of_queue(self, queue: int) -> Column:
        """Return the same of one queue (R,)."""
        held = self._queues.allocated_or_pipelined[:, queue]
        return held + self._reserved[:, queue] - self._elastic[:, queue]

    def admit(self, job: Job) -> None:
        """Reserve what a job needs to start, if it states that."""
        if job.min_resources is not None:
            self._reserved[:, job.queue] += self._reservations.of_job(job.row)


def _elastic_by_queue(snapshot: Snapshot) -> Column:
    """Sum by queue what jobs hold beyond what they need to start (R, Q)."""
    jobs = snapshot.jobs
    rows = np.flatnonzero(jobs.listed)
    beyond = np.maximum(jobs.allocated[:, rows] - jobs.min_resources[:, rows], 0.0)
    return sum_by(beyond, jobs.queue[rows], snapshot.queues.capacity)


def _lacking(jobs: JobTable) -> Column:
    """Return what jobs still lack of their minimum (R, J)."""
    return np.maximum(jobs.min_resources - jobs.allocated, 0.0)


def _gated_requests(snapshot: Snapshot) -> dict[int, Column]:
    """Sum the requests of gated tasks by job."""
    tasks = snapshot.tasks
    if not tasks.gated.any():
        return {}
    held = tasks.gated & (tasks.status == Status.PENDING) & (tasks.job >= 0)
    out: dict[int, Column] = {}
    for row in np.flatnonzero(held).tolist():
        if has_only_queue_gate(Task(snapshot, row)):
            continue
        job = int(tasks.job[row])
        request = snapshot.request(row)
        out[job] = out[job] + request if job in out else request
    return out
