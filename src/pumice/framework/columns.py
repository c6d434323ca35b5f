"""Rows of jobs, queues and tasks as columns, for hooks that return ordering keys."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, PHASES, Status
from pumice.core.tables import NOWHERE, Ints, JobTable, QueueTable, TaskTable
from pumice.core.views import HoldingRows, NamespacedRows, Task, Texts, texts

_SETTLED = [int(s) for s in (Status.BOUND, Status.RUNNING, Status.SUCCEEDED, Status.FAILED)]
_READY = [int(s) for s in (*ALLOCATED_CLASS, Status.SUCCEEDED)]


class Jobs(HoldingRows, NamespacedRows):
    """Some jobs."""

    __slots__ = ()
    _table: JobTable

    def __init__(self, snapshot: Snapshot, rows: slice | NDArray[np.intp]) -> None:
        self.snapshot = snapshot
        self._table = snapshot.jobs
        self.rows = rows

    @property
    def priority(self) -> NDArray[np.int64]:
        """Values of their priority classes (n,)."""
        return self._table.priority[self.rows]

    @property
    def min_member(self) -> Ints:
        """Minimum numbers of tasks (n,)."""
        return self._table.min_member[self.rows]

    @property
    def ready(self) -> Ints:
        """Tasks that hold a node or have succeeded (n,)."""
        return self._count(_READY)

    @property
    def settled(self) -> Ints:
        """Tasks that run on a node or are about to, or have finished in any way (n,)."""
        return self._count(_SETTLED)

    def _count(self, statuses: list[int]) -> Ints:
        rows, counts = self.rows, self._table.counts
        mine = counts[:, rows] if isinstance(rows, slice) else counts.take(rows, axis=1)
        return np.add.reduce(mine.take(statuses, axis=0), axis=0, dtype=counts.dtype)

    @property
    def leaving(self) -> Ints:
        """Tasks that are leaving a node, even one that is gone (n,)."""
        tasks, counts = self.snapshot.tasks, self._table.counts[Status.RELEASING]
        if not counts.any():
            return counts[self.rows].copy()
        rows = np.flatnonzero((tasks.status == Status.RELEASING) & (tasks.job != NOWHERE))
        on_node = tasks.node[rows] != NOWHERE
        for i in np.flatnonzero(~on_node).tolist():
            on_node[i] = bool(Task(self.snapshot, int(rows[i])).pod.spec.node_name)
        owner = tasks.job[rows[on_node]]
        return np.bincount(owner, minlength=len(self._table.phase)).astype(np.int32)[self.rows]

    @property
    def pending_best_effort(self) -> Ints:
        """Pending tasks without requests (n,)."""
        return self._table.n_pending_best_effort[self.rows]

    @property
    def phase(self) -> Texts:
        """Their phases at this moment, such as "Inqueue" (n,)."""
        return texts([PHASES[code] for code in self._table.phase[self.rows].tolist()])

    @property
    def queue(self) -> Ints:
        """Rows of their queues (n,)."""
        return self._table.queue[self.rows]

    @property
    def queues(self) -> "Queues":
        """Their queues, one for each: ``jobs.queues.annotation(key)``."""
        return Queues(self.snapshot, self.queue.astype(np.intp))


def all_jobs(snapshot: Snapshot) -> Jobs:
    """Return every row of the job table, free ones too."""
    return Jobs(snapshot, slice(None))


class Queues(HoldingRows):
    """Some queues."""

    __slots__ = ()
    _table: QueueTable
    rows: NDArray[np.intp]

    def __init__(self, snapshot: Snapshot, rows: NDArray[np.intp]) -> None:
        self.snapshot = snapshot
        self._table = snapshot.queues
        self.rows = rows

    @property
    def priority(self) -> NDArray[np.int64]:
        """Their priorities (n,)."""
        return self._table.priority[self.rows]

    @property
    def names(self) -> Texts:
        """Their names (n,)."""
        return texts(self._pick(self._table.names))

    @property
    def weight(self) -> NDArray[np.int64]:
        """Their weights beside their siblings (n,)."""
        return self._table.weight[self.rows]

    @property
    def parent(self) -> Ints:
        """Rows of their parents in the tree of queues, or NOWHERE (n,)."""
        return self._table.parent[self.rows]

    @property
    def is_open(self) -> Mask:
        """Whether they take new work (n,)."""
        return self._table.open[self.rows]

    @property
    def capability(self) -> Column:
        """The most they may hold (R, n); infinite where not stated."""
        return self._table.capability[:, self.rows]

    @property
    def deserved(self) -> Column:
        """What others may not reclaim from them (R, n); 0 where not stated."""
        return self._table.deserved[:, self.rows]

    @property
    def guarantee(self) -> Column:
        """What is kept free for them (R, n); 0 where not stated."""
        return self._table.guarantee[:, self.rows]


class Tasks(NamespacedRows):
    """Some tasks."""

    __slots__ = ()
    _table: TaskTable
    rows: NDArray[np.intp]

    def __init__(self, snapshot: Snapshot, rows: NDArray[np.intp]) -> None:
        self.snapshot = snapshot
        self._table = snapshot.tasks
        self.rows = rows

    @property
    def priority(self) -> NDArray[np.int64]:
        """Their priorities (n,)."""
        return self._table.priority[self.rows]

    @property
    def role(self) -> Ints:
        """Codes of their roles, or NOWHERE (n,)."""
        return self._table.role[self.rows]

    @property
    def role_names(self) -> Texts:
        """Names of their tasks in the job, empty where there is none (n,)."""
        names = self.snapshot.roles
        return texts(["" if i == NOWHERE else names[i] for i in self.role.tolist()])

    @property
    def job(self) -> Ints:
        """Rows of their jobs (n,)."""
        return self._table.job[self.rows]

    @property
    def started(self) -> Column:
        """When their pods started, in seconds since 1970; not a number where they have not (n,)."""
        return self._table.started[self.rows]

    @property
    def request(self) -> Column:
        """Their requests (R, n)."""
        return self.snapshot.requests(self.rows)


_UNJUDGED = -1


class Verdicts:
    """A yes or no for each task, good for a session: each is judged when first asked about."""

    def __init__(self, n_tasks: int, judge: Callable[[int], bool]) -> None:
        self._judge = judge
        self._n_tasks = n_tasks

    @cached_property
    def _known(self) -> NDArray[np.int8]:
        return np.full(self._n_tasks, _UNJUDGED, dtype=np.int8)

    def of(self, rows: list[int] | NDArray[np.intp]) -> Mask:
        """Return the verdicts on some tasks (n,)."""
        index, known = np.asarray(rows, dtype=np.intp), self._known
        for row in index[known[index] == _UNJUDGED].tolist():
            known[row] = self._judge(row)
        return known[index] == 1
