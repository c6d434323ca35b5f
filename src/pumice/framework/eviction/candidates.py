"""Tasks that might be evicted, node by node; shared by preempt and reclaim.

Answers two questions: which tasks of a node are candidates, and which nodes are worth asking at
all.  The second is answered with columns, so that hopeless nodes cost nothing.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from pumice.core.resources import PODS, STEP, Column, IndexArray, Mask, fits, fits_one, sum_by
from pumice.core.status import N_STATUS, Status
from pumice.core.tables import NOWHERE, Shape
from pumice.core.views import Task
from pumice.framework.dispatch import Method
from pumice.framework.ordering import Key
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
    """How many moves the sums follow."""
    fitting: tuple[Shape, Mask] | None = None
    """The last shape that was asked about, and the nodes with room for it (N,)."""
    in_order: dict[int, tuple[list[int], dict[int, Key] | None]] = field(default_factory=dict)
    """The members on nodes, least valuable first within a job, and the keys of this order."""


class Candidates:
    """The preemptable tasks of known jobs that hold a node when an action starts.

    Statuses are read live: a task that was evicted meanwhile is no longer a candidate.
    """

    def __init__(self, state: SessionState, hook: Method, statuses: Iterable[Status]) -> None:
        """Find them; ``hook`` is the one by which plugins name victims."""
        self._state = state
        self._hook = hook
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
        none = np.zeros((len(state.snapshot.resources), 0))
        self._requests = np.concatenate([none, *(each.request for each in shapes)], axis=1)
        """Requests of distinct shapes, to which ``_shape`` points (R, s)."""
        self._starts = np.searchsorted(self.node, np.arange(state.snapshot.nodes.n + 1))
        self._scopes: dict[Hashable, Scope] = {}
        self._patience = 0 if state.left_out.any() else _PATIENCE  # others found nobody before

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

    def on_nodes(
        self, scope: Scope, task: Task, nodes: IndexArray
    ) -> tuple[IndexArray, IndexArray]:
        """List the candidates on some nodes, and the place of each one's node."""
        starts = self._starts[nodes]
        lengths = self._starts[nodes + 1] - starts
        place = np.arange(len(nodes)).repeat(lengths)
        at = np.arange(len(place)) + (starts - (lengths.cumsum() - lengths)).repeat(lengths)
        live = scope.members.take(at) & self._run_still(at)
        own = self._kept_job(scope, task)
        if own != NOWHERE:
            live &= self.job.take(at) != own
        return at[live], place[live]

    def sums(self, scope: Scope) -> Column:
        """Return what the members of a scope that still run hold on each node (R, N)."""
        self._follow(scope)
        return scope.sums

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
        room = self._snapshot.nodes.future_idle_of(node) + scope.sums[:, node]
        scope.room[:, node] = room
        if scope.fitting is not None:
            shape, nodes = scope.fitting
            nodes[node] = fits_one(shape.need, room)

    def _sum_of(self, shapes: IndexArray, live: Mask) -> Column:
        """Add up the requests of those who are alive of some candidates (R,)."""
        if self._requests.shape[1] == 1:
            return self._requests[:, 0] * np.count_nonzero(live)
        return np.add.reduce(self._requests.take(shapes[live], axis=1), axis=1)

    def visit(self, scope: Scope, task: Task, nodes: Mask, scores: Column | None = None) -> "Visit":
        """Return nodes in order, after the first few without those that have no victims."""

        def sieve() -> Mask:
            found = self._with_victims(scope, task) & nodes
            self._patience = _PATIENCE if np.count_nonzero(found) > _PATIENCE else 0
            return found

        return Visit(nodes, sieve, scores, self._patience)

    def with_room(self, scope: Scope, task: Task) -> Mask:
        """Mark nodes that would have room for a task if all members of a scope left (N,)."""
        self._follow(scope)
        if scope.fitting is None or scope.fitting[0] is not task.shape:
            scope.fitting = task.shape, fits(task.need, scope.room)
        return scope.fitting[1]

    def occupied(self, scope: Scope) -> Mask:
        """Mark nodes with at least one member of a scope (N,)."""
        return np.asarray(self.sums(scope)[PODS] > 0)

    def victims(self, scope: Scope, task: Task, node: int) -> list[int]:
        """List the tasks of a node that plugins offer for a task, least valuable first.

        Candidates are put in order before plugins see them, so that plugins that count (gangs,
        budgets, shares) offer the least valuable.
        """
        rows = self._in_order(scope, task, node)
        if not rows:
            return []
        if self._hook is Plugin.preemptable:
            return self._state.policy.preemptable(task, rows)
        return self._state.policy.reclaimable(task, rows)

    def _in_order(self, scope: Scope, task: Task, node: int) -> list[int]:
        """List the candidates on a node that are left for a task, least valuable first."""
        if node not in scope.in_order:
            scope.in_order[node] = self._line_up(scope, node)
        known, keys = scope.in_order[node]
        own, ordering = self._kept_job(scope, task), self._state.ordering
        status, job, counts = self._snapshot.tasks.status, self._snapshot.tasks.job, self._counts
        rows = [row for row in known if counts[status[row]] and job[row] != own]
        jobs = list({job.item(row) for row in rows})
        if keys is not None and len(jobs) < 2:
            return rows
        if keys is None or len(set(self._snapshot.jobs.queue[jobs].tolist())) > 1:
            return ordering.sort_victims(rows, task.queue)
        worth = dict(zip(jobs, ordering.job_policy_keys(jobs), strict=True))
        return sorted(rows, key=lambda row: (worth[job.item(row)], keys[row]), reverse=True)

    def _line_up(self, scope: Scope, node: int) -> tuple[list[int], dict[int, Key] | None]:
        """Order the members of a scope on a node by keys; None: these may change, or do not do."""
        part, ordering = slice(self._starts[node], self._starts[node + 1]), self._state.ordering
        rows: list[int] = self.rows[part][scope.members[part]].tolist()
        keys = ordering.plain_task_keys(rows) if ordering.keeps_orders else None
        if keys is None:
            return rows, None
        by_row = dict(zip(rows, keys, strict=True))
        return sorted(rows, key=by_row.__getitem__, reverse=True), by_row

    def _kept_job(self, scope: Scope, task: Task) -> int:
        """Return the job that a task evicts nothing of: its own, unless tasks of a job compete."""
        return task.job if self._hook is Plugin.preemptable and not scope.own_job else NOWHERE

    def _with_victims(self, scope: Scope, task: Task) -> Mask:
        """Mark nodes where plugins could name victims that make room for a task (N,).

        Applies the tier rule of the session as a bound: a plugin with nothing to offer on a node
        ends its tier there, and what a tier yields is part of its last plugin's answer, or of all
        answers if it is strict.
        """
        every = np.flatnonzero(scope.members & self._run_still(slice(None)))
        free = self._snapshot.nodes.future_idle
        n = free.shape[1]
        found = np.asarray((task.need - free < STEP).all(axis=0))
        hooks, name = self._state.hooks, self._hook.__name__
        tiers, ends_strictly = hooks.tiers(self._hook), hooks.ends_strictly(self._hook)
        for tier in tiers:
            is_strict = ends_strictly and tier is tiers[-1]
            at = offered = every
            open_nodes = np.ones(n, dtype=bool)
            for plugin, ask in tier:
                rows = self.rows[at]
                bound = hooks.ask_aside(plugin, Plugin.bound_victims)(name, task, rows)
                if bound is None and name in plugin.judges_alone:
                    bound = ask(task, rows.tolist())
                offered = at if bound is None else at[bound]
                open_nodes &= np.bincount(self.node[offered], minlength=n) > 0
                at = offered if is_strict else at
                at = at[open_nodes[self.node[at]]]
                if not len(at):
                    break
            else:
                sums = self._sum_up(offered)
                found |= open_nodes & (task.need - free - sums < STEP).all(axis=0)
        return found


class Visit:
    """Nodes still to try: in the order of rows, or of scores, the best first.

    Mostly the first few nodes suffice; once these failed, those without victims are left out.
    """

    def __init__(
        self, nodes: Mask, sieve: Callable[[], Mask], scores: Column | None, patience: int
    ) -> None:
        self._left = nodes.copy()
        self._scores = scores
        self._sieve = sieve
        self._patience = patience

    def __iter__(self) -> Iterator[int]:
        for tried in count():
            if tried == self._patience and self._left.any():
                self.keep(self._sieve())
            node = self._best() if len(self._left) else 0
            if not self._left[node : node + 1]:
                return
            self._left[node] = False
            yield node

    def _best(self) -> int:
        if self._scores is not None:
            best = int(np.where(self._left, self._scores, -np.inf).argmax())
            if self._left[best]:
                return best
        return int(self._left.argmax())

    def keep(self, nodes: Mask) -> None:
        """Drop all nodes except these (N,)."""
        self._left &= nodes
