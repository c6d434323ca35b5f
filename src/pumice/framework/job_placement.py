"""One placing round of a job: task by task until the job is ready.

Shared by allocate and by everything that tries a job on a part of the cluster.
"""

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pumice.core.resources import Mask
from pumice.core.status import PENDING
from pumice.core.tables import NOWHERE
from pumice.core.views import READY, Job, Task, count_roles, mixed_roles
from pumice.framework.placement.ahead import Imagined, has_plain_shape, longest, relabelled
from pumice.framework.placing import NO_ROOM, Codes, Fit
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import NoNode, Reason, Stage, Verdict, Why
from pumice.framework.session_state import SessionState
from pumice.framework.statement import Statement

_SHORTEST = 4
"""Shorter runs cost more than they save."""


@dataclass
class JobMemory:
    """Memory of allocate about a job for the rest of the session."""

    failed_roles: set[int] = field(default_factory=set)
    """Roles with a task that found no node; pods without a role are always tried."""
    mixed_roles: frozenset[int] | None = None
    """Roles whose tasks differ in kind; None: not checked yet."""


@dataclass
class JobPlacement:
    """Places tasks of one job in order; tasks that it cannot place are done for the cycle."""

    state: SessionState
    job: int
    tasks: deque[int]
    memory: JobMemory
    is_done: Callable[[], Verdict]
    allowed: Mask | None = None
    """Nodes to stay on (n,); None: all."""
    remember_errors: bool = True
    """Skip a node for a role that it refused before in this round."""
    goes_on: Callable[[], bool] | None = None
    """Whether to continue after a task found no node; None: as the job's minimum numbers allow."""
    on_placed: Callable[[int, int], None] | None = None
    most: Callable[[], int] | None = None
    """How many to place before ``is_done`` is asked, where counts of the job do not show it."""
    _one_by_one: set[int] = field(default_factory=set)
    """Shapes that cannot be placed as a run in this round."""
    _refused: dict[int, Codes] = field(default_factory=dict)
    """Why nodes refused a task of a role first in this round, by role (n,)."""

    def run(self, stmt: Statement) -> None:
        """Place tasks until the job is done, no task is left, or the job cannot become ready."""
        while self.tasks:
            if self._run_of_equals(stmt) and (not self.tasks or self.is_done()):
                break
            row = self._next_task()
            if not self._try(row, stmt):
                if self._must_stop():
                    break
                continue
            if self.is_done():
                break

    def _next_task(self) -> int:
        """Take the first task; where placing changes the order, decide now which comes next.

        Volcano: a heap sifts when an element leaves it, so the next task is known before the
        one that left is placed.
        """
        tasks, ordering = self.tasks, self.state.ordering
        row = tasks.popleft()
        if tasks and ordering.moves_tasks(self.job):
            first = ordering.first_task(tasks)
            tasks.remove(first)
            tasks.appendleft(first)
        return row

    def _run_of_equals(self, stmt: Statement) -> bool:
        """Place equal tasks at the head of the list, as far as there is room now.

        Their queue and their job are asked once for all of them.
        """
        if len(self.tasks) < _SHORTEST or not self._may_run():
            return False
        state, task = self.state, Task(self.state.snapshot, self.tasks[0])
        n = self._equal_heads(task)
        if n and state.policy.filter_task(task) is None:
            known = state.placing.class_of(task)
            if known is None or known.rankers or state.policy.follows_placements:
                return self._place_each(stmt, n)
            if self._place_together(stmt, task, known.number, n):
                return True
        self._one_by_one.add(task.shape.id)
        return False

    def _equal_heads(self, task: Task) -> int:
        """Return how many of the first tasks can be placed as one run; 0 if too few.

        A run ends where the job is complete and where its queue would refuse the next one; both
        are asked about sums that do not exist yet, because holding more never makes a queue allow
        more nor a job less ready.
        """
        state, snapshot, table = self.state, self.state.snapshot, self.state.snapshot.tasks
        rows = np.asarray(self.tasks, dtype=np.intp)
        same = table.shape[rows] == table.shape[task.row]
        if not has_plain_shape(task.shape) or not self._treats_roles_alike():
            same &= table.role[rows] == table.role[task.row]
        same &= (table.nominated[rows] == NOWHERE) & ~table.gated[rows]
        n = len(rows) if same.all() else int(np.argmin(same))
        if state.placing.varying and n >= _SHORTEST:
            first = state.placing.class_key(task)
            keys = (state.placing.class_key(Task(snapshot, row)) for row in rows[:n].tolist())
            n = sum(1 for _ in itertools.takewhile(lambda key: key == first, keys))
        if self.most is not None:
            n = min(n, self.most())
        elif state.topology.has_policy(self.job):
            return 0

        def accepted(k: int) -> Verdict:
            with Imagined(snapshot, task, k - 1):
                return state.policy.allocatable(task.queue, task)

        def unfinished(k: int) -> bool:
            with Imagined(snapshot, task, k), relabelled(snapshot, rows[:k]):
                return not self.is_done()

        n = longest(n, accepted) if n >= _SHORTEST else 0
        n = longest(n - 1, unfinished) + 1
        return n if n >= _SHORTEST else 0

    def _place_each(self, stmt: Statement, n: int) -> bool:
        """Place the first tasks one by one up to one that finds no room now."""
        placed, placing = 0, self.state.placing
        while placed < n:
            row, generator = self.tasks[0], placing.state
            task = Task(self.state.snapshot, row)
            chosen = self._choose(task, int(self.state.snapshot.tasks.role[row]))
            if chosen is None or not chosen[1]:
                placing.state = generator  # it is tried again
                self._one_by_one.add(task.shape.id)
                break
            self.tasks.popleft()
            stmt.place(row, chosen[0])
            placed += 1
        return placed > 0

    def _place_together(self, stmt: Statement, task: Task, number: int, n: int) -> bool:
        """Place the first tasks, of a class with this number, with one question to the kernel.

        Where a role remembers who refused, it does so only if none of its tasks is left to ask.
        """
        placing, role = self.state.placing, int(self.state.snapshot.tasks.role[task.row])
        allowed, mark = self.allowed, stmt.checkpoint()
        remembers = self._remembers(role) and _may_reopen(task)
        if remembers and role in self._refused:
            open_still = self._refused[role] == 0
            allowed = open_still if allowed is None else allowed & open_still
        picks, draws = placing.pick([number] * n, allowed, stay_closed=remembers)
        if not picks or (remembers and len(picks) < n):
            return False
        tasks = [self.tasks.popleft() for _ in picks]
        stmt.place_many(tasks, picks)
        if remembers and self._has_more(role) and not self.is_done():
            stmt.rollback(mark)
            self.tasks.extendleft(reversed(tasks))
            return False
        placing.state = draws[-1]
        return True

    def _treats_roles_alike(self) -> bool:
        """Return whether nothing is remembered of any role that would keep its tasks out."""
        known_alike = self.memory.mixed_roles is not None and not self.memory.mixed_roles
        return known_alike and not self.memory.failed_roles and not self._refused

    def _has_more(self, role: int) -> bool:
        """Return whether tasks of a role are still to be tried."""
        roles = self.state.snapshot.tasks.role
        return any(roles[row] == role for row in self.tasks)

    def _remembers(self, role: int) -> bool:
        """Return whether a node that refuses a task of a role is not asked again for others."""
        return role != NOWHERE and self.remember_errors

    def _may_run(self) -> bool:
        """Return whether the first tasks may be placed together."""
        state, table = self.state, self.state.snapshot.tasks
        first = self.tasks[0]
        role = int(table.role[first])
        return (
            int(table.shape[first]) not in self._one_by_one
            and self.on_placed is None
            and state.policy.imaginable
            and state.placing.imagines
            and first not in state.queue_gates.held
            and (role == NOWHERE or role not in self.memory.failed_roles)
            and not state.ordering.moves_tasks(self.job)
            and not self._is_mixed(role)
        )

    def _try(self, row: int, stmt: Statement) -> bool | None:
        """Place one task; False if no node takes it, None if it was not even tried."""
        state, task = self.state, Task(self.state.snapshot, row)
        self._stop = False
        queue = int(state.snapshot.jobs.queue[self.job])
        allowed = state.policy.allocatable(queue, task)
        if not allowed:
            state.records.note_refused(
                self.job, Stage.QUOTA, allowed, Why.OVER_QUOTA, task=task.key, queue=queue
            )
            self._skip_equals(row)
            return None
        if row in state.queue_gates.held:
            state.queue_gates.open(row)  # placed once the cluster reports that the gate is gone
            return None
        role = int(state.snapshot.tasks.role[row])
        if role != NOWHERE and role in self.memory.failed_roles:
            state.records.no_fit.setdefault(row, {})
            state.records.barred[row] = None
            return None
        reason = state.policy.filter_task(task)
        if reason is not None:
            return self._no_node(row, role, reason)
        chosen = self._choose(task, role)
        if chosen is None:
            return self._no_node(row, role, state.placing.fit(task))
        node, has_room = chosen
        if has_room:
            stmt.place(row, node)
        else:
            stmt.pipeline(row, node)
        if self.on_placed is not None:
            self.on_placed(row, node)
        return True

    def _skip_equals(self, row: int) -> None:
        """Drop tasks equal to one that its queue refused, except the last, which is recorded."""
        tasks, table = self.tasks, self.state.snapshot.tasks
        if self.state.ordering.moves_tasks(self.job) or not self._refused_alike(row):
            return
        kind = table.shape[row], table.role[row]
        equals = itertools.takewhile(lambda i: (table.shape[i], table.role[i]) == kind, tasks)
        for _ in range(len(list(equals)) - 1):
            tasks.popleft()

    def _refused_alike(self, row: int) -> bool:
        """Return whether a queue that refuses a task refuses equal ones: nothing else is asked."""
        state = self.state
        return (
            state.placing.imagines
            and not state.queue_gates.is_reserving  # a pod's own reservation is left aside
            and has_plain_shape(state.snapshot.shapes[state.snapshot.tasks.shape[row]])
            and all(plugin.foreseeable for plugin, _ in state.hooks.bound(Plugin.allocatable))
        )

    def _choose(self, task: Task, role: int) -> tuple[int, bool] | None:
        """Return the best node and whether it has room now; a nominated one comes first."""
        placing, snapshot = self.state.placing, self.state.snapshot
        nominee = snapshot.tasks.nominated.item(task.row)
        remembers = self._remembers(role) and (_may_reopen(task) or self._is_mixed(role))
        if nominee == NOWHERE:
            node = self._choose_known(task, role, remembers=remembers)
            if node is not None:
                return node, True
        fit, refused = placing.fit(task), self._refused.get(role)
        if (
            nominee != NOWHERE
            and (self.allowed is None or self.allowed[nominee])
            and (refused is None or refused[nominee] == 0)
        ):
            only = np.zeros(snapshot.nodes.n, dtype=bool)
            only[nominee] = True
            chosen = placing.choose(task, fit, only)
            if chosen is not None:
                return chosen
        allowed = self.allowed
        if remembers:
            refused = self._refused[role] = placing.refusals(task, fit, refused)
            allowed = refused == 0 if allowed is None else allowed & (refused == 0)
        if allowed is None and fit.no_node is not None:
            return None  # an equal task found none, and no node moved since
        return placing.choose(task, fit, allowed)

    def _choose_known(self, task: Task, role: int, *, remembers: bool) -> int | None:
        """Return the best node with room now as far as the kernel knows, else None.

        Where a role remembers who refused, only nodes that newly refuse are asked why.
        """
        placing, allowed = self.state.placing, self.allowed
        if remembers:
            rows = placing.closed_now(task)
            if rows is None:
                return None
            refused = self._refused.get(role)
            if refused is None:
                refused = np.zeros(self.state.snapshot.nodes.n, dtype=np.int16)
                self._refused[role] = refused
            rows = rows[refused[rows] == 0]
            if len(rows):
                refused[rows] = placing.refusals_on(task, rows)
            if refused.any():
                allowed = refused == 0 if allowed is None else allowed & (refused == 0)
        return placing.choose_known(task, allowed)

    def _is_mixed(self, role: int) -> bool:
        """Return whether tasks of a role differ: then a node may refuse one and take the next."""
        if not self._remembers(role):
            return False
        if self.memory.mixed_roles is None:
            snapshot, varying = self.state.snapshot, self.state.placing.varying
            rows = snapshot.jobs.tasks[self.job]
            several = len(rows) > 1
            mixed = mixed_roles(snapshot, rows, varying) if several else frozenset()
            self.memory.mixed_roles = mixed
        return role in self.memory.mixed_roles

    def _no_node(self, row: int, role: int, why: Fit | Reason) -> bool:
        """Remember that a task found no node, and why: reasons of nodes, or one for all of them."""
        state = self.state
        if role != NOWHERE:
            self.memory.failed_roles.add(role)
        task, allowed = Task(state.snapshot, row), self.allowed
        if isinstance(why, Reason):
            n = state.snapshot.nodes.n if allowed is None else int(allowed.sum())
            state.records.no_node(task, NoNode({why.text: n}))
        elif allowed is None and role not in self._refused:
            why.no_node = why.no_node or self._explain(task, why)
            state.records.no_node(task, why.no_node)
        else:
            state.records.no_node(task, self._explain(task, why, self._refused.get(role)))
        self._stop = True
        return False

    def _explain(self, task: Task, fit: Fit, refusals: Codes | None = None) -> NoNode:
        """Return why the allowed nodes refuse a task, unless that is known (n,)."""
        placing = self.state.placing
        if refusals is None:
            refusals = placing.refusals(task, fit)
        if self.allowed is not None:
            refusals = np.where(self.allowed, refusals, 0)
        short = (fit.room == NO_ROOM) & (fit.verdict == 0) & (refusals != 0)
        barred = placing.lasting[np.maximum(refusals, 0)]
        return NoNode(placing.count_reasons(refusals), barred, short)

    def _must_stop(self) -> bool:
        """Return whether a task without a node means that the job cannot become ready."""
        if not self._stop:
            return False
        if self.goes_on is not None:
            return not self.goes_on()
        return not can_still_start(Job(self.state.snapshot, self.job), self.memory.failed_roles)


def can_still_start(job: Job, failed_roles: set[int]) -> bool:
    """Return whether a job may reach its minimum numbers without the roles that failed."""
    if len(job.tasks) == 1 or job.min_member >= len(job.tasks):
        return False
    wanted = job.group.spec.min_task_member
    tasks = job.snapshot.tasks
    if job.min_member < sum(wanted.values()):
        left = sum(
            1
            for row in job.tasks
            if tasks.status[row] == PENDING and int(tasks.role[row]) not in failed_roles
        )
        return job.ready + left >= job.min_member
    if not wanted:
        return True
    placed = count_roles(job, READY, pending_best_effort=True)
    names = job.snapshot.roles
    return all(
        placed.get(names[role], 0) >= wanted.get(names[role], 0)
        for role in failed_roles
        if role != NOWHERE
    )


def _may_reopen(task: Task) -> bool:
    """Return whether the filters of a shape can open a node again while tasks are placed.

    Room and host ports only shrink during a round; counts of other pods can grow and shrink.
    """
    return bool(task.shape.spec.affinity or task.shape.spec.topology_spread_constraints)
