"""Tasks that might be evicted, node by node; shared by preempt and reclaim.

Answers two questions: which tasks of a node are candidates, and which nodes are worth asking at
all.  The second is answered with columns, so that hopeless nodes cost nothing.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pumice.core.resources import PODS, STEP, Column, IndexArray, Mask, fits, sum_by
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.status import N_STATUS, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.dispatch import Method
from pumice.framework.plugin import Plugin
from pumice.framework.session_state import SessionState

_PATIENCE = 8
"""Nodes to ask one by one before all others are filtered at once, unless that left few before."""
_FEW_SHAPES = 8
"""Shapes up to which requests are added up by counting pods of each."""


@dataclass
class Scope:
    """Some of the candidates, such as all of one queue, and their sum on each node."""

    members: Mask
    """Which candidates belong (k,)."""
    sums: Column
    """Requests of members that still run, by node (R, N)."""
    room: Column
    """What nodes would have left if all of them left (R, N)."""
    own_job: bool = False
    """Whether these are the tasks of the asking job itself."""
    cursor: int = 0


class Candidates:
    """The preemptable tasks of known jobs that hold a node when an action starts.

    Statuses are read live: a task that was evicted meanwhile is no longer a candidate.
    """

    def __init__(self, state: SessionState, statuses: Iterable[Status]) -> None:
        self._state = state
        self._snapshot = state.snapshot
        tasks, jobs = state.snapshot.tasks, state.snapshot.jobs
        self._counts = np.zeros(N_STATUS, dtype=bool)
        self._counts[list(statuses)] = True
        rows = np.flatnonzero(
            self._counts.take(tasks.status)
            & tasks.preemptable
            & (tasks.node != NOWHERE)
            & (tasks.job != NOWHERE)
        )
        rows = rows[jobs.listed.take(tasks.job.take(rows))]
        rows = rows[np.argsort(tasks.node.take(rows), kind="stable")]
        self.rows: IndexArray = rows
        self.node = tasks.node.take(rows)
        self.job = tasks.job.take(rows)
        self.queue = jobs.queue.take(self.job)
        self.best_effort = tasks.best_effort.take(rows)
        shapes, self._shape = state.snapshot.shapes_of(rows)
        self._amounts = _amounts_of_shapes(state.snapshot, shapes)
        """Amounts of distinct shapes, to which ``_shape`` points (R + 2, s)."""
        self._requests = self._amounts[:-2]
        self._coarse = {i for i, shape in enumerate(shapes) if shape.coarse}
        self._starts = np.searchsorted(self.node, np.arange(state.snapshot.nodes.n + 1))
        self._scopes: dict[Hashable, Scope] = {}
        self._patience = _PATIENCE

    def of_queue(self, queue: int, *, best_effort_only: bool) -> Scope:
        """Return the candidates of one queue."""
        return self._scope(
            ("queue", queue, best_effort_only),
            lambda: (self.queue == queue) & (self.best_effort | (not best_effort_only)),
        )

    def of_job(self, job: int, *, best_effort_only: bool) -> Scope:
        """Return the candidates of one job."""
        scope = self._scope(
            ("job", job, best_effort_only),
            lambda: (self.job == job) & (self.best_effort | (not best_effort_only)),
        )
        scope.own_job = True
        return scope

    def forget_job(self, job: int) -> None:
        """Free the scopes of a job whose turn is over: many jobs and nodes are much memory."""
        for best_effort_only in (False, True):
            self._scopes.pop(("job", job, best_effort_only), None)

    def of_other_queues(self, queue: int) -> Scope:
        """Return the candidates of queues that others may reclaim from."""

        def members() -> Mask:
            may_lose = self._snapshot.queues.reclaimable.copy()
            may_lose[queue] = False
            return may_lose.take(self.queue)

        return self._scope(("others", queue), members)

    def _scope(self, key: Hashable, members: Callable[[], Mask]) -> Scope:
        found = self._scopes.get(key)
        if found is None:
            part = members()
            at = part.nonzero()[0]
            sums = self._sum_up(at[self._run_still(at)])
            room = self._snapshot.nodes.future_idle + sums
            found = Scope(part, sums, room, cursor=len(self._snapshot.journal.moved))
            self._scopes[key] = found
        return found

    def _run_still(self, at: IndexArray | slice) -> Mask:
        """Mark the candidates that were not evicted meanwhile."""
        return self._counts.take(self._snapshot.tasks.status.take(self.rows[at]))

    def _sum_up(self, at: IndexArray) -> Column:
        """Add up the requests of candidates by node (R, N)."""
        n, n_shapes, nodes = self._snapshot.nodes.n, self._requests.shape[1], self.node.take(at)
        if n_shapes > _FEW_SHAPES:
            return sum_by(self._requests.take(self._shape.take(at), axis=1), nodes, n)
        kinds = nodes if n_shapes < 2 else self._shape.take(at) * n + nodes
        counts = np.bincount(kinds, minlength=n_shapes * n).reshape(n_shapes, n)
        return self._requests @ counts

    def amounts(self, at: IndexArray) -> Column:
        """Return what candidates ask for, and below it the same with Kubernetes' defaults."""
        return self._amounts.take(self._shape.take(at), axis=1)

    def has_coarse(self, at: IndexArray) -> bool:
        """Return whether amounts of some of these candidates do not add up exactly."""
        return bool(self._coarse) and not self._coarse.isdisjoint(self._shape.take(at).tolist())

    def on_node(self, scope: Scope, node: int) -> list[int]:
        """List the members of a scope that still run on a node."""
        part = slice(self._starts[node], self._starts[node + 1])
        found: list[int] = self.rows[part][scope.members[part] & self._run_still(part)].tolist()
        return found

    def has_of(self, job: int) -> bool:
        """Return whether some tasks of a job may be candidates."""
        return bool(self._snapshot.jobs.counts[self._counts, job].any())

    def on_nodes(
        self, hook: Method, scope: Scope, task: Task, nodes: IndexArray
    ) -> tuple[IndexArray, IndexArray]:
        """List the candidates on some nodes, and the place of each one's node."""
        starts = self._starts[nodes]
        lengths = self._starts[nodes + 1] - starts
        place = np.arange(len(nodes)).repeat(lengths)
        at = np.arange(len(place)) + (starts - (lengths.cumsum() - lengths)).repeat(lengths)
        live = scope.members.take(at) & self._run_still(at)
        spared = _spared_job(hook, scope, task)
        if spared != NOWHERE:
            live &= self.job.take(at) != spared
        return at[live], place[live]

    def sums(self, scope: Scope) -> Column:
        """Return what the members of a scope that still run hold on each node (R, N)."""
        self._follow(scope)
        return scope.sums

    def room(self, scope: Scope) -> Column:
        """Return what nodes would have left if all of these left (R, N)."""
        self._follow(scope)
        return scope.room

    def _follow(self, scope: Scope) -> None:
        """Add up again on nodes that moved."""
        moved = self._snapshot.journal.moved
        if scope.cursor < len(moved):
            rows: set[int] = set()
            for entry in moved[scope.cursor :]:
                rows.update([entry] if isinstance(entry, int) else entry.tolist())
            scope.cursor = len(moved)
            for node in rows:
                self._add_up(scope, node)

    def _add_up(self, scope: Scope, node: int) -> None:
        part = slice(self._starts[node], self._starts[node + 1])
        if part.start < part.stop:
            live = scope.members[part] & self._run_still(part)
            scope.sums[:, node] = self._sum_of(self._shape[part], live)
        scope.room[:, node] = self._snapshot.nodes.future_idle_of(node) + scope.sums[:, node]

    def _sum_of(self, shapes: IndexArray, live: Mask) -> Column:
        """Add up the requests of those who are alive of some candidates (R,)."""
        if self._requests.shape[1] == 1:
            return self._requests[:, 0] * np.count_nonzero(live)
        return np.add.reduce(self._requests.take(shapes[live], axis=1), axis=1)

    def visit(
        self,
        hook: Method,
        scope: Scope,
        task: Task,
        rows: IndexArray,
        scores: Column | None = None,
    ) -> "Visit":
        """Return nodes in order, after the first few without those that have no victims."""

        def sieve() -> Mask:
            found = self._with_victims(hook, scope, task)
            self._patience = _PATIENCE if np.count_nonzero(found) > _PATIENCE else 0
            return found

        return Visit(rows, sieve, scores, self._patience)

    def with_room(self, scope: Scope, task: Task) -> Mask:
        """Mark nodes that would have room for a task if all members of a scope left (N,)."""
        return np.asarray(np.logical_and.reduce(task.need - self.room(scope) < STEP))

    def occupied(self, scope: Scope) -> Mask:
        """Mark nodes with at least one member of a scope (N,)."""
        return np.asarray(self.sums(scope)[PODS] > 0)

    def victims(self, hook: Method, scope: Scope, task: Task, node: int) -> list[int]:
        """List the tasks of a node that plugins offer for a task, least valuable first.

        Candidates are put in order before plugins see them, so that plugins that count (gangs,
        budgets, shares) offer the least valuable.
        """
        own = _spared_job(hook, scope, task)
        job = self._snapshot.tasks.job
        rows = [row for row in self.on_node(scope, node) if job[row] != own]
        if not rows:
            return []
        rows = self._state.ordering.sort_victims(rows, task.queue)
        if hook is Plugin.preemptable:
            return self._state.policy.preemptable(task, rows)
        return self._state.policy.reclaimable(task, rows)

    def _with_victims(self, hook: Method, scope: Scope, task: Task) -> Mask:
        """Mark nodes where plugins could name victims that make room for a task (N,).

        Applies the tier rule of the session as a bound: a plugin with nothing to offer on a node
        ends its tier there, and what a tier yields is part of its last plugin's answer.
        """
        at = np.flatnonzero(scope.members & self._run_still(slice(None)))
        rows, node = self.rows[at], self.node[at]
        free = self._snapshot.nodes.future_idle
        n = free.shape[1]
        found = np.asarray((task.need - free < STEP).all(axis=0))
        hooks = self._state.hooks
        for tier in hooks.tiers(hook):
            open_nodes = np.ones(n, dtype=bool)
            offered: Mask = np.ones(len(at), dtype=bool)
            for plugin, _ in tier:
                bound_victims = hooks.ask_aside(plugin, Plugin.bound_victims)
                bound = bound_victims(hook.__name__, task, rows)
                offered = np.ones(len(at), dtype=bool) if bound is None else bound
                open_nodes &= np.bincount(node[offered], minlength=n) > 0
            sums = self._sum_up(at[offered])
            found |= open_nodes & (task.need - free - sums < STEP).all(axis=0)
        return found


def amounts_of(snapshot: Snapshot, rows: IndexArray) -> Column:
    """Return requests of tasks, and below them those with Kubernetes' defaults (R + 2, k)."""
    shapes, which = snapshot.shapes_of(rows)
    return _amounts_of_shapes(snapshot, shapes).take(which, axis=1)


def _amounts_of_shapes(snapshot: Snapshot, shapes: list[Shape]) -> Column:
    """Return requests of shapes, and below them those with Kubernetes' defaults (R + 2, s)."""
    none = np.zeros((len(snapshot.resources) + 2, 0))
    columns = (np.concatenate([shape.request, shape.nonzero]) for shape in shapes)
    return np.concatenate([none, *columns], axis=1)


def _spared_job(hook: Method, scope: Scope, task: Task) -> int:
    """Return the job that a task takes nothing from: its own, unless tasks of a job compete."""
    return task.job if hook is Plugin.preemptable and not scope.own_job else NOWHERE


class Visit:
    """Nodes still to try, in order; more selective once the first ones fail.

    The order is that of the rows, or of their scores, the best first: mostly the first few nodes
    suffice, so these are found first, and the rest is sorted only when needed.
    """

    def __init__(
        self,
        rows: IndexArray,
        sieve: Callable[[], Mask],
        scores: Column | None = None,
        patience: int = _PATIENCE,
    ) -> None:
        self._left = rows
        self._scores = scores
        self._sieve = sieve
        self._patience = patience

    def __iter__(self) -> Iterator[int]:
        tried = 0
        while len(self._left):
            if tried == self._patience:
                self.keep(self._sieve())
                self._sort()
                if not len(self._left):
                    return
            tried += 1
            yield self._next()

    def _next(self) -> int:
        best = 0 if self._scores is None else int(self._scores.argmax())
        node = int(self._left[best])
        if self._scores is None:
            self._left = self._left[1:]
        else:
            self._left = np.delete(self._left, best)
            self._scores = np.delete(self._scores, best)
        return node

    def _sort(self) -> None:
        if self._scores is not None:
            self._left = self._left[np.argsort(-self._scores, kind="stable")]
            self._scores = None

    def keep(self, nodes: Mask) -> None:
        """Drop all nodes except these (N,)."""
        kept = nodes[self._left]
        self._left = self._left[kept]
        if self._scores is not None:
            self._scores = self._scores[kept]


def fits_after_evictions(state: SessionState, task: Task, node: int) -> bool:
    """Return whether queue, node and filters would take a task once evicted pods are gone."""
    room = state.snapshot.nodes.future_idle_of(node)
    if not fits(task.need[:, 0], room) or not state.policy.allocatable(task.queue, task):
        return False
    return bool(state.placing.judged(task).verdict[node] == 0)
