"""Changes of the job itself: its requests and constraints."""

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from pumice.api.annotations import GROUP_NAME, NUMA_POLICY, PREEMPTABLE, REVOCABLE_ZONE
from pumice.api.kinds import SCHEDULER_NAME, Manifest
from pumice.api.quantity import format_quantity, parse_quantity
from pumice.api.wording import nearest
from pumice.diagnosis.changes import Add, Change, Operation, patched
from pumice.diagnosis.cluster_state import key_of
from pumice.diagnosis.remedy.target import Target, requests_of
from pumice.examine.findings import Finding

Sized = tuple[Callable[[int], Change | None], int]
_NANO: Final = 10**9
_URGENT: Final = "pumice-first"
_AFFINITIES: Final = {
    "NodeAffinity": ("nodeAffinity", "node affinity"),
    "PodAffinity": ("podAffinity", "pod affinity"),
    "PodAntiAffinity": ("podAntiAffinity", "pod anti-affinity"),
}


# Constraints on nodes


def without_selector(target: Target, _: Finding) -> Iterator[Change | None]:
    """Drop the node selector: each label alone, then all."""
    terms = sorted(
        {one for pod in target.pods for one in (pod["spec"].get("nodeSelector") or {}).items()}
    )

    def without(keys: set[str]) -> Callable[[Manifest], Manifest]:
        def edit(spec: Manifest) -> Manifest:
            kept = {k: v for k, v in (spec.get("nodeSelector") or {}).items() if k not in keys}
            return _set(spec, "nodeSelector", kept)

        return edit

    for key, value in terms:
        text = f"remove the node selector {key}={value} from its pods"
        yield target.with_pod_specs(text, without({key}))
    if len(terms) > 1:
        text = "remove all node selectors from its pods"
        yield target.with_pod_specs(text, without({key for key, _ in terms}))


def without_affinity(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Drop the affinity that refuses."""
    kind, words = _AFFINITIES[cause.code.value]

    def edit(spec: Manifest) -> Manifest:
        kept = {k: v for k, v in (spec.get("affinity") or {}).items() if k != kind}
        return _set(spec, "affinity", kept)

    yield target.with_pod_specs(f"remove the {words} of its pods", edit)


def without_spread(target: Target, _: Finding) -> Iterator[Change | None]:
    """Drop the spread constraints."""
    yield target.with_pod_specs(
        "remove the topology spread constraints of its pods",
        lambda spec: _set(spec, "topologySpreadConstraints", None),
    )


def without_host_ports(target: Target, _: Finding) -> Iterator[Change | None]:
    """Drop the host ports."""

    def edit(spec: Manifest) -> Manifest:
        return _containers(spec, lambda one: _set(one, "ports", _inner(one.get("ports"))))

    yield target.with_pod_specs("request no host port", edit)


def _inner(ports: Any) -> list[Any]:
    return [{k: v for k, v in port.items() if k != "hostPort"} for port in ports or ()]


def without_numa_policy(target: Target, _: Finding) -> Iterator[Change | None]:
    """Drop the NUMA policy."""
    if target.job is not None:
        yield target.resubmitted("request no NUMA policy", _no_policy)
        return
    ops: list[Operation] = []
    for pod in target.pods:
        meta = pod["metadata"]
        marks = {k: v for k, v in (meta.get("annotations") or {}).items() if k != NUMA_POLICY}
        new = {**pod, "metadata": {**meta, "annotations": marks}}
        ops.append(patched("Pod", key_of(pod), pod, new))
    yield Change("request no NUMA policy", tuple(ops))


def _no_policy(job: Manifest) -> Manifest:
    tasks = []
    for task in job["spec"].get("tasks") or ():
        kept = {k: v for k, v in task.items() if k != "topologyPolicy"}
        template = dict(kept.get("template") or {})
        meta = dict(template.get("metadata") or {})
        marks = {k: v for k, v in (meta.get("annotations") or {}).items() if k != NUMA_POLICY}
        template["metadata"] = {**meta, "annotations": marks}
        tasks.append({**kept, "template": template})
    return {**job, "spec": {**job["spec"], "tasks": tasks}}


def revocable(target: Target, _: Finding) -> Iterator[Change | None]:
    """Allow its pods to use revocable nodes, from which they may be evicted again."""
    text = "allow its pods to use revocable zones"
    if target.job is not None:
        yield target.resubmitted(text, _annotated)
        return
    ops = tuple(patched("Pod", key_of(pod), pod, _marked(pod)) for pod in target.pods)
    yield Change(text, ops) if ops else None


def _annotated(job: Manifest) -> Manifest:
    tasks = [
        {**task, "template": _marked({"metadata": {}, **(task.get("template") or {})})}
        for task in job["spec"].get("tasks") or ()
    ]
    return {**job, "spec": {**job["spec"], "tasks": tasks}}


def _marked(one: Manifest) -> Manifest:
    meta = one["metadata"]
    marks = {**(meta.get("annotations") or {}), REVOCABLE_ZONE: "*", PREEMPTABLE: "true"}
    return {**one, "metadata": {**meta, "annotations": marks}}


def tolerate(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Tolerate the taints that refuse."""
    for text in cause.numbers.get("taints", ()):
        left, _, effect = str(text).rpartition(":")
        key, equals, value = left.partition("=")
        new = {"key": key, "operator": "Equal" if equals else "Exists", "effect": effect}
        if equals:
            new["value"] = value

        def edit(spec: Manifest, new: Manifest = new) -> Manifest:
            return {**spec, "tolerations": [*(spec.get("tolerations") or ()), new]}

        yield target.with_pods_patched(f"make its pods tolerate the taint {text}", edit)


def without_gates(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Remove the scheduling gates from its pods."""
    names = ", ".join(cause.numbers.get("gates", ()))
    yield target.with_pods_patched(
        f"remove the scheduling gate {names} from its pods",
        lambda spec: _set(spec, "schedulingGates", None),
    )


def our_scheduler(target: Target, _: Finding) -> Iterator[Change | None]:
    """Name our scheduler."""
    text = f"set schedulerName to {SCHEDULER_NAME} in its pods"

    def edit(job: Manifest) -> Manifest:
        tasks = [_named(task) for task in job["spec"].get("tasks") or ()]
        return {**job, "spec": {**job["spec"], "schedulerName": SCHEDULER_NAME, "tasks": tasks}}

    if target.job is not None:
        yield target.resubmitted(text, edit)
    else:
        yield target.with_pod_specs(text, lambda spec: {**spec, "schedulerName": SCHEDULER_NAME})


def _named(task: Manifest) -> Manifest:
    template = dict(task.get("template") or {})
    spec = dict(template.get("spec") or {})
    if "schedulerName" in spec:
        spec["schedulerName"] = SCHEDULER_NAME
    return {**task, "template": {**template, "spec": spec}}


# Requests


def ask_for_less(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Lower the requests of its pods to what the nearest node has free."""
    asked, lacks = cause.numbers.get("requests"), cause.numbers.get("lacks")
    if not isinstance(asked, dict) or not lacks:
        resources = cause.numbers.get("resources", {})
        asked = {name: one["request"] for name, one in resources.items()}
        lacks = {name: one["request"] - one["largest"] for name, one in resources.items()}
    room = {name: asked[name] - short for name, short in lacks.items() if name in asked}
    room = {name: amount for name, amount in room.items() if _in_units(name, amount) > 0}
    if not room or set(room) != {name for name, short in lacks.items() if short > 0}:
        return
    different = {repr(pod["spec"].get("containers")): pod["spec"] for pod in target.pods}
    if any(_takes_all(spec, _parts_to_keep(spec, room)) for spec in different.values()):
        return

    def edit(spec: Manifest) -> Manifest:
        parts = _parts_to_keep(spec, room)
        lowered = _containers(spec, lambda one: _with_less(one, parts))
        return _with_less(lowered, parts) if spec.get("resources") else lowered

    most = "" if len(different) < 2 else "at most "
    listed = ", ".join(f"{name} {_text(name, amount)}" for name, amount in room.items())
    yield target.with_pod_specs(f"ask for less: {most}{listed} a pod", edit)


def _parts_to_keep(spec: Manifest, room: Mapping[str, float]) -> dict[str, Fraction]:
    """Return which part of its requests a pod can keep, by resource, where it exceeds the room.

    Its overhead stays as it is.
    """
    found: dict[str, Fraction] = {}
    for name, held in requests_of(spec).items():
        fixed = Fraction(parse_quantity((spec.get("overhead") or {}).get(name, 0)), _NANO)
        if name in room and held > room[name] and held > fixed:
            found[name] = max(Fraction(0), Fraction(room[name]) - fixed) / (held - fixed)
    return found


def _takes_all(spec: Manifest, parts: Mapping[str, Fraction]) -> bool:
    """Return whether a container that asks for a resource would get none of it."""
    stated = [(one.get("resources") or {}).get("requests") or {} for one in _all_containers(spec)]
    return any(
        held and not _in_units(name, held * share)
        for name, share in parts.items()
        for amounts in stated
        for held in (Fraction(parse_quantity(amounts.get(name, 0)), _NANO),)
    )


def _all_containers(spec: Manifest) -> tuple[Manifest, ...]:
    return (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))


def _with_less(asking: Manifest, parts: dict[str, Fraction]) -> Manifest:
    """Scale the requests of a container, or of a pod as a whole, so that the pod fits."""
    resources = dict(asking.get("resources") or {})
    for part in ("requests", "limits"):
        amounts = dict(resources.get(part) or {})
        for name, share in parts.items():
            if name in amounts:
                base = Fraction(parse_quantity(amounts[name]), _NANO)
                amounts[name] = _text(name, base * share)
        if amounts:
            resources[part] = amounts
    return {**asking, "resources": resources}


def _text(name: str, amount: float | Fraction) -> str:
    return format_quantity(name, _in_units(name, amount))


def _in_units(name: str, amount: float | Fraction) -> int:
    """Round an amount down to units that can be asked for: thousandths of cpu, or whole ones."""
    return math.floor(amount * 1000 if name == "cpu" else amount)


def wider_domain(
    target: Target, _: Finding
) -> Iterator[Change | tuple[Callable[[int], Change | None], int] | None]:
    """Allow a higher tier, or drop the limit."""
    topology = dict(target.spec.get("networkTopology") or {})
    highest = int(topology.get("highestTierAllowed") or 0)
    if highest:

        def make(n: int) -> Change | None:
            wider = {**topology, "highestTierAllowed": highest + n}
            text = f"raise highestTierAllowed from {highest} to {highest + n}"
            return target.with_group(text, {"networkTopology": wider})

        yield make, 8
    if topology:
        yield target.with_group("drop its network topology limit", {"networkTopology": None})


# Order, and causes before any session


def go_first(target: Target, _: Finding) -> Iterator[Change | None]:
    """Raise the job above all others in priority."""
    classes = target.world.of_kind("PriorityClass").values()
    top = max((int(one.get("value") or 0) for one in classes), default=0)
    pods = target.world.of_kind("Pod").values()
    top = max([top, *(int((pod.get("spec") or {}).get("priority") or 0) for pod in pods)])
    if top >= 1_000_000_000:
        return
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": _URGENT},
        "value": top + 1,
    }
    text = f"give it a priority above {top}"
    if target.job is not None:
        changed = target.with_group(text, {"priorityClassName": _URGENT})
        ops = changed.ops if changed is not None else ()
    else:
        changed = target.with_group(text, {"priorityClassName": _URGENT})
        pods_too = target.with_pod_specs(
            text, lambda spec: {**spec, "priorityClassName": _URGENT, "priority": top + 1}
        )
        ops = tuple(op for one in (changed, pods_too) if one is not None for op in one.ops)
    if ops:
        yield Change(text, (Add(object=urgent), *ops))


def new_priority_class(_: Target, cause: Finding) -> Iterator[Change | None]:
    """Create the priority class that is missing."""
    if cause.about is not None:
        made = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": cause.about.name},
            "value": 1000,
        }
        text = f"create priority class {cause.about.name} (with the value you want)"
        yield Change(text, (Add(object=made),))


def another_class(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Name the class that was probably meant."""
    old = cause.about.name if cause.about is not None else ""
    near = nearest(old, target.world.of_kind("PriorityClass"))
    if near is None:
        return
    text = f"name priority class {near} instead of {old}"

    def named(one: Manifest) -> Manifest:
        return {**one, "priorityClassName": near} if one.get("priorityClassName") == old else one

    def edit(job: Manifest) -> Manifest:
        spec = named(job["spec"])
        templates = [
            {**each, "template": dict(each.get("template") or {})} for each in spec["tasks"]
        ]
        for task in templates:
            task["template"]["spec"] = named(task["template"].get("spec") or {})
        return {**job, "spec": {**spec, "tasks": templates}}

    if target.job is not None:
        yield target.resubmitted(text, edit)
    else:
        yield target.with_pod_specs(text, named)


def gather_strays(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Make pods name this pod group that name one which does not exist."""
    name, pods = target.group.rpartition("/")[2], target.world.of_kind("Pod")
    found = [pods[key] for key in cause.numbers.get("strays", ()) if key in pods]
    ops = []
    for pod in found:
        meta = pod["metadata"]
        marks = {**(meta.get("annotations") or {}), GROUP_NAME: name}
        new = {**pod, "metadata": {**meta, "annotations": marks}}
        ops.append(patched("Pod", key_of(pod), pod, new))
    if ops:
        yield Change(f"set the annotation {GROUP_NAME} of its pods to {name}", tuple(ops))


def no_dependencies(target: Target, _: Finding) -> Iterator[Change | None]:
    """Remove the dependencies between tasks."""

    def edit(job: Manifest) -> Manifest:
        tasks = [
            {k: v for k, v in task.items() if k != "dependsOn"}
            for task in job["spec"].get("tasks") or ()
        ]
        return {**job, "spec": {**job["spec"], "tasks": tasks}}

    yield target.resubmitted("remove the dependencies between tasks", edit)


def resume(target: Target, _: Finding) -> Iterator[Change | None]:
    """Resume the job."""
    job = target.job
    if job is not None:
        state = {**((job.get("status") or {}).get("state") or {}), "phase": "Pending"}
        new = {**job, "status": {**(job.get("status") or {}), "state": state}}
        yield Change("resume the job", (patched("Job", key_of(job), job, new),))


def _set(fields: Manifest, name: str, value: Any) -> Manifest:
    """Return fields with another value; an empty one removes the field."""
    kept = {k: v for k, v in fields.items() if k != name}
    return {**kept, name: value} if value else kept


def _containers(spec: Manifest, edit: Callable[[Manifest], Manifest]) -> Manifest:
    """Change every container, those that start a pod too."""
    lists = [name for name in ("containers", "initContainers") if spec.get(name)]
    return {**spec, **{name: [edit(dict(one)) for one in spec[name]] for name in lists}}
