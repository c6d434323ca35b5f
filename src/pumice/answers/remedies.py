"""What might help a job that waits, given where it stopped: changes worth trying out.

Nothing is tried here; explain runs a cycle with each and keeps those that work.  A remedy with a
size is tried at its largest first and then made as small as still works.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import yaml

from pumice.answers.changes import (
    Change,
    add_nodes,
    biggest_first,
    of_pods,
    replaced,
    with_spec,
)
from pumice.answers.finding import Finding, Stop
from pumice.answers.world import Manifest, World, group_of, key_of
from pumice.api.conf import nearest
from pumice.api.quantity import format_quantity, parse_quantity
from pumice.core.resources import Resources
from pumice.framework.explaining import amount_text
from pumice.framework.records import Stage, Why

_KINDS_OF_NODES = 4
_RUNNING_JOBS = 12
_EVICTING = ("preempt", "reclaim")
_PARTS = 8
"""Steps in which a limit is raised, to each request."""
_TIMES = 4
"""How many times what the job asks for is tried at most, since others may take some of it."""
_URGENT = "pumice-whatif-first"
_BLOCKING = ("NoSchedule", "NoExecute")
_PLAIN = ("cpu", "memory", "pods")
"""Resources whose rows are in the units that quantities are printed from."""


@dataclass(frozen=True)
class Remedy:
    """A family of changes from small (1) to large; most have one size."""

    make: Callable[[int], Change]
    largest: int = 1
    group: str = ""
    """Of remedies with the same group the first that works is enough."""


def remedies(world: World, finding: Finding) -> Iterator[Remedy]:
    """Give what is worth trying, the nearest to the cause first."""
    if not finding.listed:
        yield from _missing_queue(world, finding)
        return
    yield from _gates(world, finding)
    yield from _queue_state(world, finding)
    yield from _limits(world, finding)
    yield from _own_terms(world, finding)
    yield from _nodes(world, finding)
    yield from _gang(world, finding)
    yield from _go_first(world, finding)
    yield from _evictions(world)
    yield from _endings(world, finding)


def _fixed(text: str, edit: Callable[[World], World], group: str = "") -> Remedy:
    return Remedy(lambda _: Change(text, edit), group=group)


# Queues and quotas


def _missing_queue(world: World, finding: Finding) -> Iterator[Remedy]:
    name = finding.queue
    if not name:
        return
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1},
        "status": {"state": "Open"},
    }
    near = nearest(name, world.of_kind("Queue"))
    if near:
        move = replaced("PodGroup", finding.job, lambda one: with_spec(one, queue=near))
        yield _fixed(f"name queue {near} instead of {name}", move)
    yield _fixed(f"create queue {name}", lambda world: world.with_objects([queue]))


def _queue_state(world: World, finding: Finding) -> Iterator[Remedy]:
    queue = world.of_kind("Queue").get(finding.queue)
    state = (queue or {}).get("status", {}).get("state", "")
    if queue is not None and state != "Open":
        status = {**(queue.get("status") or {}), "state": "Open"}
        edit = replaced("Queue", finding.queue, lambda one: {**one, "status": status})
        yield _fixed(f"open queue {finding.queue} (it is {state or 'without a state'})", edit)


def _limits(world: World, finding: Finding) -> Iterator[Remedy]:
    """Raise the limit that was overrun, beyond the request too: others may want some of it."""
    shared = Stage.QUEUE in finding.stops
    for stop in (finding.stops.get(Stage.ENQUEUE), finding.stops.get(Stage.QUOTA)):
        if stop is None or stop.why is not Why.OVER_QUOTA or "resource" not in stop.numbers:
            continue
        at, pods = str(stop.numbers["at"]), max(1, finding.pending + finding.waiting)
        if at in world.of_kind("Queue"):
            parts = _PARTS if stop.stage is Stage.ENQUEUE else 1
            yield Remedy(_raised(world, stop, at, parts), _TIMES * max(parts, pods))
            shared = True
        elif at.startswith("resource quota "):
            name = at.removeprefix("resource quota ")
            yield Remedy(_wider(finding, stop, name), _TIMES * _PARTS)
    if shared:
        yield Remedy(_heavier(world, finding.queue), 99)


def _raised(world: World, stop: Stop, at: str, parts: int) -> Callable[[int], Change]:
    """Make the change of a capability; of a queue that states none, of what it deserves.

    Size 1 is what was refused; each further size adds a part of the request.
    """
    numbers, spec = stop.numbers, world.of_kind("Queue")[at].get("spec") or {}
    resource = str(numbers["resource"])
    field = "capability" if resource in (spec.get("capability") or {}) else "deserved"
    old = (spec.get(field) or {}).get(resource)

    def make(n: int) -> Change:
        wanted = numbers["used"] + numbers["request"] * (1 + (n - 1) / parts)
        new = {**(spec.get(field) or {}), resource: _exact(resource, wanted)}
        was = f"from {old} " if old is not None else ""
        free = wanted - numbers["limit"]
        instead = f" (or free {resource} {amount_text(resource, free)} there)"
        return Change(
            f"raise {field} of queue {at} for {resource} {was}to {new[resource]}"
            f"{instead if free <= numbers['used'] else ''}",
            replaced("Queue", at, lambda one: with_spec(one, **{field: new})),
        )

    return make


def _wider(finding: Finding, stop: Stop, name: str) -> Callable[[int], Change]:
    numbers, resource = stop.numbers, str(stop.numbers["resource"])
    key = f"{finding.job.partition('/')[0]}/{name}"

    def make(n: int) -> Change:
        wanted = numbers["used"] + numbers["request"] * (1 + (n - 1) / _PARTS)
        amount = _exact(resource, wanted)

        def widen(one: Manifest) -> Manifest:
            hard = {**((one.get("status") or {}).get("hard") or {}), resource: amount}
            return {**one, "status": {**(one.get("status") or {}), "hard": hard}}

        text = f"raise resource quota {name} to {resource} {amount}"
        return Change(text, replaced("ResourceQuota", key, widen))

    return make


def _heavier(world: World, queue: str) -> Callable[[int], Change]:
    spec = world.of_kind("Queue")[queue].get("spec") or {}
    old = int(spec.get("weight") or 1)
    return lambda n: Change(
        f"raise weight of queue {queue} from {old} to {old + n}",
        replaced("Queue", queue, lambda one: with_spec(one, weight=old + n)),
    )


def _exact(resource: str, amount: float) -> str:
    """Write an amount of a row as a quantity of a manifest, never too little."""
    name = resource.removeprefix("requests.").removeprefix("limits.")
    return format_quantity(resource, amount if name in _PLAIN else math.ceil(amount / 1000))


# The job's own terms


def _gates(world: World, finding: Finding) -> Iterator[Remedy]:
    if finding.gated:
        gates = sorted(
            {
                str(gate.get("name"))
                for pod in world.pods_by_group.get(finding.job, [])
                for gate in pod["spec"].get("schedulingGates") or ()
            }
        )
        edit = of_pods(finding.job, lambda pod: with_spec(pod, schedulingGates=None))
        yield _fixed(f"remove the scheduling gate {', '.join(gates)} from its pods", edit)


def _own_terms(world: World, finding: Finding) -> Iterator[Remedy]:
    """Take away what keeps its pods off nodes: selectors, affinities, taints, cordons."""
    if Stage.NODES not in finding.stops:
        return
    job, pods = finding.job, world.pods_by_group.get(finding.job, [])
    yield from _selectors(job, pods)
    for kind, words in _AFFINITIES.items():
        if any((pod["spec"].get("affinity") or {}).get(kind) for pod in pods):
            yield _fixed(f"remove the {words} of its pods", of_pods(job, _without_affinity(kind)))
    if any(pod["spec"].get("topologySpreadConstraints") for pod in pods):
        edit = of_pods(job, lambda pod: with_spec(pod, topologySpreadConstraints=None))
        yield _fixed("remove the topology spread constraints of its pods", edit)
    yield from _taints(world, job)
    yield from _cordons(world)
    group = world.groups.get(job, {}).get("spec") or {}
    if group.get("networkTopology"):
        edit = replaced("PodGroup", job, lambda one: with_spec(one, networkTopology=None))
        yield _fixed("drop its network topology limit", edit)


_AFFINITIES = {
    "nodeAffinity": "node affinity",
    "podAffinity": "pod affinity",
    "podAntiAffinity": "pod anti-affinity",
}


def _without_affinity(kind: str) -> Callable[[Manifest], Manifest]:
    def edit(pod: Manifest) -> Manifest:
        affinity = dict(pod["spec"].get("affinity") or {})
        affinity.pop(kind, None)
        return with_spec(pod, affinity=affinity or None)

    return edit


def _selectors(job: str, pods: list[Manifest]) -> Iterator[Remedy]:
    terms = sorted(
        {term for pod in pods for term in (pod["spec"].get("nodeSelector") or {}).items()}
    )
    for key, value in terms:
        edit = of_pods(job, _without_selector(key))
        yield _fixed(f"remove the node selector {key}={value} from its pods", edit, "selector")
    if len(terms) > 1:
        edit = of_pods(job, lambda pod: with_spec(pod, nodeSelector=None))
        yield _fixed("remove all node selectors from its pods", edit, "selector")


def _without_selector(key: str) -> Callable[[Manifest], Manifest]:
    def edit(pod: Manifest) -> Manifest:
        kept = {k: v for k, v in (pod["spec"].get("nodeSelector") or {}).items() if k != key}
        return with_spec(pod, nodeSelector=kept or None)

    return edit


def _taints(world: World, job: str) -> Iterator[Remedy]:
    found: dict[tuple[str, str, str], None] = {}
    for node in world.of_kind("Node").values():
        for taint in (node.get("spec") or {}).get("taints") or ():
            if taint.get("effect") in _BLOCKING:
                found[taint["key"], str(taint.get("value") or ""), taint["effect"]] = None
    for key, value, effect in found:
        toleration = {"key": key, "operator": "Equal", "value": value, "effect": effect}
        shown = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
        edit = of_pods(job, _tolerating(toleration))
        yield _fixed(f"let its pods tolerate the taint {shown}", edit)


def _tolerating(toleration: Manifest) -> Callable[[Manifest], Manifest]:
    return lambda pod: with_spec(
        pod, tolerations=[*(pod["spec"].get("tolerations") or ()), toleration]
    )


def _cordons(world: World) -> Iterator[Remedy]:
    closed = [
        name
        for name, node in world.of_kind("Node").items()
        if (node.get("spec") or {}).get("unschedulable")
    ]
    for name in closed[:_KINDS_OF_NODES]:
        edit = replaced("Node", name, lambda one: with_spec(one, unschedulable=None))
        yield _fixed(f"uncordon node {name}", edit, "cordon")


def _gang(world: World, finding: Finding) -> Iterator[Remedy]:
    """Lower the least number: size n takes n off."""
    group = world.groups.get(finding.job)
    if group is None or finding.min_member < 2:
        return
    least = finding.min_member

    def make(n: int) -> Change:
        edit = replaced("PodGroup", finding.job, lambda one: _needing(one, least, least - n))
        return Change(f"lower minMember from {least} to {least - n}", edit)

    yield Remedy(make, least - 1)


def _needing(group: Manifest, old: int, new: int) -> Manifest:
    """Give a pod group that needs fewer pods, and resources in proportion."""
    spec = group["spec"]
    part = Fraction(new, old)
    resources = {
        name: f"{-(-parse_quantity(amount) * part.numerator // part.denominator)}n"
        for name, amount in (spec.get("minResources") or {}).items()
    }
    return with_spec(
        group,
        minMember=new,
        minTaskMember=None,
        minResources=resources if spec.get("minResources") is not None else None,
    )


def _go_first(world: World, finding: Finding) -> Iterator[Remedy]:
    """Give the job a higher priority than any other."""
    if not finding.place.before and finding.place.jobs[:1] == (finding.job,):
        return
    values = [int(one.get("value") or 0) for one in world.of_kind("PriorityClass").values()]
    top = max(values, default=0)
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": _URGENT},
        "value": top + 1,
    }

    def edit(world: World) -> World:
        first = replaced(
            "PodGroup", finding.job, lambda one: with_spec(one, priorityClassName=_URGENT)
        )
        pods = of_pods(finding.job, lambda pod: with_spec(pod, priority=top + 1))
        changed: World = pods(first(world.with_objects([urgent])))
        return changed

    yield _fixed(f"give it a priority above {top}, so that it goes first", edit)


# The cluster


def _nodes(world: World, finding: Finding) -> Iterator[Remedy]:
    """Add nodes like those there are: like the one that came nearest, then the biggest first."""
    kinds: dict[str, Manifest] = {}
    stop = finding.stops.get(Stage.NODES)
    nearest_one = stop.numbers.get("nearest") if stop is not None else None
    nodes = biggest_first(world.of_kind("Node").values())
    nodes.sort(key=lambda node: node["metadata"]["name"] != nearest_one)
    for node in nodes:
        offered = (node.get("status") or {}).get("allocatable")
        taints = (node.get("spec") or {}).get("taints")
        labels = dict(node["metadata"].get("labels") or {})
        labels.pop("kubernetes.io/hostname", None)
        kinds.setdefault(repr((offered, taints, labels)), node)
    largest = _TIMES * max(1, finding.pending + finding.waiting)
    for like in list(kinds.values())[:_KINDS_OF_NODES]:
        yield Remedy(_more_nodes(like, {}, {}), largest, "nodes")
    lacking, labels = _beyond_any_node(world, finding), _unmet_selector(world, finding.job)
    for like in [one for one in kinds.values() if lacking or labels][:1]:
        yield Remedy(_more_nodes(like, lacking, labels), largest, "nodes")


def _more_nodes(
    like: Manifest, extra: Mapping[str, str], labels: Mapping[str, str]
) -> Callable[[int], Change]:
    return lambda n: add_nodes(n, like, extra, labels)


def _unmet_selector(world: World, job: str) -> dict[str, str]:
    """Give the node selector of its pods, if no node has all those labels."""
    pods = world.pods_by_group.get(job, [])
    wanted: dict[str, str] = next((pod["spec"].get("nodeSelector") or {} for pod in pods), {})
    for node in world.of_kind("Node").values():
        labels = node["metadata"].get("labels") or {}
        if all(labels.get(key) == value for key, value in wanted.items()):
            return {}
    return wanted


def _beyond_any_node(world: World, finding: Finding) -> dict[str, str]:
    """Find resources of which one pod asks for more than any node offers, with that amount."""
    stop, resources = finding.stops.get(Stage.NODES), Resources()
    n = max(1, finding.pending)
    asked = {name: x / n for name, x in finding.held.get("asked", {}).items()}
    if stop is not None:
        asked |= stop.numbers.get("need", {})
    out: dict[str, str] = {}
    for name, amount in asked.items():
        offers = [
            resources.amount(name, ((node.get("status") or {}).get("allocatable") or {})[name])
            for node in world.of_kind("Node").values()
            if name in ((node.get("status") or {}).get("allocatable") or {})
        ]
        if amount > max(offers, default=0.0):
            out[name] = _exact(name, amount)
    return out


def _evictions(world: World) -> Iterator[Remedy]:
    """Add an action that makes room by eviction, if the configuration has none."""
    actions = world.scheduler_conf.actions
    for action in _EVICTING:
        if action not in actions and f"gang{action}" not in actions:
            yield _fixed(f"add the action {action} to the configuration", _with_action(action))


def _with_action(action: str) -> Callable[[World], World]:
    def edit(world: World) -> World:
        conf: dict[str, Any] = yaml.safe_load(world.conf)
        actions = list(world.scheduler_conf.actions)
        at = actions.index("allocate") + 1 if "allocate" in actions else len(actions)
        conf["actions"] = ", ".join([*actions[:at], action, *actions[at:]])
        return replace(world, conf=yaml.safe_dump(conf, sort_keys=False))

    return edit


def _endings(world: World, finding: Finding) -> Iterator[Remedy]:
    """Let running jobs end: each alone, the smallest first."""
    running: dict[str, list[str]] = {}
    for one in world.objects:
        phase = (one.get("status") or {}).get("phase")
        if one["kind"] == "Pod" and phase == "Running" and group_of(one):
            running.setdefault(group_of(one), []).append(key_of(one))
    running.pop(finding.job, None)
    smallest_first = sorted(running.items(), key=lambda entry: (len(entry[1]), entry[0]))
    for job, pods in smallest_first[:_RUNNING_JOBS]:
        text = f"wait for {job} to end ({len(pods)} running pod{'s' * (len(pods) != 1)})"
        yield _fixed(text, _ended(set(pods)), "ending")


def _ended(pods: set[str]) -> Callable[[World], World]:
    def end(one: Manifest) -> Manifest:
        if one["kind"] == "Pod" and key_of(one) in pods:
            return {**one, "status": {**(one.get("status") or {}), "phase": "Succeeded"}}
        return one

    return lambda world: world.edited(end)
