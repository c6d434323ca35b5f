"""What every node holds, as a number: nodes of the same number have the same amounts, bit for bit.

Pods of jobs without rows move a node from one number to another, and most moves were seen before:
then nothing is computed.  The tables learn of such pods when somebody reads them (``write_due``).
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from pumice.core.resources import is_coarse
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework.fits import FUTURE, Answers

_UNKNOWN: Final = -1
_MOST: Final = 1 << 16
"""Moves of nodes, and numbers beside one for each node, that are remembered."""

_Move = tuple[int, int, int]
"""A number, a shape and +1 or -1 pod of it."""


class NodeStates:
    """Numbers of nodes, and which nodes moved.

    Amounts are whole numbers of moderate size (``is_exact``), so that a pod which comes and goes
    leaves what was there before.  Otherwise there are no numbers, and the tables learn of each pod
    at once, since the order in which amounts are added counts.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.is_exact = True
        self.moved: list[int] = []
        """Rows of nodes on which pods came or went in this era, in order."""
        self.era = 0
        """How often numbers and moves were forgotten."""
        self._numbers: dict[bytes, int] = {}
        self._of_node: list[int] = []
        self._after: dict[_Move, int] = {}
        """Which number a move leads to."""
        self._last_move: dict[int, _Move] = {}
        """How nodes came to a number that is still to be found."""
        self._due: dict[tuple[int, int], int] = {}
        """Pods that the tables do not have yet, or still have, by (shape, node)."""
        self._nodes = (-1, 0)

    def count(self, shape: Shape, nodes: Sequence[int], sign: int) -> None:
        """Count a pod of a shape without a row on each of some nodes, or remove it (-1)."""
        due, of_node, after, kind = self._due, self._of_node, self._after, shape.id
        for node in nodes:
            place = kind, node
            n = due.pop(place, 0) + sign
            if n:
                due[place] = n
            move = of_node[node], kind, sign
            of_node[node] = found = after.get(move, _UNKNOWN)
            if found == _UNKNOWN:
                self._note(node, move)
        self.moved += nodes
        if not self.is_exact:
            self.write_due()

    def add(self, shape: Shape, node: int) -> int:
        """Count a pod more on a node, and return its number."""
        self.count(shape, (node,), 1)
        found = self._of_node[node]
        return found if found != _UNKNOWN else self._find([node])[0]

    def _note(self, node: int, move: _Move) -> None:
        """Remember how a node came to an unknown number, unless it had one before."""
        if move[0] == _UNKNOWN:
            self._last_move.pop(node, None)
        else:
            self._last_move[node] = move

    def touch(self, node: int) -> None:
        """Note that the tables themselves are about to change on a node."""
        self.moved.append(node)
        self._last_move.pop(node, None)
        if node < len(self._of_node):  # else no cycle has asked for its number yet
            self._of_node[node] = _UNKNOWN

    def write_due(self) -> None:
        """Write into the tables what they do not have yet."""
        if not self._due:
            return
        by_shape: dict[tuple[int, int], list[int]] = {}
        for (shape, node), n in self._due.items():
            sign = 1 if n > 0 else -1
            by_shape.setdefault((shape, sign), []).extend([node] * abs(n))
        self._due.clear()
        for (shape, sign), nodes in by_shape.items():
            self._snapshot.count_absent_pods(self._snapshot.shapes[shape], nodes, sign)

    def follow(self) -> bool:
        """Return whether nodes have numbers; call it before numbers are asked for.

        They are made again if nodes or resources have changed, and after very many moves.
        """
        nodes = self._snapshot.nodes
        now = nodes.generation, len(self._snapshot.resources)
        if now != self._nodes:
            self.write_due()
            self.is_exact &= not is_coarse(nodes.allocatable[:, : nodes.n].max(axis=1, initial=0.0))
        if now != self._nodes or max(len(self.moved), len(self._numbers) - nodes.n) > _MOST:
            self._nodes = now
            self.forget()
        return self.is_exact

    def forget(self) -> None:
        """Forget all numbers and moves."""
        self.era += 1
        self.moved.clear()
        self._numbers.clear()
        self._after.clear()
        self._last_move.clear()
        self._of_node = [_UNKNOWN] * self._snapshot.nodes.n

    def numbers_of(self, nodes: Iterable[int]) -> dict[int, int]:
        """Return the numbers of some nodes."""
        of_node = self._of_node
        found = {node: of_node[node] for node in nodes}
        unknown = [node for node, number in found.items() if number == _UNKNOWN]
        if unknown:
            found.update(zip(unknown, self._find(unknown), strict=True))
        return found

    def numbers(self) -> list[int]:
        """Return the numbers of all nodes; not to be changed."""
        unknown = [node for node, number in enumerate(self._of_node) if number == _UNKNOWN]
        if unknown:
            self._find(unknown)
        return self._of_node

    def _find(self, nodes: list[int]) -> list[int]:
        """Find the numbers of some nodes in the tables."""
        self.write_due()
        columns = [
            column[..., nodes].reshape(-1, len(nodes)) for column in _amounts(self._snapshot)
        ]
        bits = np.ascontiguousarray(np.concatenate(columns).T, dtype=np.float64)
        found = []
        for node, key in zip(nodes, map(np.ndarray.tobytes, bits), strict=True):
            number = self._numbers.setdefault(key, len(self._numbers))
            self._of_node[node] = number
            found.append(number)
            move = self._last_move.pop(node, None)
            if move is not None:
                before, kind, sign = move
                self._after[move] = number
                self._after[number, kind, -sign] = before
        return found


def _amounts(snapshot: Snapshot) -> list[np.ndarray[Any, Any]]:
    """Return the columns that nodes of the same amounts have in common (…, n)."""
    nodes = snapshot.nodes
    offered = (nodes.allocatable, nodes.capacity_amounts)
    columns = (nodes.books, *offered, nodes.view_nonzero, nodes.view_pods)
    return [column[..., : nodes.n] for column in columns]


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
