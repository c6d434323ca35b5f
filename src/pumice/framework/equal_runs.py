"""Picks for a run of equal tasks, one after the other, on rows that do not exist yet.

The picks are those of the task-by-task way, bit for bit.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from pumice.core.resources import Column, IndexArray, Mask
from pumice.core.views import Task
from pumice.framework.fits import Fit
from pumice.framework.imagined_rows import ImaginedNodes, Load
from pumice.framework.placing import Placing

_FEW = 4
"""Candidates for each task still to place, up to which all of them are asked about at once."""
DEEPEST = 64
"""Copies on one node to ask about at once."""


class Run:
    """Picks nodes for equal tasks one after the other, on imagined rows.

    ``_ahead[node]`` holds the node's values with one, two, … more copies on it, as far as they were
    asked for; questions about many nodes and several copies go out together.
    """

    def __init__(self, placing: Placing, task: Task, fit: Fit, allowed: Mask | None) -> None:
        self._placing = placing
        self._task = task
        self._fit = fit
        self._value = fit.value.copy() if allowed is None else np.where(allowed, fit.value, -np.inf)
        self._copies: dict[int, int] = {}
        self._ahead: dict[int, list[float]] = {}
        self._picks: list[int] = []
        self._left = 0
        """Tasks still to pick for."""
        self._drops = True
        """Whether the node drawn last became worse than its equals."""
        self._stirs = False
        """Whether the last copy changed other nodes, too."""

    def pick(self, n: int) -> list[int]:
        """Return nodes for up to n tasks; fewer if room runs out."""
        self._left = n
        value = self._value
        while self._left:
            best = value[value.argmax()]  # finding where is faster than finding what
            if best == -np.inf:
                break
            ties = (value == best).nonzero()[0]
            if len(ties) == 1:
                self._fill(int(ties[0]))
            elif self._stirs:
                self._add(int(ties[self._placing.spin(len(ties))]), list)
            else:
                self._draw(ties.tolist(), float(best))
        return self._picks

    def _draw(self, ties: list[int], best: float) -> None:
        """Draw among equals until one of them is left or one becomes better than all."""
        spin = self._placing.spin
        while len(ties) > 1 and self._left:
            at = spin(len(ties))
            after = self._add(ties[at], partial(self._likely, ties, at))
            self._drops = after < best
            if after > best or self._stirs:
                return
            if self._drops:
                del ties[at]

    def _likely(self, ties: list[int], at: int) -> list[int]:
        """Foresee the next draws, if nodes go on dropping out, or staying, as the last one did."""
        if len(ties) <= _FEW * self._left:
            return ties
        placing, state = self._placing, self._placing.state
        left = [*ties[:at], *ties[at + 1 :]] if self._drops else ties
        foreseen: dict[int, None] = {}
        for _ in range(min(self._left, len(left) - 1)):
            drawn = placing.spin(len(left))
            foreseen[left[drawn]] = None
            if self._drops:
                del left[drawn]
        placing.state = state
        foreseen.pop(ties[at], None)
        return list(foreseen)

    def _fill(self, node: int) -> None:
        """Fill the only best node while it stays the only best."""
        value = self._value
        value[node] = -np.inf
        second = value.max()
        while self._left:
            if self._add(node, list) <= second or self._stirs:
                return

    def _knows(self, node: int) -> bool:
        return len(self._ahead.get(node, ())) > self._copies.get(node, 0)

    def _add(self, node: int, likely: Callable[[], list[int]]) -> float:
        """Put one more copy on a node and give its value after that; ask about likely ones, too.

        What a node is worth after the last copy does not matter.
        """
        self._picks.append(node)
        self._left -= 1
        if not self._left:
            return -np.inf
        if not self._knows(node):
            self._look_ahead([node, *likely()])
        copies = self._copies.get(node, 0)
        self._copies[node] = copies + 1
        after = self._ahead[node][copies]
        self._value[node] = after
        return after

    def _look_ahead(self, nodes: list[int]) -> None:
        """Ask about the next copies on those of the nodes that have used theirs up.

        One copy at first, then as many as are known already, so that a node that keeps winning is
        asked about a few times only.  A few candidates are asked about together, with as many
        copies as each of them gets on average: a question costs the same for one and for dozens.
        """
        ahead, least = self._ahead, 1
        if not ahead and (few := self._few_candidates()):
            nodes = [*nodes, *few]
            least += self._left // len(few)
        short = [i for i in dict.fromkeys(nodes) if not self._knows(i)]
        rows = np.array(short, dtype=np.intp)
        if least == 1 and ahead.keys().isdisjoint(short):
            values = self._values(rows, np.ones(len(short))).tolist()
            ahead.update((node, [value]) for node, value in zip(short, values, strict=True))
            return
        known = np.array([len(ahead.get(i, ())) for i in short])
        depth = np.clip(known, min(least, DEEPEST), DEEPEST)
        ends = depth.cumsum()
        level = np.arange(ends[-1]) - np.repeat(ends - depth, depth)
        copies = np.repeat(known, depth) + level + 1.0
        values = self._values(np.repeat(rows, depth), copies).tolist()
        for node, end, n in zip(short, ends.tolist(), depth.tolist(), strict=True):
            ahead.setdefault(node, []).extend(values[end - n : end])

    def _few_candidates(self) -> list[int]:
        """List all nodes that may win, unless they are many."""
        may_win = self._value > -np.inf
        is_few = np.count_nonzero(may_win) <= _FEW * self._left
        return may_win.nonzero()[0].tolist() if is_few else []

    def _values(self, rows: IndexArray, copies: Column) -> Column:
        load = Load.of_copies(self._task.shape, copies)
        nodes = ImaginedNodes(self._placing.snapshot, rows, load)
        return self._placing.answers(self._fit, self._task, nodes, rows).value
