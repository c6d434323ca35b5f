"""All tables of one cluster, the moves a session may make on them, and the journal of its writes.

Ingest fills the tables between sessions; a session moves tasks through the methods here.  The
journal keeps every write as its own undoing, so that a mark can be rolled back to exactly, and logs
which node rows moved; cached columns follow that log.  Nothing is copied to open a session.
"""

import contextlib
from collections.abc import Callable, Iterable, MutableMapping
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, Mask, Resources
from pumice.core.status import Status
from pumice.core.tables import (
    NOWHERE,
    JobTable,
    NamespaceTable,
    NodeTable,
    QueueTable,
    Shape,
    TaskTable,
)

Rows = int | NDArray[np.intp]
_NONE: Final = np.empty(0, dtype=np.intp)


class Journal:
    """Undo calls in write order; ``rollback`` makes them newest first."""

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.moved: list[Rows] = []
        self._deferred: list[Callable[[], object]] = []
        self.session = 0
        """The number of the running session; what was made for another is out of date."""
        self.is_ending = False
        """Whether all of the session is being undone: what was made for it is not read again."""

    def defer(self, *work: Callable[[], object]) -> None:
        """Run work before the first write, so that it may wait until then.

        Work that is needed earlier runs earlier, and work that is not needed in a session
        without writes does not run at all.
        """
        self._deferred += work

    def settle(self) -> None:
        """Run deferred work; a failure is raised when its result is read."""
        work, self._deferred = self._deferred, []
        for each in work:
            with contextlib.suppress(Exception):
                each()

    def mark(self) -> int:
        """Name the present moment."""
        return len(self._undo)

    def save(self, array: NDArray[Any], index: Any) -> None:
        """Remember cells that are about to be written."""
        if self._deferred:
            self.settle()
        self._undo.append((array.__setitem__, (index, array[index].copy())))

    def put(self, mapping: MutableMapping[Any, Any], key: Any, new: Any) -> None:
        """Write one entry of a plain mapping, remembering the old one."""
        if self._deferred:
            self.settle()
        if key in mapping:
            self._undo.append((mapping.__setitem__, (key, mapping[key])))
        else:
            self._undo.append((mapping.__delitem__, (key,)))
        mapping[key] = new

    def on_rollback(self, undo: Callable[..., Any], *args: Any) -> None:
        """Call a function if this moment, before something is written, is rolled back."""
        if self._deferred:
            self.settle()
        self._undo.append((undo, args))

    def touch(self, rows: Rows) -> None:
        """Log that node rows moved; a rollback logs them again."""
        self.moved.append(rows)
        self._undo.append((self.moved.append, (rows,)))

    def tick(self) -> None:
        """Log that sums moved although no node did."""
        self.moved.append(_NONE)

    def rollback(self, mark: int) -> None:
        """Undo everything since the mark."""
        undo = self._undo
        while len(undo) > mark:
            call, args = undo.pop()
            call(*args)

    def end_session(self) -> None:
        """Undo everything, and begin the next session."""
        self.is_ending = True
        try:
            self.rollback(0)
        finally:
            self.is_ending = False
        self.forget()

    def forget(self) -> None:
        """Clear the journal: earlier writes can no longer be undone."""
        self._undo.clear()
        self.moved = []  # a new list: kept answers read the old one later
        self._deferred.clear()
        self.session += 1


RowCounts = tuple[int, int] | tuple[NDArray[np.intp], NDArray[Any]]
"""A row, or distinct rows, and how often each was there."""
ViewWatcher = Callable[[int, int, int], None]
"""Told of a task (row), its node (row) and +1 or -1 when the Kubernetes view changes."""


class _Moves(NamedTuple):
    """A step that several tasks make together."""

    step: str
    tasks: NDArray[np.intp]
    nodes: NDArray[np.intp]
    old: NDArray[np.int8]
    """Their status before."""
    new: Status
    left: list[tuple[int, RowCounts]]
    """Those of each status before, by job."""
    shares: list[tuple[Shape, list[RowCounts]]]
    """Tasks of each shape by node, job, queue and namespace."""


class AbsentPods:
    """Pods that have no rows and count all the same."""

    def __init__(self) -> None:
        self.jobs: set[int] = set()
        """Jobs (rows) without tasks of their own, whose sums are those of such pods."""
        self.on_nodes: dict[tuple[int, int], int] = {}
        """How many of a shape run on a node, by (shape, node)."""


_AFTER = {
    "place": Status.ALLOCATED,
    "bind": Status.BINDING,
    "pipeline": Status.PIPELINED,
    "unpipeline": Status.PENDING,
    "unplace": Status.PENDING,
    "evict": Status.RELEASING,
    "linger": Status.RELEASING,
    "depart": Status.RELEASING,
}
_ENTERS = frozenset({"place", "bind", "pipeline", "hold"})
_STAYS = frozenset({"evict", "linger", "depart"})
"""Steps after which a task still has its node."""


class Snapshot:
    """The cluster as a session sees it; sums always equal those of the tasks.

    All amounts are whole numbers, so adding and subtracting is exact: a move is undone by
    the opposite move.  Ingest adds up again when a task leaves whose request is too large for that.
    """

    def __init__(self) -> None:
        self.resources = Resources()
        size = len(self.resources)
        self.nodes = NodeTable(size)
        self.tasks = TaskTable(size)
        self.jobs = JobTable(size)
        self.queues = QueueTable(size)
        self.namespaces = NamespaceTable(size)
        self.shapes: list[Shape] = []
        self.roles: list[str] = []
        self.label_classes: list[tuple[str, dict[str, str]]] = []
        self.taint_sets: list[tuple[Any, ...]] = []
        self.objects: dict[str, dict[str, Any]] = {}
        """Objects without a table of their own, by kind and key."""
        self.absent = AbsentPods()
        self.derived: dict[str, Any] = {}
        """Values computed from objects that outlive a session; their owner keeps them fresh."""
        self.plugin_columns: dict[str, Column] = {}
        """Node columns of plugins by name; they last as long as the session."""
        self.journal = Journal()
        self.changes = 0
        """How often ingest changed anything; the same: so is all that a session sees."""
        self.other_changes = 0
        """Those of them that were about more than pods and the groups of those without a node."""
        self.touched_nodes: set[int] = set()
        """Nodes (rows) on which ingest changed pods; emptied as the next set is."""
        self.touched_jobs: set[int] = set()
        """Jobs (rows) whose group, or pods without a node, ingest changed; NOWHERE stands for all.

        Whoever keeps something about jobs between sessions empties it.
        """
        self._total = np.zeros(size)
        self._totalled = (-1, 0, 0)
        """The nodes of the total."""
        self.view_is_live = False
        self.view_watchers: list[ViewWatcher] = []

    def widen(self) -> None:
        """Add the resource rows learnt since the last call to every table."""
        size = len(self.resources)
        for table in (self.nodes, self.jobs, self.queues, self.namespaces):
            table.widen(size)
        for shape in self.shapes:
            shape.widen(size)

    def kind(self, name: str) -> dict[str, Any]:
        """Return the objects of a kind that has no table, by key."""
        return self.objects.setdefault(name, {})

    def total(self) -> Column:
        """Sum the allocatable amounts of all nodes (R,)."""
        state = self.nodes.generation, self.nodes.n, len(self.nodes.allocatable)
        if state != self._totalled:
            self._totalled = state
            self._total = self.nodes.allocatable[:, : self.nodes.n].sum(axis=1)
        return self._total.copy()

    def count_absent_pods(self, shape: Shape, nodes: list[int], sign: int) -> None:
        """Count a running pod of a shape, which has no row, on each of some nodes, or remove it."""
        self.changes += 1
        self.touched_nodes.update(nodes)
        absent = self.absent.on_nodes
        for node in nodes:
            key = shape.id, node
            n = absent.pop(key, 0) + sign
            if n:
                absent[key] = n
        self.hold(shape, nodes, sign)

    def hold(self, shape: Shape, on: list[int], sign: int) -> None:
        """Count a running pod of a shape on each of some nodes, or remove it; not journaled."""
        self._add_to_nodes(shape, count_rows(on), sign, "hold", live=True)

    def request(self, task: int) -> Column:
        """Return a task's request (R,)."""
        return self.shapes[self.tasks.shape[task]].request[:, 0]

    def requests(self, tasks: NDArray[np.intp]) -> Column:
        """Return the requests of many tasks (R, n)."""
        shapes, which = self.shapes_of(tasks)
        if not shapes:
            return np.zeros((len(self.resources), 0))
        return np.concatenate([shape.request for shape in shapes], axis=1).take(which, axis=1)

    def shapes_of(self, tasks: NDArray[np.intp]) -> tuple[list[Shape], NDArray[np.intp]]:
        """Return the distinct shapes of tasks, and which of them each has (n,)."""
        numbers = self.tasks.shape.take(tasks)
        known = np.bincount(numbers).nonzero()[0]
        which = np.zeros(1 + int(known.max(initial=0)), dtype=np.intp)
        which[known] = np.arange(len(known))
        return [self.shapes[number] for number in known.tolist()], which.take(numbers)

    def sum_requests(self, tasks: Iterable[int] | NDArray[np.intp]) -> Column:
        """Add up the requests of tasks (R,)."""
        rows = tasks if isinstance(tasks, np.ndarray) else np.fromiter(tasks, dtype=np.intp)
        total = np.zeros(len(self.resources))
        counts = np.bincount(self.tasks.shape[rows])
        for shape in counts.nonzero()[0].tolist():
            total += counts[shape] * self.shapes[shape].request[:, 0]
        return total

    def place(self, task: int, node: int) -> None:
        """Put a pending task on a node with room."""
        self._move("place", task, node)

    def pipeline(self, task: int, node: int) -> None:
        """Promise a pending task the room that is being freed on a node."""
        self._move("pipeline", task, node)

    def unpipeline(self, task: int) -> None:
        """Withdraw a promise."""
        self._move("unpipeline", task, int(self.tasks.node[task]))

    def unplace(self, task: int) -> None:
        """Take a task that was placed in this session off its node."""
        self._move("unplace", task, int(self.tasks.node[task]))

    def linger(self, task: int) -> None:
        """See a task that is leaving as one that stays: nobody is promised its room."""
        self._move("linger", task, int(self.tasks.node[task]))

    def depart(self, task: int) -> None:
        """See a task that lingered as one that is gone."""
        self._move("depart", task, int(self.tasks.node[task]))

    def evict(self, task: int) -> None:
        """Mark a task as leaving; its node, unless it is gone, keeps its amounts as releasing."""
        self._move("evict", task, int(self.tasks.node[task]))

    def _move(self, step: str, task: int, node: int) -> None:
        tasks = self.tasks
        old, new = int(tasks.status[task]), _AFTER[step]
        self.journal.on_rollback(self._apply, step, task, node, (new, old), -1)
        self._apply(step, task, node, (old, new), 1)
        if node == NOWHERE:
            return
        self.journal.touch(node)
        if step != "linger":
            self.notify_watchers(task, node, 1 if step in _ENTERS else -1)

    def _apply(self, step: str, task: int, node: int, change: tuple[int, int], sign: int) -> None:
        """Do a step (sign +1) or undo it (sign -1); ``change`` is the status before, after."""
        old, new = change
        tasks, nodes = self.tasks, self.nodes
        shape = self.shapes[tasks.shape[task]]
        books, sums = shape.step(step, sign, live=self.view_is_live)
        tasks.status[task] = new
        enters = step in _ENTERS
        if step not in _STAYS:
            tasks.node[task] = node if enters is (sign > 0) else NOWHERE
        if node != NOWHERE:
            add_cells(nodes.books, node, books)
        if node != NOWHERE and self.view_is_live and step != "linger":
            inward = sign if enters else -sign
            tasks.in_view[task] = inward > 0
            nodes.view_pods[node] += inward
            add_cells(nodes.view_nonzero, node, shape.nonzero[:, 0] * inward)
        job = int(tasks.job[task])
        if job != NOWHERE:
            self._recount(job, old, new, 1)
            self.add_to_sums(job, sums)
            if tasks.best_effort[task] and step not in _STAYS:
                waiting = -sign if enters else sign
                self.jobs.n_pending_best_effort[job] += waiting

    def _recount(self, job: int, old: int, new: int, n: int) -> None:
        counts = self.jobs.counts
        counts[old, job] -= n
        counts[new, job] += n

    def add_to_sums(self, job: int, amounts: NDArray[np.float64]) -> None:
        """Add to the sums (3, R) of a job, its queue and its namespace."""
        jobs = self.jobs
        add_cells(jobs.sums, job, amounts)
        if (queue := jobs.queue[job]) != NOWHERE:
            add_cells(self.queues.sums, queue, amounts)
        add_cells(self.namespaces.sums, jobs.namespace[job], amounts)

    def add_each_to_sums(self, jobs: NDArray[np.intp], amounts: NDArray[np.float64]) -> None:
        """Add to the sums (3, R, k) of jobs that have a queue, their queues and namespaces."""
        table = self.jobs
        add_each(table.sums, jobs, amounts)
        add_each(self.queues.sums, table.queue[jobs], amounts)
        add_each(self.namespaces.sums, table.namespace[jobs], amounts)

    def place_many(self, tasks: NDArray[np.intp], nodes: NDArray[np.intp]) -> None:
        """Put pending tasks of one job and one shape on nodes, all at once."""
        by_node = count_rows(nodes.tolist())
        move = (tasks, nodes, by_node)
        self.journal.on_rollback(self._apply_many, *move, -1)
        self._apply_many(*move, 1)
        self.journal.touch(by_node[0])
        self._notify_of_each(tasks, nodes, 1)

    def notify_watchers(self, task: int, node: int, inward: int) -> None:
        """Report to the watchers of the view that a task comes to a node, or leaves it (-1)."""
        if self.view_is_live:
            for watcher in self.view_watchers:
                watcher(task, node, inward)

    def _notify_of_each(
        self, tasks: NDArray[np.intp], nodes: NDArray[np.intp], inward: int
    ) -> None:
        if self.view_is_live:
            for watcher in self.view_watchers:
                for task, node in zip(tasks.tolist(), nodes.tolist(), strict=True):
                    watcher(task, node, inward)

    def _apply_many(
        self,
        tasks: NDArray[np.intp],
        on: NDArray[np.intp],
        by_node: RowCounts,
        sign: int,
    ) -> None:
        """Do or undo a bulk placement."""
        table = self.tasks
        shape = self.shapes[table.shape[tasks[0]]]
        self._add_to_nodes(shape, by_node, sign, "place")
        _, sums = shape.step("place", sign, live=self.view_is_live)
        old, new = Status.PENDING, Status.ALLOCATED
        if sign < 0:
            old, new = new, old
        table.status[tasks] = new
        table.node[tasks] = on if sign > 0 else NOWHERE
        if self.view_is_live:
            table.in_view[tasks] = sign > 0
        job = int(table.job[tasks[0]])
        self._recount(job, old, new, len(tasks))
        self.add_to_sums(job, sums * len(tasks))

    def _add_to_nodes(
        self, shape: Shape, by_node: RowCounts, sign: int, step: str, *, live: bool = False
    ) -> None:
        """Make a step with so many tasks of a shape on each node, or take it back."""
        nodes, live = self.nodes, live or self.view_is_live
        books, _ = shape.step(step, sign, live=live)
        add_counted(nodes.books, by_node, books)
        if live:
            inward = sign if step in _ENTERS else -sign
            rows, counts = by_node
            nodes.view_pods[rows] += inward * counts
            add_counted(nodes.view_nonzero, by_node, shape.nonzero[:, 0] * inward)

    def bind(self, task: int, node: int) -> None:
        """Put a pending task on a node, to be bound."""
        self._move("bind", task, node)

    def bind_each(self, tasks: NDArray[np.intp], nodes: NDArray[np.intp]) -> None:
        """Put pending tasks that ask for something on nodes, to be bound, all at once."""
        self._move_each("place", tasks, nodes, Status.BINDING)

    def evict_each(self, tasks: NDArray[np.intp]) -> None:
        """Mark tasks of jobs as leaving their nodes, all at once."""
        self._move_each("evict", tasks, self.tasks.node[tasks].astype(np.intp), Status.RELEASING)

    def _move_each(
        self, step: str, tasks: NDArray[np.intp], nodes: NDArray[np.intp], status: Status
    ) -> None:
        """Make a step with tasks of any jobs, of which several may be on one node."""
        jobs, old = self.tasks.job[tasks], self.tasks.status[tasks]
        shares = [
            (self.shapes[number], [count_rows(nodes[mine].tolist()), *self._holders(jobs[mine])])
            for number, mine in _groups(self.tasks.shape[tasks])
        ]
        statuses = _groups(old)
        if len(shares) == len(statuses) == 1:
            left = [(statuses[0][0], shares[0][1][1])]
        else:
            left = [(each, count_rows(jobs[mine].tolist())) for each, mine in statuses]
        moves = _Moves(step, tasks, nodes, old, status, left, shares)
        self.journal.on_rollback(self._apply_each, moves, -1)
        self._apply_each(moves, 1)
        by_node = shares[0][1][0] if len(shares) == 1 else count_rows(nodes.tolist())
        self.journal.touch(by_node[0])
        self._notify_of_each(tasks, nodes, 1 if step in _ENTERS else -1)

    def _holders(self, owners: NDArray[np.int32]) -> list[RowCounts]:
        """Count tasks of jobs by job, queue and namespace."""
        jobs, n = by_job = count_rows(owners.tolist())
        holders = self.jobs.queue[jobs], self.jobs.namespace[jobs]
        if isinstance(n, int):
            return [by_job, *((int(row), n) for row in holders)]
        return [by_job, *(count_rows(rows.tolist(), n.tolist()) for rows in holders)]

    def _apply_each(self, moves: _Moves, sign: int) -> None:
        """Do or take back a step of several tasks."""
        table, counts = self.tasks, self.jobs.counts
        step, tasks, on, old, new, left, shares = moves
        table.status[tasks] = new if sign > 0 else old
        for status, (rows, n) in left:
            counts[status, rows] -= sign * n
            counts[new, rows] += sign * n
        enters = step in _ENTERS
        if enters:
            table.node[tasks] = on if sign > 0 else NOWHERE
        if self.view_is_live:
            table.in_view[tasks] = enters is (sign > 0)
        holders = self.jobs.sums, self.queues.sums, self.namespaces.sums
        for shape, (by_node, *by_holder) in shares:
            self._add_to_nodes(shape, by_node, sign, step)
            _, sums = shape.step(step, sign, live=self.view_is_live)
            for holder, counts_of in zip(holders, by_holder, strict=True):
                add_counted(holder, counts_of, sums)

    def count_ahead(self, task: int, n: int, *, pipelined: bool = False) -> None:
        """Count n more (or, negative, fewer) tasks like this one as placed; not journaled."""
        self.journal.settle()
        step = "pipeline" if pipelined else "place"
        _, sums = self.shapes[self.tasks.shape[task]].step(step, 1, live=False)
        job = int(self.tasks.job[task])
        self._recount(job, Status.PENDING, _AFTER[step], n)
        self.add_to_sums(job, sums * n)

    def set_status(self, tasks: int | NDArray[np.intp], status: Status) -> None:
        """Change the status of tasks of one job inside the allocated class; no sum moves."""
        rows = np.atleast_1d(np.asarray(tasks, dtype=np.intp))
        old = int(self.tasks.status[rows[0]])
        self.journal.on_rollback(self._relabel, rows, int(status), old)
        self._relabel(rows, old, status)

    def _relabel(self, rows: NDArray[np.intp], old: int, new: int) -> None:
        self.tasks.status[rows] = new
        job = int(self.tasks.job[rows[0]])
        if job != NOWHERE:
            self._recount(job, old, new, len(rows))

    def release_session(self) -> None:
        """Undo all that a session did; binds and evictions come back as events."""
        self.journal.end_session()
        self.view_is_live = False
        self.view_watchers.clear()
        self.plugin_columns.clear()


def _groups(values: NDArray[Any]) -> list[tuple[int, slice | Mask]]:
    """Return the distinct values, and where each of them is."""
    found = sorted(set(values.tolist()))
    return [(each, slice(None) if len(found) == 1 else values == each) for each in found]


# Additions to rows that may occur several times


def count_rows(rows: list[int], weights: Iterable[int] | None = None) -> RowCounts:
    """Count equal rows, each as often as its weight, or once."""
    if rows.count(rows[0]) == len(rows):
        return rows[0], len(rows) if weights is None else sum(weights)
    found: dict[int, int] = {}
    for row, n in zip(rows, weights or repeat(1), strict=False):
        found[row] = found.get(row, 0) + n
    return np.array([*found], np.intp), np.array([*found.values()], np.intp)


def add_cells(column: Column, row: int, amounts: Column) -> None:
    """Add amounts (…) to one row of a column (…, n), in place: an index would write them twice."""
    cells = column[..., row]
    cells += amounts


def add_each(column: Column, rows: NDArray[Any], amounts: Column) -> None:
    """Add amounts (…, k) to rows (k,) of a column (…, n), of which one may occur several times."""
    order = np.argsort(rows, kind="stable")
    in_order = rows[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=-1))
    column[..., in_order[starts]] += np.add.reduceat(amounts[..., order], starts, axis=-1)


def add_counted(column: Column, counts: RowCounts, amounts: Column) -> None:
    """Add amounts (…) to rows of a column (…, n), to each as often as it counts."""
    rows, n = counts
    if isinstance(rows, int):
        add_cells(column, rows, amounts * n)
    else:  # taking rows is several times faster than an index
        column[..., rows] = column.take(rows, axis=-1) + amounts[..., None] * n
