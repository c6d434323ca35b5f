"""Runs of equal tasks that evict: room for many tasks of a job is made at once.

What each of them would find, one after the other, is computed on sums and rows that do not exist
yet; a run ends where that cannot be promised, and the next task is tried by itself.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from pumice.core.resources import PODS, IndexArray, Mask
from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.dispatch import Method
from pumice.framework.equal_tasks import Imagined, has_plain_shape, longest
from pumice.framework.eviction.candidates import Candidates, Scope
from pumice.framework.eviction.eviction_ladders import Ladders, Step
from pumice.framework.eviction.ladder_making import LadderMaker
from pumice.framework.eviction.queue_quota import QueueQuota
from pumice.framework.eviction.room_making import RoomMaker
from pumice.framework.eviction.scored_plans import ScoredPlans
from pumice.framework.eviction.victim_columns import VictimColumns
from pumice.framework.fits import Codes
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Verdict
from pumice.framework.session_state import SessionState
from pumice.framework.statement import Statement

_SHORTEST, _LONGEST = 3, 256
"""Tasks to make room for at once; fewer are served faster one by one."""
_ASKED: Final = (
    Plugin.job_starving,
    Plugin.order_jobs,
    Plugin.filter_task,
    Plugin.allocatable,
    Plugin.preemptive,
)
"""Hooks that are asked beside those about nodes and victims."""
_PATIENCE = 2
"""Runs of a job that came to nothing before its tasks are tried one by one."""


class Plan(NamedTuple):
    """Steps to make for equal tasks, also of several jobs in a row."""

    kind: tuple[int, int]
    """Queue and shape: all that tasks must have in common whose answers follow from node rows."""
    ladders: Ladders
    steps: list[Step]
    moved: int = -1
    """How many moves were logged when these steps were the next; -1: it is new."""

    def follows(self, kind: tuple[int, int], moved: int) -> bool:
        """Return whether nothing but its own steps was made, and equal tasks are next."""
        return self.kind == kind and self.moved == moved


class EvictionRuns:
    """Makes room for equal tasks of one action."""

    def __init__(self, state: SessionState, candidates: Candidates, hook: Method) -> None:
        self._state = state
        self._snapshot = state.snapshot
        self._candidates = candidates
        self._hook = hook
        self._columns = VictimColumns(state, candidates, hook)
        self._ladders = LadderMaker(state, candidates, self._columns)
        self._scored = ScoredPlans(state, candidates, self._columns, self._ladders)
        self._is_cut = False
        """Whether the last run ended before its tasks did: the next one is tried by itself."""
        self._rooms = RoomMaker(state, hook)
        self._plan: Plan | None = None
        """Steps that the last run in order left to the next job."""
        self._can = (
            state.placing.imagines
            and state.policy.by_row
            and not state.hooks.tiers(Plugin.on_evict)
            and not state.queue_gates.is_reserving
            and all(plugin.foreseeable for hook in _ASKED for plugin, _ in state.hooks.bound(hook))
        )

    # Which tasks

    def rest(
        self, stmt: Statement, tasks: list[int], serve: Callable[[list[int]], int]
    ) -> Iterator[int]:
        """Return the tasks of a job that must be served one by one, each when its turn comes.

        ``serve`` makes room for some of the first tasks together and returns for how many.  After
        a task that nothing could be done for, its equals are left out.
        """
        at, misses = 0, 0
        while at < len(tasks):
            if self._can and misses < _PATIENCE and len(tasks) - at >= _SHORTEST:
                served = serve(tasks[at:])
                at += served
                misses = 0 if served else misses + 1
                if served and not self._is_cut:
                    continue
            before = len(stmt)
            yield tasks[at]
            at += 1 if len(stmt) > before else self._failing_with(tasks[at:])

    def _failing_with(self, tasks: list[int]) -> int:
        """Return how many of the first tasks fail if the first does."""
        if not self._can or self._state.hooks.failures.errors:
            return 1
        is_plain = self._is_plain(Task(self._snapshot, tasks[0]))
        return max(1, self._alike(tasks)) if is_plain else 1

    def equals(self, tasks: list[int], holds: Callable[[], Verdict]) -> int:
        """Return how many of the first tasks can be served together; 0 if they cannot.

        ``holds`` is asked before each of them, as far as what was promised to those before it is
        concerned; it turns false once and for all.
        """
        if self._state.hooks.failures.errors:
            return 0
        task = Task(self._snapshot, tasks[0])
        n = self._alike(tasks[:_LONGEST])
        if n < _SHORTEST or not self._is_plain(task):
            return 0

        def served(k: int) -> Verdict:
            with Imagined(self._snapshot, task, k - 1, pipelined=True):
                return holds()

        n = longest(n, served)
        return 0 if n < _SHORTEST or self._state.policy.filter_task(task) is not None else n

    def _alike(self, tasks: list[int]) -> int:
        """Return how many of the first tasks are equal to the first, which may evict."""
        table, barred = self._snapshot.tasks, self._state.records.barred
        rows = np.array(tasks, dtype=np.intp)
        columns = table.shape, table.role, table.priority, table.label_class
        kinds = list(zip(*(column.take(rows).tolist() for column in columns), strict=True))
        n = len(kinds)
        if kinds.count(kinds[0]) < n:
            n = next(i for i, kind in enumerate(kinds) if kind != kinds[0])
        for i, row in enumerate(tasks[:n]):
            pod: Any = table.pods[row]
            waits = pod.status.nominated_node_name or pod.spec.preemption_policy == "Never"
            closed = barred.get(row)
            if waits or (closed is not None and closed.any()):
                return i
        return n

    def _is_plain(self, task: Task) -> bool:
        """Return whether the answers for a task follow from node rows alone."""
        return (
            has_plain_shape(task.shape)
            and not task.best_effort
            and not task.shape.coarse
            and all(vary_by(task) is None for vary_by in self._state.placing.varying)
        )

    # Which nodes

    def in_order(
        self,
        stmt: Statement,
        tasks: list[int],
        scope: Scope,
        nodes: Callable[[], IndexArray],
        later_jobs: Iterable[int],
    ) -> int:
        """Make room for equal tasks on the first nodes that can be made to hold them.

        Nodes that no member of the scope is left on are skipped.  What is planned for a second job
        in a row reaches as far as the tasks of the later jobs.  Returns for how many tasks.
        """
        task, n = Task(self._snapshot, tasks[0]), len(tasks)
        kind, last = (task.queue, task.shape.id), self._plan
        follows = last is not None and last.follows(kind, len(self._snapshot.journal.moved))
        plan = last if follows else None
        if plan is None or len(plan.steps) < n or not self._columns.still(task, plan.ladders.lines):
            n_later = self._n_pending(later_jobs) if follows else 0
            plan = self._plan_in_order(task, scope, nodes(), min(n + n_later, _LONGEST))
        self._plan, steps = None, plan.steps[:n] if plan else []
        served = self._make(stmt, tasks, plan.ladders, steps) if plan else 0
        if plan and served == n:
            self._plan = Plan(kind, plan.ladders, plan.steps[n:], len(self._snapshot.journal.moved))
        return served

    def _plan_in_order(self, task: Task, scope: Scope, nodes: IndexArray, n: int) -> Plan | None:
        """Find the steps for n equal tasks on the first nodes that can be made to hold them."""
        ladders = self._ladders.make(task, scope, nodes[:n], n, emptied_in_order=True)
        if ladders is None:
            return None
        steps: list[Step] = []
        members = self._candidates.sums(scope)[PODS, ladders.nodes].tolist()
        for place, left in enumerate(members):
            chain = ladders.chain(place, n - len(steps), left)
            steps += chain
            gone = chain[-1].after if chain else 0
            fails = len(steps) < n and (not chain or gone < left)
            if fails and not ladders.is_full(place, len(chain)):
                break
            if ladders.strands_counted(place, gone):
                break
        barred = self._state.placing.barred(self._verdicts_after(task, ladders, steps)).tolist()
        cut = barred.index(True) + 1 if True in barred else len(steps)
        return Plan((task.queue, task.shape.id), ladders, steps[:cut])

    def _n_pending(self, jobs: Iterable[int]) -> int:
        return int(self._snapshot.jobs.counts[Status.PENDING, [*jobs]].sum())

    def _make(self, stmt: Statement, tasks: list[int], ladders: Ladders, steps: list[Step]) -> int:
        made = self._rooms.make(stmt, tasks, ladders, steps)
        self._is_cut = made < len(tasks)
        return made

    def by_score(
        self,
        stmt: Statement,
        tasks: list[int],
        scope: Scope,
        usable: Mask,
        later_jobs: Iterable[int],
    ) -> int:
        """Make room for equal tasks on the best nodes that can be made to hold them.

        Nodes are tried that are usable; plans reach as far as the tasks of the later jobs.
        """
        task, n = Task(self._snapshot, tasks[0]), len(tasks)
        plan = self._scored.plan(task, n, scope, usable, later_jobs)
        if plan is None:
            return 0
        steps = plan.steps[:n]
        steps = steps[: QueueQuota(self._state, task).n_taken(plan.ladders.amounts(steps))]
        fit = self._state.placing.fit(task)
        made = self._make(stmt, tasks, plan.ladders, steps)
        self._scored.made(plan, fit, made, n)
        return made

    def _verdicts_after(self, task: Task, ladders: Ladders, steps: list[Step]) -> Codes:
        """Ask the filters about nodes as each step leaves them."""
        if not steps:
            return np.zeros(0, dtype=np.int16)
        placing, (nodes, rows) = self._state.placing, ladders.nodes_after(steps, 1.0)
        verdict = placing.verdict(placing.judged(task), task, nodes, rows)
        return np.zeros(len(rows), dtype=np.int16) + np.asarray(verdict, dtype=np.int16)
