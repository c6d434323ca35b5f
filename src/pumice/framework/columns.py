"""Rows of jobs, queues and tasks as columns, for hooks that give ordering keys."""

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, Status
from pumice.core.tables import NOWHERE, Ints

_SETTLED = [int(s) for s in (Status.BOUND, Status.RUNNING, Status.SUCCEEDED, Status.FAILED)]
_READY = [int(s) for s in (*ALLOCATED_CLASS, Status.SUCCEEDED)]


class Jobs:
    """Some jobs."""

    __slots__ = ("_jobs", "rows", "snapshot")

    def __init__(self, snapshot: Snapshot, rows: NDArray[np.intp]) -> None:
        self.snapshot = snapshot
        self._jobs = snapshot.jobs
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def priority(self) -> NDArray[np.int64]:
        """Values of their priority classes (n,)."""
        return self._jobs.priority[self.rows]

    @property
    def created(self) -> Column:
        """Creation times in seconds (n,)."""
        return self._jobs.created[self.rows]

    @property
    def min_member(self) -> Ints:
        """Least numbers of tasks (n,)."""
        return self._jobs.min_member[self.rows]

    @property
    def ready(self) -> Ints:
        """Tasks that hold a node or have finished well (n,)."""
        return np.asarray(self._jobs.counts[_READY][:, self.rows].sum(axis=0))

    @property
    def settled(self) -> Ints:
        """Tasks that run on a node or are about to, or have finished in any way (n,)."""
        return np.asarray(self._jobs.counts[_SETTLED][:, self.rows].sum(axis=0))

    @property
    def leaving(self) -> Ints:
        """Tasks that are leaving a node (n,)."""
        tasks = self.snapshot.tasks
        if not self._jobs.counts[Status.RELEASING].any():
            return np.zeros(len(self.rows), dtype=np.int32)
        on_node = (tasks.status == Status.RELEASING) & (tasks.node != NOWHERE)
        owner = tasks.job[on_node & (tasks.job != NOWHERE)]
        return np.bincount(owner, minlength=len(self._jobs.phase)).astype(np.int32)[self.rows]

    @property
    def pending_best_effort(self) -> Ints:
        """Pending tasks that ask for nothing (n,)."""
        return self._jobs.n_pending_best_effort[self.rows]

    @property
    def allocated_or_pipelined(self) -> Column:
        """What their tasks hold or were promised (R, n)."""
        return self._jobs.allocated_or_pipelined[:, self.rows]

    @property
    def queue(self) -> Ints:
        """Rows of their queues (n,)."""
        return self._jobs.queue[self.rows]


def all_jobs(snapshot: Snapshot) -> Jobs:
    """Give every row of the job table, free ones too."""
    return Jobs(snapshot, np.arange(len(snapshot.jobs.phase)))


class Queues:
    """Some queues."""

    __slots__ = ("_queues", "rows", "snapshot")

    def __init__(self, snapshot: Snapshot, rows: NDArray[np.intp]) -> None:
        self.snapshot = snapshot
        self._queues = snapshot.queues
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def priority(self) -> NDArray[np.int64]:
        """Their priorities (n,)."""
        return self._queues.priority[self.rows]

    @property
    def allocated_or_pipelined(self) -> Column:
        """What their jobs hold or were promised (R, n)."""
        return self._queues.allocated_or_pipelined[:, self.rows]


class Tasks:
    """Some tasks."""

    __slots__ = ("_tasks", "rows", "snapshot")

    def __init__(self, snapshot: Snapshot, rows: NDArray[np.intp]) -> None:
        self.snapshot = snapshot
        self._tasks = snapshot.tasks
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def priority(self) -> NDArray[np.int64]:
        """Their priorities (n,)."""
        return self._tasks.priority[self.rows]

    @property
    def role(self) -> Ints:
        """Codes of their roles (n,)."""
        return self._tasks.role[self.rows]

    @property
    def job(self) -> Ints:
        """Rows of their jobs (n,)."""
        return self._tasks.job[self.rows]
