"""Reasons of nodes against a pod, in words: one text for each constraint."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from pumice.api.annotations import NODE_GROUP, NOT_READY_TAINTS, OLD_ZONE, ZONE
from pumice.api.codes import Cause
from pumice.api.nodes import Taint
from pumice.api.quantity import amount_text, base_units
from pumice.api.storage import (
    STATIC_ONLY,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologyTerm,
)
from pumice.api.wording import counted, first_of, verb
from pumice.core.labels import node_labels, tolerates
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import NodeFacts, Task
from pumice.examine.findings import Finding, FunnelRow, ObjectRef
from pumice.examine.node_constraints import CAPACITY, OF_PODS, Constraint, Funnel, compared
from pumice.framework.waiting import claim_reason

RESOURCE_CLAIM: Final = "ResourceClaim"
_SHOWN: Final = 3
_NODES: Final = "node(s) "
"""Prefix of a reason that is a sentence about nodes."""
NO_NODES: Final = Finding(
    Cause.INSUFFICIENT_RESOURCE,
    "the cluster has no nodes",
    numbers={"nodes": 0, "refused": 0, "left": 0, "resources": {}},
)
_BLOCKING: Final = ("NoSchedule", "NoExecute")


_MOST_NODES: Final = 20
"""Nodes whose zones the numbers of a finding list."""


def volume_numbers(snapshot: Snapshot, task: Task, refused: Mask) -> dict[str, Any]:
    """Return the first bound volume of a pod with its zone, and the zones of refused nodes."""
    claims, volumes = snapshot.kind("PersistentVolumeClaim"), snapshot.kind("PersistentVolume")
    space = task.shape.namespace
    for volume in task.shape.spec.volumes:
        source = volume.persistent_volume_claim
        claim = claims.get(f"{space}/{source.claim_name}") if source is not None else None
        found = volumes.get(claim.spec.volume_name) if claim is not None else None
        if claim is None or found is None:
            continue
        numbers = {"volumeClaim": claim.metadata.name, "volume": found.metadata.name}
        reach = _reach(found)
        if reach:
            numbers["reachableFrom"] = reach
        key, zone = _zone_of(found)
        if not key:
            return numbers if reach else {}
        labels, names = snapshot.nodes.labels, snapshot.nodes.names
        rows = np.flatnonzero(refused)[:_MOST_NODES].tolist()
        zones = {names[row]: str(labels[row].get(key) or "") for row in rows}
        if {*zones.values()} <= {*zone.split(", ")}:
            continue  # the nodes are in its zone, so it is another one
        return numbers | {"zone": zone, "nodeZones": zones}
    return {}


def unbound_numbers(snapshot: Snapshot, task: Task) -> dict[str, Any]:
    """Return what the first unbound claim of a pod asks for, and what its class offers."""
    claims, classes = snapshot.kind("PersistentVolumeClaim"), snapshot.kind("StorageClass")
    for volume in task.shape.spec.volumes:
        source = volume.persistent_volume_claim
        claim: PersistentVolumeClaim | None = source and claims.get(
            f"{task.shape.namespace}/{source.claim_name}"
        )
        if claim is None or claim.spec.volume_name:
            continue
        found: StorageClass | None = classes.get(claim.class_name)
        provisions = found is not None and found.provisioner not in ("", STATIC_ONLY)
        limits = [] if found is None else [_allowed(term) for term in found.allowed_topologies]
        if provisions and not limits:
            continue  # one is made wherever the pod runs
        free: list[PersistentVolume] = [
            one
            for one in snapshot.kind("PersistentVolume").values()
            if one.class_name == claim.class_name and one.spec.claim_ref is None
        ]
        numbers = {
            "volumeClaim": claim.metadata.name,
            "storageClass": claim.class_name,
            "request": claim.size,
            "free": len(free),
            "largest": max((one.size for one in free), default=0),
        }
        return numbers | ({"provisionedFor": "; or ".join(limits)} if provisions else {})
    return {}


def _allowed(term: TopologyTerm) -> str:
    parts = (f"{one.key} {','.join(one.values)}" for one in term.match_label_expressions)
    return " and ".join(parts)


def _unbound(numbers: dict[str, Any]) -> str:
    """Write what an unbound claim asks for, and what its class offers."""
    what = f"claim {numbers['volumeClaim']} asks for {amount_text('memory', numbers['request'])}"
    if "provisionedFor" in numbers:
        limits = numbers["provisionedFor"]
        return f"storage class {numbers['storageClass']} provisions only for {limits}"
    free = numbers["free"]
    if not free:
        return f"{what}, and class {numbers['storageClass']} has no free volume"
    largest = amount_text("memory", numbers["largest"])
    which = "the only free volume" if free == 1 else f"the {free:,} free volumes"
    has = f"{verb(free, 'has', 'have at most')} {largest}"
    return f"{what}, and {which} of class {numbers['storageClass']} {has}"


def _zone_of(volume: Any) -> tuple[str, str]:
    """Return the zone of a volume, by its labels or its node affinity, with its node label."""
    for key in (ZONE, OLD_ZONE):
        if volume.metadata.labels.get(key):
            return key, str(volume.metadata.labels[key]).replace("__", ", ")
    for term in _volume_terms(volume):
        for each in term.match_expressions:
            if each.key.rpartition("/")[2] == "zone" and each.operator == "In":
                return each.key, ", ".join(each.values)
    return "", ""


def _reach(volume: Any) -> str:
    """Write all that a volume asks of nodes."""
    return "; or ".join(
        " and ".join(
            f"{each.key} {each.operator} {','.join(each.values)}".strip()
            for each in (*term.match_expressions, *term.match_fields)
        )
        for term in _volume_terms(volume)
    )


def _volume_terms(volume: Any) -> Any:
    required = volume.spec.node_affinity and volume.spec.node_affinity.required
    return required.node_selector_terms if required else ()


# Findings


def funnel_rows(funnel: Funnel) -> list[FunnelRow]:
    """Return how many nodes are left after each constraint that refuses any."""
    n = funnel.snapshot.nodes.n
    pod = _pod(funnel)
    rows = [FunnelRow("all nodes", n, f"for pod {pod}, {_asks(funnel)}")]
    left = np.ones(n, dtype=bool)
    for constraint, after in funnel.left:
        if (constraint.failed & left).any():
            text = _described(funnel, constraint, left)
            rows.append(FunnelRow(str(constraint.name), int(after.sum()), text))
        left = after
    return rows


def node_findings(funnel: Funnel, missing: int) -> list[Finding]:
    """List the causes that keep a pod off all nodes, the decisive constraint first.

    After it come those that alone leave no node, and those without which the ``missing``
    pods of the job would have their nodes.
    """
    decisive = funnel.decisive
    if decisive is None:
        return []
    n = funnel.snapshot.nodes.n
    found = {decisive.code: finding_of(funnel, decisive)}
    alone = [each for each in funnel.alone() if each is not decisive]
    opening = [
        each
        for each, nodes in funnel.but_for()
        if each.code is Cause.INSUFFICIENT_RESOURCE or funnel.holds(nodes) >= missing
    ]
    for each in (*alone, *opening) if n else ():
        found.setdefault(each.code, finding_of(funnel, each))
    return list(found.values())


def finding_of(funnel: Funnel, constraint: Constraint) -> Finding:
    """Return the finding of one constraint about a pod."""
    before = np.ones(funnel.snapshot.nodes.n, dtype=bool)
    for each, left in funnel.left:
        if each is constraint:
            break
        before = left
    if not (before & constraint.failed).any():
        before = np.ones_like(before)
    text = _described(funnel, constraint, before)
    refused = before & constraint.failed
    numbers: dict[str, Any] = {
        "nodes": funnel.snapshot.nodes.n,
        "refused": int(constraint.failed.sum()),
        "left": int((before & ~constraint.failed).sum()),
        "pod": funnel.task.key,
        "plugins": sorted(funnel.plugins.get(constraint.name, ())),
        **({"words": "; ".join(words)} if (words := funnel.words.get(constraint.name)) else {}),
        **_NUMBERS.get(constraint.name, _no_numbers)(funnel, constraint, before),
    }
    return Finding(constraint.code, text, _about(funnel, refused, numbers), numbers)


def _described(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    """Describe a constraint; where pods of the job itself may be in the way, it says so."""
    text = _TEXTS.get(constraint.name, _plain)(funnel, constraint, before)
    if constraint.is_lasting or not funnel.beside:
        return text
    return f"{text} (with {counted(funnel.beside, 'pod')} of the job placed)"


def _no_numbers(*_: object) -> dict[str, Any]:
    return {}


def _about(funnel: Funnel, refused: Mask, numbers: dict[str, Any]) -> ObjectRef | None:
    """Name the claim or the node that the finding is about, if it is one."""
    if "claim" in numbers:
        return ObjectRef.of_key(RESOURCE_CLAIM, numbers["claim"]["claim"])
    name = numbers.get("nearest") or numbers.get("largestNode")
    rows = np.flatnonzero(refused)
    if not name and len(rows) == 1:
        name = funnel.snapshot.nodes.names[int(rows[0])]
    return ObjectRef("Node", str(name)) if name else None


def _pod(funnel: Funnel) -> str:
    return funnel.task.key.partition("/")[2]


def _asks(funnel: Funnel) -> str:
    asked = _amounts(funnel, funnel.task.request[:, 0])
    shown = ", ".join(f"{name} {amount_text(name, x)}" for name, x in asked.items())
    return f"which asks for {shown}" if shown else "which asks for nothing"


def _amounts(funnel: Funnel, column: Any) -> dict[str, float]:
    """Name the amounts above zero; what a pod does not ask for is below any amount."""
    names = funnel.snapshot.resources.names
    rows = np.flatnonzero(column > 0).tolist()
    return {names[row]: float(column[row]) for row in rows if names[row] != "pods"}


def _nodes(funnel: Funnel, mask: Mask) -> str:
    names = [funnel.snapshot.nodes.names[row] for row in np.flatnonzero(mask).tolist()]
    if len(names) == 1:
        return f"node {names[0]}"
    return f"{counted(len(names), 'node')} ({first_of(names, _SHOWN)})" if names else "no node"


def _verb(mask: Mask, one: str, many: str) -> str:
    return verb(int(mask.sum()), one, many)


# One text for each constraint: ``before`` are the nodes that earlier constraints leave


def _plain(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    if constraint.name == Cause.PLUGIN_FAILED:
        failed = _failure_numbers(funnel, constraint, before)
        line = funnel.failures.line(failed["plugin"], failed["hook"])
        return line or f"plugin {failed['plugin']} failed"
    texts = sorted(funnel.texts.get(constraint.name, ())) + funnel.words.get(constraint.name, [])
    texts = [text.rstrip(".") for text in texts]  # Volcano ends some with a full stop
    nodes = _nodes(funnel, before & constraint.failed)
    who = ", ".join(sorted(funnel.plugins.get(constraint.name, ())))
    if texts and all(text.startswith(_NODES) for text in texts):
        return f"{nodes} {' or '.join(text.removeprefix(_NODES) for text in texts)} ({who})"
    return f"{nodes}: {'; '.join(texts) or 'refused'} ({who})"


def _group_numbers(funnel: Funnel, constraint: Constraint, before: Mask) -> dict[str, Any]:
    """Return the groups of refused nodes, with those that the queue may use."""
    found = funnel.compared.get("nodeGroup")
    if found is None:
        return {}
    labels = funnel.snapshot.nodes.labels
    rows = np.flatnonzero(before & constraint.failed).tolist()
    groups = Counter(labels[row].get(NODE_GROUP, "") for row in rows)
    return {**found, "groups": dict(sorted(groups.items()))}


def _capacity(funnel: Funnel, constraint: Constraint, _: Mask) -> str:
    if not funnel.snapshot.nodes.n:
        return NO_NODES.text
    n, beyond = int(constraint.failed.sum()), list(_beyond(funnel))
    absent = [name for name, _, most in beyond if not most]
    if absent:
        asks = ", ".join(f"{name} {amount_text(name, need)}" for name, need, _ in beyond)
        return f"no node has {' or '.join(absent)}: {_pod(funnel)} asks for {asks}"
    if constraint.failed.all() and beyond:
        listed = ", ".join(
            f"{name} {amount_text(name, need)}, and the largest node has {amount_text(name, most)}"
            for name, need, most in beyond
        )
        return f"no node is large enough for {_pod(funnel)}: it asks for {listed}"
    small = f"{counted(n, 'node')} {verb(n, 'is', 'are')} too small for {_pod(funnel)}"
    return f"{small}, even when empty ({', '.join(sorted(_capacity_numbers(funnel)['resources']))})"


def _beyond(funnel: Funnel) -> Iterator[tuple[str, float, float]]:
    """List the resources for which a pod asks for more than any node has."""
    short = (funnel.undersized > 0).all(axis=1)
    offered = NodeFacts(funnel.snapshot).allocatable
    for row in np.flatnonzero(short).tolist() if offered.shape[1] else ():
        need = float(funnel.task.need[row, 0])
        yield funnel.snapshot.resources.names[row], need, float(offered[row].max())


def _capacity_numbers(funnel: Funnel, *_: object) -> dict[str, Any]:
    names = funnel.snapshot.resources.names
    rows = np.flatnonzero((funnel.undersized > 0).any(axis=1)).tolist()
    offered = NodeFacts(funnel.snapshot).allocatable
    asked = _amounts(funnel, funnel.task.need[:, 0])
    found = {
        names[row]: {
            "request": base_units(names[row], float(funnel.task.need[row, 0])),
            "largest": base_units(names[row], float(offered[row].max(initial=0.0))),
        }
        for row in rows
    }
    beyond = [name for name, one in found.items() if one["request"] > one["largest"]]
    first = next(iter([*beyond, *found]), "")
    large = int(np.argmax(offered[names.index(first)])) if first else 0
    named = {"largestNode": funnel.snapshot.nodes.names[large]} if first else {}
    return {
        **({"resource": first, **found[first]} if first else {}),
        **(named if first and found[first]["largest"] else {}),
        "requests": {res: base_units(res, x) for res, x in asked.items()},
        "resources": found,
    }


def _room(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    tight = before & constraint.failed
    near = funnel.nearest(tight)
    lacking = sorted(
        {
            funnel.snapshot.resources.names[row]
            for row in np.flatnonzero((funnel.lacking[:, tight] > 0).any(axis=1)).tolist()
        }
    )
    sentence = f"{_nodes(funnel, tight)} {_verb(tight, 'has', 'have')} too little free "
    sentence += f"{' or '.join(lacking)} for {_pod(funnel)}"
    if near is None:
        return sentence
    name, lacks = near
    asked = _amounts(funnel, funnel.task.need[:, 0])
    short = ", ".join(_part(res, x, asked.get(res, x)) for res, x in lacks.items())
    if int(tight.sum()) == 1:
        return f"{sentence}: it lacks {short}"
    return f"{sentence}; the nearest, {name}, lacks {short}"


def _part(resource: str, lacks: float, asked: float) -> str:
    amount = amount_text(resource, lacks)
    if lacks >= asked:
        return f"all of the {amount} {resource}"
    return f"{amount} of the {amount_text(resource, asked)} {resource}"


def _room_numbers(funnel: Funnel, constraint: Constraint, before: Mask) -> dict[str, Any]:
    near = funnel.nearest(before & constraint.failed)
    if near is None:
        return {}
    name, lacks = near
    asked = _amounts(funnel, funnel.task.need[:, 0])
    first = max(lacks, key=lambda res: lacks[res] / asked.get(res, lacks[res]))
    return {
        "resource": first,
        "request": base_units(first, asked.get(first, 0.0)),
        "free": base_units(first, asked.get(first, 0.0) - lacks[first]),
        "nearest": name,
        "lacks": {res: base_units(res, x) for res, x in lacks.items()},
        "requests": {res: base_units(res, x) for res, x in asked.items()},
    }


def _selector(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    found = _selector_numbers(funnel)["labels"]
    listed = ", ".join(
        f"{label} is on {counted(n, 'node') if n else 'no node'}" for label, n in found.items()
    )
    refused = before & constraint.failed
    does = _verb(refused, "does", "do")
    return f"{_nodes(funnel, refused)} {does} not match the node selector: {listed}"


def _selector_numbers(funnel: Funnel, *_: object) -> dict[str, Any]:
    labels = node_labels(funnel.snapshot)
    counts = {}
    for key, value in funnel.task.shape.spec.node_selector.items():
        column = labels.column(key)
        counts[f"{key}={value}"] = int((column.codes == column.code_of.get(value, -2)).sum())
    return {"labels": counts}


def _affinity(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    listed = "; or ".join(_terms(funnel))
    refused = before & constraint.failed
    does = _verb(refused, "does", "do")
    return f"{_nodes(funnel, refused)} {does} not meet the node affinity: {listed}"


def _terms(funnel: Funnel) -> Iterator[str]:
    affinity = funnel.task.shape.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    for term in required.node_selector_terms if required else ():
        parts = (*term.match_expressions, *term.match_fields)
        yield " and ".join(f"{e.key} {e.operator} {','.join(e.values)}".strip() for e in parts)


def _taints(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    counts = _taint_numbers(funnel, constraint, before)["taints"]
    refused = before & constraint.failed
    listed = ", ".join(
        text if n == int(refused.sum()) else f"{text} on {n}" for text, n in counts.items()
    )
    if constraint.name == Cause.NODE_NOT_READY:
        return f"{_nodes(funnel, refused)} {_verb(refused, 'is', 'are')} not ready: {listed}"
    what = f"{verb(len(counts), 'a taint', 'taints')} that it does not tolerate"
    return f"{_nodes(funnel, refused)} {_verb(refused, 'has', 'have')} {what}: {listed}"


def _taint_numbers(funnel: Funnel, constraint: Constraint, before: Mask) -> dict[str, Any]:
    snapshot, sick = funnel.snapshot, constraint.name == Cause.NODE_NOT_READY
    tolerations = funnel.task.shape.spec.tolerations
    counts: Counter[str] = Counter()
    for row in np.flatnonzero(before & constraint.failed).tolist():
        for taint in snapshot.taint_sets[int(snapshot.nodes.taint_class[row])]:
            blocks = taint.effect in _BLOCKING and not tolerates(tolerations, taint)
            if blocks and (taint.key in NOT_READY_TAINTS) == sick:
                counts[taint_text(taint)] += 1
    found = dict(counts.most_common())
    return {"taint": next(iter(found), ""), "taints": found}


def taint_text(taint: Taint) -> str:
    """Write a taint as kubectl does."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _cordon(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    refused = before & constraint.failed
    return f"{_nodes(funnel, refused)} {_verb(refused, 'is', 'are')} cordoned"


def _pods(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    refused = before & constraint.failed
    return f"{_nodes(funnel, refused)} {_verb(refused, 'has', 'have')} as many pods as allowed"


def _port_numbers(funnel: Funnel, *_: object) -> dict[str, Any]:
    spec = funnel.task.shape.spec
    ports = sorted(
        {port.host_port for one in spec.containers for port in one.ports if port.host_port}
    )
    return {"port": ports[0] if ports else 0, "ports": ports}


def _ports(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    ports = _port_numbers(funnel)["ports"]
    listed = f"{verb(len(ports), 'port', 'ports')} {', '.join(map(str, ports))}"
    nodes = _nodes(funnel, before & constraint.failed)
    return f"host {listed} {verb(len(ports), 'is', 'are')} taken on {nodes}"


def _devices(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    claim, cards = funnel.compared.get("claim"), funnel.compared.get("cards")
    refused = _nodes(funnel, before & constraint.failed)
    if claim is not None and "request" in claim:
        return f"{refused} cannot give {_pod(funnel)} its devices; {claim_reason(claim)}"
    if cards:
        listed = "; ".join(f"{node}: {', '.join(lacks)}" for node, lacks in cards.items())
        return f"{refused} cannot give {_pod(funnel)} its cards; {listed}"
    return _plain(funnel, constraint, before)


def _device_numbers(funnel: Funnel, *_: object) -> dict[str, Any]:
    return {key: found for key, found in funnel.compared.items() if key in ("claim", "cards")}


def _neighbours(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    """Name the pods in the way, or those that are missing."""
    refused, found = before & constraint.failed, funnel.neighbours
    if found is None:
        return _plain(funnel, constraint, before)
    texts = {
        Cause.POD_AFFINITY: found.affinity_text,
        Cause.POD_ANTI_AFFINITY: found.anti_affinity_text,
        Cause.TOPOLOGY_SPREAD: found.spread_text,
    }
    text = texts[constraint.code](_nodes(funnel, refused), refused)
    return text or _plain(funnel, constraint, before)


def _neighbour_numbers(funnel: Funnel, constraint: Constraint, before: Mask) -> dict[str, Any]:
    refused, found = before & constraint.failed, funnel.neighbours
    if found is None:
        return {}
    if constraint.name == Cause.TOPOLOGY_SPREAD:
        return compared(each for each in found.spreads if each.refuses(refused))
    if constraint.name == Cause.POD_AFFINITY:
        return compared(each for each in found.required if not each.near(refused))
    return compared(each for each in found.anti if each.near(refused))


def _volumes(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    """Name the volume out of reach, with its zone and those of the nodes."""
    numbers = _volume_numbers(funnel, constraint, before)
    if "volume" not in numbers:
        text = _plain(funnel, constraint, before)
        return f"{text}; {_unbound(numbers)}" if numbers else text
    refused = before & constraint.failed
    what = f"volume {numbers['volume']} of claim {numbers['volumeClaim']}"
    if "zone" not in numbers:
        does = _verb(refused, "does", "do")
        where = f"is reachable where {numbers['reachableFrom']}"
        return f"{what} {where}, which {_nodes(funnel, refused)} {does} not meet"
    zones = sorted({each or "none" for each in numbers["nodeZones"].values()})
    nodes = f"{_nodes(funnel, refused)} {_verb(refused, 'is', 'are')}"
    return (
        f"{what} is in zone {numbers['zone']}; {nodes} in {verb(len(zones), 'zone', 'zones')} "
        + (first_of(zones, _SHOWN))
    )


def _volume_numbers(funnel: Funnel, constraint: Constraint, before: Mask) -> dict[str, Any]:
    refused = before & constraint.failed
    bound = volume_numbers(funnel.snapshot, funnel.task, refused)
    return bound or unbound_numbers(funnel.snapshot, funnel.task)


def _groups(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    """Name the groups of the nodes, and those that the queue may use."""
    found, refused = _group_numbers(funnel, constraint, before), before & constraint.failed
    if not found:
        return _plain(funnel, constraint, before)
    is_in = " or ".join(f"in group {each}" if each else "in no group" for each in found["groups"])
    named = found["affinity"]
    may = f"may use {first_of(named, _SHOWN)}" if named else "names no node group"
    texts = sorted(funnel.texts.get(constraint.name, ()))
    nodes = f"{_nodes(funnel, refused)} {_verb(refused, 'is', 'are')} {is_in}"
    return f"{nodes}, and queue {found['queue']}{_inherited(found)} {may}: {'; '.join(texts)}"


def _inherited(found: dict[str, Any]) -> str:
    queue, stated_by = found["queue"], found["statedBy"]
    return f", whose affinity is that of queue {stated_by}," if stated_by != queue else ""


def _numa(funnel: Funnel, constraint: Constraint, before: Mask) -> str:
    """Name the free cpus of NUMA nodes."""
    found = funnel.compared.get("numa")
    if not found or not found["free"]:
        return _plain(funnel, constraint, before)
    listed = "; ".join(
        f"{node}: {', '.join(f'{n} on NUMA node {numa}' for numa, n in free.items())}"
        for node, free in found["free"].items()
    )
    wants = f"{_pod(funnel)} asks for {found['request']} CPUs by policy {found['policy'] or 'none'}"
    return f"{_plain(funnel, constraint, before)}; {wants}, free are {listed}"


def _numa_numbers(funnel: Funnel, *_: object) -> dict[str, Any]:
    return dict(funnel.compared.get("numa", {}))


def _extender_numbers(funnel: Funnel, *_: object) -> dict[str, Any]:
    return dict(funnel.compared.get("extender", {}))


def _failure_numbers(funnel: Funnel, constraint: Constraint, _: Mask) -> dict[str, Any]:
    names = sorted(funnel.plugins.get(constraint.name, ()))
    hooks = [hook for plugin, hook in funnel.failures.errors if plugin in names]
    return {"plugin": names[0] if names else "", "hook": hooks[0] if hooks else ""}


_Text = Callable[[Funnel, Constraint, Mask], str]
_TEXTS: Final[dict[str, _Text]] = {
    CAPACITY: _capacity,
    Cause.INSUFFICIENT_RESOURCE: _room,
    Cause.NODE_SELECTOR: _selector,
    Cause.NODE_AFFINITY: _affinity,
    Cause.TAINT: _taints,
    Cause.NODE_NOT_READY: _taints,
    Cause.NODE_UNSCHEDULABLE: _cordon,
    Cause.POD_LIMIT: _pods,
    Cause.HOST_PORT: _ports,
    Cause.DEVICE: _devices,
    Cause.NODE_GROUP: _groups,
    Cause.NUMA_POLICY: _numa,
    Cause.VOLUME: _volumes,
    **dict.fromkeys(OF_PODS, _neighbours),
}
_NUMBERS: Final[dict[str, Callable[[Funnel, Constraint, Mask], dict[str, Any]]]] = {
    CAPACITY: _capacity_numbers,
    Cause.INSUFFICIENT_RESOURCE: _room_numbers,
    Cause.NODE_SELECTOR: _selector_numbers,
    Cause.TAINT: _taint_numbers,
    Cause.NODE_NOT_READY: _taint_numbers,
    Cause.HOST_PORT: _port_numbers,
    Cause.DEVICE: _device_numbers,
    Cause.NODE_GROUP: _group_numbers,
    Cause.NUMA_POLICY: _numa_numbers,
    Cause.VOLUME: _volume_numbers,
    Cause.EXTENDER_REFUSED: _extender_numbers,
    Cause.PLUGIN_FAILED: _failure_numbers,
    **dict.fromkeys(OF_PODS, _neighbour_numbers),
}
