"""Tables as kubectl prints them: which columns each kind has, with the cells of an object."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from pumice.api.kinds import ENDED_PHASES, Kind, Manifest
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


_CELLS: Final[Mapping[str, Cell]] = {
    "claim_state": _claim_state,
    "completions": _job_completions,
    "default": lambda manifest, _: bool(manifest.get("globalDefault")),
    "event_object": _event_object,
    "event_seen": _event_seen,
    "job_status": _job_status,
    "limits": lambda quota, _: _used(quota, limits=True),
    "node_roles": _node_roles,
    "node_status": _node_status,
    "pod_ready": _pod_ready,
    "pod_restarts": _pod_restarts,
    "pod_status": _pod_status,
    "ports": _service_ports,
    "ready": _deployment_ready,
    "requests": lambda quota, _: _used(quota, limits=False),
}
"""Cells that are computed from several fields."""
_READINGS: Final[Mapping[str, tuple[str, Callable[[Any, float], Any]]]] = {
    "": ("string", lambda found, _: found),
    "age": ("string", age),
    "count": ("integer", lambda found, _: len(found or ())),
    "limit": ("string", lambda found, _: "N/A" if found is None else str(found)),
    "number": ("integer", lambda found, _: found or 0),
    "text": ("string", lambda found, _: found or "<none>"),
}
"""How the value of one field is shown, and of which type it is then."""
_COLUMN: Final = re.compile(r"(\+?)(.*?)(?: (\w*)\(([\w.]*)\)| ([\w.]+))?(?::(\w+))?")


def _column(text: str) -> Column:
    """Read a column: its name, then a field, a reading of a field or a cell; ``+`` is wide."""
    wide, name, reading, inside, field, type_ = _COLUMN.fullmatch(text).groups()  # type: ignore[union-attr]
    if reading in _CELLS:
        return Column(name, _CELLS[reading], type_ or "string", int(bool(wide)))
    path = inside or field or _USUAL[name]
    default, shown_as = _READINGS[reading or ("age" if name == "Age" else "")]

    def cell(manifest: Manifest, now: float) -> Any:
        return shown_as(dig(manifest, path), now)

    return Column(name, cell, type_ or default, int(bool(wide)))


_USUAL: Final = {"Name": "metadata.name", "Age": "metadata.creationTimestamp"}
"""The fields of columns that name none."""
_TABLES: Final = """
ConfigMap: Name | Data count(data) | Age
Event: Last Seen event_seen() | Type type | Reason reason | Object event_object() | Message message
  | +Source source.component | +First Seen age(firstTimestamp) | +Count count:integer | +Name
Namespace: Name | Status status.phase | Age
Node: Name | Status node_status() | Roles node_roles() | Age
  | Version text(status.nodeInfo.kubeletVersion) | +CPU text(status.allocatable.cpu)
  | +Memory text(status.allocatable.memory) | +Pods text(status.allocatable.pods)
Pod: Name | Ready pod_ready() | Status pod_status() | Restarts pod_restarts() | Age
  | +IP text(status.podIP) | +Node text(spec.nodeName)
  | +Nominated Node text(status.nominatedNodeName)
PersistentVolumeClaim: Name | Status status.phase | Volume spec.volumeName
  | StorageClass spec.storageClassName | Age
ResourceClaim.resource.k8s.io: Name | State claim_state() | Age
ResourceSlice.resource.k8s.io: Name | Node text(spec.nodeName) | Driver spec.driver
  | Pool spec.pool.name | Age
Secret: Name | Type type | Data count(data) | Age
Service: Name | Type text(spec.type) | Cluster-IP text(spec.clusterIP)
  | External-IP text(spec.externalName) | Port(s) ports() | Age
PodDisruptionBudget.policy: Name | Min Available limit(spec.minAvailable)
  | Max Unavailable limit(spec.maxUnavailable)
  | Allowed Disruptions number(status.disruptionsAllowed) | Age
ResourceQuota: Name | Request requests() | Limit limits() | Age
Deployment.apps: Name | Ready ready() | Up-to-date number(status.updatedReplicas)
  | Available number(status.availableReplicas) | Age
ReplicaSet.apps: Name | Desired number(spec.replicas) | Current number(status.replicas)
  | Ready number(status.readyReplicas) | Age
StatefulSet.apps: Name | Ready ready() | Age
Job.batch: Name | Status job_status() | Completions completions() | Age
CustomResourceDefinition.apiextensions.k8s.io: Name | Created At metadata.creationTimestamp:date
PriorityClass.scheduling.k8s.io: Name | Value value:integer | Global-Default default():boolean | Age
Job.batch.volcano.sh: Name | STATUS status.state.phase | minAvailable status.minAvailable:integer
  | RUNNINGS status.running:integer | AGE age(metadata.creationTimestamp) | +QUEUE spec.queue
CronJob.batch.volcano.sh: Name | Schedule spec.schedule | Suspend spec.suspend:boolean
  | Last Schedule age(status.lastScheduleTime) | Age
JobFlow.flow.volcano.sh: Name | Status status.state.phase | Age
PodGroup.scheduling.volcano.sh: Name | STATUS status.phase | minMember spec.minMember:integer
  | RUNNINGS status.running:integer | AGE age(metadata.creationTimestamp) | +QUEUE spec.queue
Queue.scheduling.volcano.sh: Name | PARENT spec.parent | +STATE status.state
  | +WEIGHT spec.weight:integer
HyperNode.topology.volcano.sh: Name | Tier spec.tier | TierName spec.tierName
  | NodeCount status.nodeCount:integer | Age
"""
"""The columns of each kind, in the notation of ``_column``."""


def _columns(text: str) -> tuple[Column, ...]:
    return tuple(_column(each.strip()) for each in text.split("|"))


NAME: Final = _column("Name")
GENERIC: Final = _columns("Name | Age")
"""For kinds without columns of their own."""
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = MappingProxyType(
    {
        kind: _columns(columns)
        for kind, columns in re.findall(r"^(\S+): (.*(?:\n .*)*)", _TABLES, re.MULTILINE)
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


def _cell(column: Column, manifest: Manifest, now: float) -> Any:
    """Return what a column shows; an object of odd content affects only its own row."""
    try:
        return column.cell(manifest, now)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        return "<invalid>"


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
        row: Manifest = {"cells": [_cell(column, manifest, now) for column in columns]}
        if form.include != "None":
            row["object"] = manifest if form.include == "Object" else _metadata_only(manifest)
        rows.append(row)
    head = {"kind": "Table", "apiVersion": _META, "metadata": metadata}
    return {**head, "columnDefinitions": definitions, "rows": rows}
