"""Reservations of admitted jobs, by job, by queue and in all.

Reads the snapshot as it is when asked and works on whole columns; only jobs with gated tasks are
examined one by one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Final

import numpy as np

from pumice.api.annotations import QUEUE_GATE
from pumice.core.resources import Column, IndexArray, is_empty, sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, PENDING, PHASE_CODE
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Task

_ONLY: Final = (QUEUE_GATE,)
Opened = set[tuple[str, str]]
"""Pods, by key and uid."""


def has_only_queue_gate(task: Task) -> bool:
    """Return whether the queue gate is the only one of a task's pod."""
    return tuple(gate.name for gate in task.pod.spec.scheduling_gates) == _ONLY


class QueueGates:
    """The queue gates of one session; without ``enabled`` none is considered.

    ``opened`` are the pods whose gates the last session opened: the cluster may not have confirmed
    yet that the gates are gone, and the room is still theirs.
    """

    def __init__(self, snapshot: Snapshot, opened: Opened, *, enabled: bool) -> None:
        self._snapshot = snapshot
        self.held: set[int] = set()
        """Tasks that only the queue gate holds back."""
        self.opened: dict[int, None] = {}
        """Tasks whose gates this session opens, in that order."""
        self._reserving: dict[int, None] = {}
        self._memory = opened
        if enabled:
            self._open(frozenset(opened))
        opened.clear()

    def _open(self, opened: frozenset[tuple[str, str]]) -> None:
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        waiting = tasks.opted_in & (tasks.status == PENDING) & (tasks.job != NOWHERE)
        for row in np.flatnonzero(waiting).tolist():
            if not jobs.listed[tasks.job[row]]:
                continue
            if not tasks.gated[row]:
                self._reserving[row] = None
            elif has_only_queue_gate(Task(self._snapshot, row)):
                self.held.add(row)
                if (tasks.keys[row], tasks.uids[row]) in opened:
                    self._reserving[row] = None

    def open(self, task: int) -> None:
        """Remove a task's gate; its request is reserved from now on."""
        tasks = self._snapshot.tasks
        self.opened[task] = None
        self._reserving[task] = None
        self._memory.add((tasks.keys[task], tasks.uids[task]))

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Undo any gates that are opened meanwhile."""
        opened, reserving, memory = dict(self.opened), dict(self._reserving), set(self._memory)
        try:
            yield
        finally:
            self.opened, self._reserving = opened, reserving
            self._memory &= memory

    @property
    def is_reserving(self) -> bool:
        """Whether any task may reserve something."""
        return bool(self._reserving)

    def reserved(self, beside: int) -> Column:
        """Sum by queue the reservations of tasks that wait for a node (R, Q), one task left out."""
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        rows = np.fromiter(self._reserving, dtype=np.intp)
        rows = rows[(tasks.status[rows] == PENDING) & (rows != beside)]
        queues = jobs.queue[tasks.job[rows]]
        return sum_by(self._snapshot.requests(rows), queues, self._snapshot.queues.capacity)


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
