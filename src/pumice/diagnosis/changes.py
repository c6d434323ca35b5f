"""Changes to a world, each with a sentence that says what it does.

Used by whatif (what a user asks for) and by explain (what would help).  A change makes another
world and leaves the first as it was.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import yaml

from pumice.api.annotations import HOSTNAME
from pumice.api.kinds import Manifest
from pumice.api.objects import KINDS, from_manifest
from pumice.api.quantity import milli_value
from pumice.api.wording import nearest
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.errors import InputError

_AMOUNTS: Final = {
    "capability": ("spec", "capability"),
    "deserved": ("spec", "deserved"),
    "guarantee": ("spec", "guarantee", "resource"),
    "minResources": ("spec", "minResources"),
    "allocatable": ("status", "allocatable"),
}
"""Fields that hold amounts: what stands behind them is the name of a resource, dots and all."""
_SETTABLE: Final = {"queue": "Queue", "podgroup": "PodGroup", "node": "Node", "pod": "Pod"}
_NODES: Final = re.compile(r"(?P<n>[0-9]+)(?:=(?:like )?(?P<like>.+))?")


@dataclass(frozen=True)
class Change:
    """One change; ``text`` is an order, such as "add 2 nodes like node-a"."""

    text: str
    edit: Callable[[ClusterState], ClusterState]

    def __call__(self, world: ClusterState) -> ClusterState:
        """Make the changed world."""
        return self.edit(world)


def chain(changes: Iterable[Change]) -> Change:
    """Make one change of several."""
    steps = list(changes)

    def edit(world: ClusterState) -> ClusterState:
        for step in steps:
            world = step(world)
        return world

    return Change(" and ".join(step.text for step in steps), edit)


@dataclass(frozen=True)
class Remedy:
    """A family of changes from small (1) to large; most have one size."""

    make: Callable[[int], Change]
    largest: int = 1
    group: str = ""
    """Of remedies with the same group the first that works is enough."""


def fixed(text: str, edit: Callable[[ClusterState], ClusterState], group: str = "") -> Remedy:
    """Make a remedy of one size."""
    return Remedy(lambda _: Change(text, edit), group=group)


def replaced(
    kind: str, key: str, make: Callable[[Manifest], Manifest | None]
) -> Callable[[ClusterState], ClusterState]:
    """Make an edit of one object."""
    return lambda world: world.edited(
        lambda one: make(one) if one["kind"] == kind and key_of(one) == key else one
    )


def of_pods(
    job: str, make: Callable[[Manifest], Manifest | None]
) -> Callable[[ClusterState], ClusterState]:
    """Make an edit of all pods of a job."""
    return lambda world: world.edited(
        lambda one: make(one) if one["kind"] == "Pod" and group_of(one) == job else one
    )


def with_spec(manifest: Manifest, **fields: Any) -> Manifest:
    """Give a copy with other fields in its spec; None takes one out."""
    spec = {**(manifest.get("spec") or {}), **fields}
    return {**manifest, "spec": {name: value for name, value in spec.items() if value is not None}}


# Nodes


def add_nodes(
    n: int,
    like: Manifest,
    extra: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Change:
    """Add empty nodes like one, with other amounts of some resources and with further labels."""
    name = like["metadata"]["name"]
    terms = [f"{resource} {amount}" for resource, amount in (extra or {}).items()]
    terms += [f"label {key}={value}" for key, value in (labels or {}).items()]
    offered = f" with {', '.join(terms)}" if terms else ""
    what = "a node" if n == 1 else f"{n} nodes"

    def edit(world: ClusterState) -> ClusterState:
        taken = set(world.of_kind("Node"))
        names = (f"{name}-new-{number}" for number in range(1, n + len(taken) + 1))
        free = [each for each in names if each not in taken][:n]
        made = (_node_like(like, each, extra or {}, labels or {}) for each in free)
        return world.with_objects(made)

    return Change(f"add {what} like {name}{offered}", edit)


def _node_like(
    like: Manifest, name: str, extra: Mapping[str, str], more: Mapping[str, str]
) -> Manifest:
    labels = {**(like["metadata"].get("labels") or {}), **more}
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    kept = {key: like["metadata"][key] for key in ("annotations",) if key in like["metadata"]}
    status = dict(like.get("status") or {})
    for field in ("allocatable", "capacity"):
        if extra and (field in status or field == "allocatable"):
            status[field] = {**(status.get(field) or {}), **extra}
    return {**with_spec(like, unschedulable=None), "status": status} | {
        "metadata": {"name": name, "labels": labels, **kept}
    }


def remove_node(name: str) -> Change:
    """Take a node away; its pods are gone, and pending ones are made in their place."""

    def edit(world: ClusterState) -> ClusterState:
        world.find("Node", name)
        return world.edited(lambda one: _without_node(one, name))

    return Change(f"remove node {name}", edit)


def _without_node(one: Manifest, name: str) -> Manifest | None:
    if one["kind"] == "Node" and one["metadata"]["name"] == name:
        return None
    if one["kind"] == "Pod" and (one.get("spec") or {}).get("nodeName") == name:
        if (one.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return one
        if not group_of(one):
            return None  # a daemon of the node goes with it
        return {**with_spec(one, nodeName=None), "status": {"phase": "Pending"}}
    return one


def nodes_from_text(world: ClusterState, text: str) -> Change:
    """Read ``N``, ``N=NODE`` or ``N=like NODE``; without a name the largest node is meant.

    Raises:
        InputError: not such a text, or no such node.
    """
    match = _NODES.fullmatch(text.strip())
    if match is None or int(match["n"]) < 1:
        raise InputError(wanted="a number of nodes such as 2 or 2=NODE", found=text)
    nodes = world.of_kind("Node")
    if match["like"]:
        return add_nodes(int(match["n"]), world.find("Node", match["like"].strip()))
    if not nodes:
        raise InputError(wanted="a node to be like", found="a cluster without nodes")
    return add_nodes(int(match["n"]), biggest_first(nodes.values())[0])


def biggest_first(nodes: Iterable[Manifest]) -> list[Manifest]:
    """Order nodes by cpu and memory, those that take pods first; equal ones stay in order."""

    def size(node: Manifest) -> tuple[bool, int, int]:
        offered = (node.get("status") or {}).get("allocatable") or {}
        closed = bool((node.get("spec") or {}).get("unschedulable"))
        amounts = [_whole(offered.get(name, 0)) for name in ("cpu", "memory")]
        return closed, -amounts[0], -amounts[1]

    return sorted(nodes, key=size)


def _whole(quantity: Any) -> int:
    return milli_value(quantity)


# Fields


def setting_from_text(world: ClusterState, text: str) -> Change:
    """Read a setting such as ``queue/NAME.capability.cpu=20`` or ``podgroup/NS/NAME.minMember=2``.

    Raises:
        InputError: not such a text, no such object, no such field.
    """
    target, equals, value = text.partition("=")
    word, slash, rest = target.partition("/")
    if not equals or not slash or word.lower() not in _SETTABLE:
        wanted = f"a setting such as queue/NAME.capability.cpu=20 ({', '.join(_SETTABLE)})"
        raise InputError(wanted=wanted, found=text)
    kind = _SETTABLE[word.lower()]
    known = world.of_kind(kind)
    names = [name for name in known if rest.startswith(f"{name}.")]
    if not names:
        name = rest.partition(".")[0]
        near = nearest(name, known)
        hint = f"did you mean '{near}'?" if near else f"there are {', '.join(sorted(known)[:5])}"
        raise InputError(wanted=f"a {word} of this cluster", found=name, hint=hint)
    key = max(names, key=len)
    path = _path(kind, rest[len(key) + 1 :], text)
    parsed = value if path[-2] in _AMOUNTS or path[-2] == "resource" else yaml.safe_load(value)
    edited = _put(known[key], path, parsed)
    from_manifest(edited, source=text)
    shown = ".".join(path[1:] if path[0] in ("spec", "status") else path)
    return Change(f"set {shown} of {word} {key} to {value}", replaced(kind, key, lambda _: edited))


def _path(kind: str, text: str, whole: str) -> tuple[str, ...]:
    first, _, rest = text.removeprefix("spec.").partition(".")
    if first in _AMOUNTS and rest:
        return (*_AMOUNTS[first], rest.removeprefix("resource."))
    if first in ("status", "metadata"):
        return (first, *rest.split("."))
    cls = next(cls for (_, name), cls in KINDS.items() if name == kind)
    spec = next(each.type for each in msgspec.structs.fields(cls) if each.name == "spec")
    fields = [each.encode_name for each in msgspec.structs.fields(spec)]
    if first not in fields:
        near = nearest(first, [*fields, *_AMOUNTS])
        hint = f"did you mean '{near}'?" if near else f"known: {', '.join(fields)}"
        raise InputError(wanted=f"a field of a {kind}", found=first, field=whole, hint=hint)
    return ("spec", first, *rest.split(".")) if rest else ("spec", first)


def _put(value: Any, path: tuple[str, ...], new: Any) -> Any:
    if not path:
        return new
    inner = value if isinstance(value, Mapping) else {}
    return {**inner, path[0]: _put(inner.get(path[0]), path[1:], new)}


def use_conf(text: str, source: str) -> Change:
    """Use another configuration."""
    return Change(
        f"use the configuration {source}",
        lambda world: replace(world, conf=text, conf_source=source),
    )
