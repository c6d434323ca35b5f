"""Steps on the best-scored nodes, for equal tasks of a job and of those that come after it.

What nodes answer as each step leaves them is asked for in advance; as long as nothing but these
steps is made, the next job goes on where the last one stopped.
"""

import heapq
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from pumice.core.resources import Column, IndexArray, Mask
from pumice.core.views import Task
from pumice.framework.eviction.candidates import Candidates, Scope
from pumice.framework.eviction.eviction_ladders import Ladders, Step
from pumice.framework.eviction.ladder_making import LadderMaker
from pumice.framework.eviction.victim_columns import VictimColumns
from pumice.framework.fits import Answers, Fit
from pumice.framework.session_state import SessionState

_LONGEST = 256
"""Tasks to plan for at once."""


class Outlook(NamedTuple):
    """What nodes answer as each step leaves them, chain by chain."""

    chains: list[list[Step]]
    starts: list[int]
    """Where the answers of each chain begin."""
    scores: list[list[float | None]]
    """Not a number: no eviction opens the node then; None: it refuses the task of the step."""
    answers: Answers | None
    """None if there is no step."""


class ScoredPlan(NamedTuple):
    """Steps for equal tasks, and what they hold for."""

    kind: tuple[int, int]
    """Queue and shape of the tasks."""
    usable: Mask
    """The nodes that evictions could open (n,)."""
    ladders: Ladders
    outlook: Outlook
    steps: list[Step]
    moved: int = -1
    """How many moves were logged when these steps were the next; -1: it is new."""


class ScoredPlans:
    """Plans steps for one action, and keeps what a job leaves to the next."""

    def __init__(
        self,
        state: SessionState,
        candidates: Candidates,
        columns: VictimColumns,
        ladders: LadderMaker,
    ) -> None:
        self._state = state
        self._snapshot = state.snapshot
        self._candidates = candidates
        self._columns = columns
        self._ladders = ladders
        self._spreads = False
        """Whether nodes outside those that seemed enough became the best."""
        self._last: ScoredPlan | None = None

    def plan(
        self, task: Task, n: int, scope: Scope, usable: Mask, later_jobs: Iterable[int]
    ) -> ScoredPlan | None:
        """Return steps for n equal tasks, or fewer, or more; None if nothing can be foreseen."""
        last, self._last = self._last, None
        if last is not None and len(last.steps) >= n and self._holds(last, task, usable):
            return last
        fit = self._state.placing.fit(task)
        nodes = (usable & self._candidates.with_room(scope, task)).nonzero()[0]
        scores = fit.score[nodes]
        if fit.rankers or np.isnan(scores).any():
            return None
        n_later = self._n_equal(task, later_jobs, _LONGEST - n)
        n += n_later
        ranked = _best(nodes, scores, n + 1)
        ladders = self._ladders.make(
            task, scope, ranked[:n], n, on_all=self._spreads, lasts=n_later > 0
        )
        if ladders is None:
            return None
        outside, seen = (np.inf, 0), len(ladders.nodes)
        if seen < len(ranked):
            outside = -float(fit.score[ranked[seen]]), int(ranked[seen])
        outlook = self._look_ahead(task, fit, ladders, n)
        steps = self._climb(fit, ladders, outside, outlook, n)
        return ScoredPlan((task.queue, task.shape.id), usable, ladders, outlook, steps)

    def made(self, plan: ScoredPlan, fit: Fit, made: int, n: int) -> None:
        """Note how many steps were made, of n that were wanted: what nodes answer now is known."""
        moved = len(self._snapshot.journal.moved)
        outlook, steps = plan.outlook, plan.steps
        if made and outlook.answers is not None:
            last = {step.place: outlook.starts[step.place] + step.copies for step in steps[:made]}
            answers = outlook.answers.part(np.array([*last.values()]))
            fit.adopt(plan.ladders.nodes[[*last]], answers, moved)
        if made == n and plan.ladders.lines.lasts:
            self._last = plan._replace(steps=steps[n:], moved=moved)

    def _holds(self, plan: ScoredPlan, task: Task, usable: Mask) -> bool:
        """Return whether nothing but its own steps was made, and they are right for this task."""
        return (
            plan.kind == (task.queue, task.shape.id)
            and plan.moved == len(self._snapshot.journal.moved)
            and not self._candidates.has_of(task.job)
            and bool((plan.usable == usable).all())
            and self._columns.judged_alike(task, plan.ladders.lines)
        )

    def _n_equal(self, task: Task, later_jobs: Iterable[int], most: int) -> int:
        """Count the tasks of the next jobs, as long as these are such as the job of this task.

        None where the order of victims may move, or where a job spares tasks of its own.
        """
        state, n = self._state, 0
        if not state.ordering.keeps_orders or self._candidates.has_of(task.job):
            return 0
        for job in later_jobs:
            rows = state.pending_tasks(job)
            if n >= most or not rows or self._snapshot.tasks.shape[rows[0]] != task.shape.id:
                break
            n += len(rows)
        return min(n, most)

    def _climb(
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


def _best(nodes: IndexArray, scores: Column, n: int) -> IndexArray:
    """Return the n best nodes, the best first; of equals that of the lower row."""
    if len(nodes) > n:
        least = np.partition(scores, len(scores) - n)[len(scores) - n]
        better = (scores > least).nonzero()[0]
        chosen = np.concatenate([better, (scores == least).nonzero()[0][: n - len(better)]])
        nodes, scores = nodes[chosen], scores[chosen]
    return nodes[np.lexsort((nodes, -scores))]
