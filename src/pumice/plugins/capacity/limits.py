"""What each queue deserves, is guaranteed and may have at most, worked out when a session opens."""

from dataclasses import dataclass

import numpy as np

from pumice.core.resources import CPU, MEMORY, PODS, STEP, Column, Mask, is_empty
from pumice.core.snapshot import Snapshot
from pumice.core.views import NodeFacts
from pumice.framework.admission import real_capability
from pumice.plugins.capacity.tree import QueueTree

_BASICS = [CPU, MEMORY]


@dataclass
class Limits:
    """Columns by queue (R, Q)."""

    deserved: Column
    guarantee: Column
    real: Column
    """The real capability: how far a queue may grow beside its siblings."""
    deserves: Mask
    """Resources whose deserved amount counts when a queue is asked for victims.

    Volcano: cpu and memory if there is any, others as soon as they are named, be it with zero.
    """

    @property
    def best_effort(self) -> Mask:
        """Queues that deserve nothing (Q,)."""
        some = self.deserved >= STEP
        some[PODS] = False
        return np.asarray(~some.any(axis=0))

    @classmethod
    def flat(cls, snapshot: Snapshot, total: Column) -> "Limits":
        """Set limits for queues side by side; nobody deserves more than it may have."""
        queues = snapshot.queues
        guarantee = np.where(queues.listed, queues.guarantee, 0.0)
        real = real_capability(snapshot, total)
        # Volcano: a scalar that is neither free nor guaranteed to the queue cuts nothing
        known = (total > guarantee.sum(axis=1))[:, None] | queues.guarantee_given
        known[_BASICS] = True
        deserved = np.where(known, np.minimum(queues.deserved, real), queues.deserved)
        deserved = np.maximum(deserved, guarantee)
        return cls(deserved, guarantee, real, _deserves(snapshot, deserved))

    @classmethod
    def of_tree(cls, snapshot: Snapshot, total: Column, tree: QueueTree) -> "Limits":
        """Set limits from the root down: children share what their parent may have.

        A child without a capability of its own has its parent's.  The root deserves and guarantees
        what its children do, and has no limit unless one is given.
        """
        queues = snapshot.queues
        guarantee = np.where(queues.listed, queues.guarantee, 0.0)
        deserved = np.maximum(queues.deserved, guarantee)
        limits = cls(deserved, guarantee, np.zeros_like(deserved), _deserves(snapshot, deserved))
        capability = _stated(snapshot)
        if tree.root in tree.above:
            limits._set_root(snapshot, total, tree, capability)
        for parent in sorted(tree.children, key=lambda row: len(tree.above[row])):
            limits._share_out(parent, tree.children[parent], capability)
        return limits

    def _set_root(
        self, snapshot: Snapshot, total: Column, tree: QueueTree, capability: Column
    ) -> None:
        root, children = tree.root, tree.children.get(tree.root, [])
        given = snapshot.queues.capability_given[:, root]
        stated = np.where(given, snapshot.queues.capability[:, root], 0.0)
        if is_empty(stated):
            capability[:, root] = np.inf
            self.real[:, root] = np.where(_offered(snapshot, total), np.inf, 0.0)
        else:
            # Volcano: cpu or memory left out of the root's capability is none at all
            capability[:, root] = np.where(given, stated, np.inf)
            capability[_BASICS, root] = stated[_BASICS]
            self.real[:, root] = stated
        self.guarantee[:, root] = self.guarantee[:, children].sum(axis=1)
        self.deserved[:, root] = self.deserved[:, children].sum(axis=1)
        self.deserves[:, root] = self.deserves[:, children].any(axis=1)

    def _share_out(self, parent: int, children: list[int], capability: Column) -> None:
        own = capability[:, children]
        capability[:, children] = np.where(np.isnan(own), capability[:, [parent]], own)
        guarantee = self.guarantee[:, children]
        free = np.maximum(self.real[:, parent] - guarantee.sum(axis=1), 0.0)
        self.real[:, children] = np.minimum(free[:, None] + guarantee, capability[:, children])


def _stated(snapshot: Snapshot) -> Column:
    """Give the capabilities that queues state themselves, NaN where a parent's holds (R, Q).

    Volcano: cpu or memory of zero counts as not stated.
    """
    queues = snapshot.queues
    stated = queues.capability_given.copy()
    stated[_BASICS] &= queues.capability[_BASICS] > 0
    return np.where(stated, queues.capability, np.nan)


def _deserves(snapshot: Snapshot, deserved: Column) -> Mask:
    queues = snapshot.queues
    out = queues.deserved_given | queues.guarantee_given
    out[_BASICS] = deserved[_BASICS] >= STEP
    return out


def _offered(snapshot: Snapshot, total: Column) -> Mask:
    """Mark resources that some node names, be it with zero."""
    out = total > 0
    out[_BASICS] = True
    for row in np.flatnonzero(~out).tolist():
        name = snapshot.resources.names[row]
        out[row] = any(name in node.status.allocatable for node in NodeFacts(snapshot).objects)
    return out
