"""The limits of all queues in one value, whichever policy sets them."""

from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import numpy as np

from pumice.core.resources import CPU, MEMORY, Column, Mask, dominant_share, fits
from pumice.core.snapshot import Snapshot
from pumice.core.tables import NOWHERE
from pumice.core.views import Queue
from pumice.framework.queue_limits.reservations import QueueCommitments, Reservations

ROOT = "root"
_KEPT = "queue tree"
LEAF, BRANCH, MISPLACED = range(3)
"""Ranks of queues: only leaves take jobs, the misplaced do nothing."""


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

    @classmethod
    def flat(cls, snapshot: Snapshot) -> "QueueTree":
        """Make a flat list of all queues."""
        rows = np.flatnonzero(snapshot.queues.listed).tolist()
        subtree = {row: [row] for row in rows}
        return cls(snapshot.queues.capacity, dict.fromkeys(rows, ()), subtree=subtree)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "QueueTree":
        """Place queues under their parents; one that names no parent is under the root.

        The tree is kept as long as the queues stay as they are.
        """
        queues = snapshot.queues
        now = (queues.listed.tobytes(), list(queues.objects))
        known: tuple[object, QueueTree] | None = snapshot.derived.get(_KEPT)
        if known is None or known[0] != now:
            known = snapshot.derived[_KEPT] = now, cls._grow(snapshot)
        return known[1]

    @classmethod
    def _grow(cls, snapshot: Snapshot) -> "QueueTree":
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

    def chain(self, row: int) -> list[int]:
        """Return a queue and its ancestors, leaf first."""
        return [row, *reversed(self.ancestors[row])]

    def path(self, row: int) -> tuple[int, ...]:
        """Return the ancestors of a queue, root first, and the queue itself."""
        return (*self.ancestors[row], row)

    def sum_up(self, amounts: Column) -> Column:
        """Add to the amounts of each queue (R, Q) those of all queues under it."""
        out = amounts.copy()
        for row in self.children:
            out[:, row] = amounts[:, self.subtree[row]].sum(axis=1)
        return out

    def common_depth(self, left: int, right: int) -> int:
        """Return the depth of the deepest ancestor two queues share."""
        depth = 0
        for i, (a, b) in enumerate(zip(self.ancestors[left], self.ancestors[right], strict=False)):
            if a != b:
                break
            depth = i
        return depth

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
        """Find a queue's place, placing its ancestors first."""
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
                self.problems[step] = f"its parent is queue '{name}', which has no valid place"

    def _parent(self, snapshot: Snapshot, trail: list[int]) -> int:
        """Return the next queue to place, NOWHERE at the root or where the chain ends."""
        queues, row = snapshot.queues, trail[-1]
        if row == self.root:
            return NOWHERE
        parent = self._parent_row(snapshot, row)
        if parent == NOWHERE:
            wanted = Queue(snapshot, row).object.spec.parent or ROOT
            self.problems[row] = f"there is no queue '{wanted}' as its parent"
        elif parent in trail:
            circle = [*trail[trail.index(parent) :], parent]
            names = " under ".join(queues.names[each] for each in circle)
            self.problems.update(dict.fromkeys(circle, f"its parents form a cycle: {names}"))
            return NOWHERE
        return parent

    def _parent_row(self, snapshot: Snapshot, row: int) -> int:
        wanted = Queue(snapshot, row).object.spec.parent or ROOT
        return snapshot.queues.row_of.get(wanted, NOWHERE)


class AdmissionLimit(Protocol):
    """A limit on what jobs reserve when they are admitted."""

    def reservable(self) -> Column:
        """Return the amounts that jobs of each queue may still reserve, at this moment (R, Q)."""


@dataclass(frozen=True, kw_only=True)
class QueueLimits:
    """Columns by queue (R, Q); a limit of a queue holds for all queues under it together."""

    follows_demand: ClassVar[bool] = False
    """Whether limits change with the requests of jobs."""

    snapshot: Snapshot
    tree: QueueTree
    guarantee: Column
    deserved: Column
    real_capability: Column
    """How far a queue may grow beside its siblings: the most that its jobs may reserve."""
    capability: Column
    """The maximum that queues state, or inherit; infinite or NaN without one."""

    @property
    def ceiling(self) -> Column:
        """The most that a queue may hold."""
        return self.real_capability

    def current(self) -> Self:
        """Return the limits of this moment, for the same nodes and queues."""
        return self

    def held(self, queue: int) -> Column:
        """Return what a queue and those under it hold or were promised (R,)."""
        amounts, under = self.snapshot.queues.allocated_or_pipelined, self.tree.subtree[queue]
        if len(under) == 1:
            return amounts[:, under[0]].copy()
        return np.asarray(amounts[:, under].sum(axis=1))

    def shares(self, held: Column) -> Column:
        """Return how much of what it deserves each queue holds (Q,), of amounts (R, Q)."""
        return dominant_share(held, self.deserved)

    def overused(self, held: Column) -> Mask:
        """Mark queues that hold all that they deserve (Q,), of amounts (R, Q)."""
        return fits(self.deserved, held)

    def may_reclaim(self, queue: int, request: Column) -> bool:  # noqa: ARG002
        """Return False only if a queue may not reclaim for a request (R,) or any multiple of it.

        A plugin that states limits lets no queue reclaim (``preemptive``) that they do not let.
        """
        return True

    def holdable(self) -> Column:
        """Return what each queue may still hold, at this moment (R, Q)."""
        return self._left(self.ceiling, self.snapshot.queues.allocated_or_pipelined)

    def reservable(self) -> Column:
        """Return what jobs of each queue may still reserve, at this moment (R, Q)."""
        return self._left(self.real_capability, self.committed())

    def committed(self) -> Column:
        """Return what queues hold or have reserved, at this moment (R, Q)."""
        return QueueCommitments(self.snapshot).by_queue()

    def _left(self, limit: Column, used: Column) -> Column:
        """Return what the tightest limit up to the root leaves; infinite for misplaced queues."""
        own = limit - self.tree.sum_up(used)
        left = np.full_like(own, np.inf)
        placed = list(self.tree.ancestors)
        left[:, placed] = own[:, placed]
        for row, above in self.tree.ancestors.items():
            if above:
                left[:, row] = own[:, [row, *above]].min(axis=1)
        return left


@dataclass(frozen=True)
class ClusterLimit:
    """One limit for the jobs of all queues together: the cluster, counted as ``total``."""

    snapshot: Snapshot
    total: Column

    def idle(self) -> Column:
        """Return the unused amounts (R,)."""
        return np.asarray(self.total - self.snapshot.nodes.used.sum(axis=1))

    def reserved(self) -> Column:
        """Return what jobs have reserved, at this moment (R,)."""
        return Reservations(self.snapshot).total()

    def reservable(self) -> Column:
        """Return what jobs of each queue may still reserve, at this moment (R, Q)."""
        left = self.idle() - self.reserved()
        return np.broadcast_to(left[:, None], (len(left), self.snapshot.queues.capacity))


def listed_guarantees(snapshot: Snapshot) -> Column:
    """Return the guarantees of queues (R, Q); nothing for rows without a queue."""
    queues = snapshot.queues
    return np.where(queues.listed, queues.guarantee, 0.0)


def flat_real_capability(snapshot: Snapshot, total: Column, guarantee: Column) -> Column:
    """Return how far each queue may grow beside the others (R, Q), in a flat list of queues.

    That is the total without the guarantees of other queues, cut to the queue's own capability;
    cpu or memory of zero in a capability means no limit.
    """
    free = np.maximum(total - guarantee.sum(axis=1), 0.0)
    limit = snapshot.queues.capability.copy()
    basics = limit[[CPU, MEMORY]]
    limit[[CPU, MEMORY]] = np.where(basics <= 0, np.inf, basics)
    return np.minimum(free[:, None] + guarantee, limit)
