"""Cycles in which actions that evict find nobody to evict.

They decide as if these actions did not exist.  If besides nobody can be admitted or start, they
decide nothing at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property

import numpy as np

from pumice.cache.job_rows import Priorities
from pumice.core.resources import Column, IndexArray
from pumice.core.status import Status
from pumice.framework.queue_limits.limits import QueueLimits
from pumice.sim.bounds import Bounds, times_within
from pumice.sim.job_classes import JobClass, JobClasses
from pumice.sim.shortcuts import EvictionRules, Offer, Shortcuts
from pumice.sim.sim_cluster import SimCluster


class Outlook(Enum):
    """What a cycle may decide."""

    ANYTHING = auto()
    NO_EVICTIONS = auto()
    NOTHING = auto()


@dataclass(frozen=True, slots=True)
class _Standing:
    """The queue of a class of jobs, and their priority."""

    queue: int
    priority: int


class QuietCycles:
    """Finds out before a cycle what it may decide at most."""

    def __init__(
        self,
        cluster: SimCluster,
        classes: JobClasses,
        shortcuts: Shortcuts,
        rules: EvictionRules,
    ) -> None:
        self._cluster = cluster
        self._snapshot = cluster.snapshot
        self._classes = classes
        self._shortcuts = replace(shortcuts, evicts=False)
        self._rules = rules
        self._plain: dict[JobClass, bool] = {}
        self._all_plain = True
        self._running = _Running(cluster)

    def learn(self, kind: JobClass) -> None:
        """Note that jobs of a class arrive: with unusual ones about, nothing is foretold."""
        if kind not in self._plain:
            self._plain[kind] = _is_plain(kind)
            self._all_plain &= self._plain[kind]

    def outlook(self, planned: Sequence[tuple[JobClass, bool]]) -> Outlook:
        """Return what a cycle decides at most, of waiting classes and whether some jobs are new.

        New jobs that take part may be admitted.
        """
        if not self._all_plain or self._cluster.has_own_groups or self._cluster.nominated_jobs():
            return Outlook.ANYTHING
        self._room.refresh()
        self._running = _Running(self._cluster)
        if self._running.have_ended_in_part or any(self._may_evict(kind) for kind, _ in planned):
            return Outlook.ANYTHING
        if any(is_new or self._room.startable(kind) for kind, is_new in planned):
            return Outlook.NO_EVICTIONS
        return Outlook.NOTHING

    def count(self, kind: JobClass, admitted: int) -> int:
        """Return how many of the admitted jobs of a class make a difference, the oldest first.

        Gangs do, even if they find too little room: they draw lots for nodes until then.
        """
        pods = self._room.pods(kind)
        if pods == 0 or (kind.size == 1 and self._shortcuts.oldest_first):
            return min(pods, admitted)
        return admitted

    @cached_property
    def _room(self) -> "_FreeRoom":
        return _FreeRoom(self._cluster, self._classes, self._shortcuts)

    @cached_property
    def _claims(self) -> list[QueueLimits | None]:
        """The limits by which plugins let queues reclaim; None: unknown ones."""
        total = self._snapshot.total()
        return [plugin.queue_limits(self._snapshot, total) for plugin in self._rules.claiming]

    def _may_evict(self, kind: JobClass) -> bool:
        """Return whether anybody might be evicted for jobs of a class."""
        queue = self._snapshot.queues.row_of.get(kind.queue)
        if queue is None:
            return True
        if self._rules.reclaim and self._may_reclaim(kind, queue):
            return True
        priority = self._priorities.of_group(kind.group.priority_class_name)
        standing = _Standing(queue, priority)
        actions = self._rules.actions
        if "gangpreempt" in actions and self._makes_room(kind, self._running.lower(standing)):
            return True
        return "preempt" in actions and any(
            self._is_offered(kind, standing, offer) for offer in self._rules.offers
        )

    def _may_reclaim(self, kind: JobClass, queue: int) -> bool:
        request = self._classes.pod_requests[kind.pod_shape]
        return self._running.others_lend(queue) and all(
            limits is None or limits.current().may_reclaim(queue, request)
            for limits in self._claims
        )

    def _is_offered(self, kind: JobClass, standing: _Standing, offer: Offer) -> bool:
        """Return whether a tier might offer victims that make room for jobs of a class."""
        running = self._running
        if offer.needs_lower and not len(running.lower(standing)):
            return False
        everyone = running.of_queue(standing.queue)
        if offer.needs_surplus and not running.have_surplus(everyone):
            return False
        return self._makes_room(kind, everyone)

    def _makes_room(self, kind: JobClass, victims: IndexArray) -> bool:
        """Return whether a job of a class might start if all jobs of some rows left."""
        if not len(victims):
            return False
        held = self._snapshot.jobs.allocated[:, victims].sum(axis=1)
        return self._room.holds(kind, held)

    @cached_property
    def _priorities(self) -> Priorities:
        return Priorities(self._snapshot)


class _FreeRoom(Bounds):
    """Bounds for a cycle without evictions."""

    def pods(self, kind: JobClass) -> int:
        """Return how many pods of a class all nodes have room for."""
        return self._pods(kind.pod_shape)

    def holds(self, kind: JobClass, more: Column) -> bool:
        """Return whether a job of a class might fit into all room and some more (R,)."""
        room = np.add(self._room_in_all(), more).tolist()
        return times_within(kind.quota_amounts, room) >= 1


class _Running:
    """The jobs that run at a moment, by row."""

    def __init__(self, cluster: SimCluster) -> None:
        self._jobs = cluster.snapshot.jobs
        self._queues = cluster.snapshot.queues
        self._by_queue: dict[int, IndexArray] = {}
        self._lower: dict[_Standing, IndexArray] = {}

    @cached_property
    def _rows(self) -> IndexArray:
        jobs = self._jobs
        return np.flatnonzero(jobs.listed & (jobs.counts[Status.RUNNING] > 0))

    @cached_property
    def _lenders(self) -> set[int]:
        """Queues with running jobs that others may reclaim from."""
        queues = np.unique(self._jobs.queue[self._rows]).tolist()
        return {queue for queue in queues if self._queues.reclaimable[queue]}

    @property
    def have_ended_in_part(self) -> bool:
        """Whether some pods of a job have ended, which may change its phase, and others not."""
        return bool(self._jobs.counts[Status.SUCCEEDED, self._rows].any())

    def others_lend(self, queue: int) -> bool:
        """Return whether other queues than this one have pods to lose."""
        return bool(self._lenders - {queue})

    def of_queue(self, queue: int) -> IndexArray:
        """Return the running jobs of a queue."""
        found = self._by_queue.get(queue)
        if found is None:
            found = self._by_queue[queue] = self._rows[self._jobs.queue[self._rows] == queue]
        return found

    def lower(self, than: _Standing) -> IndexArray:
        """Return those of a queue that have a lower priority."""
        found = self._lower.get(than)
        if found is None:
            rows = self.of_queue(than.queue)
            found = self._lower[than] = rows[self._jobs.priority[rows] < than.priority]
        return found

    def have_surplus(self, rows: IndexArray) -> bool:
        """Return whether one of these jobs might have more pods than it needs."""
        return bool((self._jobs.n_tasks[rows] > self._jobs.min_member[rows]).any())


def _is_plain(kind: JobClass) -> bool:
    """Return whether jobs of a class have equal pods that ask for amounts, and no more to them."""
    group, spec = kind.group, kind.specs[0]
    return (
        kind.is_steady
        and len(kind.specs) == 1
        and not kind.late_pods
        and bool(kind.quota_amounts)
        and not spec.scheduling_gates
        and not (group.min_task_member or group.sub_group_policy)
        and group.network_topology is None
    )
