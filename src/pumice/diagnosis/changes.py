"""Changes to a cluster state as data: offered by explain and tried by whatif, in one form.

A change is an instruction in words with the operations behind it.  It makes another state and
leaves the first as it was; the rules of admission apply here too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

import msgspec

from pumice.api.cloning import clone
from pumice.api.conf import parse_conf
from pumice.api.kinds import RESOURCE_QUOTA, Manifest
from pumice.api.objects import in_namespace
from pumice.api.pod_resources import Amounts
from pumice.api.quantity import Amount, amount_or_nothing
from pumice.cluster.embedded.patches import apply_patch
from pumice.cluster.embedded.quotas import in_scope
from pumice.controllers.expected import is_expected
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.diagnosis.writes import (
    Writes,
    admitted,
    check_removal,
    is_controlled,
    is_draft,
    stored_alone,
)
from pumice.errors import InputError, RejectedError, Words

_Usage = Callable[[Manifest], Amounts]


def with_quota_usage(before: ClusterState, after: ClusterState) -> ClusterState:
    """Return a changed world whose quotas count the pods that came, and no longer those that went.

    A quota that was itself changed has been counted with that.
    """
    known = before.of_kind(RESOURCE_QUOTA)
    stated = [
        quota
        for key, quota in after.of_kind(RESOURCE_QUOTA).items()
        if (quota.get("status") or {}).get("used") and known.get(key) is quota
    ]
    if not stated:
        return after
    gone, came = _not_in(before, after), _not_in(after, before)
    if not gone and not came:
        return after
    new = (_with(quota, gone, came, after.quota_usage) for quota in stated)
    changed = [one for one, quota in zip(new, stated, strict=True) if one != quota]
    return after.with_objects(changed) if changed else after


def _not_in(world: ClusterState, other: ClusterState) -> list[Manifest]:
    """List the pods that exist in a world and are not the very same in another one."""
    others = set(map(id, other.pods))
    return [pod for pod in world.pods if id(pod) not in others and not is_expected(pod)]


def _with(
    quota: Manifest, gone: Iterable[Manifest], came: Iterable[Manifest], usage: _Usage
) -> Manifest:
    status = quota["status"]
    more, less = _sum(quota, came, usage), _sum(quota, gone, usage)
    used = {**status["used"]}
    for name, stated in status["used"].items():
        by = more[name] - less[name]
        if by:
            amount = amount_or_nothing(stated)
            used[name] = str(Amount(max(0, amount.nano + by), amount.form))
    return {**quota, "status": {**status, "used": used}}


def _sum(quota: Manifest, pods: Iterable[Manifest], usage: _Usage) -> Counter[str]:
    """Add up, in nano units, what a quota counts of pods."""
    home = quota["metadata"].get("namespace") or "default"
    found: Counter[str] = Counter()
    for pod in pods:
        if (pod["metadata"].get("namespace") or "default") == home and in_scope(quota, pod):
            found.update({name: amount.nano for name, amount in usage(pod).items()})
    return found


# Operations


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """Other values for some fields of an object."""

    kind: str
    namespace: str = ""
    """Empty for kinds without namespaces."""
    name: str
    patch: Sequence[Mapping[str, Any]]
    """Steps of RFC 6902."""

    def to_data(self) -> dict[str, Any]:
        """Write it down as plain data."""
        place = {"kind": self.kind, "namespace": self.namespace, "name": self.name}
        return {"op": "patch", **place, "patch": [dict(step) for step in self.patch]}

    def apply(self, world: ClusterState, change: str) -> ClusterState:
        """Patch the object as an API server would."""
        old = _found(world, self, change)
        try:
            new = apply_patch(clone(old), list(self.patch), "json")
        except RejectedError as error:
            raise InputError(
                wanted="a patch that can be applied",
                found=error.problem,
                field=_where(change, self),
            ) from None
        if not _is_same(new, old):
            wanted = "a patch that leaves kind and name"
            raise InputError(wanted=wanted, found=list(self.patch), field=_where(change, self))
        if is_draft(old):
            bare = Writes(world).delete(old)
            made = Writes(bare).create(admitted(bare, change, new))
            return _as_draft(made, f"{self.namespace}/{self.name}")
        return Writes(world).update(old, admitted(world, change, new, old))


def _as_draft(world: ClusterState, key: str) -> ClusterState:
    """Return a world with a job that was patched as a draft: all of it may be changed again."""
    job = {name: value for name, value in world.jobs[key].items() if name != "status"}
    return replace(world, jobs={**world.jobs, key: job})


class Add(msgspec.Struct, frozen=True, kw_only=True):
    """A new object."""

    object: Manifest

    def to_data(self) -> dict[str, Any]:
        """Write it down as plain data."""
        return {"op": "add", "object": self.object}

    def apply(self, world: ClusterState, change: str) -> ClusterState:
        """Create the object as an API server would."""
        return Writes(world).create(self.checked(world, change))

    def checked(self, world: ClusterState, change: str) -> Manifest:
        """Return the object as it would be stored."""
        new = dict(in_namespace(self.object))
        if world.get(str(new.get("kind")), key_of(new)) is not None:
            wanted = "an object that does not exist yet"
            raise InputError(
                wanted=wanted, found=Words(f"{new['kind']} {key_of(new)}"), field=change
            )
        return admitted(world, change, new)


class Remove(msgspec.Struct, frozen=True, kw_only=True):
    """Remove an object."""

    kind: str
    namespace: str = ""
    name: str

    def to_data(self) -> dict[str, Any]:
        """Write it down as plain data."""
        return {
            "op": "remove",
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
        }

    def apply(self, world: ClusterState, change: str) -> ClusterState:
        """Delete the object, and what belongs to it."""
        old = _found(world, self, change)
        check_removal(world, change, old)
        return Writes(world).delete(old)


class Conf(msgspec.Struct, frozen=True, kw_only=True):
    """Another configuration, the whole of it."""

    text: str
    source: str = "the changed configuration"

    def to_data(self) -> dict[str, Any]:
        """Write it down as plain data."""
        return {"op": "conf", "text": self.text}

    def apply(self, world: ClusterState, change: str) -> ClusterState:
        """Use the configuration."""
        parse_conf(self.text, source=f"{change}: {self.source}")
        return replace(world, conf=self.text, conf_source=self.source)


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Wait until some pods are gone."""

    pods: Sequence[str]
    """Keys, "namespace/name"."""

    def to_data(self) -> dict[str, Any]:
        """Write it down as plain data."""
        return {"op": "wait", "pods": list(self.pods)}

    def apply(self, world: ClusterState, change: str) -> ClusterState:
        """End the pods.

        Pods of a Volcano job succeed and stay, as they do in a cluster: they hold nothing, and
        if they were deleted, their controller would create them again.  All others are gone.
        """
        for key in self.pods:
            if world.get("Pod", key) is None:
                raise InputError(wanted="pods of this cluster", found=key, field=change)
        return Writes(world).end(self.pods)


OWNED: Final = ("PodGroup", "Pod")
"""Kinds that a Volcano job has of its own."""
Operation = Patch | Add | Remove | Conf | Wait
_FIELDS: Final[Mapping[str, tuple[type[Operation], tuple[str, ...]]]] = {
    "patch": (Patch, ("kind", "name", "patch")),
    "add": (Add, ("object",)),
    "remove": (Remove, ("kind", "name")),
    "conf": (Conf, ("text",)),
    "wait": (Wait, ("pods",)),
}
"""Name of an operation to its type and the fields it must have."""
_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "kind": (str, "a text"),
    "namespace": (str, "a text"),
    "name": (str, "a text"),
    "text": (str, "a text"),
    "patch": (list, "a list of steps of RFC 6902"),
    "object": (dict, "an object"),
    "pods": (list, "a list of pods"),
}
_ITEMS: Final[Mapping[str, tuple[type, str]]] = {
    "patch": (dict, "a step of RFC 6902"),
    "pods": (str, "a pod as namespace/name"),
}


class Change(msgspec.Struct, frozen=True):
    """One change; ``text`` is an instruction, such as "add 2 nodes like node-a"."""

    text: str
    ops: tuple[Operation, ...] = ()
    kind_of_nodes: str = ""
    """Of a change that only adds nodes: what they are like."""

    def __call__(self, world: ClusterState) -> ClusterState:
        """Make the changed world.

        Raises:
            InputError: it names a missing object, or the rules of admission refuse it.
        """
        before = world
        for alone, ops in groupby(self.ops, _is_alone):
            if alone:
                world = _with_all(world, [op for op in ops if isinstance(op, Add)], self.text)
            else:
                for op in ops:
                    if not self._went_with_its_job(world, op):
                        world = op.apply(world, self.text)
        return with_quota_usage(before, world)

    def _went_with_its_job(self, world: ClusterState, op: Operation) -> bool:
        """Return whether an object is removed anyway, with the job that owns it."""
        if not isinstance(op, Remove) or op.kind not in OWNED:
            return False
        key = f"{op.namespace}/{op.name}"
        one = world.get(op.kind, key)
        group = key if op.kind == "PodGroup" or one is None else group_of(one)
        jobs = {
            f"{each.namespace}/{each.name}"
            for each in self.ops
            if isinstance(each, Remove) and each.kind == "Job"
        }
        return world.title(group) in jobs or (one is None and bool(jobs))

    def to_data(self) -> list[dict[str, Any]]:
        """Write the operations down as plain data."""
        return [op.to_data() for op in self.ops]

    @classmethod
    def from_data(cls, data: Any, text: str = "", source: str = "changes") -> "Change":
        """Read a list of operations; without a text they are named one by one.

        Raises:
            InputError: not such a list; ``source`` is named.
        """
        if not isinstance(data, list):
            raise InputError(wanted="a list of changes", found=data, file=source)
        ops = tuple(_read(one, f"{source}[{i}]") for i, one in enumerate(data))
        return cls(text or " and ".join(map(text_of, ops)), ops)


def new_nodes(nodes: Sequence[Manifest], kind: str) -> Change:
    """Add nodes; ``kind`` says what they are like."""
    ops = tuple(Add(object=node) for node in nodes)
    return Change(f"add {counted_nodes(len(nodes), kind)}", ops, kind)


def counted_nodes(n: int, kind: str) -> str:
    """Write how many nodes of a kind there are."""
    return f"a node {kind}" if n == 1 else f"{n} nodes {kind}"


def patched(kind: str, key: str, before: Manifest, after: Manifest) -> Patch:
    """Return the operation that turns one manifest into another; lists are replaced whole."""
    namespace, _, name = key.rpartition("/")
    steps = _steps(before, after, "")
    if kind == "Job" and is_draft(before):  # its file may lack what admission has set
        steps = [adding(step) for step in steps]
    return Patch(kind=kind, namespace=namespace, name=name, patch=steps)


def adding(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step that sets a field whether it is there or not."""
    return {**step, "op": "add"} if step.get("op") == "replace" else {**step}


def text_of(op: Operation) -> str:
    """Describe an operation as an instruction."""
    if isinstance(op, Patch):
        fields = ", ".join(dict.fromkeys(str(step.get("path", "")).strip("/") for step in op.patch))
        return f"change {fields} of {_name(op)}"
    if isinstance(op, Add):
        return f"add {op.object.get('kind')} {key_of(op.object)}"
    if isinstance(op, Remove):
        return f"remove {_name(op)}"
    if isinstance(op, Conf):
        return "use the configuration given"
    return f"wait for {', '.join(op.pods)} to end"


def _steps(before: Any, after: Any, path: str) -> list[dict[str, Any]]:
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return [] if before == after else [{"op": "replace", "path": path, "value": after}]
    steps: list[dict[str, Any]] = []
    for name in {**before, **after}:
        place = f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}"
        if name not in after:
            steps.append({"op": "remove", "path": place})
        elif name not in before:
            steps.append({"op": "add", "path": place, "value": after[name]})
        else:
            steps += _steps(before[name], after[name], place)
    return steps


def _read(data: Any, source: str) -> Operation:
    if not isinstance(data, Mapping) or str(data.get("op")) not in _FIELDS:
        found = data.get("op") if isinstance(data, Mapping) and "op" in data else data
        wanted = f"a change with op {', '.join(_FIELDS)}"
        raise InputError(wanted=wanted, found=found, file=source)
    made, needed = _FIELDS[str(data["op"])]
    known = (*needed, "namespace") if "kind" in needed else needed
    fields: dict[str, Any] = {name: value for name, value in data.items() if name != "op"}
    for name in needed:
        if name not in fields:
            raise InputError(wanted=_TYPES[name][1], file=source, field=name)
    for name, value in fields.items():
        if name not in known:
            raise InputError(wanted=f"the fields {', '.join(known)}", found=name, file=source)
        if not isinstance(value, _TYPES[name][0]):
            raise InputError(wanted=_TYPES[name][1], found=value, file=source, field=name)
        for number, item in enumerate(value) if isinstance(value, list) else ():
            if not isinstance(item, _ITEMS[name][0]):
                place = f"{name}[{number}]"
                raise InputError(wanted=_ITEMS[name][1], found=item, file=source, field=place)
    if made is Add:
        _check_named(fields["object"], source)
    return made(**fields)


def _check_named(manifest: Any, source: str) -> None:
    """Check that data is an object with a kind and a name."""
    meta = manifest.get("metadata")
    for field, value in (
        ("apiVersion", manifest.get("apiVersion")),
        ("kind", manifest.get("kind")),
        ("metadata.name", meta.get("name") if isinstance(meta, Mapping) else None),
    ):
        if not isinstance(value, str) or not value:
            raise InputError(wanted="a text", found=value, file=source, field=f"object.{field}")


def _found(world: ClusterState, op: Patch | Remove, change: str) -> Manifest:
    key = f"{op.namespace}/{op.name}" if op.namespace else op.name
    found = world.get(op.kind, key)
    if found is None:
        hint = world.suggestion(op.kind, key)
        raise InputError(wanted=f"a {op.kind} of this cluster", found=key, field=change, hint=hint)
    return found


def _is_same(new: Any, old: Manifest) -> bool:
    """Return whether a patched value is still the object that it was."""
    meta = new.get("metadata") if isinstance(new, dict) else None
    return (
        isinstance(meta, dict)
        and all(new.get(field) == old[field] for field in ("apiVersion", "kind"))
        and all(meta.get(field) == old["metadata"].get(field) for field in ("namespace", "name"))
    )


def _is_alone(op: Operation) -> bool:
    return isinstance(op, Add) and not is_controlled(str(op.object.get("kind")))


def _with_all(world: ClusterState, ops: Sequence[Add], change: str) -> ClusterState:
    """Add many objects without further effects at once."""
    if any(op.object["kind"] == "Queue" for op in ops):  # they may be in one another's tree
        for op in ops:
            world = op.apply(world, change)
        return world
    return world.with_objects([stored_alone(op.checked(world, change)) for op in ops])


def _name(op: Patch | Remove) -> str:
    return f"{op.kind} {op.namespace}/{op.name}" if op.namespace else f"{op.kind} {op.name}"


def _where(change: str, op: Patch) -> str:
    return f"{change}: {_name(op)}"


# Several changes as one


def chain(changes: Iterable[Change]) -> Change:
    """Join several changes to one."""
    steps = list(changes)
    ops = tuple(op for step in steps for op in step.ops)
    return Change(_joined_text(steps), tuple(_joined(ops)))


def _joined_text(steps: Sequence[Change]) -> str:
    """Join instructions; nodes are named in one of them, those of one kind together."""
    kinds = Counter(step.kind_of_nodes for step in steps if step.kind_of_nodes for _ in step.ops)
    nodes = f"add {' and '.join(counted_nodes(n, kind) for kind, n in kinds.items())}"
    return " and ".join(dict.fromkeys(nodes if s.kind_of_nodes else s.text for s in steps))


def _joined(ops: Iterable[Operation]) -> Iterable[Operation]:
    """Return operations none of which changes or removes what an earlier one adds."""
    kept: list[Operation] = []
    for op in ops:
        at = next((i for i, one in enumerate(kept) if _adds(one, op)), None)
        if isinstance(op, Remove) and op.kind in OWNED and any(map(_adds_job, kept)):
            continue  # it would be there for a job that is added in another form only
        if at is None:
            kept.append(op)
        elif isinstance(op, Patch):
            new = _merged(_object(kept[at]), op.patch)
            if new is None:
                kept.append(op)
            else:
                kept[at] = Add(object=new)
        else:
            kept.pop(at)
    return kept


def _merged(added: Manifest, patch: Sequence[Mapping[str, Any]]) -> Manifest | None:
    """Patch an object before it is added; None if that can be done only once it is stored.

    The patch may be meant for the stored object, in which admission has set fields that are not
    there yet: what it replaces may have to be added.
    """
    for some in ([dict(step) for step in patch], [adding(step) for step in patch]):
        with suppress(RejectedError):
            merged: Manifest = apply_patch(clone(added), some, "json")
            return merged
    return None


def _adds_job(op: Operation) -> bool:
    return isinstance(op, Add) and op.object.get("kind") == "Job"


def _object(op: Operation) -> Manifest:
    return op.object if isinstance(op, Add) else {}


def _adds(one: Operation, op: Operation) -> bool:
    """Return whether an operation adds the object that another changes or removes."""
    if not isinstance(one, Add) or not isinstance(op, Patch | Remove):
        return False
    meta = one.object["metadata"]
    place = (one.object["kind"], str(meta.get("namespace") or ""), meta["name"])
    return place == (op.kind, op.namespace, op.name)
