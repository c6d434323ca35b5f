"""What sessions see, copied: pictures of the cluster, the last cycles, and samples of use.

The feed observes sessions on the scheduling thread, so it only copies; readers are other threads.
"""

import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pumice.api.decisions import Decisions
from pumice.api.groups import PodGroup
from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.dashboard.material import Material
from pumice.diagnosis.cluster_state import titled
from pumice.framework.plugin_declarations import AccountShare
from pumice.framework.queue_limits.limits import QueueTree
from pumice.framework.session import Session
from pumice.framework.topology.domains import DomainTree
from pumice.scheduler import Observer
from pumice.serve.scheduler.live_scheduler import Cycle

Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class NodeColumns:
    """Nodes by row; amounts (R, N)."""

    names: list[str]
    objects: list[Any]
    allocatable: Column
    used: Column
    releasing: Column
    tree: DomainTree | None
    """HyperNodes; None where there are none."""


@dataclass(frozen=True)
class PodColumns:
    """Pods by row; a free row has the status GONE."""

    keys: list[str]
    objects: list[Any]
    status: Ints
    node: Ints
    job: Ints
    shape: Ints
    requests: list[Column]
    """Requests of the pods of a shape (R,), by shape."""


@dataclass(frozen=True)
class JobColumns:
    """Pod groups by row; ``counts`` are pods by status (S, n)."""

    keys: list[str]
    objects: list[Any]
    listed: NDArray[np.bool_]
    counts: Ints
    queue: Ints
    priority: Ints
    created: Column
    min_member: Ints
    min_resources: Column
    phase: Ints
    allocated: Column
    pending: Column


@dataclass(frozen=True)
class QueueColumns:
    """Queues by row; amounts (R, Q) count all that is under a queue."""

    names: list[str]
    objects: list[Any]
    listed: NDArray[np.bool_]
    parent: Ints
    weight: Ints
    allocated: Column
    request: Column
    guarantee: Column
    capability: Column
    """Infinite where not stated."""
    deserved: Column | None
    """None if no plugin of the configuration divides the cluster."""
    share: Column | None
    tree: QueueTree
    fair: dict[str, AccountShare]
    """Queue to what it used lately; empty if no plugin remembers that."""


@dataclass(frozen=True)
class Picture:
    """A cluster at a moment."""

    now: float
    resources: tuple[str, ...]
    nodes: NodeColumns
    pods: PodColumns
    jobs: JobColumns
    queues: QueueColumns
    actions: tuple[str, ...]
    usage: dict[str, Any]
    """Measured use of nodes in percent, by node and resource; empty without measurements."""
    revision: int = 0
    """Differs between two pictures that show different things."""
    promised: dict[str, str] = field(default_factory=dict)
    """Waiting pod to the node whose room the last cycle promised it."""
    starting: frozenset[str] = frozenset()
    """Jobs that got nodes in the last cycle."""
    waiting: dict[str, str] = field(default_factory=dict)
    """Job to the sentence with which the last cycle left it waiting."""

    def signature(self) -> int:
        """Return a number that is the same for pictures which show the same."""
        pods, jobs, nodes, queues = self.pods, self.jobs, self.nodes, self.queues
        columns: list[NDArray[Any]] = [pods.status, pods.node, jobs.phase, jobs.counts, jobs.listed]
        columns += [nodes.allocatable, nodes.used, nodes.releasing, queues.allocated]
        columns += [queues.request, queues.guarantee, queues.capability, queues.weight]
        if queues.deserved is not None:
            columns.append(queues.deserved)
        found = 0
        for column in columns:
            found = zlib.crc32(np.ascontiguousarray(column).tobytes(), found)
        identities = (*map(id, jobs.objects), *map(id, nodes.objects), *map(id, queues.objects))
        words = (
            *sorted(self.starting),
            *self.promised.items(),
            *self.waiting.items(),
            *sorted(self.usage),
        )
        return hash((found, identities, words))


def take_picture(ssn: Session) -> Picture:
    """Copy the view of a session before its first action."""
    snapshot = ssn.snapshot
    return Picture(
        now=ssn.now,
        resources=tuple(snapshot.resources.names),
        nodes=_nodes(ssn),
        pods=_pods(snapshot),
        jobs=_jobs(snapshot),
        queues=_queues(ssn),
        actions=ssn.actions,
        usage={name: dict(one) for name, one in ssn.node_usage.items()},
    )


def _nodes(ssn: Session) -> NodeColumns:
    nodes = ssn.snapshot.nodes
    n = nodes.n
    return NodeColumns(
        names=nodes.names[:n],
        objects=nodes.objects[:n],
        allocatable=nodes.allocatable[:, :n].copy(),
        used=nodes.used[:, :n].copy(),
        releasing=nodes.releasing[:, :n].copy(),
        tree=ssn.topology.tree if ssn.snapshot.kind("HyperNode") else None,
    )


def _pods(snapshot: Snapshot) -> PodColumns:
    tasks = snapshot.tasks
    n = tasks.n
    return PodColumns(
        keys=tasks.keys[:n],
        objects=tasks.pods[:n],
        status=tasks.status[:n].copy(),
        node=tasks.node[:n].copy(),
        job=tasks.job[:n].copy(),
        shape=tasks.shape[:n].copy(),
        requests=[shape.request[:, 0] for shape in snapshot.shapes],
    )


def _jobs(snapshot: Snapshot) -> JobColumns:
    jobs = snapshot.jobs
    n = jobs.n
    return JobColumns(
        keys=jobs.keys[:n],
        objects=jobs.groups[:n],
        listed=jobs.listed[:n].copy(),
        counts=jobs.counts[:, :n].copy(),
        queue=jobs.queue[:n].copy(),
        priority=jobs.priority[:n].copy(),
        created=jobs.created[:n].copy(),
        min_member=jobs.min_member[:n].copy(),
        min_resources=jobs.min_resources[:, :n].copy(),
        phase=jobs.phase[:n].copy(),
        allocated=jobs.allocated[:, :n].copy(),
        pending=jobs.pending[:, :n].copy(),
    )


def _queues(ssn: Session) -> QueueColumns:
    snapshot = ssn.snapshot
    queues, limits, tree = snapshot.queues, ssn.queue_limits(), QueueTree.of(snapshot)
    n = queues.n
    allocated = tree.sum_up(queues.allocated)
    share = None if limits is None else limits.shares(tree.sum_up(queues.allocated_or_pipelined))
    return QueueColumns(
        names=queues.names[:n],
        objects=queues.objects[:n],
        listed=queues.listed[:n].copy(),
        parent=queues.parent[:n].copy(),
        weight=queues.weight[:n].copy(),
        allocated=allocated[:, :n].copy(),
        request=tree.sum_up(queues.allocated + queues.pending)[:, :n].copy(),
        guarantee=(queues.guarantee if limits is None else limits.guarantee)[:, :n].copy(),
        capability=queues.capability[:, :n].copy(),
        deserved=None if limits is None else limits.deserved[:, :n].copy(),
        share=None if share is None else share[:n].copy(),
        tree=tree,
        fair={
            each.name: each
            for plugin in ssn.plugins
            for each in plugin.fair_shares()
            if each.kind == "queue"
        },
    )


def title_of(key: str, group: object) -> str:
    """Return the display name of a job: that of the Volcano job or pod of its pod group."""
    if not isinstance(group, PodGroup):
        return key
    return titled(key, [(each.kind, each.name) for each in group.metadata.owner_references])


CYCLES: Final = 600
"""Cycles that are remembered."""
_QUIET_S: Final = 1.0
"""Of cycles that decide nothing, one is remembered in so many seconds."""
_MOMENTS: Final = 24
"""Cycles of which the whole cluster is remembered: the last ones that decided something."""
_MOMENT_S: Final = 1.0
"""The least time between two of them."""
_MOVED_ON_S: Final = 1.0
"""Time of the cluster after which a picture is old, however fast that time runs."""
_AFTER_MOVES_S: Final = 0.1
"""Time after which a picture is old if pods have moved."""
_SAMPLE_S: Final = 5.0
_SAMPLES: Final = 720
"""Samples of use: an hour of them."""


@dataclass(frozen=True, kw_only=True)
class CycleRecord:
    """One session: its decisions, and its time by action and plugin."""

    number: int
    at: float
    """When it was, by the cluster's clock."""
    took_s: float
    actions: Sequence[tuple[str, float]]
    """Action to seconds, in their order."""
    plugins: Sequence[tuple[str, float]]
    """Plugin to the seconds that it took when the session opened and closed."""
    decisions: Decisions
    jobs: Mapping[str, str] = field(default_factory=dict)
    """Pod or pod group of a decision to the title of its job, as it was then."""
    dropped: bool = False
    failed: Sequence[str] = ()
    """Writes that the cluster refused, a line each."""


@dataclass(frozen=True)
class Sample:
    """How full the cluster was at a moment; amounts (R,)."""

    at: float
    used: Column
    total: Column
    waiting: int
    """Pods that waited."""


@dataclass
class _Laps:
    """Times of a session in progress."""

    clock: Callable[[], float]
    started: float = 0.0
    mark: float = 0.0
    actions: list[tuple[str, float]] = field(default_factory=list)
    plugins: dict[str, float] = field(default_factory=dict)

    def lap(self) -> float:
        before, self.mark = self.mark, self.clock()
        return self.mark - before


class Feed(Observer):
    """The latest picture and the last cycles, for any number of readers."""

    def __init__(
        self,
        capture: Callable[[], Material] | None = None,
        *,
        every_s: float = 0.5,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Make one; ``capture`` returns the cluster's objects, for cycles that decide something."""
        self.picture: Picture | None = None
        self.listeners: list[Callable[[], None]] = []
        """Called when there is something new, on the scheduling thread."""
        self._capture = capture
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._cycles: deque[CycleRecord] = deque(maxlen=CYCLES)
        self._samples: deque[Sample] = deque(maxlen=_SAMPLES)
        self._moments: dict[int, Material] = {}
        self._moment_at = -np.inf
        self._numbered = 0
        self._taken: Picture | None = None
        self._taken_at = -1.0
        self._shown_at = 0.0
        self._moved = False
        """Whether the last cycle moved pods, so that its picture is out of date."""
        self._signature: int | None = None
        self._laps = _Laps(clock)

    # Reading, on any thread

    def cycles(self) -> list[CycleRecord]:
        """Return the last cycles, the latest last."""
        with self._lock:
            return list(self._cycles)

    def samples(self) -> list[Sample]:
        """Return how full the cluster was, the latest last."""
        with self._lock:
            return list(self._samples)

    def moments(self) -> dict[int, Material]:
        """Return the clusters that are remembered, by the number of their cycle."""
        with self._lock:
            return dict(self._moments)

    # Observing, on the scheduling thread

    def synced(self) -> None:
        """Begin to measure."""
        now = self._clock()
        self._laps = _Laps(self._clock, now, now)

    def opened(self, ssn: Session) -> None:
        """Take a picture, unless the last one is fresh."""
        if not self._laps.started:
            self.synced()
        now = self._clock()
        is_old = now - self._taken_at >= self._every_s or ssn.now - self._shown_at >= _MOVED_ON_S
        has_moved = self._moved and now - self._taken_at >= _AFTER_MOVES_S
        if self._taken_at < 0 or is_old or has_moved:
            self._taken_at, self._shown_at = now, ssn.now
            self._taken = take_picture(ssn)
        self._sample(ssn)
        self._laps.lap()

    def plugin_done(self, plugin: str, when: str) -> None:
        """Add to the time of a plugin."""
        del when
        took = self._laps.lap()
        if plugin:
            self._laps.plugins[plugin] = self._laps.plugins.get(plugin, 0.0) + took

    def action_done(self, action: str) -> None:
        """Record the time of an action."""
        self._laps.actions.append((action, self._laps.lap()))

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Remember the cycle, and publish the picture with the reasons of waiting jobs."""
        laps, self._laps = self._laps, _Laps(self._clock)
        self._numbered += 1
        record = CycleRecord(
            number=self._numbered,
            at=ssn.now,
            took_s=self._clock() - laps.started,
            actions=laps.actions,
            plugins=list(laps.plugins.items()),
            decisions=decisions,
            jobs=_titles(ssn.snapshot, decisions),
        )
        self._moved = bool(decisions.binds or decisions.evictions)
        material = self._captured(ssn.now) if self._moved else None
        with self._lock:
            if self._is_repeated(record):
                self._cycles.pop()
            self._cycles.append(record)
            if material is not None:
                self._moments[record.number] = material
                while len(self._moments) > _MOMENTS:
                    del self._moments[next(iter(self._moments))]
        if self._taken is not None:
            self._publish(self._taken, ssn.snapshot, decisions)
            self._taken = None

    def finished(self, cycle: Cycle) -> None:
        """Add the results of the last cycle's writes."""
        failed = [f"bind {pod}: {error}" for pod, error in cycle.writes.failed.items()]
        if not failed and not cycle.dropped:
            return
        with self._lock:
            if self._cycles:
                self._cycles[-1] = replace(self._cycles[-1], dropped=cycle.dropped, failed=failed)

    def _captured(self, now: float) -> Material | None:
        """Return the cluster's objects, unless they were just remembered, by its own time."""
        if self._capture is None or abs(now - self._moment_at) < _MOMENT_S:
            return None
        self._moment_at = now
        return self._capture()

    def _is_repeated(self, record: CycleRecord) -> bool:
        """Return whether a cycle takes the place of the last one: neither decides anything."""
        if len(self._cycles) < 2 or not _is_quiet(record.decisions):
            return False
        before, last = self._cycles[-2], self._cycles[-1]
        is_quiet = _is_quiet(last.decisions) and not last.failed
        return is_quiet and 0 <= record.at - before.at < _QUIET_S

    def _publish(self, picture: Picture, snapshot: Snapshot, decisions: Decisions) -> None:
        picture = replace(
            picture,
            promised=dict(decisions.pipelined),
            starting=_jobs_bound(snapshot, decisions),
            waiting=dict(decisions.explanations),
        )
        signature = picture.signature()
        if signature != self._signature:
            self._signature = signature
            revision = self.picture.revision + 1 if self.picture is not None else 1
            self.picture = replace(picture, revision=revision)
        for listener in self.listeners:
            listener()

    def _sample(self, ssn: Session) -> None:
        """Record how full the cluster is, by the cluster's own time."""
        last = self._samples[-1].at if self._samples else -np.inf
        if 0 <= ssn.now - last < _SAMPLE_S:
            return
        nodes, tasks = ssn.snapshot.nodes, ssn.snapshot.tasks
        waiting = int((tasks.status[: tasks.n] == Status.PENDING).sum())
        used, total = nodes.used[:, : nodes.n].sum(axis=1), ssn.snapshot.total()
        with self._lock:
            self._samples.append(Sample(ssn.now, used, total, waiting))


def _is_quiet(decisions: Decisions) -> bool:
    return not (decisions.binds or decisions.evictions or decisions.pipelined)


def _titles(snapshot: Snapshot, decisions: Decisions) -> dict[str, str]:
    """Name the jobs of the pods that a cycle moved, those that benefit and those that wait."""
    found: dict[str, str] = {}
    tasks, jobs = snapshot.tasks, snapshot.jobs
    moved = (*decisions.binds, *decisions.evictions, *decisions.beneficiaries.values())
    for key in (*moved, *decisions.explanations):
        pod = tasks.row_of.get(key)
        row = jobs.row_of.get(key, NOWHERE) if pod is None else int(tasks.job[pod])
        if row != NOWHERE:
            found[key] = title_of(jobs.keys[row], jobs.groups[row])
    return found


def _jobs_bound(snapshot: Snapshot, decisions: Decisions) -> frozenset[str]:
    tasks, jobs = snapshot.tasks, snapshot.jobs
    rows = {int(tasks.job[tasks.row_of[pod]]) for pod in decisions.binds}
    return frozenset(jobs.keys[row] for row in rows if row != NOWHERE)
