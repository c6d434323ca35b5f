"""Changes as users write them on a command line: nodes more or fewer, fields, a configuration."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from pumice.api.annotations import HOSTNAME, MIRROR
from pumice.api.kinds import ENDED_PHASES, JOB, RESOURCE_QUOTA, Manifest
from pumice.api.objects import KINDS, from_manifest
from pumice.api.quantity import milli_value
from pumice.api.schema.build import schema_of
from pumice.api.short_forms import RESOURCES
from pumice.api.wording import name_hint, nearest
from pumice.api.yaml_text import parse_yaml
from pumice.diagnosis.changes import Change, Conf, Operation, Remove, new_nodes, patched
from pumice.diagnosis.cluster_state import ClusterState
from pumice.errors import InputError, Words

_AMOUNTS: Final = {
    "capability": ("spec", "capability"),
    "deserved": ("spec", "deserved"),
    "guarantee": ("spec", "guarantee", "resource"),
    "minResources": ("spec", "minResources"),
    "hard": ("spec", "hard"),
    "allocatable": ("status", "allocatable"),
}
"""Fields that hold amounts: the rest is the name of a resource, including dots."""
_SETTABLE: Final = {
    "queue": "Queue",
    "podgroup": "PodGroup",
    "node": "Node",
    "pod": "Pod",
    "job": "Job",
    "resourcequota": RESOURCE_QUOTA,
}
MOST_NODES: Final = 10_000
"""Maximum number of new nodes of one question."""
_NODES: Final = re.compile(r"0*(?P<n>[0-9]+)(?:=(?:like )?(?P<like>.+))?")


# Nodes


def add_nodes(
    world: ClusterState,
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
    taken = world.of_kind("Node")
    names = (f"{name}-new-{number}" for number in range(1, n + len(taken) + 1))
    free = [each for each in names if each not in taken][:n]
    made = [_node_like(like, each, extra or {}, labels or {}) for each in free]
    return new_nodes(made, f"like {name}{offered}")


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
    spec = {key: one for key, one in (like.get("spec") or {}).items() if key != "unschedulable"}
    return {**like, "spec": spec, "status": status} | {
        "metadata": {"name": name, "labels": labels, **kept}
    }


def remove_node(name: str) -> Change:
    """Remove a node; its pods are lost, and controllers create theirs again."""
    return Change(f"remove node {name}", (Remove(kind="Node", name=name),))


def remove_known_node(world: ClusterState, name: str) -> Change:
    """Remove a node that a cluster has.

    Raises:
        InputError: no such node.
    """
    world.find("Node", name)
    return remove_node(name)


def made_in_turn(
    world: ClusterState, makers: Iterable[Callable[[ClusterState], Change]]
) -> list[Change]:
    """Make changes, each for the cluster after the ones before it."""
    changes: list[Change] = []
    for make in makers:
        changes.append(make(world))
        world = changes[-1](world)
    return changes


def drain_node(world: ClusterState, name: str) -> Change:
    """Cordon a node and remove its pods, except those of daemon sets and of the node itself.

    Raises:
        InputError: no such node.
    """
    node = world.find("Node", name)
    closed = {**node, "spec": {**(node.get("spec") or {}), "unschedulable": True}}
    ops: list[Operation] = [patched("Node", name, node, closed)]
    for key, pod in world.of_kind("Pod").items():
        if (pod.get("spec") or {}).get("nodeName") == name and _is_drained(pod):
            space, _, short = key.rpartition("/")
            ops.append(Remove(kind="Pod", namespace=space, name=short))
    return Change(f"drain node {name}", tuple(ops))


def _is_drained(pod: Manifest) -> bool:
    if (pod.get("status") or {}).get("phase") in ENDED_PHASES:
        return False
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        return False
    owners = pod["metadata"].get("ownerReferences") or ()
    return not any(owner.get("kind") == "DaemonSet" for owner in owners)


def nodes_from_text(world: ClusterState, text: str) -> Change:
    """Read ``N``, ``N=NODE`` or ``N=like NODE``; without a name, the largest node.

    Raises:
        InputError: not such a text, or no such node.
    """
    match = _NODES.fullmatch(text.strip())
    if match is None or match["n"] == "0":
        raise InputError(wanted="a number of nodes such as 2 or 2=NODE", found=text)
    if len(match["n"]) > len(str(MOST_NODES)) or int(match["n"]) > MOST_NODES:
        raise InputError(wanted=f"at most {MOST_NODES:,} new nodes", found=text)
    nodes = world.of_kind("Node")
    if match["like"]:
        return add_nodes(world, int(match["n"]), world.find("Node", match["like"].strip()))
    if not nodes:
        raise InputError(wanted="a node to be like", found=Words("a cluster without nodes"))
    return add_nodes(world, int(match["n"]), biggest_first(nodes.values())[0])


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
        InputError: not such a text, no such object, no such field, or an unusable value.
    """
    target, equals, value = text.partition("=")
    word, slash, rest = target.partition("/")
    if not equals or not slash or word.lower() not in _SETTABLE:
        wanted = f"a setting such as queue/NAME.capability.cpu=20 ({', '.join(_SETTABLE)})"
        raise InputError(wanted=wanted, found=text)
    kind = _SETTABLE[word.lower()]
    known = world.of_kind(kind)
    if rest in known:
        wanted = f"a field of it, as in {target}.FIELD={value}"
        raise InputError(wanted=wanted, found=text)
    names = [name for name in known if rest.startswith(f"{name}.")]
    if not names:
        name = rest.partition(".")[0]
        raise InputError(
            wanted=f"a known {word}",
            found=name,
            hint=name_hint(name, known) if known else f"it has no {word}s",
        )
    key = max(names, key=len)
    path = _path(kind, rest[len(key) + 1 :], text)
    is_amount = path[-2] in _AMOUNTS or path[-2] == "resource"
    if not value.strip():
        wanted = "an amount such as 2 or 4Gi" if is_amount else "a value after '='"
        hint = "" if is_amount else "null removes the field, '\"\"' is an empty text"
        raise InputError(wanted=wanted, field=text, hint=hint)
    edited = _put(known[key], path, value if is_amount else _value(value, text))
    shown = ".".join(path[1:] if path[0] in ("spec", "status") else path)
    if kind != "Job":
        from_manifest(edited, source=text)
    op = patched(kind, key, known[key], edited)
    return Change(f"set {shown} of {word} {key} to {value}", (op,) if op.patch else ())


def _value(text: str, whole: str) -> Any:
    """Read a value as in a manifest; a comment alone is null."""
    try:
        values = parse_yaml(text, whole)
    except InputError as error:  # its line is of no use here
        raise InputError(wanted="a value in YAML", found=text, field=whole) from error
    if len(values) > 1:
        raise InputError(wanted="one value", found=text, field=whole)
    return values[0] if values else None


def _path(kind: str, text: str, whole: str) -> tuple[str, ...]:
    first, _, rest = text.removeprefix("spec.").partition(".")
    if first in _AMOUNTS and rest:
        name = rest.removeprefix("resource.")
        return (*_AMOUNTS[first], RESOURCES.get(name, name))
    if first in ("status", "metadata"):
        if not rest:
            raise InputError(wanted=f"a field of the {first}", found=first, field=whole)
        return (first, *rest.split("."))
    fields = _spec_fields(kind)
    if first not in fields:
        near = nearest(first, [*fields, *_AMOUNTS])
        hint = f"did you mean '{near}'?" if near else f"known: {', '.join(fields)}"
        raise InputError(wanted=f"a known field of a {kind}", found=first, field=whole, hint=hint)
    return ("spec", first, *rest.split(".")) if rest else ("spec", first)


def _spec_fields(kind: str) -> list[str]:
    """List the fields of a kind's specification."""
    if kind == "Job":
        schema = schema_of(JOB)
        spec = (schema.properties or {})["spec"] if schema is not None else None
        return list(spec.properties or {}) if spec is not None else []
    cls = next(cls for (_, name), cls in KINDS.items() if name == kind)
    typed = next(each.type for each in msgspec.structs.fields(cls) if each.name == "spec")
    return [each.encode_name for each in msgspec.structs.fields(typed)]


def _put(value: Any, path: tuple[str, ...], new: Any) -> Any:
    """Return a copy with another value at a path; items of lists are named or counted."""
    if not path:
        return new
    if isinstance(value, list):
        names = [str(one.get("name")) if isinstance(one, Mapping) else "" for one in value]
        at = names.index(path[0]) if path[0] in names else path[0]
        if not (str(at).isdecimal() and len(str(at)) < 10) or int(at) >= len(value):
            known = ", ".join(name for name in names if name)
            raise InputError(wanted=f"one of {known or len(value)}", found=path[0])
        return [_put(one, path[1:], new) if i == int(at) else one for i, one in enumerate(value)]
    inner = value if isinstance(value, Mapping) else {}
    return {**inner, path[0]: _put(inner.get(path[0]), path[1:], new)}


def use_conf(text: str, source: str) -> Change:
    """Use another configuration."""
    return Change(f"use the configuration {source}", (Conf(text=text, source=source),))
