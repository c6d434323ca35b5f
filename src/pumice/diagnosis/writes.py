"""Writes to a cluster state, as an API server with its webhooks and controllers takes them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from pumice.api.kinds import QUEUE, Manifest, kind_of
from pumice.api.objects import KINDS, from_manifest
from pumice.api.schema.build import CHECKED_KINDS
from pumice.api.wording import nearest
from pumice.cluster.embedded.node_operations import lose
from pumice.cluster.embedded.pods import fixed_changes
from pumice.controllers.job import JobController
from pumice.controllers.podgroup import PodGroupController
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.diagnosis.control_plane import ControlPlane, expanded, no_keys, seed_of
from pumice.diagnosis.fixtures import Fixtures
from pumice.errors import (
    ABSENT,
    InputError,
    ManifestError,
    NotFoundError,
    QuotaExceededError,
    RejectedError,
)
from pumice.webhooks.admission_chain import Chain
from pumice.webhooks.fields import Key, path_text
from pumice.webhooks.files import Files, refusals, resource_name, value_at
from pumice.webhooks.lint import lint_object
from pumice.webhooks.review import Finding, Operation, children_of

_READ: Final = frozenset(KINDS)
_STAMPS: Final = {
    "resourceVersion": "1",
    "uid": "0",
    "creationTimestamp": "2026-01-01T00:00:00Z",
}
"""Parts that a stored object has and a file may lack."""
_PLAIN: Final = ("cpu", "memory", "pods", "ephemeral-storage", "storage", "count/pods")
"""Resources whose names need no domain."""
_PREFIXED: Final = ("hugepages-", "attachable-volumes-", "requests.", "limits.", "count/")
_SMALL: Final = ("Queue", "PriorityClass", "StorageClass", "LimitRange")
"""Kinds that every write may need."""
_KEPT: Final = frozenset({"ResourceQuota", "PodDisruptionBudget"})
"""Kinds whose status depends on the pods of their namespace."""
_FRESH: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
_CONTROLLED: Final = frozenset({"Job", "PodGroup", "Pod", *_KEPT})


# Rules of admission


def admitted(
    world: ClusterState, change: str, new: Manifest, old: Manifest | None = None
) -> Manifest:
    """Return an object as it would be stored; ``old`` is the one that it replaces.

    Raises:
        InputError: it would be refused; the change, field, value found and value wanted are named.
    """
    kind, stored = kind_of(new), new
    if (str(new["apiVersion"]), str(new["kind"])) in _READ:
        from_manifest(new, source=change)
    elif kind not in CHECKED_KINDS:
        wanted = f"a kind that scheduling reads ({', '.join(sorted(k for _, k in _READ))}, Job)"
        raise ManifestError(wanted=wanted, found=new["kind"], file=change)
    if kind in CHECKED_KINDS or kind == "Pod":
        stored = _judged(world, change, new, old)
    for finding in _own_rules(world, stored, old):
        raise _refused(change, stored, finding)
    return stored


def check_removal(world: ClusterState, change: str, old: Manifest) -> None:
    """Check that an object may be deleted.

    Raises:
        InputError: it may not.
    """
    if kind_of(old) in CHECKED_KINDS:
        verdict = Chain(_Existing(world)).judge("DELETE", _stamped(old), _stamped(old))
        if not verdict.allowed:
            raise _refused(change, old, Finding(verdict.message, wanted=_words(verdict.message)))


def _judged(world: ClusterState, change: str, new: Manifest, old: Manifest | None) -> Manifest:
    operation: Operation = "CREATE" if old is None else "UPDATE"
    given = new if old is None else _stamped(new)
    verdict = Chain(_Existing(world)).judge(operation, given, old and _stamped(old))
    found = [] if verdict.allowed else list(refusals(new, verdict))
    if old is None:
        found += lint_object(new, Files(world.of_kind("Queue").values()))
    elif found:
        before = Chain(_Existing(world)).judge(operation, _stamped(old), _stamped(old))
        known = {one.text for one in refusals(old, before)} if not before.allowed else set()
        found = [one for one in found if one.text not in known]
    for finding in found:
        raise _refused(change, new, _at_difference(finding, new, old))
    if not verdict.allowed:  # it was already refused before the change
        return new
    stored: Manifest = verdict.object
    if old is not None:
        stored = {**stored, "metadata": new["metadata"]}
    return {**stored, "status": new["status"]} if new.get("status") else stored


def _at_difference(finding: Finding, new: Manifest, old: Manifest | None) -> Finding:
    """Move a finding about a whole part to the one field in it that changed."""
    path = tuple(step.name if isinstance(step, Key) else step for step in finding.path)
    left, right = value_at(old, path), value_at(new, path)
    while old is not None and path:
        steps = _differing(left, right)
        if len(steps) != 1:
            break
        path = (*path, steps[0])
        left, right = value_at(old, path), value_at(new, path)
    return replace(finding, path=path)


def _differing(left: Any, right: Any) -> list[str] | list[int]:
    if isinstance(left, dict) and isinstance(right, dict):
        return [name for name in {**left, **right} if left.get(name) != right.get(name)]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b]
    return []


def _stamped(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**_STAMPS, **manifest["metadata"]}}


def _refused(change: str, manifest: Manifest, finding: Finding) -> ManifestError:
    path = tuple(step.name if isinstance(step, Key) else step for step in finding.path)
    found = value_at(manifest, path) if path else finding.found
    return ManifestError(
        wanted=finding.wanted or _words(finding.text),
        found=ABSENT if found is None else found,
        field=path_text(finding.path) if path else "",
        file=change,
        subject=resource_name(manifest),
        path=path,
    )


def _words(message: str) -> str:
    return message.partition("denied the request: ")[2].strip() or message.strip()


# Rules of our own


def _own_rules(world: ClusterState, new: Manifest, old: Manifest | None) -> Iterator[Finding]:
    if kind_of(new) == QUEUE:
        yield from _loop(world, new)
        yield from _resources(world, new, old)
    if new["kind"] == "Pod" and old is not None:
        yield from _fixed_fields(new, old)


def _loop(world: ClusterState, queue: Manifest) -> Iterator[Finding]:
    """Find a queue that would be its own ancestor."""
    parents = {
        name: str((one.get("spec") or {}).get("parent") or "")
        for name, one in world.of_kind("Queue").items()
    }
    name = key_of(queue)
    parents[name] = first = str((queue.get("spec") or {}).get("parent") or "")
    at, seen = first, {name}
    while at and at not in seen:
        seen.add(at)
        at = parents.get(at, "")
    if at:
        yield Finding("", ("spec", "parent"), first, f"a queue that is not below {name} itself")


def _resources(world: ClusterState, new: Manifest, old: Manifest | None) -> Iterator[Finding]:
    """Find resources that no cluster has: names without a domain that are unknown to Kubernetes."""
    for path in (("capability",), ("deserved",), ("guarantee", "resource")):
        before = _amounts(old, path) if old is not None else {}
        for name in _amounts(new, path).keys() - before.keys():
            if name in _PLAIN or "/" in name or name.startswith(_PREFIXED):
                continue
            known = {*_PLAIN, *_offered(world)}
            if name not in known:
                near = nearest(name, known)
                hint = f" (did you mean {near}?)" if near else ""
                wanted = f"a resource that exists, such as cpu or example.com/gpu{hint}"
                yield Finding("", ("spec", *path), name, f"{wanted}; {name} is none")


def _amounts(queue: Manifest, path: Iterable[str]) -> dict[str, Any]:
    value: Any = queue.get("spec") or {}
    for step in path:
        value = (value or {}).get(step)
    return value if isinstance(value, dict) else {}


def _offered(world: ClusterState) -> set[str]:
    nodes = world.of_kind("Node").values()
    return {name for one in nodes for name in (one.get("status") or {}).get("allocatable") or {}}


def _fixed_fields(new: Manifest, old: Manifest) -> Iterator[Finding]:
    """Find changed fields of a pod that an API server never changes."""
    before, after = (_imageless(one.get("spec") or {}) for one in (old, new))
    for name in fixed_changes(before, after):
        wanted = "the value it has: it cannot change in a pod that exists (remove and add the pod)"
        yield Finding("", ("spec", name), new["spec"].get(name), wanted)


def _imageless(spec: Manifest) -> Manifest:
    parts = ("containers", "initContainers")
    return {
        **spec,
        **{name: [{**one, "image": ""} for one in spec.get(name) or ()] for name in parts},
    }


class _Existing:
    """The other objects of a world; a queue without a state counts as open."""

    def __init__(self, world: ClusterState) -> None:
        self._world = world

    def queue(self, name: str) -> Manifest | None:
        found = self._world.get("Queue", name)
        if found is None or (found.get("status") or {}).get("state"):
            return found
        return {**found, "status": {**(found.get("status") or {}), "state": "Open"}}

    def queues(self) -> Iterable[Manifest]:
        return self._world.of_kind("Queue").values()

    def below(self, name: str) -> list[Manifest]:
        return children_of(name, self.queues())

    def namespace(self, name: str) -> Manifest | None:
        """Return a namespace; a dump may lack them, so each one exists."""
        found = self._world.get("Namespace", name)
        return found or {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}

    def find(self, kind: str, namespace: str, name: str) -> Manifest | None:
        key = f"{namespace}/{name}" if namespace else name
        return self._world.get(kind.partition(".")[0], key)


# Objects that are written, with what controllers make of them


def is_controlled(kind: str) -> bool:
    """Return whether objects of a kind have further effects beside the object itself."""
    return kind in _CONTROLLED


def stored_alone(new: Manifest) -> Manifest:
    """Return a new object as stored; a queue is opened by its controller."""
    return {"status": {"state": "Open"}, **new} if new["kind"] == "Queue" else new


def is_draft(manifest: Manifest) -> bool:
    """Return whether no cluster has seen a job: all of it may still be changed."""
    return manifest["kind"] == "Job" and not (
        manifest["metadata"].get("uid") or manifest.get("status")
    )


class Writes:
    """A world to write to."""

    def __init__(self, world: ClusterState) -> None:
        self._world = world

    def create(self, new: Manifest) -> ClusterState:
        """Add an object."""
        meta = {name: value for name, value in new["metadata"].items() if name not in _FRESH}
        made = {**new, "metadata": meta}
        if new["kind"] == "Job":
            made.pop("status", None)
        if not is_controlled(new["kind"]):
            return self._world.with_objects([stored_alone(made)])
        plane = self._plane(made)
        if made["kind"] == "Job":
            plane.add_job(made)
            return self._settled(plane, made)
        try:
            stored = plane.cluster.create(made)
            self._check_quotas(stored)
        except RejectedError as error:
            raise InputError(
                wanted="an object that the cluster accepts", found=error.problem, field=key_of(new)
            ) from None
        if made.get("status") and made["status"] != stored.get("status"):
            plane.cluster.merge_status(kind_of(made), *_place(made), made["status"])
        return self._settled(plane, made)

    def update(self, old: Manifest, new: Manifest) -> ClusterState:
        """Replace an object."""
        if not is_controlled(old["kind"]):
            return self._world.with_objects([new])
        plane = self._plane(old)
        plane.settle()
        stored = plane.cluster.get(kind_of(old), *_place(plane.stored(old)))
        linked = plane.stored(new)
        meta = {**linked["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
        written = plane.cluster.update({**linked, "metadata": meta})
        if new.get("status") != old.get("status"):
            with suppress(NotFoundError):  # the status of a pod group is written with the rest
                plane.cluster.update_status({**written, "status": new.get("status")})
        return self._settled(plane, old)

    def delete(self, old: Manifest) -> ClusterState:
        """Remove an object with what it owns; nothing waits for a grace period."""
        if not is_controlled(old["kind"]) and old["kind"] != "Node":
            return self._world.edited(lambda one: None if one is old else one)
        plane = self._plane(old)
        plane.settle()
        if old["kind"] == "Node":
            lose(plane.cluster, key_of(old))
        else:
            plane.cluster.delete(kind_of(old), *_place(plane.stored(old)), grace_s=0)
        plane.cluster.collect_garbage()
        if old["kind"] == "Job":
            for pod in plane.cluster.list("Pod")[0]:
                if pod["metadata"].get("deletionTimestamp"):
                    plane.cluster.delete("Pod", *_place(pod), grace_s=0)
        return self._settled(plane, old)

    def end(self, pods: Sequence[str]) -> ClusterState:
        """End pods."""
        gone, ended = set(pods), set[str]()
        for key in pods:
            pod = self._world.of_kind("Pod")[key]
            if self._world.job_of(group_of(pod)) is not None:
                ended.add(key)
        return self._world.edited(
            lambda one: (
                one
                if one["kind"] != "Pod" or key_of(one) not in gone
                else _ended(one)
                if key_of(one) in ended
                else None
            )
        )

    def _check_quotas(self, new: Manifest) -> None:
        """Refuse a new pod, with its defaults, that a resource quota has no room for."""
        why = self._world.why_refused(new) if new["kind"] == "Pod" else ""
        if why:
            raise QuotaExceededError("Pod", *_place(new), why)

    def _plane(self, one: Manifest) -> ControlPlane:
        controllers = (PodGroupController(), JobController(keys=no_keys))
        seed = seed_of(self._world)
        objects = Fixtures(self._family(one))
        return ControlPlane(self._world, objects, controllers, seed=seed)

    def _settled(self, plane: ControlPlane, one: Manifest) -> ClusterState:
        plane.settle()
        if one["kind"] in _KEPT:
            plane.upkeep.sync()
        world = plane.world()
        jobs = {self._world.title(group) for group in self._groups(one)}
        jobs |= {key_of(one)} if one["kind"] == "Job" else set()
        return expanded(world, jobs) if jobs else world

    # Connected objects

    def _family(self, one: Manifest) -> list[Manifest]:
        """Collect the objects that a write to one may affect."""
        world = self._world
        found = {(each["kind"], key_of(each)): each for each in self._alone(one)}
        for group in self._groups(one):
            job = world.job_of(group)
            members = [world.groups.get(group), job, *world.pods_by_group.get(group, ())]
            found |= {(each["kind"], key_of(each)): each for each in members if each is not None}
        for kind in _SMALL:
            found |= {(kind, key): each for key, each in world.of_kind(kind).items()}
        return list(found.values())

    def _alone(self, one: Manifest) -> Iterable[Manifest]:
        world, space = self._world, one["metadata"].get("namespace")
        known = world.get(one["kind"], key_of(one))
        if known is not None:
            yield known
        if one["kind"] == "Node":
            yield from self._on_node(one)
        needed = {"Job": "PersistentVolumeClaim", **dict.fromkeys(_KEPT, "Pod")}.get(
            one["kind"], ""
        )
        for each in world.of_kind(needed).values():
            if each["metadata"].get("namespace") == space:
                yield each

    def _on_node(self, node: Manifest) -> list[Manifest]:
        pods = self._world.of_kind("Pod").values()
        return [pod for pod in pods if (pod.get("spec") or {}).get("nodeName") == key_of(node)]

    def _groups(self, one: Manifest) -> set[str]:
        """Return the pod groups that a write to an object affects."""
        world = self._world
        if one["kind"] == "Job":
            return {key for key in world.groups if world.title(key) == key_of(one)}
        if one["kind"] == "PodGroup":
            return {key_of(one)}
        if one["kind"] == "Pod":
            return {group_of(one)} - {""}
        if one["kind"] == "Node":
            return {group_of(pod) for pod in self._on_node(one)} - {""}
        return set()


def _place(manifest: Manifest) -> tuple[str, str]:
    meta = manifest["metadata"]
    return str(meta.get("namespace") or ""), str(meta["name"])


def _ended(pod: Manifest) -> Manifest:
    return {**pod, "status": {**(pod.get("status") or {}), "phase": "Succeeded"}}
