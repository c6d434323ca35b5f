"""Reservations of admitted jobs, by job, by queue and in all.

Reads the snapshot as it is when asked and works on whole columns; only jobs with gated tasks are
examined one by one.
"""

from functools import cached_property
from typing import Final

import numpy as np

from pumice.core.resources import Column, IndexArray, is_empty, sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, PENDING, PHASE_CODE
from pumice.core.views import Job, Task
from pumice.framework.queue_limits.queue_gates import has_only_queue_gate

_ALLOCATED = sorted(ALLOCATED_CLASS)
_INQUEUE, _RUNNING = PHASE_CODE["Inqueue"], PHASE_CODE["Running"]
_KEPT: Final = "reservations"
"""The key under which the snapshot keeps those of the running session."""


class Reservations:
    """Reservations of jobs at the moment they are first asked for, without gated tasks."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._gated = _gated_requests(snapshot)

    @classmethod
    def at_opening(cls, snapshot: Snapshot) -> "Reservations":
        """Return those with which the running session opened: ask before its first write."""
        kept: tuple[int, Reservations] | None = snapshot.derived.get(_KEPT)
        if kept is None or kept[0] != snapshot.journal.session:
            kept = snapshot.derived[_KEPT] = snapshot.journal.session, cls(snapshot)
        return kept[1]

    def of_job(self, job: int) -> Column:
        """Return what a job reserves when it is admitted (R,): all it needs to start."""
        return self._without_gated(job, self._snapshot.jobs.min_resources[:, job])

    def total(self) -> Column:
        """Sum over all jobs (R,); jobs in phase Inqueue count with all they need to start."""
        inqueue, running = self._reserving_jobs
        asked = self._amounts(inqueue, self._snapshot.jobs.min_resources[:, inqueue])
        amounts = np.concatenate([asked, self._lacking(running)], axis=1)
        return np.asarray(amounts.sum(axis=1))

    def by_queue(self) -> Column:
        """Sum by queue (R, Q); what a job already holds is not reserved again."""
        rows = np.concatenate(self._reserving_jobs)
        owners = self._snapshot.jobs.queue[rows]
        return sum_by(self._lacking(rows), owners, self._snapshot.queues.capacity)

    @cached_property
    def _reserving_jobs(self) -> tuple[IndexArray, IndexArray]:
        """Find jobs in phase Inqueue, and running ones with their minimum number of tasks placed.

        Of these only such as lack something of their minimum; others reserve nothing.
        Volcano: a running job below that number has finished tasks; it will not ask again.
        """
        jobs = self._snapshot.jobs
        asks = jobs.listed & jobs.has_min_resources
        inqueue = (asks & (jobs.phase == _INQUEUE)).nonzero()[0]
        lacks = (jobs.min_resources > jobs.allocated).any(axis=0)
        running = (asks & lacks & (jobs.phase == _RUNNING)).nonzero()[0]
        if len(running):
            placed = jobs.counts[:, running][_ALLOCATED].sum(axis=0)
            running = running[placed >= jobs.min_member[running]]
        return inqueue, running

    def _lacking(self, rows: IndexArray) -> Column:
        """Return what jobs still lack of their minimum (R, n)."""
        jobs = self._snapshot.jobs
        return self._amounts(
            rows, np.maximum(jobs.min_resources[:, rows] - jobs.allocated[:, rows], 0.0)
        )

    def _amounts(self, rows: IndexArray, amounts: Column) -> Column:
        if self._gated:
            for i, job in enumerate(rows.tolist()):
                amounts[:, i] = self._without_gated(job, amounts[:, i])
        return amounts

    def _without_gated(self, job: int, amounts: Column) -> Column:
        gated = self._gated.get(job)
        if gated is None or is_empty(gated):
            return amounts
        return np.maximum(amounts - gated, 0.0)


class QueueCommitments:
    """Used and promised amounts of each queue, kept up to date while jobs are admitted.

    Reservations are those of the moment it is made, plus those of jobs admitted since.
    """

    def __init__(self, snapshot: Snapshot, reservations: Reservations | None = None) -> None:
        self._queues = snapshot.queues
        self._reservations = reservations or Reservations(snapshot)
        self._reserved = self._reservations.by_queue()
        self._elastic = elastic_by_queue(snapshot)

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


def elastic_by_queue(snapshot: Snapshot) -> Column:
    """Sum by queue what jobs hold beyond what they need to start (R, Q)."""
    jobs = snapshot.jobs
    rows = jobs.listed.nonzero()[0]
    beyond = np.maximum(jobs.allocated[:, rows] - jobs.min_resources[:, rows], 0.0)
    return sum_by(beyond, jobs.queue[rows], snapshot.queues.capacity)


def _gated_requests(snapshot: Snapshot) -> dict[int, Column]:
    """Sum the requests of gated tasks by job."""
    tasks = snapshot.tasks
    if not tasks.gated.any():
        return {}
    held = tasks.gated & (tasks.status == PENDING) & (tasks.job >= 0)
    out: dict[int, Column] = {}
    for row in np.flatnonzero(held).tolist():
        if has_only_queue_gate(Task(snapshot, row)):
            continue
        job = int(tasks.job[row])
        request = snapshot.request(row)
        out[job] = out[job] + request if job in out else request
    return out
