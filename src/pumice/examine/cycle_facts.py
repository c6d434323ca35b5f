"""What a cycle did to pods, gangs, queues and nodes, from the session that decided it.

Tests hold invariants against the facts of each cycle, and a sign-off adds them up: both mean the
same by a broken gang, the queue and priority of an evicted pod, and what is due to a queue.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from pumice.api.cycle_facts import CycleFacts, EvictedPod, FilledNode, LosingQueue, TouchedGang
from pumice.api.decisions import Decisions
from pumice.api.quantity import amount_text, base_units
from pumice.core.resources import PODS, STEP, Column
from pumice.core.status import HOLDING
from pumice.core.tables import NOWHERE
from pumice.core.views import READY, count_roles, meets_minima, minima
from pumice.framework.session import Session
from pumice.scheduler import Observer

_READY: Final = [int(each) for each in READY]
_WHOLE: Final = 1000.0
"""One device, as amounts of devices are counted."""


class FactsObserver(Observer):
    """Collects the facts of one cycle; they are there once it is decided."""

    def __init__(self) -> None:
        self.facts = CycleFacts()
        self._due: tuple[Column, Column] | None = None
        self._ready = np.zeros(0)

    def opened(self, ssn: Session) -> None:
        """Note what jobs have, and what is due to queues, before anything is decided."""
        limits, queues = ssn.queue_limits(), ssn.snapshot.queues
        self._due = (
            (queues.deserved.copy(), queues.guarantee.copy())
            if limits is None
            else (limits.deserved.copy(), limits.guarantee.copy())
        )
        self._ready = ssn.snapshot.jobs.counts[_READY].sum(axis=0)

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Collect the facts."""
        tasks = ssn.snapshot.tasks
        evicted = [tasks.row_of[pod] for pod in decisions.evictions]
        moved = [*evicted, *(tasks.row_of[pod] for pod in decisions.binds)]
        jobs = dict.fromkeys(int(tasks.job[row]) for row in moved)
        self.facts = CycleFacts(
            now=ssn.now,
            decisions=decisions,
            evicted=[_evicted(ssn, row, decisions) for row in evicted],
            gangs=[self._gang(ssn, job) for job in jobs if job != NOWHERE],
            queues=list(self._queues(ssn, evicted)),
            nodes=list(_nodes(ssn, decisions)),
        )

    def _gang(self, ssn: Session, row: int) -> TouchedGang:
        job, counts = ssn.job(row), ssn.snapshot.jobs.counts[:, row]
        holding, ready = int(counts[HOLDING].sum()), int(counts[_READY].sum())
        has_roles = meets_minima(count_roles(job, READY), minima(job))
        return TouchedGang(
            job=ssn.snapshot.jobs.keys[row],
            queue=job.group.spec.queue,
            needed=job.min_member,
            before=int(self._ready[row]),
            after=ready,
            holding=holding,
            is_whole=not holding or (ready >= job.min_member and has_roles),
        )

    def _queues(self, ssn: Session, evicted: Sequence[int]) -> Iterator[LosingQueue]:
        """Yield the queues that lose pods, and those above them."""
        if self._due is None:
            return
        tasks, jobs, queues = ssn.snapshot.tasks, ssn.snapshot.jobs, ssn.snapshot.queues
        losses: dict[int, list[int]] = {}
        for task in evicted:
            queue = int(jobs.queue[tasks.job[task]]) if tasks.job[task] != NOWHERE else NOWHERE
            while queue != NOWHERE and task not in losses.setdefault(queue, []):
                losses[queue].append(task)
                queue = int(queues.parent[queue])
        held = _with_children(ssn, queues.allocated_or_pipelined)
        deserved, guarantee = self._due
        for queue, rows in losses.items():
            asked = np.sum([ssn.task(row).request[:, 0] for row in rows], axis=0) >= STEP
            asked[PODS] = False  # what is due to queues is not counted in pods
            yield LosingQueue(
                queue=queues.names[queue],
                pods=[tasks.keys[row] for row in rows],
                held=_amounts(ssn, held[:, queue], asked),
                deserved=_amounts(ssn, deserved[:, queue], asked),
                guarantee=_amounts(ssn, guarantee[:, queue], asked),
            )


class Losses(FactsObserver):
    """What cycles take from jobs and queues, added up."""

    def __init__(self) -> None:
        super().__init__()
        self.evicted: Counter[str] = Counter()
        """Pod to how often it is evicted."""
        self.by_queue: Counter[str] = Counter()
        self.by_priority: Counter[str] = Counter()
        self.broken: dict[str, None] = {}
        """Gangs, by pod group, that lose pods that they need, and keep others."""
        self.whole: dict[str, None] = {}
        """Gangs that lose all their pods at once."""
        self.stopped: dict[str, None] = {}
        """All jobs that have fewer pods left than they need."""

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Add the facts of one more cycle."""
        if not decisions.evictions:
            return
        super().decided(ssn, decisions)
        for pod in self.facts.evicted:
            self.evicted[pod.pod] += 1
            self.by_queue[pod.queue or "none"] += 1
            name = pod.priority_class
            self.by_priority[f"{name} ({pod.priority})" if name else str(pod.priority)] += 1
        losing = {pod.job for pod in self.facts.evicted}
        for gang in self.facts.gangs:
            if gang.job in losing and gang.is_stopped:
                self.stop(gang.job, is_gang=gang.needed > 1, keeps_some=gang.holding > 0)

    def stop(self, job: str, *, is_gang: bool, keeps_some: bool) -> None:
        """Note a job that has fewer pods left than it needs."""
        self.stopped[job] = None
        if is_gang:
            (self.broken if keeps_some else self.whole)[job] = None


class BelowDue(Observer):
    """Finds the queues that have less than is due to them when a cycle begins."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, tuple[str, str]]] = {}
        """Queue to resource to what it has, and what is due to it."""

    def opened(self, ssn: Session) -> None:
        """Compare what queues hold with what they deserve, as far as their jobs ask for it.

        A queue that has its due of one resource that its jobs ask for lacks none of the others.
        """
        limits, queues = ssn.queue_limits(), ssn.snapshot.queues
        if limits is None:
            return
        held = queues.allocated_or_pipelined
        # of what the cluster has and a queue does not deserve, such as memory, nothing is due
        counts = (limits.deserved >= STEP) | (ssn.total < STEP)[:, None]
        asked = (queues.pending >= STEP) & counts
        due = np.minimum(limits.deserved, held + queues.pending)
        due[PODS + 1 :] -= due[PODS + 1 :] % _WHOLE  # half a device is of no use
        asked[PODS] = False
        short = asked & (due - held >= STEP)
        names = ssn.snapshot.resources.names
        for row in limits.tree.ancestors:
            is_leaf = row not in limits.tree.children
            if is_leaf and asked[:, row].any() and (short[:, row] == asked[:, row]).all():
                self.found[queues.names[row]] = {
                    names[i]: (
                        amount_text(names[i], float(held[i, row])),
                        amount_text(names[i], float(due[i, row])),
                    )
                    for i in np.flatnonzero(short[:, row]).tolist()
                }


def _with_children(ssn: Session, amounts: Column) -> Column:
    """Return amounts of queues (R, Q) with those of the queues under them."""
    total, parent = amounts.copy(), ssn.snapshot.queues.parent
    for queue in range(amounts.shape[1]):
        above, seen = int(parent[queue]), {queue}
        while above != NOWHERE and above not in seen:
            total[:, above] += amounts[:, queue]
            seen.add(above)
            above = int(parent[above])
    return total


def _evicted(ssn: Session, row: int, decisions: Decisions) -> EvictedPod:
    tasks, jobs, queues = ssn.snapshot.tasks, ssn.snapshot.jobs, ssn.snapshot.queues
    key, job, node = tasks.keys[row], int(tasks.job[row]), int(tasks.node[row])
    pod: Any = tasks.pods[row]
    whom = decisions.beneficiaries.get(key, "")
    asker = tasks.row_of.get(whom)
    theirs = jobs.row_of.get(whom, NOWHERE) if asker is None else int(tasks.job[asker])
    same = job == theirs or NOWHERE in (job, theirs)
    # of two jobs the priorities of the jobs count, within one job those of its pods
    own = tasks.priority[row] if same else jobs.priority[job]
    other = jobs.priority[theirs] if theirs != NOWHERE else None
    if same and asker is not None:
        other = tasks.priority[asker]
    group: Any = jobs.groups[job] if job != NOWHERE else None
    return EvictedPod(
        pod=key,
        job=jobs.keys[job] if job != NOWHERE else "",
        queue=queues.names[int(jobs.queue[job])] if job != NOWHERE else "",
        node=ssn.snapshot.nodes.names[node] if node != NOWHERE else "",
        priority=int(own),
        priority_class=pod.spec.priority_class_name
        or (group.spec.priority_class_name if group is not None else ""),
        labels=dict(pod.metadata.labels),
        action=decisions.evicted_by.get(key, ""),
        whom=whom,
        whose_queue=queues.names[int(jobs.queue[theirs])] if theirs != NOWHERE else "",
        whose_priority=None if other is None or not whom else int(other),
    )


def _nodes(ssn: Session, decisions: Decisions) -> Iterator[FilledNode]:
    nodes = ssn.snapshot.nodes
    names = dict.fromkeys([*decisions.binds.values(), *decisions.pipelined.values()])
    for name in names:
        row = nodes.row_of[name]
        allocatable, used = nodes.allocatable[:, row], nodes.used[:, row]
        later = used - nodes.releasing[:, row] + nodes.pipelined[:, row]
        some = (used >= STEP) | (later >= STEP)
        yield FilledNode(
            node=name,
            allocatable=_amounts(ssn, allocatable, some),
            used=_amounts(ssn, used, some),
            later=_amounts(ssn, later, some),
        )


def _amounts(ssn: Session, column: Column, wanted: Any) -> dict[str, float]:
    names = ssn.snapshot.resources.names
    return {
        name: base_units(name, float(column[row]))
        for row, name in enumerate(names)
        if wanted[row] and np.isfinite(column[row])
    }
