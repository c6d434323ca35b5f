"""What might help a job that waits, given where it stopped: changes worth trying out.

Nothing is tried here; explain runs a cycle with each and keeps those that work.  A remedy with a
size is tried at its largest first and then made as small as still works.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import yaml

from pumice.api.annotations import HOSTNAME
from pumice.api.decisions import RESOURCE_QUOTA
from pumice.api.kinds import Manifest
from pumice.api.quantity import amount_text, format_quantity, parse_quantity
from pumice.api.wording import nearest
from pumice.core.resources import Resources
from pumice.diagnosis.changes import Change
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.diagnosis.edits import Edit, Remedy, fixed, of_pods, replaced, with_spec
from pumice.diagnosis.job_outcome import JobOutcome, Stop
from pumice.diagnosis.pod_constraints import gates, own_terms
from pumice.diagnosis.settings import add_nodes, biggest_first
from pumice.framework.job_records import Stage
from pumice.framework.refusals import Why

_KINDS_OF_NODES = 4
_RUNNING_JOBS = 12
_EVICTING = ("preempt", "reclaim")
_PARTS = 8
"""Steps in which a limit is raised, to each request."""
_TIMES = 4
"""How many times what the job asks for is tried at most, since others may take some of it."""
_URGENT = "pumice-whatif-first"
_PLAIN = ("cpu", "memory", "pods")
"""Resources whose rows are in the units that quantities are printed from."""


def remedies(world: ClusterState, outcome: JobOutcome) -> Iterator[Remedy]:
    """Give what is worth trying, the nearest to the cause first."""
    if not outcome.listed:
        yield from _missing_queue(world, outcome)
        return
    yield from gates(world, outcome)
    yield from _placing(world, outcome)
    yield from _queue_state(world, outcome)
    yield from _limits(world, outcome)
    yield from own_terms(world, outcome)
    yield from _nodes(world, outcome)
    yield from _gang(world, outcome)
    yield from _go_first(world, outcome)
    yield from _evictions(world)
    yield from _endings(world, outcome)


# Queues and quotas


def _missing_queue(world: ClusterState, outcome: JobOutcome) -> Iterator[Remedy]:
    name = outcome.queue
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
        move = replaced("PodGroup", outcome.job, lambda one: with_spec(one, queue=near))
        yield fixed(f"name queue {near} instead of {name}", move)
    yield fixed(f"create queue {name}", lambda world: world.with_objects([queue]))


def _queue_state(world: ClusterState, outcome: JobOutcome) -> Iterator[Remedy]:
    queue = world.of_kind("Queue").get(outcome.queue)
    state = (queue or {}).get("status", {}).get("state", "")
    if queue is not None and state != "Open":
        status = {**(queue.get("status") or {}), "state": "Open"}
        edit = replaced("Queue", outcome.queue, lambda one: {**one, "status": status})
        yield fixed(f"open queue {outcome.queue} (it is {state or 'without a state'})", edit)


def _limits(world: ClusterState, outcome: JobOutcome) -> Iterator[Remedy]:
    """Raise the limit that was overrun, beyond the request too: others may want some of it."""
    shared = Stage.QUEUE in outcome.stops
    for stop in (outcome.stops.get(Stage.ENQUEUE), outcome.stops.get(Stage.QUOTA)):
        if stop is None or stop.why is not Why.OVER_QUOTA or "resource" not in stop.numbers:
            continue
        at, pods = str(stop.numbers["at"]), max(1, outcome.pending + outcome.waiting)
        if at in world.of_kind("Queue"):
            parts = _PARTS if stop.stage is Stage.ENQUEUE else 1
            yield Remedy(_raised(world, stop, at, parts), _TIMES * max(parts, pods))
            shared = True
        elif at.startswith(RESOURCE_QUOTA):
            name = at.removeprefix(RESOURCE_QUOTA)
            yield Remedy(_wider(outcome, stop, name), _TIMES * _PARTS)
    if shared:
        yield Remedy(_heavier(world, outcome.queue), 99)


def _raised(world: ClusterState, stop: Stop, at: str, parts: int) -> Callable[[int], Edit]:
    """Make the change of a capability; of a queue that states none, of what it deserves.

    Size 1 is what was refused; each further size adds a part of the request.
    """
    numbers, spec = stop.numbers, world.of_kind("Queue")[at].get("spec") or {}
    resource = str(numbers["resource"])
    field = "capability" if resource in (spec.get("capability") or {}) else "deserved"
    old = (spec.get(field) or {}).get(resource)

    def make(n: int) -> Edit:
        wanted = numbers["used"] + numbers["request"] * (1 + (n - 1) / parts)
        new = {**(spec.get(field) or {}), resource: _exact(resource, wanted)}
        was = f"from {old} " if old is not None else ""
        free = wanted - numbers["limit"]
        instead = f" (or free {resource} {amount_text(resource, free)} there)"
        return Edit(
            f"raise {field} of queue {at} for {resource} {was}to {new[resource]}"
            f"{instead if free <= numbers['used'] else ''}",
            replaced("Queue", at, lambda one: with_spec(one, **{field: new})),
        )

    return make


def _wider(outcome: JobOutcome, stop: Stop, name: str) -> Callable[[int], Edit]:
    numbers, resource = stop.numbers, str(stop.numbers["resource"])
    key = f"{outcome.job.partition('/')[0]}/{name}"

    def make(n: int) -> Edit:
        wanted = numbers["used"] + numbers["request"] * (1 + (n - 1) / _PARTS)
        amount = _exact(resource, wanted)

        def widen(one: Manifest) -> Manifest:
            hard = {**((one.get("status") or {}).get("hard") or {}), resource: amount}
            return {**one, "status": {**(one.get("status") or {}), "hard": hard}}

        text = f"raise resource quota {name} to {resource} {amount}"
        return Edit(text, replaced("ResourceQuota", key, widen))

    return make


def _heavier(world: ClusterState, queue: str) -> Callable[[int], Edit]:
    spec = world.of_kind("Queue")[queue].get("spec") or {}
    old = int(spec.get("weight") or 1)
    return lambda n: Edit(
        f"raise weight of queue {queue} from {old} to {old + n}",
        replaced("Queue", queue, lambda one: with_spec(one, weight=old + n)),
    )


def _exact(resource: str, amount: float) -> str:
    """Write an amount of a row as a quantity of a manifest, never too little."""
    name = resource.removeprefix("requests.").removeprefix("limits.")
    return format_quantity(resource, amount if name in _PLAIN else math.ceil(amount / 1000))


# The job in line


def _gang(world: ClusterState, outcome: JobOutcome) -> Iterator[Remedy]:
    """Lower the least number: size n takes n off."""
    group = world.groups.get(outcome.job)
    if group is None or outcome.min_member < 2:
        return
    least = outcome.min_member

    def make(n: int) -> Edit:
        edit = replaced("PodGroup", outcome.job, lambda one: _needing(one, least, least - n))
        return Edit(f"lower minMember from {least} to {least - n}", edit)

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


def _go_first(world: ClusterState, outcome: JobOutcome) -> Iterator[Remedy]:
    """Give the job a higher priority than any other."""
    if not outcome.place.before and outcome.place.jobs[:1] == (outcome.job,):
        return
    values = [int(one.get("value") or 0) for one in world.of_kind("PriorityClass").values()]
    top = max(values, default=0)
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": _URGENT},
        "value": top + 1,
    }

    def edit(world: ClusterState) -> ClusterState:
        first = replaced(
            "PodGroup", outcome.job, lambda one: with_spec(one, priorityClassName=_URGENT)
        )
        pods = of_pods(outcome.job, lambda pod: with_spec(pod, priority=top + 1))
        changed: ClusterState = pods(first(world.with_objects([urgent])))
        return changed

    yield fixed(f"give it a priority above {top}, so that it goes first", edit)


# The cluster


def _nodes(world: ClusterState, outcome: JobOutcome) -> Iterator[Remedy]:
    """Add nodes like those there are: like the one that came nearest, then the biggest first."""
    kinds: dict[str, Manifest] = {}
    stop = outcome.stops.get(Stage.NODES)
    nearest_one = stop.numbers.get("nearest") if stop is not None else None
    nodes = biggest_first(world.of_kind("Node").values())
    nodes.sort(key=lambda node: node["metadata"]["name"] != nearest_one)
    for node in nodes:
        offered = (node.get("status") or {}).get("allocatable")
        taints = (node.get("spec") or {}).get("taints")
        labels = dict(node["metadata"].get("labels") or {})
        labels.pop(HOSTNAME, None)
        kinds.setdefault(repr((offered, taints, labels)), node)
    pods = outcome.pending + outcome.waiting or outcome.min_member  # some may still be to be made
    largest = _TIMES * max(1, pods)
    for like in list(kinds.values())[:_KINDS_OF_NODES]:
        yield Remedy(_more_nodes(world, like, {}, {}), largest, "nodes")
    lacking, labels = _beyond_any_node(world, outcome), _unmet_selector(world, outcome.job)
    for like in [one for one in kinds.values() if lacking or labels][:1]:
        yield Remedy(_more_nodes(world, like, lacking, labels), largest, "nodes")


def _more_nodes(
    world: ClusterState, like: Manifest, extra: Mapping[str, str], labels: Mapping[str, str]
) -> Callable[[int], Change]:
    return lambda n: add_nodes(world, n, like, extra, labels)


def _unmet_selector(world: ClusterState, job: str) -> dict[str, str]:
    """Give the node selector of its pods, if no node has all those labels."""
    pods = world.pods_by_group.get(job, [])
    wanted: dict[str, str] = next((pod["spec"].get("nodeSelector") or {} for pod in pods), {})
    for node in world.of_kind("Node").values():
        labels = node["metadata"].get("labels") or {}
        if all(labels.get(key) == value for key, value in wanted.items()):
            return {}
    return wanted


def _beyond_any_node(world: ClusterState, outcome: JobOutcome) -> dict[str, str]:
    """Find resources of which one pod asks for more than any node offers, with that amount."""
    stop, resources = outcome.stops.get(Stage.NODES), Resources()
    n = max(1, outcome.pending)
    asked = {name: x / n for name, x in outcome.held.get("asked", {}).items()}
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


def _placing(world: ClusterState, outcome: JobOutcome) -> Iterator[Remedy]:
    """Add the action that would place its pods, if none has looked at it."""
    if outcome.last is None:
        for action in ("allocate", "backfill"):
            if action not in world.scheduler_conf.actions:
                yield fixed(f"add the action {action} to the configuration", _with_action(action))


def _evictions(world: ClusterState) -> Iterator[Remedy]:
    """Add an action that makes room by eviction, if the configuration has none."""
    actions = world.scheduler_conf.actions
    for action in _EVICTING:
        if action not in actions and f"gang{action}" not in actions:
            yield fixed(f"add the action {action} to the configuration", _with_action(action))


def _with_action(action: str) -> Callable[[ClusterState], ClusterState]:
    def edit(world: ClusterState) -> ClusterState:
        conf: dict[str, Any] = yaml.safe_load(world.conf)
        actions = list(world.scheduler_conf.actions)
        early = "allocate" in actions and action != "backfill"
        at = actions.index("allocate") + 1 if early else len(actions)
        conf["actions"] = ", ".join([*actions[:at], action, *actions[at:]])
        return replace(world, conf=yaml.safe_dump(conf, sort_keys=False))

    return edit


def _endings(world: ClusterState, outcome: JobOutcome) -> Iterator[Remedy]:
    """Let running jobs end: each alone, the smallest first."""
    running: dict[str, list[str]] = {}
    for one in world.objects:
        phase = (one.get("status") or {}).get("phase")
        if one["kind"] == "Pod" and phase == "Running" and group_of(one):
            running.setdefault(group_of(one), []).append(key_of(one))
    running.pop(outcome.job, None)
    smallest_first = sorted(running.items(), key=lambda entry: (len(entry[1]), entry[0]))
    for job, pods in smallest_first[:_RUNNING_JOBS]:
        text = f"wait for {job} to end ({len(pods)} running pod{'s' * (len(pods) != 1)})"
        yield fixed(text, _ended(set(pods)), "ending")


def _ended(pods: set[str]) -> Callable[[ClusterState], ClusterState]:
    def end(one: Manifest) -> Manifest:
        if one["kind"] == "Pod" and key_of(one) in pods:
            return {**one, "status": {**(one.get("status") or {}), "phase": "Succeeded"}}
        return one

    return lambda world: world.edited(end)
