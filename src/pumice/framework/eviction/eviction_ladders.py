"""How many equal tasks nodes can take with ever more of their victims gone, computed on sums.

Amounts are whole numbers, so what is added up here is what evictions one by one would leave.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pumice.core.resources import STEP, Column, IndexArray
from pumice.core.snapshot import Snapshot
from pumice.core.views import Nodes, Task
from pumice.framework.eviction.emptied_nodes import PromisedNodes
from pumice.framework.eviction.victim_columns import Lines


@dataclass(frozen=True, slots=True)
class Step:
    """One more of the equal tasks on a node."""

    place: int
    """The place of its node among those that were asked about."""
    copies: int
    """How many of them the node has before."""
    before: int
    """How many of its victims went for these."""
    after: int
    """How many have gone when there is room for this one."""


class Ladders:
    """Some nodes, the line of candidates on each, and the steps that can be made there."""

    def __init__(
        self, snapshot: Snapshot, task: Task, nodes: IndexArray, lines: Lines, room: Column
    ) -> None:
        """See the nodes as they are; ``room`` is left if all of the scope leave (R, n)."""
        self.nodes = nodes
        self.lines = lines
        self._snapshot = snapshot
        self._task = task
        self._room = room
        self._offered = np.flatnonzero(lines.offered)
        self.victims = lines.rows[self._offered]
        place = lines.place[self._offered]
        starts = np.searchsorted(place, np.arange(len(nodes) + 1))
        amounts = amounts_of(snapshot, self.victims)
        gone = amounts.cumsum(axis=1)
        self._gone = np.concatenate([np.zeros((len(gone), 1)), gone], axis=1)
        self._starts = starts.tolist()
        self._line_starts = np.searchsorted(lines.place, np.arange(len(nodes) + 1)).tolist()
        self._free = Nodes(snapshot, nodes).future_idle
        self._after = self._free[:, place] + gone[:-2] - self._gone[:-2, starts[place]]

    def climb(self, need: Column) -> None:
        """See how many tasks fit on each rung; ``need`` is what must be left for one (R, 1)."""
        request = self._task.request
        first = copies_in(self._free, request, need).tolist()
        rungs = copies_in(self._after, request, need).tolist()
        starts = self._starts
        self._rungs = [[each, *rungs[starts[i] : starts[i + 1]]] for i, each in enumerate(first)]
        self.hopeful = copies_in(self._room, request, self._task.need).tolist()
        """How many tasks each node could take if all members of the scope left."""

    def may_fail(self, place: int, copies: int) -> bool:
        """Return whether a node that has so many tasks and no next step cannot take one more."""
        return copies >= self.hopeful[place] or bool(self.lines.final()[place])

    def chain(self, place: int, most: int, members: float = math.inf) -> list[Step]:
        """Return the next steps on a node, as long as somebody of its members is left before."""
        rungs, steps, before = self._rungs[place], list[Step](), 0
        if not self.lines.known[place]:
            return steps
        while len(steps) < most and before < members:
            after = bisect_left(rungs, len(steps) + 1, before)
            if after == len(rungs):
                break
            steps.append(Step(place, len(steps), before, after))
            before = after
        return steps

    def line(self, place: int) -> IndexArray:
        """Return the candidates of a node in order."""
        starts = self._line_starts
        return self.lines.rows[starts[place] : starts[place + 1]]

    def going(self, step: Step) -> list[int]:
        """List whom a step evicts, in order."""
        start = self._starts[step.place]
        return self.victims[start + step.before : start + step.after].tolist()

    def amounts(self, steps: Sequence[Step]) -> Column:
        """Sum up what those ask for whom each step evicts (R, n)."""
        first = [self._starts[step.place] + step.before for step in steps]
        last = [self._starts[step.place] + step.after for step in steps]
        return self._gone[:-2, last] - self._gone[:-2, first]

    def in_line(self, step: Step) -> range:
        """Return who stands in line up to the last whom a step evicts, from where it was left."""
        start, line = self._starts[step.place], self._line_starts[step.place]
        if step.before:
            line = int(self._offered[start + step.before - 1]) + 1
        last = step.before < step.after
        return range(line, int(self._offered[start + step.after - 1]) + 1 if last else line)

    def nodes_after(
        self, steps: Sequence[Step], more: Column | float
    ) -> tuple[PromisedNodes, IndexArray]:
        """Imagine the nodes of steps with their victims gone and so many more tasks on them."""
        place = np.array([step.place for step in steps], dtype=np.intp)
        start = [self._starts[step.place] for step in steps]
        last = [at + step.after for at, step in zip(start, steps, strict=True)]
        rows, copies = self.nodes[place], np.array([step.copies for step in steps]) + more
        gone = self._gone[:, last] - self._gone[:, start]
        return PromisedNodes(self._snapshot, rows, gone, self._task.shape, copies), rows


def amounts_of(snapshot: Snapshot, rows: IndexArray) -> Column:
    """Return requests of tasks, and below them those with Kubernetes' defaults (R + 2, k)."""
    known, where = np.unique(snapshot.tasks.shape[rows], return_inverse=True)
    if not len(known):
        return np.zeros((len(snapshot.resources) + 2, 0))
    shapes = [snapshot.shapes[number] for number in known.tolist()]
    columns = [np.concatenate([shape.request, shape.nonzero]) for shape in shapes]
    return np.concatenate(columns, axis=1)[:, where]


def copies_in(room: Column, request: Column, need: Column) -> Column:
    """Return how many tasks (R, 1) fit into rooms (R, n), each with its need left when it comes."""
    asked = request[:, 0] > 0
    found = (room[asked] // request[asked]).min(axis=0)
    kept = ~asked & (need[:, 0] > -np.inf)
    if kept.any():
        found = np.where((room[kept] > -STEP).all(axis=0), found, 0.0)
    return np.asarray(found)
