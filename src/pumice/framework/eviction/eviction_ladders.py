"""How many equal tasks nodes can take with ever more of their victims gone, computed on sums.

Amounts are whole numbers, so what is added up here is what evictions one by one would leave.  For
example, tasks of 2 cpu wait, and a node has 1 cpu free and victims of 1, 1 and 4 cpu in line.  With
0, 1, 2 and 3 of these gone 0, 1, 1 and 3 tasks fit: the rungs of its ladder.  The first task takes
the first victim; the second must wait for the other two; the third finds room without any.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pumice.core.resources import STEP, Column, IndexArray, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework.eviction.emptied_nodes import PromisedNodes
from pumice.framework.eviction.victim_lines import Lines


class Step(NamedTuple):
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
        self,
        snapshot: Snapshot,
        task: Task,
        nodes: IndexArray,
        lines: Lines,
        *,
        amounts: Column,
        hopeful: list[float],
    ) -> None:
        """See the nodes as they are.

        ``amounts`` are those of all who are offered, with Kubernetes' defaults below (R + 2, k);
        ``hopeful`` is how many tasks each node could take if all members of the scope left.
        """
        self.nodes = nodes
        self.lines = lines
        self.hopeful = hopeful
        self._snapshot = snapshot
        self._task = task
        offered = lines.offered.nonzero()[0]
        place = lines.place.take(offered)
        self._offered: list[int] = offered.tolist()
        self._victims: list[int] = lines.rows.take(offered).tolist()
        marks = np.arange(len(nodes) + 1)
        starts = place.searchsorted(marks)
        self._starts: list[int] = starts.tolist()
        self._line_starts: list[int] = lines.place.searchsorted(marks).tolist()
        self._gone = np.zeros((len(amounts), len(place) + 1))
        amounts.cumsum(axis=1, out=self._gone[:, 1:])
        free, gone = snapshot.nodes.future_idle_of(nodes), self._gone[:-2]
        after = free.take(place, axis=1) + gone[:, 1:] - gone.take(starts.take(place), axis=1)
        rooms = np.concatenate([free, after], axis=1)
        rungs = copies_in(rooms, task.request, task.need).tolist()
        first, later = rungs[: len(nodes)], rungs[len(nodes) :]
        self._rungs = [
            [first[i], *later[start:end]] for i, (start, end) in enumerate(pairwise(self._starts))
        ]

    @cached_property
    def _final(self) -> Mask:
        return self.lines.final()

    @cached_property
    def shared(self) -> set[int]:
        """The places of nodes on which tasks of several jobs are in line."""
        if not self.lines.job_keys:
            return set()
        jobs = self._snapshot.tasks.job.take(self.lines.rows).tolist()
        on = Counter(place for place, _ in set(zip(self.lines.place.tolist(), jobs, strict=True)))
        return {place for place, n in on.items() if n > 1}

    def is_full(self, place: int, copies: int) -> bool:
        """Return whether a node that has so many tasks and no next step cannot take one more."""
        return copies >= self.hopeful[place] or bool(self._final[place])

    def chain(self, place: int, most: int, members: float = math.inf) -> list[Step]:
        """Return the next steps on a node, as long as somebody of its members is left before.

        No step takes victims of two tiers: the first tier decides as long as it offers anybody.
        """
        rungs, steps, before = self._rungs[place], list[Step](), 0
        if not self.lines.known[place]:
            return steps
        split = len(rungs) if self.lines.split is None else self.lines.split[place]
        for copies in range(most):
            after = bisect_left(rungs, copies + 1, before)
            if before >= members or after == len(rungs) or before < split < after:
                break
            steps.append(Step(place, copies, before, after))
            before = after
        return steps

    def tiers(self, steps: Sequence[Step]) -> list[int]:
        """Return which tier offers the victims of each step: 0 the one that decides, or 1 the next.

        The next one decides where the jobs of those in line have lost as much as they can.
        """
        split = self.lines.split
        if split is None:
            return [0] * len(steps)
        return [int(step.after > split[step.place]) for step in steps]

    def strands_counted(self, place: int, gone: int) -> bool:
        """Return whether some stay on a node although later nodes follow from their going."""
        counted = self.lines.counted
        if not counted:
            return False
        left = self._victims[self._starts[place] + gone : self._starts[place + 1]]
        return not counted.isdisjoint(self._snapshot.tasks.job.take(left).tolist())

    def line(self, place: int) -> IndexArray:
        """Return the candidates of a node in order."""
        starts = self._line_starts
        return self.lines.rows[starts[place] : starts[place + 1]]

    def going(self, step: Step) -> list[int]:
        """List whom a step evicts, in order."""
        start = self._starts[step.place]
        return self._victims[start + step.before : start + step.after]

    def amounts(self, steps: Sequence[Step]) -> Column:
        """Sum up what those ask for whom each step evicts (R, n)."""
        first = [self._starts[step.place] + step.before for step in steps]
        last = [self._starts[step.place] + step.after for step in steps]
        return self._gone[:-2, last] - self._gone[:-2, first]

    def in_line(self, step: Step) -> range:
        """Return who stands in line up to the last whom a step evicts, from where it was left."""
        start, left = self._starts[step.place], self._line_starts[step.place]
        if step.before:
            left = self._offered[start + step.before - 1] + 1
        evicts = step.before < step.after
        return range(left, self._offered[start + step.after - 1] + 1 if evicts else left)

    def nodes_after(
        self, steps: Sequence[Step], more: Column | float
    ) -> tuple[PromisedNodes, IndexArray]:
        """Imagine the nodes of steps with their victims gone and so many more tasks on them."""
        place = [step.place for step in steps]
        start = [self._starts[each] for each in place]
        last = [at + step.after for at, step in zip(start, steps, strict=True)]
        rows, copies = self.nodes[place], np.array([step.copies for step in steps]) + more
        gone = self._gone[:, last] - self._gone[:, start]
        return PromisedNodes(self._snapshot, rows, gone, self._task.shape, copies), rows


def copies_in(room: Column, request: Column, need: Column) -> Column:
    """Return how many tasks (R, 1) fit into rooms (R, n), each with its need left when it comes."""
    asks = request[:, 0] > 0
    asked = asks.nonzero()[0]
    found = np.minimum.reduce(room.take(asked, axis=0) // request.take(asked, axis=0))
    kept = (~asks & (need[:, 0] > -np.inf)).nonzero()[0]
    if len(kept):
        found = np.where((room.take(kept, axis=0) > -STEP).all(axis=0), found, 0.0)
    return np.asarray(found)
