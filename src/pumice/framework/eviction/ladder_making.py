"""Ladders on nodes that equal tasks might be given, from the candidates in line there."""

from pumice.core.resources import IndexArray
from pumice.core.views import Task
from pumice.framework.eviction.candidates import Candidates, Scope
from pumice.framework.eviction.eviction_ladders import Ladders, copies_in
from pumice.framework.eviction.victim_columns import VictimColumns
from pumice.framework.session_state import SessionState


class LadderMaker:
    """Finds the steps on nodes for one action."""

    def __init__(self, state: SessionState, candidates: Candidates, columns: VictimColumns) -> None:
        self._snapshot = state.snapshot
        self._candidates = candidates
        self._columns = columns

    def make(
        self,
        task: Task,
        scope: Scope,
        nodes: IndexArray,
        n: int,
        *,
        on_all: bool = False,
        emptied_in_order: bool = False,
        lasts: bool = False,
    ) -> Ladders | None:
        """Find the steps on nodes, of which the first is tried first; None if that cannot be.

        Only on as many of them as could take n tasks if all members of the scope left, unless
        ``on_all`` is set.
        """
        room = self._candidates.room(scope).take(nodes, axis=1)
        hopeful = copies_in(room, task.request, task.need)
        if not on_all:
            hopeful = hopeful[: 1 + int(hopeful.cumsum().searchsorted(n))]
            nodes = nodes[: len(hopeful)]
        if not len(nodes):
            return None
        lines = self._columns.lines(
            scope, task, nodes, emptied_in_order=emptied_in_order, lasts=lasts
        )
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
