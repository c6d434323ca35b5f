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
from pumice.core.views import Job, Task
from pumice.framework.equal_tasks import SHORTEST, equal_run, has_plain_shape, is_plain, pick_run
from pumice.framework.fits import NO_ROOM, Codes, Fit
from pumice.framework.job_records import NoNode, Stage
from pumice.framework.neighbour_runs import NeighbourRun, has_hard_terms
from pumice.framework.plugin import Plugin
from pumice.framework.ranked_runs import RankedRun, rankers_ahead
from pumice.framework.refusals import Reason, Verdict, Why
from pumice.framework.roles import READY, count_roles, mixed_roles
from pumice.framework.session_state import SessionState
from pumice.framework.statement import Statement


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
        if tasks and self.job in ordering.moving_jobs:
            first = ordering.first_task(tasks)
            tasks.remove(first)
            tasks.appendleft(first)
        return row

    def _run_of_equals(self, stmt: Statement) -> bool:
        """Place equal tasks at the head of the list all at once, as far as there is room now."""
        if len(self.tasks) < SHORTEST or not self._may_run():
            return False
        state, task = self.state, Task(self.state.snapshot, self.tasks[0])
        any_role = has_plain_shape(task.shape) and self._treats_roles_alike()
        n = equal_run(state, list(self.tasks), self.is_done, self.most, any_role=any_role)
        if n and state.policy.filter_task(task) is None and self._placer(task)(stmt, task, n):
            return True
        self._one_by_one.add(task.shape.id)
        return False

    def _placer(self, task: Task) -> Callable[[Statement, Task, int], bool]:
        if self.state.policy.follows_placements:
            return self._place_ranked
        return self._place_plain if has_plain_shape(task.shape) else self._place_neighbours

    def _place_plain(self, stmt: Statement, task: Task, n: int) -> bool:
        picks = pick_run(self.state.placing, task, n, self.allowed)
        if picks:
            stmt.place_many([self.tasks.popleft() for _ in picks], picks)
        return bool(picks)

    def _place_ranked(self, stmt: Statement, task: Task, n: int) -> bool:
        """Place equal tasks whose candidates are compared; plugins follow each of them."""
        state, tasks = self.state, [self.tasks[i] for i in range(n)]
        placing, failures = state.placing, state.hooks.failures
        rankers, generator, mark = rankers_ahead(placing, task), placing.state, stmt.checkpoint()
        if rankers is None or task.shape.coarse or not has_plain_shape(task.shape):
            return False
        fit, follow = placing.fit(task), state.policy.on_place
        run = RankedRun(placing, tasks, fit, self.allowed, rankers=rankers, follow=follow)
        picks = run.pick(n)
        if failures.errors:  # who failed is asked task by task
            stmt.rollback(mark)
            placing.state = generator
            return False
        if picks:
            stmt.place_many(tasks[: len(picks)], picks)
            for _ in picks:
                self.tasks.popleft()
        return bool(picks)

    def _place_neighbours(self, stmt: Statement, task: Task, n: int) -> bool:
        """Place equal tasks that have to do with other pods.

        Where refusals are remembered, only if nobody of the role asks for them in this round.
        """
        placing = self.state.placing
        fit, generator, mark = placing.fit(task), placing.state, stmt.checkpoint()
        if not has_hard_terms(task.shape) or placing.ranks(task, fit, anywhere=True):
            return False
        role = int(self.state.snapshot.tasks.role[task.row])
        remembers = self._remembers(role) and _may_reopen(task)
        tasks, allowed = [self.tasks[i] for i in range(n)], self.allowed
        if remembers and role in self._refused:
            open_still = self._refused[role] == 0
            allowed = open_still if allowed is None else allowed & open_still
        run = NeighbourRun(placing, tasks, fit, allowed, reopens=not remembers)
        picks = run.pick_all(n) if remembers else run.pick(n)
        if not picks:
            return False
        stmt.place_many(tasks[: len(picks)], picks, known=True)
        for _ in picks:
            self.tasks.popleft()
        if remembers and self._has_more(role) and not self.is_done():
            stmt.rollback(mark)
            placing.state = generator
            self.tasks.extendleft(reversed(tasks))
            return False
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
            and first not in state.queue_gates.held
            and (role == NOWHERE or role not in self.memory.failed_roles)
            and self.job not in state.ordering.moving_jobs
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
        fit = state.placing.fit(task)
        chosen = self._choose(task, role, fit)
        if chosen is None:
            return self._no_node(row, role, fit)
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
        if self.job in self.state.ordering.moving_jobs or not self._refused_alike(row):
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
            and is_plain(state, row)
            and all(plugin.foreseeable for plugin, _ in state.hooks.bound(Plugin.allocatable))
        )

    def _choose(self, task: Task, role: int, fit: Fit) -> tuple[int, bool] | None:
        """Try the nominated node first, then all allowed ones."""
        placing, snapshot = self.state.placing, self.state.snapshot
        nominee, refused = int(snapshot.tasks.nominated[task.row]), self._refused.get(role)
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
        if self._remembers(role) and (_may_reopen(task) or self._is_mixed(role)):
            refused = self._refused[role] = placing.refusals(task, fit, refused)
            allowed = refused == 0 if allowed is None else allowed & (refused == 0)
        if allowed is None and fit.no_node is not None:
            return None  # an equal task found none, and no node moved since
        return placing.choose(task, fit, allowed)

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
