"""Cells of tasks that come from a pod alone: shape, label class, role and more.

Used by the rows of tasks.  Equal parts of pods get one number; numbers are never reused.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import (
    GROUP_NAME,
    NUMA_POLICY,
    PREEMPTABLE,
    QUEUE_GATE,
    REVOCABLE_ZONE,
    STRATEGY_TYPE,
    STRATEGY_WEIGHT,
    TASK_SPEC,
)
from pumice.api.meta import ObjectMeta, ResourceList, is_true
from pumice.api.pods import (
    POD_SCHEDULED,
    Container,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    SchedulingGate,
    Volume,
)
from pumice.api.quantity import parse_quantity
from pumice.api.times import epoch, epoch_or_zero
from pumice.cache.requests import learn, pod_nonzero, pod_request, resource_lists, waiting_nonzero
from pumice.core.resources import is_schedulable_name
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE, Shape, TaskTable, wait_number

TASK_PRIORITY = "volcano.sh/task-priority"
_SHAPE_ANNOTATIONS = (NUMA_POLICY, STRATEGY_TYPE, STRATEGY_WEIGHT, REVOCABLE_ZONE, PREEMPTABLE)
"""Pod annotations that node hooks read; pods that differ in them differ in shape."""
SHAPE_PARTS = (
    "containers",
    "init_containers",
    "resources",
    "overhead",
    "node_selector",
    "affinity",
    "tolerations",
    "topology_spread_constraints",
)
"""Parts of a pod's specification that are equal within a shape."""
_encode = msgspec.json.Encoder().encode
_PENDING, _BOUND, _RUNNING, _RELEASING = (
    int(each) for each in (Status.PENDING, Status.BOUND, Status.RUNNING, Status.RELEASING)
)
_PHASE_STATUS = {
    "Succeeded": int(Status.SUCCEEDED),
    "Failed": int(Status.FAILED),
    "Unknown": int(Status.UNKNOWN),
}
ON_NODE = frozenset({_BOUND, _RUNNING, _RELEASING, int(Status.UNKNOWN)})
"""Statuses of tasks that count on a node."""
_NUMBER: Final = re.compile(r"([+-]?)0*([0-9]{1,10})")


class PodCells(NamedTuple):
    """Cells that come from a pod alone and that pods alike have in common."""

    shape: int
    best_effort: bool
    label_class: int
    priority: int
    preemptable: bool
    role: int
    gated: bool
    opted_in: bool


def write_cells(tasks: TaskTable, rows: int | slice, cells: Iterable[Any]) -> None:
    """Write the cells of a pod into its row, or those of many, cell by cell, into theirs."""
    (
        tasks.shape[rows],
        tasks.best_effort[rows],
        tasks.label_class[rows],
        tasks.priority[rows],
        tasks.preemptable[rows],
        tasks.role[rows],
        tasks.gated[rows],
        tasks.opted_in[rows],
    ) = cells


def write_own_cells(
    tasks: TaskTable, rows: int | slice | NDArray[np.intp], cells: Iterable[Any]
) -> None:
    """Write times, status and stated reason of a pod, or those of many, cell by cell."""
    (
        tasks.created[rows],
        tasks.started[rows],
        tasks.status[rows],
        tasks.stated_wait[rows],
    ) = cells


def status_of(pod: Pod) -> int:
    """Return the status of a task by its pod."""
    phase = pod.status.phase
    if phase in _PHASE_STATUS:
        return _PHASE_STATUS[phase]
    if pod.metadata.deletion_timestamp:
        return _RELEASING
    if phase == "Running":
        return _RUNNING
    return _BOUND if pod.spec.node_name else _PENDING


def own_cells(pod: Pod) -> tuple[float, float, int, int]:
    """Return what changes in the life of a pod, or differs from its mates: times and status."""
    created, start = epoch_or_zero(pod.metadata.creation_timestamp), pod.status.start_time
    return created, epoch(start) if start else np.nan, status_of(pod), stated_wait(pod)


def stated_wait(pod: Pod) -> int:
    """Return the number of the reason and message why a pod has no node; 0 if it states none."""
    if pod.spec.node_name:
        return 0
    for each in pod.status.conditions:
        if each.type == POD_SCHEDULED and each.status == "False":
            return wait_number(each.reason, each.message)
    return 0


class _Marks(NamedTuple):
    """What a pod takes from its labels and annotations."""

    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]
    kept: dict[str, str]
    """Annotations that belong to its shape."""
    label_class: int
    priority: str
    preemptable: bool
    role: int
    opted_in: bool


class PodReader:
    """Reads pods, and numbers their equal parts."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._shapes: dict[bytes, int] = {}
        self._label_classes: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
        self._roles: dict[str, int] = {}
        self._like: _Marks | None = None
        """The marks of the last pod: the next one is often of the same job."""

    def read(self, pod: Pod) -> PodCells:
        """Return the cells of a pod; one that is bad in any way raises here."""
        meta, spec, like = pod.metadata, pod.spec, self._like
        if like is None or (like.annotations, like.labels, like.namespace) != (
            meta.annotations,
            meta.labels,
            meta.namespace,
        ):
            kept = {
                name: meta.annotations[name]
                for name in _SHAPE_ANNOTATIONS
                if name in meta.annotations
            }
            shape = self._shape(pod, kept)
            like = self._like = self._marks(meta, kept)
        else:
            shape = self._shape(pod, like.kept)
        priority = 1 if spec.priority is None else spec.priority
        return PodCells(  # by position, which is faster; there are very many pods
            shape,
            self.snapshot.shapes[shape].best_effort,
            like.label_class,
            int32_of(like.priority, priority) if like.priority else priority,
            like.preemptable,
            like.role,
            bool(spec.scheduling_gates),
            like.opted_in,
        )

    def _marks(self, meta: ObjectMeta, kept: dict[str, str]) -> _Marks:
        notes, labels = meta.annotations, meta.labels
        mark = notes.get(PREEMPTABLE, labels.get(PREEMPTABLE))
        role = notes.get(TASK_SPEC) or labels.get(TASK_SPEC) or ""
        return _Marks(
            namespace=meta.namespace,
            labels=labels,
            annotations=notes,
            kept=kept,
            label_class=self._label_class(meta),
            priority=notes.get(TASK_PRIORITY, ""),
            preemptable=mark is None or is_true(mark),
            role=self._role(role) if role else NOWHERE,
            opted_in=notes.get(QUEUE_GATE) == "true",
        )

    def _shape(self, pod: Pod, kept: dict[str, str]) -> int:
        spec = pod.spec
        key = _encode(
            (
                spec.containers,
                spec.init_containers,
                spec.resources,
                spec.overhead,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                spec.volumes and claiming(spec.volumes),
                spec.resource_claims,
                pod.metadata.namespace,
                kept,
                bool(spec.scheduling_gates) and is_partial(pod),  # may ask for what has no row
            )
        )
        known = self._shapes.get(key)
        if known is None:
            if not is_partial(pod):
                learn(self.snapshot, *resource_lists(spec), asked=True)
            known = self._shapes[key] = self._new_shape(pod, kept)
        return known

    def _new_shape(self, pod: Pod, kept: dict[str, str]) -> int:
        resources, spec = self.snapshot.resources, pod.spec
        shape = Shape(
            id=len(self.snapshot.shapes),
            request=pod_request(spec, resources)[:, None],
            nonzero=pod_nonzero(spec, resources)[:, None],
            waiting_nonzero=waiting_nonzero(spec, resources)[:, None],
            namespace=pod.metadata.namespace,
            spec=spec,
            annotations=kept,
        )
        self.snapshot.shapes.append(shape)
        return shape.id

    def _label_class(self, meta: ObjectMeta) -> int:
        labels, namespace = meta.labels, meta.namespace
        key = (namespace, frozenset(labels.items()))
        known = self._label_classes.get(key)
        if known is None:
            known = self._label_classes[key] = len(self.snapshot.label_classes)
            self.snapshot.label_classes.append((namespace, labels))
        return known

    def _role(self, name: str) -> int:
        known = self._roles.get(name)
        if known is None:
            known = self._roles[name] = len(self.snapshot.roles)
            self.snapshot.roles.append(name)
        return known


def int32_of(text: str, otherwise: int) -> int:
    """Read a whole number of 32 bits as Go does; anything else counts as absent."""
    if not text:
        return otherwise
    found = _NUMBER.fullmatch(text)  # Python refuses to read very many digits, even zeros
    number = int(found[1] + found[2]) if found else otherwise
    return number if -(2**31) <= number < 2**31 else otherwise


def index_of(name: str) -> int:
    """Read the number at the end of a pod name of at least three parts; -1 if there is none."""
    job_and_task, _, last = name.rpartition("-")
    is_number = last.isascii() and last.isdigit() and len(last) < 10
    return int(last) if is_number and "-" in job_and_task else -1


def claiming(volumes: tuple[Volume, ...]) -> tuple[Volume, ...]:
    """Return the volumes that matter: every pod also mounts a token under a name of its own."""
    return tuple(each for each in volumes if each.persistent_volume_claim or each.ephemeral)


# Pods that cannot be read or applied as a whole

_UNREADABLE: Final = (SchedulingGate(name="pumice.dev/not-readable"),)
"""Keeps it from being placed, and distinguishes it from a pod that was read."""


def partial_pod(pod: Mapping[str, Any] | Pod) -> Pod | None:
    """Read the parts of a pod that count on its node; None if not even its name can be read.

    It takes room there whatever its other fields are.  Only its name, its node, its annotations and
    its requests are read, each as far as possible.
    """
    manifest = msgspec.to_builtins(pod) if isinstance(pod, Pod) else pod
    meta, spec, status = (_mapping(manifest.get(key)) for key in ("metadata", "spec", "status"))
    if not _text(meta, "name"):
        return None
    return Pod(
        metadata=_metadata(meta),
        spec=PodSpec(
            node_name=_text(spec, "nodeName"),
            scheduler_name=_text(spec, "schedulerName"),
            containers=_containers(spec.get("containers")),
            init_containers=_containers(spec.get("initContainers")),
            resources=_resources(spec),
            overhead=_amounts(spec.get("overhead")),
            priority=_int32(spec.get("priority")),
            priority_class_name=_text(spec, "priorityClassName"),
            scheduling_gates=_UNREADABLE,
        ),
        status=PodStatus(phase=_text(status, "phase")),
    )


def is_partial(pod: Pod) -> bool:
    """Return whether a pod was only read in part."""
    return pod.spec.scheduling_gates == _UNREADABLE


def _metadata(meta: Mapping[str, Any]) -> ObjectMeta:
    notes = _texts(meta.get("annotations"))
    return ObjectMeta(
        name=_text(meta, "name"),
        namespace=_text(meta, "namespace"),
        uid=_text(meta, "uid"),
        resource_version=_text(meta, "resourceVersion"),
        # only that there is one matters
        deletion_timestamp="1970-01-01T00:00:00Z" if meta.get("deletionTimestamp") else "",
        labels=_texts(meta.get("labels")),
        annotations={key: notes[key] for key in (GROUP_NAME, PREEMPTABLE) if key in notes},
    )


def _containers(containers: object) -> tuple[Container, ...]:
    items = containers if isinstance(containers, list | tuple) else ()
    return tuple(
        Container(
            resources=_resources(container),
            restart_policy="Always" if container.get("restartPolicy") == "Always" else "",
        )
        for container in map(_mapping, items)
    )


def _resources(part: Mapping[str, Any]) -> ResourceRequirements:
    requests = _mapping(part.get("resources")).get("requests")
    return ResourceRequirements(requests=_amounts(requests))


def _amounts(amounts: object) -> ResourceList:
    """Return the amounts that can be read."""
    out: ResourceList = {}
    for name, quantity in _mapping(amounts).items():
        try:
            parse_quantity(quantity)
        except (ValueError, TypeError):
            continue
        if isinstance(name, str) and name.isascii() and is_schedulable_name(name):
            out[name] = quantity
    return out


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(mapping: Mapping[str, Any], key: str) -> str:
    value = mapping.get(key)
    return value if isinstance(value, str) else ""


def _texts(mapping: object) -> dict[str, str]:
    pairs = _mapping(mapping).items()
    return {key: value for key, value in pairs if isinstance(key, str) and isinstance(value, str)}


def _int32(value: object) -> int | None:
    return value if isinstance(value, int) and -(2**31) <= value < 2**31 else None
