"""A picture: a session's view of its cluster, copied in columns.

Taken on the scheduling thread, so it only copies; everything else is computed
elsewhere.  A picture is never changed.
"""

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.groups import PodGroup
from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.diagnosis.cluster_state import titled
from pumice.framework.queue_limits.limits import QueueTree
from pumice.framework.session import Session
from pumice.framework.topology.domains import DomainTree
from pumice.serve.scheduler.cycle_metrics import limits_of

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
    queues, limits, tree = snapshot.queues, limits_of(ssn), QueueTree.of(snapshot)
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
    )


def title_of(key: str, group: object) -> str:
    """Return the display name of a job: that of the Volcano job or pod of its pod group."""
    if not isinstance(group, PodGroup):
        return key
    return titled(key, [(each.kind, each.name) for each in group.metadata.owner_references])
