"""The victims of many nodes at once: one question to each plugin and one sort for all of them.

Possible where every plugin judges candidates one by one and the order of victims is one of keys;
the answers are those of asking node by node.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Mask
from pumice.core.views import Task
from pumice.framework.dispatch import Method
from pumice.framework.eviction.candidates import Candidates, IndexArray, Scope
from pumice.framework.session_state import SessionState


@dataclass(frozen=True, slots=True)
class Victims:
    """Victims of some nodes: node after node, on each the least valuable first."""

    rows: IndexArray
    """Their tasks (k,)."""
    place: IndexArray
    """The place of each one's node among the nodes that were asked about (k,)."""


class VictimColumns:
    """Finds victims for one action."""

    def __init__(self, state: SessionState, candidates: Candidates) -> None:
        self._state = state
        self._candidates = candidates
        self._turns: dict[int, NDArray[np.intp] | None] = {}

    def victims(self, hook: Method, scope: Scope, task: Task, nodes: IndexArray) -> Victims | None:
        """Find the victims of a scope on some nodes, as ``Candidates.victims`` does on each.

        None where plugins must be asked node by node.
        """
        asked = self._state.hooks.bound(hook)
        if not all(hook.__name__ in plugin.judges_alone for plugin, _ in asked):
            return None
        found = self._candidates.on_nodes(hook, scope, task, nodes)
        turns = self._turns_of(scope)
        if turns is None:
            return None
        at, place = found
        rows = self._candidates.rows[at]
        offered = self._offered(hook, task, rows, place)
        at, place, rows = at[offered], place[offered], rows[offered]
        ranks = self._job_ranks(self._candidates.job[at])
        if ranks is None:
            return None
        order = np.lexsort((turns[at], -ranks, place))
        return Victims(rows[order], place[order])

    def _offered(self, hook: Method, task: Task, rows: IndexArray, place: IndexArray) -> Mask:
        """Mark the candidates that plugins offer, by the rule that holds on a single node."""
        kept = np.zeros(len(rows), dtype=bool)
        if not len(rows):
            return kept
        n, candidates = int(place[-1]) + 1, rows.tolist()
        undecided = np.ones(n, dtype=bool)
        for tier in self._state.hooks.tiers(hook):
            answers = [ask(task, candidates) for _, ask in tier]
            chosen = _intersection([each for each in answers if each is not None], place, n)
            kept |= chosen & undecided[place]
            undecided &= ~_any(chosen, place, n)
        return kept

    def _turns_of(self, scope: Scope) -> NDArray[np.intp] | None:
        """Return the order of a scope's members among equal jobs; None if they have no keys."""
        key = id(scope)
        if key not in self._turns:
            self._turns[key] = self._sort_tasks(np.flatnonzero(scope.members))
        return self._turns[key]

    def _sort_tasks(self, at: IndexArray) -> NDArray[np.intp] | None:
        tasks, rows = self._state.snapshot.tasks, self._candidates.rows[at]
        columns, between = self._state.ordering.task_columns(rows.tolist())
        one_job = len(np.unique(tasks.job[rows])) < 2
        if any(np.isnan(each).any() for each in columns) or not (one_job or all(between)):
            return None
        numbered = tasks.index[rows] >= 0
        if numbered.any() and not numbered.all():
            return None
        uids = np.array([tasks.uids[row] for row in rows.tolist()], dtype=np.str_)
        names = np.unique(uids, return_inverse=True)[1] if len(uids) else np.zeros(0)
        keys = [*columns, tasks.index[rows], tasks.created[rows], names]
        order = np.lexsort([-key for key in reversed(keys)])
        turns = np.zeros(len(self._candidates.rows), dtype=np.intp)
        turns[at[order]] = np.arange(len(at))
        return turns

    def _job_ranks(self, jobs: NDArray[np.int32]) -> NDArray[np.intp] | None:
        """Rank the jobs of victims by their current keys (k,); None if these form no order.

        Equal ones have the same rank; the job of the highest rank loses tasks first.
        """
        known, where = np.unique(jobs, return_inverse=True)
        keys = np.array(self._state.ordering.job_policy_keys(known.tolist()), dtype=np.float64).T
        if not keys.size:
            return np.zeros(len(jobs), dtype=np.intp)
        if np.isnan(keys).any():
            return None
        order = np.lexsort(keys[::-1])
        differs = (keys[:, order[1:]] != keys[:, order[:-1]]).any(axis=0)
        ranks = np.zeros(len(known), dtype=np.intp)
        ranks[order[1:]] = differs.cumsum()
        return np.asarray(ranks[where])


def _any(marked: Mask, place: IndexArray, n: int) -> Mask:
    """Mark the nodes on which something is marked (n,)."""
    return np.bincount(place[marked], minlength=n) > 0


def _intersection(answers: list[Mask], place: IndexArray, n: int) -> Mask:
    """Intersect the answers of a tier on each node; nothing where one of them offers no task.

    Volcano: an intersection that runs empty is forgotten, and the next plugin starts again.
    """
    kept = np.zeros(len(place), dtype=bool)
    is_open, holds = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    for answer in answers:
        is_open &= _any(answer, place, n)
        kept = np.where(holds[place], kept & answer, answer)
        holds = _any(kept, place, n)
    return kept & is_open[place]
