"""The limits of all queues in one value, whichever policy sets them, and what is reserved of them.

Reservations of admitted jobs are counted from the snapshot as it is when asked, on whole columns;
only jobs with gated tasks are examined one by one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final, Protocol, Self

import numpy as np

from pumice.api.annotations import QUEUE_GATE
from pumice.core.resources import (
    CPU,
    MEMORY,
    Column,
    IndexArray,
    Mask,
    dominant_share,
    fits,
    is_empty,
    sum_by,
)
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, PENDING, PHASE_CODE
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Queue, Task

_ONLY: Final = (QUEUE_GATE,)
Opened = set[tuple[str, str]]
"""Pods, by key and uid."""


def has_only_queue_gate(task: Task) -> bool:
    """Return whether the queue gate is the only one of a task's pod."""
    return tuple(gate.name for gate in task.pod.spec.scheduling_gates) == _ONLY


class QueueGates:
    """The queue gates of one session; without ``enabled`` none is considered.

    ``opened`` are the pods whose gates the last session opened: the cluster may not have confirmed
    yet that the gates are gone, and the room is still theirs.
    """

    def __init__(self, snapshot: Snapshot, opened: Opened, *, enabled: bool) -> None:
        self._snapshot = snapshot
        self.held: set[int] = set()
        """Tasks that only the queue gate holds back."""
        self.opened: dict[int, None] = {}
        """Tasks whose gates this session opens, in that order."""
        self._reserving: dict[int, None] = {}
        self._memory = opened
        if enabled:
            self._open(frozenset(opened))
        opened.clear()

    def _open(self, opened: frozenset[tuple[str, str]]) -> None:
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        waiting = tasks.opted_in & (tasks.status == PENDING) & (tasks.job != NOWHERE)
        for row in np.flatnonzero(waiting).tolist():
            if not jobs.listed[tasks.job[row]]:
                continue
            if not tasks.gated[row]:
                self._reserving[row] = None
            elif has_only_queue_gate(Task(self._snapshot, row)):
                self.held.add(row)
                if (tasks.keys[row], tasks.uids[row]) in opened:
                    self._reserving[row] = None

    def open(self, task: int) -> None:
        """Remove a task's gate; its request is reserved from now on."""
        tasks = self._snapshot.tasks
        self.opened[task] = None
        self._reserving[task] = None
        self._memory.add((tasks.keys[task], tasks.uids[task]))

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Undo any gates that are opened meanwhile."""
        opened, reserving, memory = dict(self.opened), dict(self._reserving), set(self._memory)
        try:
            yield
        finally:
            self.opened, self._reserving = opened, reserving
            self._memory &= memory

    @property
    def is_reserving(self) -> bool:
        """Whether any task may reserve something."""
        return bool(self._reserving)

    def reserved(self, beside: int) -> Column:
        """Sum by queue the reservations of tasks that wait for a node (R, Q), one task left out."""
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        rows = np.fromiter(self._reserving, dtype=np.intp)
        rows = rows[(tasks.status[rows] == PENDING) & (rows != beside)]
        queues = jobs.queue[tasks.job[rows]]
        return sum_by(self._snapshot.requests(rows), queues, self._snapshot.queues.capacity)


_ALLOCATED = sorted(ALLOCATED_CLASS)
_INQUEUE, _RUNNING = PHASE_CODE["Inqueue"], PHASE_CODE["Running"]
_RESERVATIONS: Final = "reservations"
"""The key under which the snapshot keeps those of the running session."""


class Reservations:
    """Reservations of jobs at the moment they are first asked for, without gated tasks."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._gated = _gated_requests(snapshot)

    @classmethod
    def at_opening(cls, snapshot: Snapshot) -> "Reservations":
        """Return those with which the running session opened: ask before its first write."""
        kept: tuple[int, Reservations] | None = snapshot.derived.get(_RESERVATIONS)
        if kept is None or kept[0] != snapshot.journal.session:
            kept = snapshot.derived[_RESERVATIONS] = snapshot.journal.session, cls(snapshot)
        return kept[1]

    def of_job(self, job: int) -> Column:
        """Return what a job reserves when it is admitted (R,): all it needs to start."""
        return self._without_gated(job, self._snapshot.jobs.min_resources[:, job])

    def total(self) -> Column:
        """Sum over all jobs (R,); jobs in phase Inqueue count with all they need to start."""
        inqueue, running = self._reserving_jobs
        asked = self._amounts(inqueue, self._snapshot.jobs.min_resources[:, inqueue])
        amounts = np.concatenate([asked, self._lacking(running)], axis=1)
        return np.asarray(amounts.sum(axis=1))

    def by_queue(self) -> Column:
        """Sum by queue (R, Q); what a job already holds is not reserved again."""
        rows = np.concatenate(self._reserving_jobs)
        owners = self._snapshot.jobs.queue[rows]
        return sum_by(self._lacking(rows), owners, self._snapshot.queues.capacity)

    @cached_property
    def _reserving_jobs(self) -> tuple[IndexArray, IndexArray]:
        """Find jobs in phase Inqueue, and running ones with their minimum number of tasks placed.

        Of these only such as lack something of their minimum; others reserve nothing.
        Volcano: a running job below that number has finished tasks; it will not ask again.
        """
        jobs = self._snapshot.jobs
        asks = jobs.listed & jobs.has_min_resources
        inqueue = (asks & (jobs.phase == _INQUEUE)).nonzero()[0]
        lacks = (jobs.min_resources > jobs.allocated).any(axis=0)
        running = (asks & lacks & (jobs.phase == _RUNNING)).nonzero()[0]
        if len(running):
            placed = jobs.counts[:, running][_ALLOCATED].sum(axis=0)
            running = running[placed >= jobs.min_member[running]]
        return inqueue, running

    def _lacking(self, rows: IndexArray) -> Column:
        """Return what jobs still lack of their minimum (R, n)."""
        jobs = self._snapshot.jobs
        return self._amounts(
            rows, np.maximum(jobs.min_resources[:, rows] - jobs.allocated[:, rows], 0.0)
        )

    def _amounts(self, rows: IndexArray, amounts: Column) -> Column:
        if self._gated:
            for i, job in enumerate(rows.tolist()):
                amounts[:, i] = self._without_gated(job, amounts[:, i])
        return amounts

    def _without_gated(self, job: int, amounts: Column) -> Column:
        gated = self._gated.get(job)
        if gated is None or is_empty(gated):
            return amounts
        return np.maximum(amounts - gated, 0.0)


class QueueCommitments:
    """Used and promised amounts of each queue, kept up to date while jobs are admitted.

    Reservations are those of the moment it is made, plus those of jobs admitted since.
    """

    def __init__(self, snapshot: Snapshot, reservations: Reservations | None = None) -> None:
        self._queues = snapshot.queues
        self._reservations = reservations or Reservations(snapshot)
        self._reserved = self._reservations.by_queue()
        self._elastic = elastic_by_queue(snapshot)

    def by_queue(self) -> Column:
        """Return what queues hold or reserve beyond elastic amounts (R, Q)."""
        return self._queues.allocated_or_pipelined + self._reserved - self._elastic

    def of_queue(self, queue: int) -> Column:
        """Return the same of one queue (R,)."""
        held = self._queues.allocated_or_pipelined[:, queue]
        return held + self._reserved[:, queue] - self._elastic[:, queue]

    def admit(self, job: Job) -> None:
        """Reserve what a job needs to start, if it states that."""
        if job.min_resources is not None:
            self._reserved[:, job.queue] += self._reservations.of_job(job.row)


def elastic_by_queue(snapshot: Snapshot) -> Column:
    """Sum by queue what jobs hold beyond what they need to start (R, Q)."""
    jobs = snapshot.jobs
    rows = jobs.listed.nonzero()[0]
    beyond = np.maximum(jobs.allocated[:, rows] - jobs.min_resources[:, rows], 0.0)
    return sum_by(beyond, jobs.queue[rows], snapshot.queues.capacity)


def _gated_requests(snapshot: Snapshot) -> dict[int, Column]:
    """Sum the requests of gated tasks by job."""
    tasks = snapshot.tasks
    if not tasks.gated.any():
        return {}
    held = tasks.gated & (tasks.status == PENDING) & (tasks.job >= 0)
    out: dict[int, Column] = {}
    for row in np.flatnonzero(held).tolist():
        if has_only_queue_gate(Task(snapshot, row)):
            continue
        job = int(tasks.job[row])
        request = snapshot.request(row)
        out[job] = out[job] + request if job in out else request
    return out


ROOT = "root"
_TREE = "queue tree"
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
        known: tuple[object, QueueTree] | None = snapshot.derived.get(_TREE)
        if known is None or known[0] != now:
            known = snapshot.derived[_TREE] = now, cls._grow(snapshot)
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
