"""Tables as kubectl prints them: which columns each kind has, with the cells of an object."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from pumice.api.kinds import (
    CRON_JOB,
    CUSTOM_KIND,
    ENDED_PHASES,
    HYPER_NODE,
    JOB,
    JOB_FLOW,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    RESOURCE_CLAIM,
    Kind,
    Manifest,
)
from pumice.api.times import age
from pumice.apiserver.versions import shown

Cell = Callable[[Manifest, float], Any]
_ROLE: Final = "node-role.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; those of priority 1 are shown by `-o wide` only."""

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0


def dig(manifest: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path, None if there is none."""
    value: Any = manifest
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _at(name: str, path: str, kind: str = "string", *, wide: bool = False) -> Column:
    return Column(name, lambda manifest, _: dig(manifest, path), kind, int(wide))


def _at_path(name: str, path: str, *, wide: bool = False) -> Column:
    """Make a column with a text for empty values."""
    return Column(name, lambda manifest, _: dig(manifest, path) or "<none>", "string", int(wide))


def _since(name: str, path: str, *, wide: bool = False) -> Column:
    return Column(name, lambda manifest, now: age(dig(manifest, path), now), "string", int(wide))


def _count(name: str, path: str) -> Column:
    return Column(name, lambda manifest, _: len(dig(manifest, path) or ()), "integer")


NAME: Final = _at("Name", "metadata.name")
AGE: Final = _since("Age", "metadata.creationTimestamp")


def _conditions(manifest: Manifest) -> dict[str, str]:
    found = dig(manifest, "status.conditions") or ()
    return {condition["type"]: condition.get("status", "") for condition in found}


def _node_status(node: Manifest, _: float) -> str:
    ready = _conditions(node).get("Ready", "True") == "True"  # nodes of a file may not say
    cordoned = ",SchedulingDisabled" if dig(node, "spec.unschedulable") else ""
    return ("Ready" if ready else "NotReady") + cordoned


def _node_roles(node: Manifest, _: float) -> str:
    labels = dig(node, "metadata.labels") or {}
    roles = sorted(label[len(_ROLE) :] for label in labels if label.startswith(_ROLE))
    return ",".join(roles) or "<none>"


def _pod_status(pod: Manifest, _: float) -> str:
    status = pod.get("status") or {}
    phase = status.get("phase", "")
    if dig(pod, "metadata.deletionTimestamp"):
        return "Terminating" if phase not in ENDED_PHASES else phase
    if status.get("reason"):
        return str(status["reason"])
    word = phase
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        word = dig(state, "waiting.reason") or dig(state, "terminated.reason") or word
    return str(word)


def _pod_ready(pod: Manifest, _: float) -> str:
    statuses = dig(pod, "status.containerStatuses") or ()
    ready = sum(bool(container.get("ready")) for container in statuses)
    return f"{ready}/{len(dig(pod, 'spec.containers') or ())}"


def _pod_restarts(pod: Manifest, _: float) -> int:
    statuses = dig(pod, "status.containerStatuses") or ()
    return sum(container.get("restartCount") or 0 for container in statuses)


def _event_object(event: Manifest, _: float) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_seen(event: Manifest, now: float) -> str:
    series = dig(event, "series.lastObservedTime")
    moments = series, event.get("lastTimestamp"), event.get("eventTime")
    return age(next((moment for moment in moments if moment), None), now)


def _replicas(name: str, path: str) -> Column:
    return Column(name, lambda manifest, _: dig(manifest, path) or 0, "integer")


def _limit(name: str, path: str) -> Column:
    """Make a column of a number or a percentage, which may be 0 or absent."""

    def cell(manifest: Manifest, _: float) -> str:
        found = dig(manifest, path)
        return "N/A" if found is None else str(found)

    return Column(name, cell)


def _service_ports(service: Manifest, _: float) -> str:
    ports = dig(service, "spec.ports") or ()
    listed = []
    for port in ports:
        on_node = f":{port['nodePort']}" if port.get("nodePort") else ""
        listed.append(f"{port.get('port')}{on_node}/{port.get('protocol', 'TCP')}")
    return ",".join(listed) or "<none>"


def _deployment_ready(owner: Manifest, _: float) -> str:
    ready = dig(owner, "status.readyReplicas") or 0
    return f"{ready}/{dig(owner, 'spec.replicas') or 0}"


def _job_status(job: Manifest, _: float) -> str:
    held = [kind for kind, state in _conditions(job).items() if state == "True"]
    found = (kind for kind in ("Complete", "Failed", "Suspended") if kind in held)
    return next(found, "Running")


def _job_completions(job: Manifest, _: float) -> str:
    wanted = dig(job, "spec.completions")
    return f"{dig(job, 'status.succeeded') or 0}/{1 if wanted is None else wanted}"


def _claim_state(claim: Manifest, _: float) -> str:
    status = claim.get("status") or {}
    states = {
        "deleted": claim["metadata"].get("deletionTimestamp"),
        "allocated": status.get("allocation"),
        "reserved": status.get("reservedFor"),
    }
    return ",".join(state for state, there in states.items() if there) or "pending"


def _used(quota: Manifest, *, limits: bool) -> str:
    """Write used and allowed amounts, requests or limits."""
    hard, used = dig(quota, "status.hard") or {}, dig(quota, "status.used") or {}
    names = sorted(name for name in hard if name.startswith("limits.") == limits)
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)


_VOLCANO_JOB: Final = (
    NAME,
    _at("STATUS", "status.state.phase"),
    _at("minAvailable", "status.minAvailable", "integer"),
    _at("RUNNINGS", "status.running", "integer"),
    _since("AGE", "metadata.creationTimestamp"),
    _at("QUEUE", "spec.queue", wide=True),
)
_REPLICATED: Final = (
    NAME,
    _replicas("Desired", "spec.replicas"),
    _replicas("Current", "status.replicas"),
    _replicas("Ready", "status.readyReplicas"),
    AGE,
)
GENERIC: Final = (NAME, AGE)
"""For kinds without columns of their own."""
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = MappingProxyType(
    {
        "ConfigMap": (NAME, _count("Data", "data"), AGE),
        "Event": (
            Column("Last Seen", _event_seen),
            _at("Type", "type"),
            _at("Reason", "reason"),
            Column("Object", _event_object),
            _at("Message", "message"),
            _at("Source", "source.component", wide=True),
            _since("First Seen", "firstTimestamp", wide=True),
            _at("Count", "count", "integer", wide=True),
            _at("Name", "metadata.name", wide=True),
        ),
        "Namespace": (NAME, _at("Status", "status.phase"), AGE),
        "Node": (
            NAME,
            Column("Status", _node_status),
            Column("Roles", _node_roles),
            AGE,
            _at_path("Version", "status.nodeInfo.kubeletVersion"),
            _at_path("CPU", "status.allocatable.cpu", wide=True),
            _at_path("Memory", "status.allocatable.memory", wide=True),
            _at_path("Pods", "status.allocatable.pods", wide=True),
        ),
        "Pod": (
            NAME,
            Column("Ready", _pod_ready),
            Column("Status", _pod_status),
            Column("Restarts", _pod_restarts),
            AGE,
            _at_path("IP", "status.podIP", wide=True),
            _at_path("Node", "spec.nodeName", wide=True),
            _at_path("Nominated Node", "status.nominatedNodeName", wide=True),
        ),
        "PersistentVolumeClaim": (
            NAME,
            _at("Status", "status.phase"),
            _at("Volume", "spec.volumeName"),
            _at("StorageClass", "spec.storageClassName"),
            AGE,
        ),
        RESOURCE_CLAIM: (NAME, Column("State", _claim_state), AGE),
        "ResourceSlice.resource.k8s.io": (
            NAME,
            _at_path("Node", "spec.nodeName"),
            _at("Driver", "spec.driver"),
            _at("Pool", "spec.pool.name"),
            AGE,
        ),
        "Secret": (NAME, _at("Type", "type"), _count("Data", "data"), AGE),
        "Service": (
            NAME,
            _at_path("Type", "spec.type"),
            _at_path("Cluster-IP", "spec.clusterIP"),
            _at_path("External-IP", "spec.externalName"),
            Column("Port(s)", _service_ports),
            AGE,
        ),
        "PodDisruptionBudget.policy": (
            NAME,
            _limit("Min Available", "spec.minAvailable"),
            _limit("Max Unavailable", "spec.maxUnavailable"),
            _replicas("Allowed Disruptions", "status.disruptionsAllowed"),
            AGE,
        ),
        "ResourceQuota": (
            NAME,
            Column("Request", lambda quota, _: _used(quota, limits=False)),
            Column("Limit", lambda quota, _: _used(quota, limits=True)),
            AGE,
        ),
        "Deployment.apps": (
            NAME,
            Column("Ready", _deployment_ready),
            _replicas("Up-to-date", "status.updatedReplicas"),
            _replicas("Available", "status.availableReplicas"),
            AGE,
        ),
        "ReplicaSet.apps": _REPLICATED,
        "StatefulSet.apps": (NAME, Column("Ready", _deployment_ready), AGE),
        "Job.batch": (
            NAME,
            Column("Status", _job_status),
            Column("Completions", _job_completions),
            AGE,
        ),
        CUSTOM_KIND: (NAME, _at("Created At", "metadata.creationTimestamp", "date")),
        PRIORITY_CLASS: (
            NAME,
            _at("Value", "value", "integer"),
            Column("Global-Default", lambda m, _: bool(m.get("globalDefault")), "boolean"),
            AGE,
        ),
        JOB: _VOLCANO_JOB,
        CRON_JOB: (
            NAME,
            _at("Schedule", "spec.schedule"),
            _at("Suspend", "spec.suspend", "boolean"),
            _since("Last Schedule", "status.lastScheduleTime"),
            AGE,
        ),
        JOB_FLOW: (NAME, _at("Status", "status.state.phase"), AGE),
        POD_GROUP: (
            NAME,
            _at("STATUS", "status.phase"),
            _at("minMember", "spec.minMember", "integer"),
            _at("RUNNINGS", "status.running", "integer"),
            _since("AGE", "metadata.creationTimestamp"),
            _at("QUEUE", "spec.queue", wide=True),
        ),
        QUEUE: (
            NAME,
            _at("PARENT", "spec.parent"),
            _at("STATE", "status.state", wide=True),
            _at("WEIGHT", "spec.weight", "integer", wide=True),
        ),
        HYPER_NODE: (
            NAME,
            _at("Tier", "spec.tier"),
            _at("TierName", "spec.tierName"),
            _at("NodeCount", "status.nodeCount", "integer"),
            AGE,
        ),
    }
)


_STEP: Final = re.compile(
    r"""\.?((?:[^.\[\]\\]|\\.)+)|\[['"](.*?)['"]\]|\[([0-9*]+)\]"""
    r"""|\[\?\(@\.([\w.]+)\s*==\s*['"](.*?)['"]\)\]"""
)
"""A step of a path: a field, a field in quotes, a place in a list, a condition."""


def at_path(manifest: Manifest, path: str) -> Any:
    """Return the first value at a path such as ``.conditions[?(@.type=="Ready")].status``."""
    found: list[Any] = [manifest]
    for field, quoted, place, key, value in _STEP.findall(path):
        if name := quoted or field.replace("\\", ""):
            found = [one[name] for one in found if isinstance(one, dict) and name in one]
        elif place:
            listed = [one for one in found if isinstance(one, list)]
            found = [each for one in listed for each in _picked(one, place)]
        else:
            items = [each for one in found if isinstance(one, list) for each in one]
            found = [each for each in items if str(dig(each, key)) == value]
    return found[0] if found else None


def _picked(items: list[Any], place: str) -> list[Any]:
    return items if place == "*" else items[int(place) :][:1] if place.isdecimal() else []


def custom_columns(kind: Kind) -> tuple[Column, ...]:
    """Return the columns that the definition of a kind asks for, after its name."""
    return NAME, *(_custom_column(*given) for given in kind.columns)


def _custom_column(name: str, type_: str, path: str, priority: int) -> Column:
    def cell(manifest: Manifest, now: float) -> Any:
        found = at_path(manifest, path)
        if type_ == "date":
            return age(found, now)
        return found if found is None or isinstance(found, str | int | float) else str(found)

    return Column(name, cell, type_, priority)


_META = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Form:
    """The form a client asks for: ``kind`` is Table, PartialObjectMetadata or nothing."""

    kind: str = ""
    include: str = "Metadata"
    """Of each object of a table: Object, Metadata or None."""

    @property
    def is_whole(self) -> bool:
        """Whether objects are wanted as they are."""
        return not self.kind


@lru_cache(maxsize=256)
def wanted_form(accept: str, include: str = "") -> Form:
    """Read an Accept header; the first form that is known counts."""
    for choice in accept.split(","):
        asked = re.search(r";\s*as=(\w+)", choice)
        if asked is None:
            return Form()
        if asked[1] == "Table":
            return Form("Table", include or "Metadata")
        if asked[1] in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return Form("PartialObjectMetadata")
    return Form()


def one(manifest: Manifest, kind: Kind, form: Form, now: float) -> Manifest:
    """Return one object in a form."""
    manifest = shown(manifest, kind)
    if form.kind == "Table":
        version = manifest["metadata"].get("resourceVersion", "")
        return _table([manifest], kind, form, now, {"resourceVersion": version})
    return _metadata_only(manifest) if form.kind else manifest


def many(
    manifests: Sequence[Manifest], kind: Kind, form: Form, now: float, metadata: Manifest
) -> Manifest:
    """Return a list of objects in a form."""
    if form.kind == "Table":
        return _table(manifests, kind, form, now, metadata)
    if form.kind:
        items = [_metadata_only(manifest) for manifest in manifests]
        head = {"kind": "PartialObjectMetadataList", "apiVersion": _META}
        return {**head, "metadata": metadata, "items": items}
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version}
    is_same = not manifests or manifests[0].get("apiVersion") == kind.api_version
    items = [*manifests] if is_same else [shown(manifest, kind) for manifest in manifests]
    return {**head, "metadata": metadata, "items": items}


def _metadata_only(manifest: Manifest) -> Manifest:
    head = {"kind": "PartialObjectMetadata", "apiVersion": _META}
    return {**head, "metadata": manifest["metadata"]}


def _table(
    manifests: Sequence[Manifest], kind: Kind, form: Form, now: float, metadata: Manifest
) -> Manifest:
    columns = custom_columns(kind) if kind.columns else COLUMNS.get(kind.name, GENERIC)
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": "name" if column.name == "Name" else "",
            "description": "",
            "priority": column.priority,
        }
        for column in columns
    ]
    rows: list[Manifest] = []
    for manifest in manifests:
        row: Manifest = {"cells": [column.cell(manifest, now) for column in columns]}
        if form.include != "None":
            row["object"] = manifest if form.include == "Object" else _metadata_only(manifest)
        rows.append(row)
    head = {"kind": "Table", "apiVersion": _META, "metadata": metadata}
    return {**head, "columnDefinitions": definitions, "rows": rows}
