"""Limits that queues state themselves, for flat queues and for queues in a tree."""

from dataclasses import dataclass

import numpy as np

from pumice.api.quantity import amount_text
from pumice.core.resources import CPU, MEMORY, PODS, STEP, Column, Mask, is_empty, sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.views import NodeFacts
from pumice.framework.queue_limits.limits import (
    QueueLimits,
    QueueTree,
    flat_real_capability,
    listed_guarantees,
)

_BASICS = [CPU, MEMORY]


@dataclass(frozen=True, kw_only=True)
class StatedLimits(QueueLimits):
    """Limits of queues that state what they deserve, are guaranteed and may hold."""

    deserved_counts: Mask
    """Resources whose deserved amount counts when a queue is asked for victims (R, Q).

    Volcano: cpu and memory if there is any, others as soon as they are named, even with zero.
    """

    @property
    def best_effort(self) -> Mask:
        """Queues that deserve nothing (Q,)."""
        some = self.deserved >= STEP
        some[PODS] = False
        return np.asarray(~some.any(axis=0))

    def shares(self, held: Column) -> Column:
        """Return how much of what it deserves each queue holds (Q,); 1 if it deserves nothing."""
        return np.where(self.best_effort, 1.0, super().shares(held))

    def overused(self, held: Column) -> Mask:
        """Mark queues that hold more than they deserve (Q,)."""
        return np.asarray(self.shares(held) > 1)

    def may_reclaim(self, queue: int, request: Column) -> bool:
        """Return whether the queue or one above it deserves more of some resource."""
        if queue not in self.tree.ancestors:
            return True
        asked = request > 0
        asked[PODS] = False
        return any(
            bool((asked & (self.held(row) + request - self.deserved[:, row] < STEP)).any())
            for row in self.tree.chain(queue)
        )

    @classmethod
    def of(cls, snapshot: Snapshot, total: Column, *, hierarchy: bool) -> "StatedLimits":
        """Set limits for queues in a tree, or else flat."""
        return cls._of_tree(snapshot, total) if hierarchy else cls._flat(snapshot, total)

    @classmethod
    def _flat(cls, snapshot: Snapshot, total: Column) -> "StatedLimits":
        """Set limits for flat queues; no queue deserves more than it may have."""
        queues, guarantee = snapshot.queues, listed_guarantees(snapshot)
        real = flat_real_capability(snapshot, total, guarantee)
        # Volcano: a scalar that is neither free nor guaranteed to the queue cuts nothing
        known = (total > guarantee.sum(axis=1))[:, None] | queues.guarantee_given
        known[_BASICS] = True
        deserved = np.where(known, np.minimum(queues.deserved, real), queues.deserved)
        deserved = np.maximum(deserved, guarantee)
        return cls(
            snapshot=snapshot,
            tree=QueueTree.flat(snapshot),
            guarantee=guarantee,
            deserved=deserved,
            real_capability=real,
            capability=queues.capability,
            deserved_counts=_deserved_counts(snapshot, deserved),
        )

    @classmethod
    def _of_tree(cls, snapshot: Snapshot, total: Column) -> "StatedLimits":
        """Set limits from the root down: children share their parent's limit.

        A child without a capability of its own has its parent's.
        """
        tree, guarantee = QueueTree.of(snapshot), listed_guarantees(snapshot)
        deserved = np.maximum(snapshot.queues.deserved, guarantee)
        limits = cls(
            snapshot=snapshot,
            tree=tree,
            guarantee=guarantee,
            deserved=deserved,
            real_capability=np.zeros_like(deserved),
            capability=_stated_capability(snapshot),
            deserved_counts=_deserved_counts(snapshot, deserved),
        )
        if tree.root in tree.ancestors:
            limits._set_root(total)
        for parent in sorted(tree.children, key=lambda row: len(tree.ancestors[row])):
            limits._share_out(parent)
        return limits

    def _set_root(self, total: Column) -> None:
        """Set what the root deserves and guarantees from its children; unlimited by default.

        Volcano: cpu or memory left out of a capability of the root counts as zero.
        """
        root, queues, capability = self.tree.root, self.snapshot.queues, self.capability
        children = self.tree.children.get(root, [])
        given = queues.capability_given[:, root]
        stated = np.where(given, queues.capability[:, root], 0.0)
        if is_empty(stated):
            capability[:, root] = np.inf
            self.real_capability[:, root] = np.where(_offered(self.snapshot, total), np.inf, 0.0)
        else:
            capability[:, root] = np.where(given, stated, np.inf)
            capability[_BASICS, root] = stated[_BASICS]
            self.real_capability[:, root] = stated
        self.guarantee[:, root] = self.guarantee[:, children].sum(axis=1)
        self.deserved[:, root] = self.deserved[:, children].sum(axis=1)
        self.deserved_counts[:, root] = self.deserved_counts[:, children].any(axis=1)

    def _share_out(self, parent: int) -> None:
        children, real = self.tree.children[parent], self.real_capability
        capability = self.capability
        own = capability[:, children]
        capability[:, children] = np.where(np.isnan(own), capability[:, [parent]], own)
        guarantee = self.guarantee[:, children]
        free = np.maximum(real[:, parent] - guarantee.sum(axis=1), 0.0)
        real[:, children] = np.minimum(free[:, None] + guarantee, capability[:, children])

    def overdrawn(self) -> list[str]:
        """Describe where children may hold, deserve or are guaranteed more than their parent."""
        above = {row: over[-1] for row, over in self.tree.ancestors.items() if over}
        if not above:
            return []
        rows, parents = np.array(list(above)), np.array(list(above.values()))
        queues, n_queues = self.snapshot.queues, self.tree.n_rows
        found = [
            f"queue {queues.names[rows[i]]} may have {self._amount(r, self.capability, rows[i])}, "
            f"its parent {queues.names[parents[i]]} {self._amount(r, self.capability, parents[i])}"
            for r, i in np.argwhere(self.capability[:, rows] > self.capability[:, parents]).tolist()
        ]
        for words, amounts in (("deserve", self.deserved), ("are guaranteed", self.guarantee)):
            sums = sum_by(amounts[:, rows], parents, n_queues)
            found += [
                f"the queues under {queues.names[row]} {words} {self._amount(r, sums, row)} "
                f"together, the queue itself {self._amount(r, amounts, row)}"
                for r, row in np.argwhere(sums - amounts >= STEP).tolist()
            ]
        return found

    def _amount(self, resource: int, amounts: Column, queue: int) -> str:
        name = self.snapshot.resources.names[resource]
        return f"{amount_text(name, float(amounts[resource, queue]))} of {name}"


def _stated_capability(snapshot: Snapshot) -> Column:
    """Return the capabilities that queues state themselves, NaN where a parent's applies (R, Q).

    Volcano: cpu or memory of zero counts as not stated.
    """
    queues = snapshot.queues
    stated = queues.capability_given.copy()
    stated[_BASICS] &= queues.capability[_BASICS] > 0
    return np.where(stated, queues.capability, np.nan)


def _deserved_counts(snapshot: Snapshot, deserved: Column) -> Mask:
    queues = snapshot.queues
    out = queues.deserved_given | queues.guarantee_given
    out[_BASICS] = deserved[_BASICS] >= STEP
    return out


def _offered(snapshot: Snapshot, total: Column) -> Mask:
    """Mark resources that some node names, even with zero."""
    out = total > 0
    out[_BASICS] = True
    for row in np.flatnonzero(~out).tolist():
        name = snapshot.resources.names[row]
        out[row] = any(name in node.status.allocatable for node in NodeFacts(snapshot).objects)
    return out
