"""All tables of one cluster, and the moves a session may make on them.

Ingest fills the tables between sessions; a session moves tasks through the methods here, and every
write goes through the journal.  Nothing is copied to open a session.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pumice.core.journal import Journal
from pumice.core.resources import Column, Resources
from pumice.core.shapes import Shape
from pumice.core.status import Status
from pumice.core.tables import (
    NOWHERE,
    VIEW,
    JobTable,
    NamespaceTable,
    NodeTable,
    QueueTable,
    TaskTable,
)

ViewWatcher = Callable[[int, int, int], None]
"""Told of a task (row), its node (row) and +1 or -1 when the Kubernetes view changes."""


class Snapshot:
    """The cluster as a session sees it; sums always equal what the tasks say (see ``checks``)."""

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
        self.journal = Journal()
        self.view_is_live = False
        self.view_watchers: list[ViewWatcher] = []

    def widen(self) -> None:
        """Give every table the resource rows learnt since the last call."""
        size = len(self.resources)
        for table in (self.nodes, self.jobs, self.queues, self.namespaces):
            table.widen(size)
        for shape in self.shapes:
            shape.widen(size)

    def kind(self, name: str) -> dict[str, Any]:
        """Give the objects of a kind that has no table, by key."""
        return self.objects.setdefault(name, {})

    def total(self) -> Column:
        """Sum what all nodes offer (R,)."""
        return self.nodes.allocatable[:, : self.nodes.n].sum(axis=1)

    def request(self, task: int) -> Column:
        """Give a task's request (R,)."""
        return self.shapes[self.tasks.shape[task]].request[:, 0]

    def place(self, task: int, node: int) -> None:
        """Put a pending task on a node with room."""
        self._move(task, node, "place", Status.ALLOCATED, view=1)

    def pipeline(self, task: int, node: int) -> None:
        """Promise a pending task the room that is about to be free on a node."""
        self._move(task, node, "pipeline", Status.PIPELINED, view=1)

    def unpipeline(self, task: int) -> None:
        """Take a promise back."""
        self._move(task, int(self.tasks.node[task]), "unpipeline", Status.PENDING, view=-1)

    def evict(self, task: int) -> None:
        """Mark a task as leaving; its node keeps its amounts under ``releasing``."""
        self._move(task, int(self.tasks.node[task]), "evict", Status.RELEASING, view=-1)

    def set_status(self, task: int, status: Status) -> None:
        """Change a status inside the allocated class; no sum moves."""
        save, tasks = self.journal.save, self.tasks
        save(tasks.status, task)
        old = int(tasks.status[task])
        tasks.status[task] = status
        job = int(tasks.job[task])
        if job != NOWHERE:
            counts = self.jobs.counts
            save(counts, (slice(None), job))
            counts[old, job] -= 1
            counts[status, job] += 1

    def _move(self, task: int, node: int, step: str, status: Status, view: int) -> None:
        tasks, journal = self.tasks, self.journal
        shape = self.shapes[tasks.shape[task]]
        books_delta, sums_delta = shape.step(step)
        self.set_status(task, status)
        self._add_to_node(node, books_delta)
        if view > 0 or status is Status.PENDING:
            journal.save(tasks.node, task)
            tasks.node[task] = NOWHERE if status is Status.PENDING else node
        if self.view_is_live:
            self._change_view(task, node, view, shape)
        job = int(tasks.job[task])
        if job != NOWHERE:
            self._add_to_sums(job, sums_delta)
            if tasks.best_effort[task] and status is not Status.RELEASING:
                waiting = self.jobs.n_pending_best_effort
                journal.save(waiting, job)
                waiting[job] += 1 if status is Status.PENDING else -1

    def _add_to_node(self, node: int, delta: Column) -> None:
        books = self.nodes.books
        where = (slice(None), slice(None), node)
        self.journal.save(books, where)
        if self.view_is_live:
            books[where] += delta
        else:
            books[:VIEW, :, node] += delta[:VIEW]
        self.journal.touch(node)

    def _change_view(self, task: int, node: int, sign: int, shape: Shape) -> None:
        nodes, save = self.nodes, self.journal.save
        save(self.tasks.in_view, task)
        self.tasks.in_view[task] = sign > 0
        save(nodes.view_pods, node)
        nodes.view_pods[node] += sign
        save(nodes.view_nonzero, (slice(None), node))
        nodes.view_nonzero[:, node] += sign * shape.nonzero[:, 0]
        for watcher in self.view_watchers:
            watcher(task, node, sign)

    def _add_to_sums(self, job: int, delta: Column) -> None:
        jobs = self.jobs
        owners = (
            (jobs.sums, job),
            (self.queues.sums, int(jobs.queue[job])),
            (self.namespaces.sums, int(jobs.namespace[job])),
        )
        for sums, row in owners:
            if row != NOWHERE:
                where = (slice(None), slice(None), row)
                self.journal.save(sums, where)
                sums[where] += delta

    def release_session(self) -> None:
        """Undo all that a session did; binds and evictions come back as events."""
        self.journal.rollback(0)
        self.journal.forget()
        self.view_is_live = False
        self.view_watchers.clear()


def domain_sum(values: Column, rows: "np.ndarray[Any, Any]") -> Column:
    """Sum (R, N) columns over some rows."""
    return np.asarray(values[:, rows].sum(axis=1))
