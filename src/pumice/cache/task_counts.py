"""What nodes, jobs, queues and namespaces count of tasks.

Changes are gathered and added up together, column by column, before a session opens or a row is
removed.  Amounts are whole numbers, so the order of additions does not matter; requests that are
too large for exact sums are added at once, one by one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, IndexArray, sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.status import N_STATUS, Status
from pumice.core.tables import (
    ALLOCATED,
    BOOKED,
    IDLE,
    NOWHERE,
    PENDING,
    RELEASING,
    USED,
    VIEW,
    Shape,
    layers_of,
)

_FEW = 32
"""Fewer changes are faster one by one."""
_PARTS = 5
"""Numbers that make a change."""
_GONE, _PENDING = int(Status.GONE), int(Status.PENDING)
_STEPS = ["stray"] * N_STATUS
_STEPS[Status.GONE] = "gone"
_STEPS[Status.PENDING] = "wait"
_STEPS[Status.BOUND] = _STEPS[Status.RUNNING] = "hold"
_STEPS[Status.RELEASING] = "leave"
"""How a task is found, by its status."""
_BOOKS, _SUMS = (np.array(each).T for each in zip(*map(layers_of, _STEPS), strict=True))
_COUNTS = np.diag([int(status != Status.GONE) for status in Status])
_THERE = _COUNTS.sum(axis=0, keepdims=True)
"""How often each status counts in each layer (layers, statuses)."""
_ONE = np.ones((1, 1))


class TaskCounts:
    """Keeps books, sums and counts in step with tasks."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._changes: list[int] = []
        """Shape, node, job, status before and after of each change, one after the other; GONE is a
        task that did not or does not count, NOWHERE no node or job."""
        self.later = False
        """Whether all counting is left to one sweep at the end."""
        self.rounded = False
        """Whether a task was removed that was too large for exact sums."""

    def change(self, shape: Shape, node: int, job: int, old: int, new: int) -> None:
        """Count a task differently on its node and in its job, from the next sum on."""
        if self.later:
            return
        if shape.coarse:
            self.add_up()
            self._add(shape.id, node, job, old, new)
        else:
            self._changes += (shape.id, node, job, old, new)

    def settle(self) -> bool:
        """Bring all counts up to date; return whether every one was counted again."""
        self.add_up()
        recounts, self.rounded = self.rounded, False
        if recounts:
            _recount(self._snapshot)
        return recounts

    def add_up(self) -> None:
        """Apply the changes gathered so far; also before a row that they name is removed."""
        changes, self._changes = self._changes, []
        if len(changes) < _FEW * _PARTS:
            for at in range(0, len(changes), _PARTS):
                self._add(*changes[at : at + _PARTS])
        else:
            cells = np.fromiter(changes, np.intp, len(changes))
            self._add_many(cells.reshape(-1, _PARTS).T)

    def _add(self, shape: int, node: int, job: int, old: int, new: int) -> None:
        """Apply one change."""
        snapshot, like = self._snapshot, self._snapshot.shapes[shape]
        before, after = _STEPS[old], _STEPS[new]
        books, sums = like.change(before, after)
        came = (old == _GONE) - (new == _GONE)
        if node != NOWHERE and before != after:
            nodes = snapshot.nodes
            nodes.books[:, :, node] += books
            if came:
                nodes.view_pods[node] += came
                nodes.view_nonzero[:, node] += came * like.nonzero[:, 0]
        if job != NOWHERE:
            jobs = snapshot.jobs
            if old != _GONE:
                jobs.counts[old, job] -= 1
            if new != _GONE:
                jobs.counts[new, job] += 1
            jobs.n_tasks[job] += came
            if before != after:
                snapshot.add_to_sums(job, sums)
            if like.best_effort:
                jobs.n_pending_best_effort[job] += (new == _PENDING) - (old == _PENDING)

    def _add_many(self, changes: IndexArray) -> None:
        """Apply many changes (5, n)."""
        known, which = np.unique(changes[0], return_inverse=True)
        shapes = [self._snapshot.shapes[each] for each in known.tolist()]
        requests = np.concatenate([each.request for each in shapes], axis=1)[:, which]
        nonzero = np.concatenate([each.nonzero for each in shapes], axis=1)[:, which]
        idle = np.array([[float(each.best_effort) for each in shapes]])[:, which]
        _, node, job, old, new = changes
        self._add_to_nodes(node, old, new, requests, nonzero)
        mine = job != NOWHERE
        self._add_to_jobs(job[mine], old[mine], new[mine], requests[:, mine], idle[:, mine])

    def _add_to_nodes(
        self, node: IndexArray, old: IndexArray, new: IndexArray, requests: Column, nonzero: Column
    ) -> None:
        nodes, came = self._snapshot.nodes, _times(_THERE, old, new)
        owners = _Owners(node, nodes.capacity)
        owners.add(nodes.books, _times(_BOOKS, old, new), requests)
        owners.add(nodes.view_nonzero[None], came, nonzero)
        owners.add(nodes.view_pods[None, None], came, _ONE)

    def _add_to_jobs(
        self, job: IndexArray, old: IndexArray, new: IndexArray, requests: Column, idle: Column
    ) -> None:
        """Apply changes to jobs, their queues and namespaces."""
        snapshot, jobs = self._snapshot, self._snapshot.jobs
        times = _times(_SUMS, old, new)
        owners = _Owners(job, jobs.capacity)
        owners.add(jobs.sums, times, requests)
        owners.add(jobs.counts[:, None], _times(_COUNTS, old, new), _ONE)
        owners.add(jobs.n_tasks[None, None], _times(_THERE, old, new), _ONE)
        waits = _times(_COUNTS[_PENDING, None], old, new)
        owners.add(jobs.n_pending_best_effort[None, None], waits, idle)
        for owner, table in (
            (jobs.queue[job], snapshot.queues),
            (jobs.namespace[job], snapshot.namespaces),
        ):
            _Owners(owner, table.capacity).add(table.sums, times, requests)


class _Owners:
    """Those to whose cells changes are added: one for each change, or NOWHERE."""

    def __init__(self, owner: NDArray[np.integer[Any]], n_owners: int) -> None:
        if n_owners > len(owner):
            self._rows, self._at = np.unique(owner, return_inverse=True)
        else:
            self._rows, self._at = np.arange(NOWHERE, n_owners), owner - NOWHERE
        self._first = int(len(owner) > 0 and self._rows[0] == NOWHERE)

    def add(self, cells: NDArray[Any], times: NDArray[np.int_], amounts: Column) -> None:
        """Add amounts (R, n) to cells (layers, R, owners), each so often (layers, n)."""
        rows, first = self._rows, self._first
        for layer in np.flatnonzero(times.any(axis=1)).tolist():
            added = sum_by(amounts * times[layer], self._at, len(rows))[:, first:]
            cells[layer][:, rows[first:]] += added.astype(cells.dtype, copy=False)


def _times(layers: NDArray[np.int_], old: IndexArray, new: IndexArray) -> NDArray[np.int_]:
    """Return how often each change counts in each layer (layers, n)."""
    return layers[:, new] - layers[:, old]


def _recount(snapshot: Snapshot) -> None:
    """Set every count and sum of nodes, jobs and namespaces from the tasks."""
    if snapshot.shapes:
        snapshot.nodes.generation += 1
        _nodes(snapshot)
        _jobs(snapshot)
        _namespaces(snapshot)


def _nodes(snapshot: Snapshot) -> None:
    nodes, tasks = snapshot.nodes, snapshot.tasks
    rows = np.flatnonzero(tasks.node != NOWHERE)
    at, shapes = tasks.node[rows], tasks.shape[rows]
    requests = np.concatenate([shape.request for shape in snapshot.shapes], axis=1)
    nonzero = np.concatenate([shape.nonzero for shape in snapshot.shapes], axis=1)
    used = sum_by(requests[:, shapes], at, nodes.capacity)
    leaving = tasks.status[rows] == Status.RELEASING
    nodes.books[IDLE] = nodes.allocatable - used
    nodes.books[USED] = nodes.books[VIEW] = used
    nodes.books[RELEASING] = sum_by(requests[:, shapes[leaving]], at[leaving], nodes.capacity)
    nodes.view_pods[:] = np.bincount(at, minlength=nodes.capacity)
    nodes.view_nonzero[:] = sum_by(nonzero[:, shapes], at, nodes.capacity)
    for (shape, node), n in snapshot.absent.on_nodes.items():
        snapshot.hold(snapshot.shapes[shape], [node] * n, 1)


def _jobs(snapshot: Snapshot) -> None:
    jobs, tasks = snapshot.jobs, snapshot.tasks
    rows = np.flatnonzero(tasks.job != NOWHERE)
    owner, status = tasks.job[rows], tasks.status[rows]
    cells = status.astype(np.intp) * jobs.capacity + owner
    counts = np.bincount(cells, minlength=N_STATUS * jobs.capacity)
    jobs.counts[:] = counts.reshape(N_STATUS, jobs.capacity)
    jobs.n_tasks[:] = jobs.counts.sum(axis=0)
    requests = np.concatenate([shape.request for shape in snapshot.shapes], axis=1)
    requests = requests[:, tasks.shape[rows]]
    held = (status == Status.BOUND) | (status == Status.RUNNING)
    waiting = status == Status.PENDING
    absent = [*snapshot.absent.jobs]
    theirs = jobs.sums[:, :, absent]
    jobs.sums[ALLOCATED] = sum_by(requests[:, held], owner[held], jobs.capacity)
    jobs.sums[BOOKED] = jobs.sums[ALLOCATED]
    jobs.sums[PENDING] = sum_by(requests[:, waiting], owner[waiting], jobs.capacity)
    jobs.sums[:, :, absent] = theirs
    idle = owner[waiting & tasks.best_effort[rows]]
    jobs.n_pending_best_effort[:] = np.bincount(idle, minlength=jobs.capacity)


def _namespaces(snapshot: Snapshot) -> None:
    jobs, spaces = snapshot.jobs, snapshot.namespaces
    known = jobs.namespace != NOWHERE
    for layer in range(len(spaces.sums)):
        spaces.sums[layer] = sum_by(
            jobs.sums[layer][:, known], jobs.namespace[known], spaces.capacity
        )
