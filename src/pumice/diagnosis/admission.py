"""The rules of admission for changes to a world: a cluster would refuse the same.

Schemas and webhooks decide, with lint's rules for new objects.  There are also rules of an
API server that the webhooks do not need: fixed fields of a pod, and a tree of
queues without loops.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from pumice.api.kinds import QUEUE, Manifest, kind_of
from pumice.api.objects import KINDS, from_manifest
from pumice.api.schema.build import CHECKED_KINDS
from pumice.api.wording import nearest
from pumice.cluster.embedded.pods import fixed_changes
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.errors import ABSENT, ManifestError
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
