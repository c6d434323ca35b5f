"""The victims of many nodes at once: one question to each plugin and one sort for all of them.

Possible where every plugin judges candidates one by one, or in turn, and the order of victims is
one of keys; the answers are those of asking node by node.
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import IndexArray, Mask
from pumice.core.views import Task
from pumice.framework.combining import Ask
from pumice.framework.dispatch import Method
from pumice.framework.eviction.candidates import Candidates, Scope
from pumice.framework.eviction.victim_lines import InTurn, JobKeys, Judge, Lines, SurplusTier
from pumice.framework.plugin import Plugin, implements
from pumice.framework.session_state import SessionState

_NOBODY, _UNKNOWN = -1, -2
"""In the place of a tier: none of them offers anybody, or that cannot be known."""


@dataclass(frozen=True, slots=True)
class Victims:
    """Victims of some nodes: node after node, on each the least valuable first."""

    rows: IndexArray
    """Their tasks (k,)."""
    place: IndexArray
    """The place of each one's node among the nodes that were asked about (k,)."""


class VictimColumns:
    """Finds victims for one action."""

    def __init__(self, state: SessionState, candidates: Candidates, hook: Method) -> None:
        self._state = state
        self._candidates = candidates
        self._hook = hook
        name = hook.__name__
        self._tiers = [
            [self._judge_of(plugin, ask) for plugin, ask in tier]
            for tier in state.hooks.tiers(hook)
        ]
        lasts = state.ordering.keeps_orders
        self._surplus = SurplusTier(state.snapshot, self._tiers, lasts=lasts)
        asked = [plugin for plugin, _ in state.hooks.bound(hook)]
        self._all_alone = all(name in plugin.judges_alone for plugin in asked)
        self._in_line = all(name in plugin.judges_alone | plugin.judges_in_turn for plugin in asked)
        """Whether all judge alone or in turn, so that candidates can be lined up."""
        self._turns: dict[int, NDArray[np.intp] | None] = {}

    def _judge_of(self, plugin: Plugin, ask: Ask) -> Judge:
        name, aside = self._hook.__name__, self._state.hooks.ask_aside
        return Judge(
            ask,
            name in plugin.judges_alone,
            partial(aside(plugin, Plugin.bound_victims), name),
            partial(aside(plugin, Plugin.surplus), name) if implements(plugin, "surplus") else None,
        )

    def victims(self, scope: Scope, task: Task, nodes: IndexArray) -> Victims | None:
        """Find the victims of a scope on some nodes, as ``Candidates.victims`` does on each.

        None where plugins must be asked node by node.
        """
        if not self._all_alone:
            return None
        at, place = self._candidates.on_nodes(self._hook, scope, task, nodes)
        turns = self._turns_of(scope)
        if turns is None:
            return None
        rows = self._candidates.rows[at]
        offered = self._offered(task, at, place)
        at, place, rows = at[offered], place[offered], rows[offered]
        ranks = self._job_ranks(self._candidates.job[at].tolist())
        if ranks is None:
            return None
        order = np.lexsort((turns[at], -np.array(ranks, dtype=np.intp), place))
        return Victims(rows[order], place[order])

    def lines(
        self,
        scope: Scope,
        task: Task,
        nodes: IndexArray,
        *,
        emptied_in_order: bool = False,
        lasts: bool = False,
    ) -> Lines | None:
        """Line up the candidates of a scope on some nodes, of one queue all together.

        Known are the nodes that the same tier decides on as on the first, which is tried first;
        where nodes are emptied in order, also those whose jobs have too few tasks left by then.
        ``lasts``: tasks keep their order, and the lines are wanted for later jobs, too.
        None where plugins judge otherwise than alone or in turn, or where the order is no order.
        """
        if not self._in_line:
            return None
        at, place = self._candidates.on_nodes(self._hook, scope, task, nodes)
        if len(set(self._candidates.queue[at].tolist())) > 1:
            return None
        on, jobs = place.tolist(), self._candidates.job.take(at).tolist()
        several = len(set(zip(on, jobs, strict=True))) > len(set(on))
        job_keys = self._job_keys(jobs) if several else {}
        order = None if job_keys is None else self._line_up(at, on, jobs, job_keys)
        if order is None or job_keys is None:
            return None
        at, place, lines = at.take(order), place.take(order), None
        if emptied_in_order and self._surplus.exists:
            rows = self._candidates.rows.take(at)
            lines = self._surplus.lines(task, at, rows, place, n=len(nodes), job_keys=job_keys)
        return lines or self._judge(task, at, place, n=len(nodes), job_keys=job_keys, lasts=lasts)

    def still(self, task: Task, lines: Lines) -> bool:
        """Return whether lines hold for an equal task of another job, as far as they are left."""
        return self._surplus.still(task, lines)

    def judged_alike(self, task: Task, lines: Lines) -> bool:
        """Return whether plugins answer as before about those in line, for an equal task."""
        if not lines.lasts:
            return False
        again = self._judge(task, lines.at, lines.place, n=len(lines.known))
        if len(again.in_turn) != len(lines.in_turn):
            return False
        new, old = (
            (each.offered, each.known, *(bound for _, bound in each.in_turn))
            for each in (again, lines)
        )
        return all(map(np.array_equal, new, old))

    def _line_up(
        self, at: IndexArray, place: list[int], jobs: list[int], job_keys: JobKeys
    ) -> list[int] | None:
        """Order candidates by node, on each who is least worth keeping first."""
        keys = self._state.ordering.plain_task_keys(self._candidates.rows[at].tolist())
        if keys is None:
            return None
        by_job = [job_keys.get(job, ()) for job in jobs]
        worth = zip([-each for each in place], by_job, keys, range(len(at)), strict=True)
        return [each[-1] for each in sorted(worth, reverse=True)]

    def _judge(
        self,
        task: Task,
        at: IndexArray,
        place: IndexArray,
        *,
        n: int,
        job_keys: JobKeys | None = None,
        lasts: bool = False,
    ) -> Lines:
        """Ask tier after tier about candidates in line, up to the one that decides on the first."""
        rows = self._candidates.rows.take(at)
        offered = np.zeros(len(rows), dtype=bool)
        decided_by = np.full(n, _NOBODY)
        in_turn: InTurn = []
        left = self._tiers
        while left and (self._all_alone or decided_by[0] == _NOBODY):
            tier, *left = left
            answers, in_turn = _answers(tier, task, rows)
            chosen = _intersection(answers, place, n, forgets=not in_turn)
            undecided, found = decided_by == _NOBODY, _any(chosen, place, n)
            newly = undecided & found
            offered |= chosen & newly[place]
            decided_by[newly] = len(left)
            if in_turn and not found.all():
                open_nodes = np.logical_and.reduce([_any(each, place, n) for each in answers])
                decided_by[undecided & ~found & open_nodes] = _UNKNOWN
        by, nobody = decided_by[0], (decided_by == _NOBODY) & (not left)
        known = nobody | self._all_alone | (decided_by == by) & (by >= 0)

        def final() -> Mask:
            """Ask again without those who are gone: a tier may come after one that runs empty."""
            if not self._all_alone:
                return nobody
            rest = self._judge(task, at[~offered], place[~offered], n=n)
            return ~_any(rest.offered, rest.place, n)

        return Lines(at, rows, place, offered, known, final, in_turn, job_keys or {}, lasts=lasts)

    def _offered(self, task: Task, at: IndexArray, place: IndexArray) -> Mask:
        """Mark the candidates that plugins let go, by the rule that holds on a single node."""
        if not len(at):
            return np.zeros(0, dtype=bool)
        return self._judge(task, at, place, n=int(place[-1]) + 1).offered

    def _turns_of(self, scope: Scope) -> NDArray[np.intp] | None:
        """Return the order of a scope's members among equal jobs; None if they have no keys."""
        key = id(scope)
        if key not in self._turns:
            self._turns[key] = self._sort_tasks(np.flatnonzero(scope.members))
        return self._turns[key]

    def _sort_tasks(self, at: IndexArray) -> NDArray[np.intp] | None:
        rows = self._candidates.rows[at]
        keys = self._task_keys(rows)
        if keys is None:
            return None
        order = np.lexsort([-key for key in reversed([*keys, self._uid_ranks(rows)])])
        turns = np.zeros(len(self._candidates.rows), dtype=np.intp)
        turns[at[order]] = np.arange(len(at))
        return turns

    def _task_keys(self, rows: IndexArray) -> list[NDArray[Any]] | None:
        """List the keys of tasks that their uids come after; None if they are no order."""
        tasks = self._state.snapshot.tasks
        columns, between = self._state.ordering.task_columns(rows.tolist())
        one_job = all(between) or len(set(tasks.job[rows].tolist())) < 2
        if not one_job or any(np.isnan(each).any() for each in columns):
            return None
        numbers = tasks.index[rows]
        numbered = numbers >= 0
        if numbered.any() and not numbered.all():
            return None
        return [*columns, numbers, tasks.created[rows]]

    def _uid_ranks(self, rows: IndexArray) -> NDArray[np.intp]:
        uids = np.array([self._state.snapshot.tasks.uids[row] for row in rows.tolist()], np.str_)
        return np.unique(uids, return_inverse=True)[1] if len(uids) else np.zeros(0, dtype=np.intp)

    def _job_ranks(self, jobs: list[int]) -> list[int] | None:
        """Rank the jobs of victims by their current keys; None if these form no order.

        Equal ones have the same rank; the job of the highest rank loses tasks first.
        """
        keys = self._job_keys(jobs)
        if keys is None:
            return None
        ranks = {key: rank for rank, key in enumerate(sorted(set(keys.values())))}
        rank_of = {job: ranks[key] for job, key in keys.items()}
        return [rank_of[job] for job in jobs]

    def _job_keys(self, jobs: list[int]) -> JobKeys | None:
        """Return the current keys of the jobs of victims; None if they form no order."""
        known = sorted(set(jobs))
        keys = self._state.ordering.job_policy_keys(known)
        if any(map(math.isnan, chain.from_iterable(keys))):
            return None
        return dict(zip(known, keys, strict=True))


def _answers(tier: list[Judge], task: Task, rows: IndexArray) -> tuple[list[Mask], InTurn]:
    """Ask a tier whom it lets go; of those who judge in turn, whom they could ever offer."""
    answers: list[Mask] = []
    in_turn: InTurn = []
    candidates = rows.tolist()
    for judge in tier:
        answer = judge.ask(task, candidates) if judge.is_alone else judge.bound(task, rows)
        if not judge.is_alone:
            answer = np.ones(len(rows), dtype=bool) if answer is None else answer
            in_turn.append((judge.ask, answer))
        if answer is not None:
            answers.append(answer)
    return answers, in_turn


def _any(marked: Mask, place: IndexArray, n: int) -> Mask:
    """Mark the nodes on which something is marked (n,)."""
    return np.bincount(place[marked], minlength=n) > 0


def _intersection(answers: list[Mask], place: IndexArray, n: int, *, forgets: bool = True) -> Mask:
    """Intersect the answers of a tier on each node; nothing where one of them offers nobody.

    Volcano: an intersection that runs empty is forgotten, and the next plugin starts again.
    """
    if not forgets:
        return np.logical_and.reduce(answers)
    kept = np.zeros(len(place), dtype=bool)
    is_open, holds = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    for answer in answers:
        is_open &= _any(answer, place, n)
        kept = np.where(holds[place], kept & answer, answer)
        holds = _any(kept, place, n)
    return kept & is_open[place]
