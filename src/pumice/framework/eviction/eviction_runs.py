"""Runs of equal tasks that evict: room for many tasks of a job is made at once.

What each of them would find, one after the other, is computed on sums and rows that do not exist
yet; a run ends where that cannot be promised, and the next task is tried by itself.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from pumice.core.resources import PODS, Column, IndexArray
from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.dispatch import Method
from pumice.framework.equal_tasks import Imagined, has_plain_shape, longest
from pumice.framework.eviction.candidates import Candidates, Scope
from pumice.framework.eviction.eviction_ladders import Ladders, Step, copies_in
from pumice.framework.eviction.queue_quota import QueueQuota
from pumice.framework.eviction.room_making import RoomMaker
from pumice.framework.eviction.victim_columns import VictimColumns
from pumice.framework.fits import Answers, Codes, Fit
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


class Outlook(NamedTuple):
    """What nodes answer as each step leaves them, chain by chain."""

    chains: list[list[Step]]
    starts: list[int]
    """Where the answers of each chain begin."""
    scores: list[list[float | None]]
    """Not a number: no eviction opens the node then; None: it refuses the task of the step."""
    answers: Answers | None
    """None if there is no step."""


class EvictionRuns:
    """Makes room for equal tasks of one action."""

    def __init__(self, state: SessionState, candidates: Candidates, hook: Method) -> None:
        self._state = state
        self._snapshot = state.snapshot
        self._candidates = candidates
        self._hook = hook
        self._columns = VictimColumns(state, candidates, hook)
        self._spreads = False
        """Whether nodes outside those that seemed enough became the best."""
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
        ladders = self._ladders(task, scope, nodes[:n], n, emptied_in_order=True)
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
        self, stmt: Statement, tasks: list[int], scope: Scope, nodes: IndexArray, fit: Fit
    ) -> int:
        """Make room for equal tasks on the best nodes that can be made to hold them."""
        task = Task(self._snapshot, tasks[0])
        scores = fit.score[nodes]
        if fit.rankers or np.isnan(scores).any():
            return 0
        n = len(tasks)
        ranked = _best(nodes, scores, n + 1)
        ladders = self._ladders(task, scope, ranked[:n], n)
        if ladders is None:
            return 0
        outside, seen = (np.inf, 0), len(ladders.nodes)
        if seen < len(ranked):
            outside = -float(fit.score[ranked[seen]]), int(ranked[seen])
        outlook = self._look_ahead(task, fit, ladders, n)
        steps = self._climb_by_score(fit, ladders, outside, outlook, n)
        steps = steps[: QueueQuota(self._state, task).n_taken(ladders.amounts(steps))]
        made = self._make(stmt, tasks, ladders, steps)
        if made and outlook.answers is not None:
            last = {step.place: outlook.starts[step.place] + step.copies for step in steps[:made]}
            answers = outlook.answers.part(np.array([*last.values()]))
            fit.adopt(ladders.nodes[[*last]], answers, len(self._snapshot.journal.moved))
        return made

    def _climb_by_score(
        self, fit: Fit, ladders: Ladders, outside: tuple[float, int], outlook: Outlook, n: int
    ) -> list[Step]:
        """Take n steps, each on the node that is best then, as long as none outside is better."""
        chains, after = outlook.chains, outlook.scores
        scores, rows = fit.score[ladders.nodes].tolist(), ladders.nodes.tolist()
        best = [(-score, rows[i], i) for i, score in enumerate(scores) if score > -np.inf]
        heapq.heapify(best)
        steps: list[Step] = []
        taken = [0] * len(chains)
        while best and len(steps) < n:
            value, row, place = best[0]
            if (value, row) > outside:
                self._spreads = True
                break
            at = taken[place]
            if at == len(chains[place]):
                if not ladders.is_full(place, at):
                    break
                heapq.heappop(best)
                continue
            score = after[place][at]
            if score is None:
                break
            steps.append(chains[place][at])
            taken[place] = at + 1
            if at + 1 >= ladders.hopeful[place] or score == -np.inf:
                heapq.heappop(best)
            elif np.isnan(score):
                break
            else:
                heapq.heapreplace(best, (-score, row, place))
        return steps

    def _look_ahead(self, task: Task, fit: Fit, ladders: Ladders, n: int) -> Outlook:
        """Ask filters and scores about nodes as each of n steps leaves them."""
        chains = [ladders.chain(place, n) for place in range(len(ladders.nodes))]
        steps = [step for chain in chains for step in chain]
        starts = [*accumulate(map(len, chains), initial=0)]
        if not steps:
            return Outlook(chains, starts, [[] for _ in chains], None)
        placing, none = self._state.placing, np.zeros(len(steps), dtype=np.int16)
        nodes, rows = ladders.nodes_after(steps, 0.0)
        refused = (none + placing.verdict(fit, task, nodes, rows)).tolist()
        answers = placing.answers(fit, task, ladders.nodes_after(steps, 1.0)[0], rows)
        scores = np.where(placing.barred(none + answers.verdict), np.nan, answers.score).tolist()
        seen = [None if no else score for no, score in zip(refused, scores, strict=True)]
        parts = [seen[start:end] for start, end in pairwise(starts)]
        return Outlook(chains, starts, parts, answers)

    def _ladders(
        self,
        task: Task,
        scope: Scope,
        nodes: IndexArray,
        n: int,
        *,
        emptied_in_order: bool = False,
    ) -> Ladders | None:
        """Work out the steps on nodes, of which the first is tried first; None if that cannot be.

        Only on as many of them as could take n tasks if all members of the scope left.
        """
        room = self._candidates.room(scope).take(nodes, axis=1)
        hopeful = copies_in(room, task.request, task.need)
        if not self._spreads:
            hopeful = hopeful[: 1 + int(hopeful.cumsum().searchsorted(n))]
            nodes = nodes[: len(hopeful)]
        if not len(nodes):
            return None
        lines = self._columns.lines(scope, task, nodes, emptied_in_order=emptied_in_order)
        if lines is None or self._candidates.has_coarse(lines.at):
            return None
        return Ladders(
            self._snapshot,
            task,
            nodes,
            lines,
            amounts=self._candidates.amounts(lines.at[lines.offered]),
            hopeful=hopeful.tolist(),
        )

    def _verdicts_after(self, task: Task, ladders: Ladders, steps: list[Step]) -> Codes:
        """Ask the filters about nodes as each step leaves them."""
        if not steps:
            return np.zeros(0, dtype=np.int16)
        placing, (nodes, rows) = self._state.placing, ladders.nodes_after(steps, 1.0)
        verdict = placing.verdict(placing.judged(task), task, nodes, rows)
        return np.zeros(len(rows), dtype=np.int16) + np.asarray(verdict, dtype=np.int16)


def _best(nodes: IndexArray, scores: Column, n: int) -> IndexArray:
    """Return the n best nodes, the best first; of equals that of the lower row."""
    if len(nodes) > n:
        least = np.partition(scores, len(scores) - n)[len(scores) - n]
        better = (scores > least).nonzero()[0]
        chosen = np.concatenate([better, (scores == least).nonzero()[0][: n - len(better)]])
        nodes, scores = nodes[chosen], scores[chosen]
    return nodes[np.lexsort((nodes, -scores))]
