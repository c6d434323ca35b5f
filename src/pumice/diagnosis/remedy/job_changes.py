"""Changes of the job itself: its requests, its constraints, and how many pods it needs to start."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Final

from pumice.api.annotations import GROUP_NAME, NUMA_POLICY, PREEMPTABLE, REVOCABLE_ZONE
from pumice.api.kinds import ENDED_PHASES, SCHEDULER_NAME, Manifest, queue_of
from pumice.api.pod_resources import asked_amounts
from pumice.api.quantity import format_quantity, parse_quantity
from pumice.api.wording import nearest, verb
from pumice.controllers.expected import is_expected
from pumice.controllers.job.state import replicas_of
from pumice.diagnosis.changes import Add, Change, Operation, Remove, patched
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.diagnosis.writes import is_draft
from pumice.errors import InputError
from pumice.examine.findings import Finding

Edit = Callable[[Manifest], Manifest]
"""Turns the spec of a pod, a task or a whole object into another one."""
_FRESH: Final = ("name", "namespace", "labels", "annotations", "generateName")
_MOST_PODS: Final = 2000
_NANO: Final = 10**9
Sized = tuple[Callable[[int], Change | None], int]
_MEBI: Final = 2**20
_URGENT: Final = "pumice-first"
_MAY_PREEMPT: Final = "PreemptLowerPriority"
_AFFINITIES: Final = {
    "NodeAffinity": ("nodeAffinity", "node affinity"),
    "PodAffinity": ("podAffinity", "pod affinity"),
    "PodAntiAffinity": ("podAntiAffinity", "pod anti-affinity"),
}


# The job that is changed


@dataclass(frozen=True)
class Target:
    """One job of a world."""

    world: ClusterState
    group: str
    """Key of its pod group."""

    @cached_property
    def job(self) -> Manifest | None:
        """The Volcano job, None for other jobs."""
        return self.world.job_of(self.group)

    @cached_property
    def pods(self) -> list[Manifest]:
        """Its pods that wait."""
        return [
            pod
            for pod in self.world.pods_by_group.get(self.group, ())
            if not (pod.get("spec") or {}).get("nodeName")
            and (pod.get("status") or {}).get("phase") not in ENDED_PHASES
        ]

    @property
    def podgroup(self) -> Manifest:
        """Its pod group; empty if it has none."""
        return self.world.groups.get(self.group, {})

    @property
    def is_alone(self) -> bool:
        """Whether it is a plain pod, for which a controller made the pod group."""
        owners = self.podgroup.get("metadata", {}).get("ownerReferences") or ()
        return any(owner.get("kind") == "Pod" for owner in owners)

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec of its pod group."""
        found: Mapping[str, Any] = self.podgroup.get("spec") or {}
        return found

    @property
    def least(self) -> int:
        """How many pods it needs to start: as its Volcano job states it, else its pod group."""
        if self.job is None:
            return int(self.spec.get("minMember") or 1)
        stated = self.job["spec"]
        return int(stated.get("minAvailable") or sum(map(replicas_of, self.tasks)))

    @property
    def tasks(self) -> list[Manifest]:
        """The tasks of its Volcano job; none for other jobs."""
        return list((self.job or {}).get("spec", {}).get("tasks") or ())

    @property
    def queue(self) -> str:
        """The queue that it names."""
        return queue_of(self.podgroup) if self.podgroup else ""

    # Changes

    def with_pod_specs(self, text: str, edit: Edit) -> Change | None:
        """Change the specs of its pods: the template of a Volcano job, or the pods themselves."""
        if self.job is not None:
            return self.resubmitted(text, lambda job: _with_tasks(job, partial(_with_spec, edit)))
        ops: list[Operation] = []
        for pod in self.pods[:_MOST_PODS]:
            new = {**pod, "spec": edit(dict(pod["spec"]))}
            if new != pod:  # a pod group of its own goes and comes with it
                ops += _again(pod, _marked(new, {GROUP_NAME: None}) if self.is_alone else new)
        return Change(text, tuple(ops)) if ops else None

    def with_pods_patched(self, text: str, edit: Edit) -> Change | None:
        """Change fields of pods that a cluster allows to change: gates and tolerations."""
        if any(is_expected(pod) for pod in self.pods):
            return self.with_pod_specs(text, edit)
        ops = [
            patched("Pod", key_of(pod), pod, {**pod, "spec": edit(dict(pod["spec"]))})
            for pod in self.pods[:_MOST_PODS]
        ]
        kept = tuple(op for op in ops if op.patch)
        return Change(text, kept) if kept else None

    def with_annotations(
        self, text: str, marks: Mapping[str, str | None], *, without: str = ""
    ) -> Change | None:
        """Set annotations of its pods, or remove them (None); tasks lose a field of their own."""

        def edit(task: Manifest) -> Manifest:
            return {
                **set_field(task, without, None),
                "template": _marked(task.get("template"), marks),
            }

        if self.job is not None:
            return self.resubmitted(text, lambda job: _with_tasks(job, edit))
        ops = [patched("Pod", key_of(pod), pod, _marked(pod, marks)) for pod in self.pods]
        return Change(text, tuple(ops)) if ops else None

    def with_group(self, text: str, fields: Mapping[str, Any]) -> Change | None:
        """Change the spec of its pod group; in a Volcano job the field of that name there."""
        if self.job is None:
            group = self.podgroup
            new = {**group, "spec": _without_none({**self.spec, **fields})}
            return Change(text, (patched("PodGroup", self.group, group, new),))
        names = {_JOB_FIELDS[name]: value for name, value in fields.items() if name in _JOB_FIELDS}
        new_job = {**self.job, "spec": _without_none({**self.job["spec"], **names})}
        patch = Change(text, (patched("Job", key_of(self.job), self.job, new_job),))
        try:
            patch(self.world)
        except InputError:
            return self.resubmitted(text, lambda _: new_job)
        return patch

    def with_job(self, text: str, **fields: Any) -> Change | None:
        """Submit a Volcano job again with other fields in its spec; None for other jobs."""
        return self.resubmitted(text, lambda job: {**job, "spec": {**job["spec"], **fields}})

    def resubmitted(self, text: str, edit: Edit) -> Change | None:
        """Submit a Volcano job again, changed; None for other jobs."""
        if self.job is None:
            return None
        new = edit(self.job)
        if new == self.job:
            return None
        if is_draft(self.job):
            return Change(text, (patched("Job", key_of(self.job), self.job, new),))
        remove, add = _again(self.job, {k: v for k, v in new.items() if k != "status"})
        return Change(text, (*self._owned(), remove, add))

    def _owned(self) -> Iterator[Operation]:
        """Remove what belongs to a Volcano job, so that a list of objects changes in step."""
        members = [self.podgroup, *self.world.pods_by_group.get(self.group, ())]
        for one in members[: _MOST_PODS + 1]:
            if one and not is_expected(one):
                namespace, _, name = key_of(one).rpartition("/")
                yield Remove(kind=str(one["kind"]), namespace=namespace, name=name)


_JOB_FIELDS: Final = {
    "minMember": "minAvailable",
    "queue": "queue",
    "priorityClassName": "priorityClassName",
    "networkTopology": "networkTopology",
}


def _again(old: Manifest, new: Manifest) -> Iterable[Operation]:
    """Remove an object and add another of its name."""
    meta = old["metadata"]
    place = {"namespace": str(meta.get("namespace") or ""), "name": str(meta["name"])}
    fresh = {name: value for name, value in new["metadata"].items() if name in _FRESH and value}
    owners = meta.get("ownerReferences")
    if owners:
        fresh["ownerReferences"] = owners
    yield Remove(kind=str(old["kind"]), **place)
    added = {**new, "metadata": fresh}
    if old["kind"] == "Pod":
        added["status"] = {"phase": "Pending"}
    yield Add(object=added)


def _with_tasks(job: Manifest, edit: Edit) -> Manifest:
    tasks = [edit(task) for task in job["spec"].get("tasks") or ()]
    return {**job, "spec": {**job["spec"], "tasks": tasks}}


def _with_spec(edit: Edit, task: Manifest) -> Manifest:
    """Change the spec of a task's pods."""
    template = task.get("template") or {}
    return {**task, "template": {**template, "spec": edit(dict(template.get("spec") or {}))}}


def _marked(one: Manifest | None, marks: Mapping[str, str | None]) -> Manifest:
    """Return a pod, or a template, with other annotations."""
    meta = (one or {}).get("metadata") or {}
    kept = _without_none({**(meta.get("annotations") or {}), **marks})
    return {**(one or {}), "metadata": {**meta, "annotations": kept}}


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def requests_of(spec: Manifest) -> dict[str, Fraction]:
    """Return what a pod asks for, in cores, bytes and pieces."""
    return {name: Fraction(each.nano, _NANO) for name, each in asked_amounts(spec).items()}


# How many pods it needs: each change lowers a number, or is not offered


def smaller_gang(target: Target, _: Finding) -> Iterator[Change | Sized | None]:
    """Lower the least number: size n subtracts n."""
    least = target.least
    if least > 1:
        yield (lambda n: _gang_of(target, least - n)), least - 1


def gang_of_those_there(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Need no more pods than exist."""
    there = int(cause.numbers.get("pods", 0))
    if there:
        yield _gang_of(target, there)


def smaller_reservation(target: Target, _: Finding) -> Iterator[Change | None]:
    """Reserve no more for a pod group than the pods ask for that it needs to start."""
    stated = target.spec.get("minResources") or {}
    if target.job is not None or len(target.pods) < target.least:
        return
    asked = [requests_of(pod["spec"]) for pod in target.pods]
    lowered = {}
    for name, amount in stated.items():
        most = sorted((one.get(_plain(name), Fraction(0)) for one in asked), reverse=True)
        needed = sum(most[: target.least], Fraction(0))
        if Fraction(parse_quantity(amount), _NANO) > needed:
            units = math.ceil(needed * 1000 if _plain(name) == "cpu" else needed)
            lowered[name] = format_quantity(name, units)
    if lowered:
        moves = ", ".join(f"{name} from {stated[name]} to {x}" for name, x in lowered.items())
        text = f"lower minResources to what its pods need: {moves}"
        yield target.with_group(text, {"minResources": {**stated, **lowered}})


def _plain(name: str) -> str:
    """Return a resource as pods name it."""
    return name.removeprefix("requests.").removeprefix("limits.")


def valid_gang(target: Target, _: Finding) -> Iterator[Change | None]:
    """Need no more pods of a task, and of all together, than there are replicas."""
    if target.job is None:
        return
    words: list[str] = []
    tasks = [_no_more_than_replicas(task, words) for task in target.tasks]
    old, total = target.least, sum(map(replicas_of, target.tasks))
    least = min(old, total)
    if least < old:
        what = "that of the job" if words else "lower minAvailable"
        words.append(f"{what} from {old} to {least}")
    if words and least > 0:
        yield target.with_job(" and ".join(words), minAvailable=least, tasks=tasks)


def _no_more_than_replicas(task: Manifest, words: list[str]) -> Manifest:
    """Return a task that needs no more pods than it has; what is lowered goes to the words."""
    least, replicas = int(task.get("minAvailable") or 0), replicas_of(task)
    if least <= replicas:
        return task
    words.append(f"lower minAvailable of task {task.get('name')} from {least} to {replicas}")
    return {**task, "minAvailable": replicas}


def _gang_of(target: Target, least: int) -> Change | None:
    """Lower the least number of pods; None if that number is not lower.

    Least numbers of tasks and roles stay: they bind only while the job needs as many pods as they
    add up to.
    """
    old = target.least
    if not 0 < least < old:
        return None
    if target.job is not None:
        text = f"lower minAvailable from {old} to {least}"
        return target.with_group(text, {"minMember": least})
    text = f"lower minMember from {old} to {least}"
    stated = target.spec.get("minResources")
    if not stated:
        return target.with_group(text, {"minMember": least})
    part = Fraction(least, old)
    amounts = {name: _part_of(name, amount, part) for name, amount in stated.items()}
    listed = ", ".join(f"{name} {amount}" for name, amount in amounts.items())
    return target.with_group(
        f"{text} and minResources in proportion, to {listed}",
        {"minMember": least, "minResources": amounts},
    )


def _part_of(name: str, amount: Any, part: Fraction) -> str:
    """Return a part of a quantity, rounded up to what reads well: whole milli-cores, or MiB."""
    whole = Fraction(parse_quantity(amount), _NANO) * part
    if _plain(name) == "cpu":
        return format_quantity(name, math.ceil(whole * 1000))
    step = _MEBI if parse_quantity(amount) % (_MEBI * _NANO) == 0 else 1
    return format_quantity(name, math.ceil(whole / step) * step)


def fewer_of_role(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Lower the least number of a role to the pods it has or finds a node for."""
    role = str(cause.numbers.get("role", ""))
    there = int(cause.numbers.get("found", cause.numbers.get("pods", 0)))
    needed = int(cause.numbers.get("needed", 0))
    if there >= needed:
        return
    old = target.least
    least = max(1, old - (needed - there))
    if target.job is None:
        minima = dict(target.spec.get("minTaskMember") or {})
        if role in minima:
            fields = {"minTaskMember": {**minima, role: there}, "minMember": least}
            text = f"lower minTaskMember of role {role} from {needed} to {there}"
            yield target.with_group(text + _job_too("minMember", old, least), fields)
        return
    tasks = [
        {**task, "minAvailable": there} if task.get("name") == role else task
        for task in target.tasks
    ]
    text = f"lower minAvailable of task {role} from {needed} to {there}"
    text += _job_too("that of the job", old, least)
    yield target.with_job(text, tasks=tasks, minAvailable=least)


def _job_too(what: str, old: int, least: int) -> str:
    return f" and {what} from {old} to {least}" if least < old else ""


def fewer_parts(target: Target, _: Finding) -> Iterator[Change | Sized | None]:
    """Need fewer sub-groups of a pod group, or partitions of a task: size n subtracts n."""
    if target.job is None:
        for at, policy in enumerate(target.spec.get("subGroupPolicy") or ()):
            least = int(policy.get("minSubGroups") or 0)
            if least > 1:
                yield partial(_fewer_sub_groups, target, at, least), least - 1
        return
    for at, task in enumerate(target.tasks):
        least = int((task.get("partitionPolicy") or {}).get("minPartitions") or 0)
        if least > 1:
            yield partial(_fewer_partitions, target, at, least), least - 1


def _fewer_sub_groups(target: Target, at: int, least: int, n: int) -> Change | None:
    policies = [dict(each) for each in target.spec["subGroupPolicy"]]
    policies[at]["minSubGroups"] = least - n
    name = policies[at].get("name") or at
    text = f"lower minSubGroups of sub-group policy {name} from {least} to {least - n}"
    fields: dict[str, Any] = {"subGroupPolicy": policies}
    old, size = target.least, int(policies[at].get("subGroupSize") or 1)
    if old >= least * size and old > n * size:  # it needs the pods of all these sub-groups
        fields["minMember"] = old - n * size
        text += f" and minMember from {old} to {old - n * size}"
    return target.with_group(text, fields)


def _fewer_partitions(target: Target, at: int, least: int, n: int) -> Change | None:
    tasks = [dict(each) for each in target.tasks]
    task = tasks[at]
    policy = {**task["partitionPolicy"], "minPartitions": least - n}
    task["partitionPolicy"] = policy
    text = f"lower minPartitions of task {task.get('name')} from {least} to {least - n}"
    old, pods = int(task.get("minAvailable") or 0), (least - n) * int(policy["partitionSize"])
    if old > pods:  # admission wants it to be as many pods as the partitions have
        task["minAvailable"] = pods
        text += f" and its minAvailable from {old} to {pods}"
    return target.with_job(text, tasks=tasks)


# Constraints on nodes


def without_selector(target: Target, _: Finding) -> Iterator[Change | None]:
    """Drop the node selector: each label alone, then all."""
    terms = sorted(
        {one for pod in target.pods for one in (pod["spec"].get("nodeSelector") or {}).items()}
    )

    def without(keys: set[str]) -> Callable[[Manifest], Manifest]:
        def edit(spec: Manifest) -> Manifest:
            kept = {k: v for k, v in (spec.get("nodeSelector") or {}).items() if k not in keys}
            return set_field(spec, "nodeSelector", kept)

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
        return set_field(spec, "affinity", kept)

    yield target.with_pod_specs(f"remove the {words} of its pods", edit)


def without_spread(target: Target, _: Finding) -> Iterator[Change | None]:
    """Drop the spread constraints."""
    yield target.with_pod_specs(
        "remove the topology spread constraints of its pods",
        lambda spec: set_field(spec, "topologySpreadConstraints", None),
    )


def without_host_ports(target: Target, _: Finding) -> Iterator[Change | None]:
    """Drop the host ports."""

    def edit(spec: Manifest) -> Manifest:
        return _containers(spec, lambda one: set_field(one, "ports", _inner(one.get("ports"))))

    yield target.with_pod_specs("request no host port", edit)


def _inner(ports: Any) -> list[Any]:
    return [{k: v for k, v in port.items() if k != "hostPort"} for port in ports or ()]


def without_numa_policy(target: Target, _: Finding) -> Iterator[Change | None]:
    """Drop the NUMA policy."""
    marks = {NUMA_POLICY: None}
    yield target.with_annotations("request no NUMA policy", marks, without="topologyPolicy")


def within_numa_node(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Ask for no more CPUs than a NUMA node has free."""
    free, asked = cause.numbers.get("free") or {}, cause.numbers.get("request") or 0
    most = max((cpus for nodes in free.values() for cpus in nodes.values()), default=0)
    if 0 < most < asked:
        numbers = {"requests": {"cpu": asked}, "lacks": {"cpu": asked - most}}
        yield from ask_for_less(target, Finding(cause.code, cause.text, cause.about, numbers))


def revocable(target: Target, _: Finding) -> Iterator[Change | None]:
    """Allow its pods to use revocable nodes, from which they may be evicted again."""
    marks = {REVOCABLE_ZONE: "*", PREEMPTABLE: "true"}
    yield target.with_annotations("allow its pods to use revocable zones", marks)


def tolerate(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Tolerate the taints that refuse: each alone, then all."""
    texts = [str(text) for text in cause.numbers.get("taints", ())]
    for some in [*([text] for text in texts), *([texts] if len(texts) > 1 else [])]:
        new = [_toleration(text) for text in some]

        def edit(spec: Manifest, new: list[Manifest] = new) -> Manifest:
            return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *new]}

        what = f"the {verb(len(some), 'taint', 'taints')} {', '.join(some)}"
        yield target.with_pods_patched(f"make its pods tolerate {what}", edit)


def _toleration(taint: str) -> Manifest:
    """Return what tolerates a taint, which is written as kubectl does."""
    left, _, effect = taint.rpartition(":")
    key, equals, value = left.partition("=")
    new = {"key": key, "operator": "Equal" if equals else "Exists", "effect": effect}
    return {**new, "value": value} if equals else new


def without_gates(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Remove the scheduling gates from its pods."""
    names = ", ".join(cause.numbers.get("gates", ()))
    yield target.with_pods_patched(
        f"remove the scheduling gate {names} from its pods",
        lambda spec: set_field(spec, "schedulingGates", None),
    )


def our_scheduler(target: Target, _: Finding) -> Iterator[Change | None]:
    """Name our scheduler."""
    text, ours = f"set schedulerName to {SCHEDULER_NAME} in its pods", SCHEDULER_NAME

    def named(spec: Manifest) -> Manifest:
        return {**spec, "schedulerName": ours} if "schedulerName" in spec else spec

    def edit(job: Manifest) -> Manifest:
        renamed = _with_tasks(job, partial(_with_spec, named))
        return {**renamed, "spec": {**renamed["spec"], "schedulerName": ours}}

    if target.job is not None:
        yield target.resubmitted(text, edit)
    else:
        yield target.with_pod_specs(text, lambda spec: {**spec, "schedulerName": ours})


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


def wider_domain(target: Target, _: Finding) -> Iterator[Change | Sized | None]:
    """Allow a higher tier to the job, or to its sub-groups, or drop the limit."""
    topology = dict(target.spec.get("networkTopology") or {})
    if topology:
        yield from _wider(
            topology, "", lambda text, new: target.with_group(text, {"networkTopology": new})
        )
    policies = [] if target.job is not None else list(target.spec.get("subGroupPolicy") or ())
    for at, policy in enumerate(policies):
        if policy.get("networkTopology"):
            change = partial(_with_policy_topology, target, at)
            yield from _wider(
                policy["networkTopology"], f" of sub-group policy {policy.get('name')}", change
            )


def _wider(
    topology: Mapping[str, Any], whose: str, change: Callable[[str, Any], Change | None]
) -> Iterator[Change | Sized | None]:
    """Raise the highest tier of a topology, or drop it."""
    highest = int(topology.get("highestTierAllowed") or 0)
    if highest:

        def make(n: int) -> Change | None:
            text = f"raise highestTierAllowed{whose} from {highest} to {highest + n}"
            return change(text, {**topology, "highestTierAllowed": highest + n})

        yield make, 8
    yield change(f"drop {'its' if not whose else 'the'} network topology limit{whose}", None)


def _with_policy_topology(target: Target, at: int, text: str, topology: Any) -> Change | None:
    policies = [dict(each) for each in target.spec["subGroupPolicy"]]
    policies[at] = set_field(policies[at], "networkTopology", topology)
    return target.with_group(text, {"subGroupPolicy": policies})


def complete_parts(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Need no more sub-groups, and pods, than there are in complete sub-groups."""
    numbers = cause.numbers
    if target.job is not None or "policy" not in numbers:
        return
    policies = [dict(each) for each in target.spec.get("subGroupPolicy") or ()]
    words, least = list[str](), min(target.least, int(numbers["pods"]))
    for policy in policies:
        old = int(policy.get("minSubGroups") or 0)
        if policy.get("name") == numbers["policy"] and numbers["complete"] < old:
            policy["minSubGroups"] = numbers["complete"]
            what = f"minSubGroups of sub-group policy {numbers['policy']}"
            words.append(f"{what} from {old} to {numbers['complete']}")
    if least < target.least:
        words.append(f"minMember from {target.least} to {least}")
    if words and least and numbers["complete"]:
        fields = {"subGroupPolicy": policies, "minMember": least}
        yield target.with_group(f"lower {' and '.join(words)}", fields)


# Order, and causes before any session


def go_first(target: Target, _: Finding) -> Iterator[Change | None]:
    """Raise the job above all others in priority."""
    classes = target.world.of_kind("PriorityClass").values()
    top = max((int(one.get("value") or 0) for one in classes), default=0)
    pods = target.world.of_kind("Pod").values()
    top = max([top, *(int((pod.get("spec") or {}).get("priority") or 0) for pod in pods)])
    if top >= 1_000_000_000:
        return
    is_meek = any(pod["spec"].get("preemptionPolicy") == "Never" for pod in target.pods)
    text = f"give it a priority above {top}{', with preemption' if is_meek else ''}"
    changes = [target.with_group(text, {"priorityClassName": _URGENT})]
    if target.job is None:
        fields = {"priorityClassName": _URGENT, "priority": top + 1}

        def first(spec: Manifest) -> Manifest:
            preempts = {"preemptionPolicy": _MAY_PREEMPT} if "preemptionPolicy" in spec else {}
            return {**spec, **fields, **preempts}

        changes.append(target.with_pod_specs(text, first))
    ops = [op for one in changes if one is not None for op in one.ops]
    if ops:
        yield Change(text, (Add(object=_priority_class(_URGENT, top + 1)), *ops))


def _priority_class(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def new_priority_class(_: Target, cause: Finding) -> Iterator[Change | None]:
    """Create the priority class that is missing."""
    if cause.about is not None:
        text = f"create priority class {cause.about.name} (with the value you want)"
        yield Change(text, (Add(object=_priority_class(cause.about.name, 1000)),))


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
        return _with_tasks({**job, "spec": named(job["spec"])}, partial(_with_spec, named))

    if target.job is not None:
        yield target.resubmitted(text, edit)
    else:
        yield target.with_pod_specs(text, named)


def gather_strays(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Make pods name this pod group that name one which does not exist."""
    name, pods = target.group.rpartition("/")[2], target.world.of_kind("Pod")
    found = [pods[key] for key in cause.numbers.get("strays", ()) if key in pods]
    ops = [patched("Pod", key_of(pod), pod, _marked(pod, {GROUP_NAME: name})) for pod in found]
    if ops:
        yield Change(f"set the annotation {GROUP_NAME} of its pods to {name}", tuple(ops))


def no_dependencies(target: Target, _: Finding) -> Iterator[Change | None]:
    """Remove the dependencies between tasks."""
    yield target.resubmitted(
        "remove the dependencies between tasks",
        lambda job: _with_tasks(job, lambda task: set_field(task, "dependsOn", None)),
    )


def resume(target: Target, _: Finding) -> Iterator[Change | None]:
    """Resume the job."""
    job = target.job
    if job is not None:
        state = {**((job.get("status") or {}).get("state") or {}), "phase": "Pending"}
        new = {**job, "status": {**(job.get("status") or {}), "state": state}}
        yield Change("resume the job", (patched("Job", key_of(job), job, new),))


def set_field(fields: Manifest, name: str, value: Any) -> Manifest:
    """Return fields with another value; an empty one removes the field."""
    kept = {k: v for k, v in fields.items() if k != name}
    return {**kept, name: value} if value else kept


def _containers(spec: Manifest, edit: Callable[[Manifest], Manifest]) -> Manifest:
    """Change every container, those that start a pod too."""
    lists = [name for name in ("containers", "initContainers") if spec.get(name)]
    return {**spec, **{name: [edit(dict(one)) for one in spec[name]] for name in lists}}
