"""The limits of all queues in one value, whichever policy sets them."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np

from pumice.core.resources import CPU, MEMORY, Column, Mask, dominant_share, fits
from pumice.core.snapshot import Snapshot
from pumice.framework.queue_limits.reservations import QueueCommitments, Reservations
from pumice.framework.queue_limits.tree import QueueTree


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
