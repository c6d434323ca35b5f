"""Where queues stand under each other, and which of them are misplaced.

A queue with a wrong place stops itself and what is under it, never the rest of the tree.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.tables import NOWHERE
from pumice.core.views import Queue

ROOT = "root"
LEAF, BRANCH, MISPLACED = range(3)
"""Ranks of queues: only leaves take jobs, the misplaced do nothing."""


@dataclass(frozen=True)
class Chain:
    """A queue and all above it, itself first."""

    rows: NDArray[np.intp]
    members: Column
    """Which queues (Q,) count for each of them (Q, n): 1 or 0."""


@dataclass
class QueueTree:
    """Queues by row; flat trees have neither ancestors nor children."""

    n_rows: int
    ancestors: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Queue to the queues above it, root first; only queues that have a place."""
    children: dict[int, list[int]] = field(default_factory=dict)
    subtree: dict[int, list[int]] = field(default_factory=dict)
    """Queue to itself and all under it."""
    problems: dict[int, str] = field(default_factory=dict)
    """Misplaced queue to the reason."""
    root: int = NOWHERE
    _chains: dict[int, Chain] = field(default_factory=dict)

    @classmethod
    def flat(cls, snapshot: Snapshot) -> "QueueTree":
        """Put all queues side by side."""
        rows = np.flatnonzero(snapshot.queues.listed).tolist()
        subtree = {row: [row] for row in rows}
        return cls(snapshot.queues.capacity, dict.fromkeys(rows, ()), subtree=subtree)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "QueueTree":
        """Hang queues under their parents; one that names no parent hangs under the root."""
        queues = snapshot.queues
        tree = cls(queues.capacity, root=queues.row_of.get(ROOT, NOWHERE))
        for row in np.flatnonzero(queues.listed).tolist():
            tree._place(snapshot, row)
        return tree

    def rank(self, row: int) -> int:
        """Return whether a queue is a leaf, has others under it, or is misplaced."""
        if row in self.problems:
            return MISPLACED
        return BRANCH if row in self.children else LEAF

    def chain(self, row: int) -> Chain:
        """Return a queue and its ancestors, leaf first, with who counts for each."""
        found = self._chains.get(row)
        if found is None:
            rows = np.asarray([row, *reversed(self.ancestors[row])], dtype=np.intp)
            members = np.zeros((self.n_rows, len(rows)))
            for i, ancestor in enumerate(rows.tolist()):
                members[self.subtree[ancestor], i] = 1.0
            found = self._chains[row] = Chain(rows, members)
        return found

    def sum_up(self, amounts: Column) -> Column:
        """Add to the amounts of each queue (R, Q) those of all queues under it."""
        out = amounts.copy()
        for row, above in self.ancestors.items():
            for ancestor in above:
                out[:, ancestor] += amounts[:, row]
        return out

    def common_depth(self, left: int, right: int) -> int:
        """Return the depth of the deepest ancestor two queues share."""
        depth = 0
        for i, (a, b) in enumerate(zip(self.ancestors[left], self.ancestors[right], strict=False)):
            if a != b:
                break
            depth = i
        return depth

    def at_depth(self, row: int, depth: int) -> int:
        """Return a queue's ancestor at a depth, or the queue itself if it is not that deep."""
        above = self.ancestors[row]
        return above[depth] if depth < len(above) else row

    def ancestor(self, row: int, steps: int) -> int:
        """Return the ancestor some steps up, NOWHERE if there is none or it is the root."""
        above = self.ancestors[row]
        found = above[-steps] if 0 < steps <= len(above) else NOWHERE
        return NOWHERE if found == self.root else found

    def _add(self, row: int, above: tuple[int, ...]) -> None:
        self.ancestors[row] = above
        self.subtree.setdefault(row, []).append(row)
        for ancestor in above:
            self.subtree.setdefault(ancestor, []).append(row)
        if above:
            self.children.setdefault(above[-1], []).append(row)

    def _place(self, snapshot: Snapshot, row: int) -> None:
        """Find a queue's place, placing what is above it first."""
        trail: list[int] = []
        while row not in self.ancestors and row not in self.problems:
            trail.append(row)
            parent = self._parent(snapshot, trail)
            if parent == NOWHERE:
                break
            row = parent
        for step in reversed(trail):
            parent = self._parent_row(snapshot, step)
            if step in self.ancestors or step in self.problems:
                continue
            if step == self.root:
                self._add(step, ())
            elif parent in self.ancestors:
                self._add(step, (*self.ancestors[parent], parent))
            else:
                name = snapshot.queues.names[parent]
                self.problems[step] = f"it stands under queue '{name}', which has no valid place"

    def _parent(self, snapshot: Snapshot, trail: list[int]) -> int:
        """Return the next queue to place, NOWHERE at the root or where the way up ends."""
        queues, row = snapshot.queues, trail[-1]
        if row == self.root:
            return NOWHERE
        parent = self._parent_row(snapshot, row)
        if parent == NOWHERE:
            wanted = Queue(snapshot, row).object.spec.parent or ROOT
            self.problems[row] = f"there is no queue '{wanted}' to stand under"
        elif parent in trail:
            circle = [*trail[trail.index(parent) :], parent]
            names = " under ".join(queues.names[each] for each in circle)
            self.problems.update(dict.fromkeys(circle, f"its parents form a circle: {names}"))
            return NOWHERE
        return parent

    def _parent_row(self, snapshot: Snapshot, row: int) -> int:
        wanted = Queue(snapshot, row).object.spec.parent or ROOT
        return snapshot.queues.row_of.get(wanted, NOWHERE)
