"""Picks for plain tasks of several kinds, one after the other, foreseen and then checked.

A node that takes a task changes its answers.  Nodes that were alike before are assumed to be alike
afterwards, so most answers are known from nodes that took the same tasks before; the others are
guessed to fall behind the best.  Then all answers of a walk are asked for at once, on imagined
rows, and the picks are kept up to the first that was made on a wrong answer.  They are those of
task-by-task placement, bit for bit.
"""

import sys
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column
from pumice.core.views import Task
from pumice.framework.fits import Answers, Fit
from pumice.framework.imagined_rows import ImaginedNodes, Load, cumulate
from pumice.framework.placing import Placing

_FIRST, LONGEST_WALK = 32, 1024
"""Steps of a walk: of the first one, and at most."""
_LOOKED_BEYOND = 96
"""Number of node states to look ahead after a walk."""
MOST_KINDS = 24
"""Kinds to walk with: every node that takes a task is asked about all kinds.  Tasks of more kinds
are picked for one by one, and gangs are cheaper by themselves."""
_TASKS_OF_A_KIND, _GANGS_OF_A_KIND = 2, 4
"""How many turns there must be for each kind, at least."""
_BEHIND, _AHEAD = -np.inf, np.inf
"""Guesses about an unknown node: it becomes worse than all others, or better."""
_LEAST = -sys.float_info.max


class _NodeState(msgspec.Struct, eq=False):
    """The common state of nodes that were alike at first and took tasks of the same kinds."""

    family: dict[tuple[int, ...], "_NodeState"] = msgspec.field(default_factory=dict)
    """The states of nodes that were alike at first, by what they took."""
    taken: tuple[int, ...] = ()
    """The kinds of the tasks taken, sorted."""
    after: dict[int, "_NodeState"] = msgspec.field(default_factory=dict)
    """The state that one more task of a kind leads to, if it was asked for."""
    values: dict[int, float] = msgspec.field(default_factory=dict)
    """The value of such nodes for a kind, if it was asked for."""

    def take(self, kind: int) -> "_NodeState":
        """Return the state that one more task leads to."""
        found = self.after.get(kind)
        if found is None:
            taken = tuple(sorted((*self.taken, kind)))
            found = self.family.get(taken)
            if found is None:
                found = self.family[taken] = _NodeState(self.family, taken)
            self.after[kind] = found
        return found


class _Kind:
    """The nodes as one kind of task sees them during a walk."""

    def __init__(self, task: Task, fit: Fit) -> None:
        self.task = task
        self.fit = fit
        self.foreseen: list[float] = []
        """At each step the value of the node from then on; for guesses, the value of others."""
        self.guesses: list[int] = []
        """The steps with guesses."""
        self.guess = _BEHIND
        self.start()

    def start(self) -> None:
        """Use the nodes as they are."""
        self._value = self.fit.value.copy()
        self._find_best()
        self.forget()

    def forget(self) -> None:
        """Begin the next walk where the last one ended."""
        self.foreseen.clear()
        self.guesses.clear()

    def _find_best(self) -> None:
        best = self._best = self._others = float(self._value.max(initial=_BEHIND))
        self._levels: dict[float, list[int]] = {}
        """The nodes of each value from the floor upwards; there are only few such values."""
        self._floor = max(best, _LEAST)
        if best > _BEHIND:
            self._levels[best] = np.flatnonzero(self._value == best).tolist()

    def draw(self, placing: Placing) -> int | None:
        """Pick one of the best nodes; None if there is none, or none that is known."""
        if self._best not in self._levels:
            if self.guesses:
                return None
            self._sink()
        ties = self._levels.get(self._best, ())
        if len(ties) > 1:
            return ties[placing.spin(len(ties))]
        return ties[0] if ties else None

    def _sink(self) -> None:
        """Turn to the next best nodes."""
        if self._levels:
            self._best = self._others = max(self._levels)
        else:
            self._find_best()

    def step(self, node: int, known: float | None) -> None:
        """Follow a node that took a task; its value may now be unknown."""
        if known is None:
            self.guesses.append(len(self.foreseen))
            self._others = self._others if self._best == _AHEAD else self._best
            self.foreseen.append(self._others)
            known = self.guess
        else:
            self.foreseen.append(known)
        self._put(node, known)

    def _put(self, node: int, value: float) -> None:
        """Move a node to the level of its new value."""
        old, levels = self._value.item(node), self._levels
        if old == value:
            return
        self._value[node] = value
        if old >= self._floor:
            ties = levels[old]
            del ties[bisect_left(ties, node)]
            if not ties:
                del levels[old]
        if value >= self._floor:
            insort(levels.setdefault(value, []), node)
            self._best = max(value, self._best)

    def wrong(self, value: Column) -> int:
        """Return the first step whose answer was not foreseen; the number of steps if all were."""
        foreseen = np.array(self.foreseen)
        right = value == foreseen
        if self.guesses:
            as_guessed = value < foreseen if self.guess == _BEHIND else value > foreseen
            right[self.guesses] = as_guessed[self.guesses]
        if right.all():
            return len(right)
        at = int(np.argmin(right))
        if at in self.guesses:
            self.guess = _AHEAD if value[at] > foreseen[at] else _BEHIND
        return at

    def settle(self, rows: NDArray[np.intp], value: Column) -> None:
        """Put answers in the place of guesses after a walk without errors."""
        if self.guesses:
            at_last = dict(zip(rows.tolist(), value.tolist(), strict=True))
            for at in self.guesses:
                self._put(int(rows[at]), at_last[int(rows[at])])
        if self._best == _AHEAD:
            self._sink()
        self.forget()


class ForeseenPicks:
    """Picks nodes for tasks of plain kinds; remembers how nodes change for a whole session."""

    def __init__(self, placing: Placing) -> None:
        self._placing = placing
        self._numbers: dict[Hashable, int] = {}
        self._samples: list[tuple[Hashable, Task]] = []
        """Kinds by number, and a task of each."""
        self._ranked: set[int] = set()
        """Kinds whose candidates must be compared."""
        self._kinds: dict[int, _Kind] = {}
        """The kinds of the current tasks, by number."""
        self._alike: dict[tuple[bytes, ...], _NodeState] = {}
        self._states: dict[int, _NodeState] = {}
        self._cursor = 0
        self._walks = False
        self._length = _FIRST
        self.draws: list[int] = []
        """The state of the generator after each pick."""

    def kind(self, task: Task) -> int | None:
        """Return the number of a task's kind; None if its candidates must be compared."""
        key = self._placing.kind(task)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._samples)
            self._samples.append((key, task))
        return None if number in self._ranked else number

    def begin(self, numbers: Sequence[int], n_turns: int) -> bool:
        """Read nodes again, whatever moved meanwhile, as tasks of some kinds see them.

        False if there is a kind among them whose candidates must be compared, or if gangs of so
        many kinds are cheaper by themselves.
        """
        kinds, has_gangs = set(numbers), len(numbers) > n_turns
        least = _GANGS_OF_A_KIND if has_gangs else _TASKS_OF_A_KIND
        self._walks = len(kinds) <= min(MOST_KINDS, n_turns // least)
        return self._begin_walks(kinds) if self._walks else not has_gangs

    def _begin_walks(self, kinds: Iterable[int]) -> bool:
        moved = self._placing.snapshot.journal.moved
        for entry in moved[self._cursor :]:
            for row in (entry,) if isinstance(entry, int) else entry.tolist():
                self._states.pop(row, None)
        self._cursor = len(moved)
        self._kinds = {}
        for number in sorted(kinds):
            key, task = self._samples[number]
            fit = self._placing.fit_of(key, task)
            if self._placing.ranks(task, fit):
                self._ranked.add(number)
                return False
            self._kinds[number] = _Kind(task, fit)
        self._at = {number: i for i, number in enumerate(self._kinds)}
        shapes = [kind.task.shape for kind in self._kinds.values()]
        each = [np.concatenate([shape.request, shape.nonzero, [[1.0]]]) for shape in shapes]
        self._amounts = np.concatenate(each, axis=1)
        return True

    def pick(self, numbers: Sequence[int]) -> list[int]:
        """Return the nodes that the next tasks get; none if the first of them finds none.

        ``numbers`` are the kinds of the tasks in turn.  After placing them call ``placed``.
        """
        if not self._walks:
            return self._pick_one(numbers[0])
        steps = self._walk(numbers[: self._length])
        if not steps:
            return []
        n, rows = len(steps), np.array([node for node, _, _ in steps], dtype=np.intp)
        taken = cumulate(self._amounts[:, [self._at[i] for i in numbers[:n]]], rows)
        states = [after for _, _, after in steps]
        answers = self._ask(rows, taken, states)
        right = min(1 + kind.wrong(answers[i].value[:n]) for i, kind in self._kinds.items())
        self._learn(states, answers)
        for node, before, _ in reversed(steps[right:]):
            self._states[node] = before
        self._placing.state = self.draws[min(right, n) - 1]
        if right <= n:
            self._part_ways(*steps[right - 1], {i: a.value[right - 1] for i, a in answers.items()})
        self._adapt(right, n)
        self._picked = rows[:right], answers, right > n
        return rows[:right].tolist()

    def _pick_one(self, number: int) -> list[int]:
        """Return the node of one task as if there were no others."""
        node = self._placing.choose_once(*self._samples[number])
        self.draws = [self._placing.state]
        return [] if node is None else [node]

    def _ask(
        self, rows: NDArray[np.intp], taken: Column, states: list[_NodeState]
    ) -> dict[int, Answers]:
        """Ask for the value of nodes with these loads; and, for later, with one more task.

        The states that one more task of each kind leads to are appended to the given states.
        """
        ends = {id(state): i for i, state in enumerate(states) if len(state.after) < len(self._at)}
        at = list(ends.values())[:_LOOKED_BEYOND]
        for i in at:
            states += [states[i].take(number) for number in self._at]
        n = len(self._at)
        rows = np.concatenate([rows, np.repeat(rows[at], n)])
        beyond = np.repeat(taken[:, at], n, axis=1) + np.tile(self._amounts, len(at))
        taken = np.concatenate([taken, beyond], axis=1)
        load = Load(taken[:-3], taken[-3:-1], taken[-1].astype(np.int32))
        nodes = ImaginedNodes(self._placing.snapshot, rows, load)
        return {
            number: self._placing.answers(kind.fit, kind.task, nodes, rows)
            for number, kind in self._kinds.items()
        }

    def _part_ways(
        self, node: int, _: _NodeState, taken_for: _NodeState, worth: dict[int, float]
    ) -> None:
        """Separate a node that turned out to differ from those it was grouped with."""
        if taken_for.values != worth:
            self._states[node] = _NodeState()

    def _walk(self, numbers: Sequence[int]) -> list[tuple[int, _NodeState, _NodeState]]:
        """Pick as far as possible; return nodes with their states before and after."""
        steps: list[tuple[int, _NodeState, _NodeState]] = []
        placing, kinds, states = self._placing, self._kinds, self._states
        self.draws = []
        for number in numbers:
            node = kinds[number].draw(placing)
            if node is None:
                break
            before = states.get(node) or self._first_state(node)
            after = states[node] = before.take(number)
            known = after.values
            for i, kind in kinds.items():
                kind.step(node, known.get(i))
            steps.append((node, before, after))
            self.draws.append(placing.state)
        return steps

    def _first_state(self, node: int) -> _NodeState:
        """Return the state of a node that has taken nothing: that of all with the same cells."""
        table = self._placing.snapshot.nodes
        cells = (table.books, table.allocatable, table.view_nonzero, table.view_pods)
        key = tuple(column[..., node].tobytes() for column in cells)
        return self._alike.setdefault(key, _NodeState())

    def _learn(self, states: list[_NodeState], answers: dict[int, Answers]) -> None:
        """Remember the value of nodes in these states."""
        for number, answer in answers.items():
            for state, value in zip(states, answer.value.tolist(), strict=True):
                state.values.setdefault(number, value)

    def _adapt(self, right: int, n: int) -> None:
        """Look further ahead after success."""
        if right > n == self._length:
            self._length = min(2 * n, LONGEST_WALK)
        elif right <= n:
            self._length = max(_FIRST, 2 * right)

    def placed(self) -> None:
        """Record that the tasks were placed: the new answers of the nodes are already known."""
        if not self._walks:
            return
        moved = self._placing.snapshot.journal.moved
        self._cursor = len(moved)
        rows, answers, all_right = self._picked
        for number, kind in self._kinds.items():
            found = answers[number]
            kind.fit.take(rows, found.part(slice(len(rows))))
            kind.fit.cursor = len(moved)
            if all_right:
                kind.settle(rows, found.value[: len(rows)])
            else:
                kind.start()
