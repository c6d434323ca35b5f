"""The nodes with room for one kind of pod, in groups of the same value.

Picks are those of ``Placing.choose``, one after the other: of the best nodes, in the order of their
rows, the generator draws one.  A node is asked about only if none of its amounts was before.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pumice.core.views import Task
from pumice.framework.fits import FUTURE, Answers
from pumice.sim.node_states import NodeStates

AskNodes = Callable[[Task, Sequence[int]], Answers]
"""Asks some nodes (rows) about a pod of the kind."""


class RankedNodes:
    """Nodes by value, for pods whose answers follow from the amounts of a node alone.

    Nodes that are ``barred`` refuse such pods whatever they hold.
    """

    def __init__(
        self, states: NodeStates, task: Task, ask: AskNodes, barred: Iterable[int]
    ) -> None:
        self.checked = (-1, -1)
        """The last session and the number of shapes when it was asked whether amounts suffice."""
        self._states = states
        self._task = task
        """A pod of the kind that is in the tables at present."""
        self._ask = ask
        self._value_of_number: dict[int, float] = {}
        self.frees_room = False
        """Whether a node that was asked would have room only once something leaves it."""
        self._rows: dict[float, list[int]] = {}
        """Nodes of each value, in order, if they have room."""
        self._values: list[float] = []
        """Values that nodes with room have, the best last."""
        self._cursor = len(states.moved)
        self._barred = {*barred}
        self._fill()

    def _fill(self) -> None:
        numbers, barred = self._states.numbers(), self._barred
        open_nodes = [node for node in range(len(numbers)) if node not in barred]
        self._learn({numbers[node]: node for node in open_nodes})
        self._value_of = [-np.inf] * len(numbers)
        for node in open_nodes:
            value = self._value_of[node] = self._value_of_number[numbers[node]]
            if value > -np.inf:
                self._rows.setdefault(value, []).append(node)
        self._values = sorted(self._rows)

    def _learn(self, by_number: dict[int, int]) -> None:
        """Ask nodes about the numbers that they stand for."""
        if not by_number:
            return
        self._states.write_due()
        answers = self._ask(self._task, [*by_number.values()])
        soon = (np.asarray(answers.verdict) == 0) & (answers.room == FUTURE)
        self.frees_room |= bool(soon.any())
        self._value_of_number.update(zip(by_number, answers.value.tolist(), strict=True))

    def catch_up(self, task: Task) -> None:
        """Follow all moves of nodes since the last time; pick for a task from now on."""
        self._task = task
        moved = self._states.moved
        if self._cursor == len(moved):
            return
        rows = {*moved[self._cursor :]} - self._barred
        self._cursor = len(moved)
        known, numbers = self._value_of_number, self._states.numbers_of(rows)
        self._learn({number: row for row, number in numbers.items() if number not in known})
        for row, number in numbers.items():
            self._place(row, number)

    def pick(self, n: int, draw: Callable[[int], int]) -> list[int]:
        """Pick nodes for n pods and count them there; for fewer if there are not as many."""
        picks: list[int] = []
        values, rows_of, add, shape = self._values, self._rows, self._states.add, self._task.shape
        while values and len(picks) < n:
            rows = rows_of[values[-1]]
            node = rows[draw(len(rows))] if len(rows) > 1 else rows[0]
            picks.append(node)
            self._place(node, add(shape, node))
        self._cursor = len(self._states.moved)
        return picks

    def _place(self, node: int, number: int) -> None:
        """Move a node to those of the value that it has at a number."""
        if number not in self._value_of_number:
            self._learn({number: node})
        old, new = self._value_of[node], self._value_of_number[number]
        if old == new:
            return
        self._value_of[node] = new
        if old > -np.inf:
            rows = self._rows[old]
            del rows[bisect_left(rows, node)]
            if not rows:
                del self._rows[old]
                del self._values[bisect_left(self._values, old)]
        if new > -np.inf:
            rows = self._rows.setdefault(new, [])
            if not rows:
                insort(self._values, new)
            insort(rows, node)
