"""Changes around the job: nodes, volumes, queues, quotas and the configuration."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

import yaml

from pumice.api.annotations import (
    BIND_COMPLETED,
    HOSTNAME,
    NODE_GROUP,
    NOT_READY_TAINTS,
    NUMA_POLICY,
)
from pumice.api.kinds import ENDED_PHASES, RESOURCE_QUOTA, Manifest
from pumice.api.quantity import format_quantity, parse_quantity
from pumice.api.times import overdue_s
from pumice.api.wording import counted, first_of, nearest, verb
from pumice.controllers.expected import is_expected, open_queue
from pumice.diagnosis.changes import Add, Change, Conf, Operation, Remove, Wait, new_nodes, patched
from pumice.diagnosis.cluster_state import group_of, key_of
from pumice.diagnosis.missing_pods import needed_pods, raised_limits, refused_count
from pumice.diagnosis.remedy.job_changes import Sized, Target, requests_of, set_field
from pumice.diagnosis.settings import add_nodes, biggest_first
from pumice.examine.findings import Finding

_NANO: Final = 10**9
_KINDS: Final = 4
_ENLARGED: Final = 2
"""How many kinds of nodes are tried with more than they have."""
_JOBS: Final = 12
_NAMED: Final = 3
_NODES: Final = 4
_NODES_A_POD: Final = 4
_OURS: Final = "volcano.sh/"
"""In the names of labels that plugins read, whatever a job asks for."""
_KEPT: Final = (HOSTNAME, NUMA_POLICY)
_PARTS: Final = 4
_RAISES: Final = 3
_MOST_WEIGHT: Final = 99
_OTHERS: Final = 3
_EVICTING: Final = ("preempt", "reclaim")
_NEVER_REMOVED: Final = frozenset({"gang", "predicates"})
"""Plugins without which pods of any job are placed where they do not run, or too few of them."""
Conf_ = dict[str, Any]


# Nodes and volumes, and waiting for others to end


def more_nodes(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Add nodes like existing ones: like the one that comes nearest, then the biggest first."""
    nodes = _one_of_each_kind(target.world.of_kind("Node"), str(cause.numbers.get("nearest", "")))
    if not _reads_labels(target):
        nodes = list({_kind(node, labels=False): node for node in reversed(nodes)}.values())[::-1]
    pods = len(target.pods) or int(target.spec.get("minMember") or 1)
    largest = _NODES_A_POD * max(1, pods)
    if not nodes and (target.pods or target.spec.get("minResources")):
        yield (lambda n: new_nodes(*_first_nodes(target, n))), largest
    for like in nodes[:_KINDS]:
        yield _more(target, like, {}, {}), largest
    wanted = _selector(target)
    for like in nodes[:_ENLARGED]:
        beyond = _beyond(like, target, cause)
        if beyond or wanted:
            yield _more(target, like, beyond, wanted), largest


def _first_nodes(target: Target, n: int) -> tuple[list[Manifest], str]:
    """Return the first nodes of a cluster, each for one pod of the job, and what they are like.

    As long as there are no pods, one node has what all of them need.
    """
    stated = target.spec.get("minResources") or {}
    most = {name: Fraction(parse_quantity(x), _NANO) for name, x in stated.items()}
    most = {} if target.pods else most
    for pod in target.pods:
        for name, amount in requests_of(pod["spec"]).items():
            most[name] = max(most.get(name, amount), amount)
    offered = {name: _quantity(name, float(amount)) for name, amount in most.items()}
    names = [f"node-{number}" for number in range(1, n + 1)]
    made = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {HOSTNAME: name, **_selector(target)}},
            "status": {"allocatable": {**offered, "pods": "110"}},
        }
        for name in names
    ]
    return made, f"with {', '.join(f'{name} {amount}' for name, amount in offered.items())}"


def _one_of_each_kind(nodes: Mapping[str, Manifest], near: str) -> list[Manifest]:
    """Return a node of each kind: first that of one that comes near, then the biggest first.

    Of equal nodes it is the first, which is there already: others may be part of the change.
    """
    kinds: dict[str, Manifest] = {}
    for node in biggest_first(nodes.values()):
        kinds.setdefault(_kind(node), node)
    nearest = nodes.get(near)
    if nearest is not None:
        kind = _kind(nearest)
        kinds = {kind: kinds[kind], **kinds}
    return list(kinds.values())


def _reads_labels(target: Target) -> bool:
    """Return whether labels of users decide on which nodes a job may run."""
    fields = ("nodeSelector", "affinity", "topologySpreadConstraints", "volumes", "resourceClaims")
    own = any(pod["spec"].get(field) for pod in target.pods for field in fields)
    return own or "networkTopology" in target.spec


def _kind(node: Manifest, *, labels: bool = True) -> str:
    """Return what tells a node from nodes of other kinds; without labels of users if so asked."""
    known = (node["metadata"].get("labels") or {}).items()
    kept = {k: v for k, v in known if k != HOSTNAME and (labels or _OURS in k)}
    offered = (node.get("status") or {}).get("allocatable")
    return repr((offered, (node.get("spec") or {}).get("taints"), kept))


def _more(
    target: Target, like: Manifest, extra: Mapping[str, str], labels: Mapping[str, str]
) -> Callable[[int], Change | None]:
    def make(n: int) -> Change | None:
        return add_nodes(target.world, n, _healthy(like), extra, labels)

    return make


def _healthy(node: Manifest) -> Manifest:
    """Return a new node without the taints of unhealthy ones."""
    spec = dict(node.get("spec") or {})
    taints = [one for one in spec.get("taints") or () if one.get("key") not in NOT_READY_TAINTS]
    spec["taints"] = taints
    return {**node, "spec": {name: value for name, value in spec.items() if value}}


def _beyond(like: Manifest, target: Target, cause: Finding) -> dict[str, str]:
    """List the resources of which a pod asks for more than a node has, with that amount."""
    offered = (like.get("status") or {}).get("allocatable") or {}
    asked = cause.numbers.get("requests")
    if not isinstance(asked, dict):
        asked = requests_of(target.pods[0]["spec"]) if target.pods else {}
    found: dict[str, str] = {}
    for name, amount in asked.items():
        if amount * _NANO > parse_quantity(offered.get(name, 0)):
            found[name] = _quantity(name, float(amount))
    return found


def _selector(target: Target) -> dict[str, str]:
    pods = target.pods
    return dict(pods[0]["spec"].get("nodeSelector") or {}) if pods else {}


def endings(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Wait for running jobs to end: each alone, those ahead first, then the smallest; then more."""
    running: dict[str, list[str]] = {}
    ahead = set(cause.numbers.get("jobs", ()))
    about = cause.about
    home = about.namespace if about is not None and about.kind == RESOURCE_QUOTA else ""
    for pod in target.world.of_kind("Pod").values():
        meta = pod["metadata"]
        stuck = overdue_s(meta.get("deletionTimestamp"), target.world.now)
        if is_expected(pod) or stuck or (home and meta.get("namespace") != home):
            continue
        phase, group = (pod.get("status") or {}).get("phase"), group_of(pod)
        holds = phase == "Running" or (pod.get("spec") or {}).get("nodeName")
        if group in ahead or (holds and phase not in ENDED_PHASES):
            name = group or f" {key_of(pod)}"
            running.setdefault(name, []).append(key_of(pod))
    running.pop(target.group, None)
    first = sorted(running.items(), key=lambda one: (one[0] not in ahead, len(one[1]), one[0]))
    for some in ([one] for one in first[:_JOBS]):
        yield _end_of(target, some)
    if len(first) > 1:
        yield (lambda n: _end_of(target, first[: n + 1])), min(len(first), _JOBS) - 1


def _end_of(target: Target, jobs: list[tuple[str, list[str]]]) -> Change:
    """Wait for some jobs to end; pods without a job are named themselves."""
    names = [
        f"pod {job[1:]}" if job.startswith(" ") else target.world.title(job) for job, _ in jobs
    ]
    pods = [pod for _, pods in jobs for pod in pods]
    return Change(
        f"wait for {first_of(names, _NAMED)} to end ({counted(len(pods), 'pod')})",
        (Wait(pods=pods),),
    )


def remove_stuck(_: Target, cause: Finding) -> Iterator[Change | None]:
    """Remove pods that should have gone by now."""
    pods = list(cause.numbers.get("overdue", ()))
    if pods:
        names = first_of(pods, _NAMED)
        places = [pod.rpartition("/") for pod in pods]
        ops = tuple(Remove(kind="Pod", namespace=home, name=name) for home, _, name in places)
        yield Change(f"remove {names}, which may be stuck (kubectl delete pod --force)", ops)


def uncordon(target: Target, _: Finding) -> Iterator[Change | None]:
    """Uncordon nodes: each alone, then all."""
    nodes = target.world.of_kind("Node").values()
    closed = [node for node in nodes if (node.get("spec") or {}).get("unschedulable")]

    def opened(node: Manifest) -> Manifest:
        return {**node, "spec": set_field(node["spec"], "unschedulable", None)}

    yield from _nodes(closed, opened, lambda _: "uncordon")


def untaint(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Remove a taint from nodes: each alone, then all."""
    texts = set(cause.numbers.get("taints", ()))

    def clean(node: Manifest) -> Manifest:
        taints = [one for one in node["spec"]["taints"] if taint_of(one) not in texts]
        return {**node, "spec": set_field(node["spec"], "taints", taints)}

    tainted = [
        node
        for node in target.world.of_kind("Node").values()
        if any(taint_of(one) in texts for one in (node.get("spec") or {}).get("taints") or ())
    ]

    def words(nodes: list[Manifest]) -> str:
        held = {taint_of(one) for node in nodes for one in node["spec"]["taints"]} & texts
        return f"remove the {verb(len(held), 'taint', 'taints')} {', '.join(sorted(held))} from"

    yield from _nodes(tainted, clean, words)


def taint_of(taint: Mapping[str, Any]) -> str:
    """Write a taint as kubectl does."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def label_nodes(target: Target, _: Finding) -> Iterator[Change | None]:
    """Set the labels of the selector on nodes: each alone, then all."""
    wanted = _selector(target)
    lacking = [
        node
        for node in biggest_first(target.world.of_kind("Node").values())
        if any((node["metadata"].get("labels") or {}).get(k) != v for k, v in wanted.items())
    ]

    def labelled(node: Manifest) -> Manifest:
        meta = node["metadata"]
        return {**node, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **wanted}}}

    if wanted and HOSTNAME not in wanted:
        pairs = ", ".join(f"{k}={v}" for k, v in wanted.items())
        set_on = f"set the {verb(len(wanted), 'label', 'labels')} {pairs} on"
        yield from _nodes(lacking, labelled, lambda _: set_on)


def _nodes(
    nodes: list[Manifest],
    edit: Callable[[Manifest], Manifest],
    words: Callable[[list[Manifest]], str],
) -> Iterator[Change | None]:
    """Change each of some nodes alone, then all of them."""

    def change(some: list[Manifest], names: str) -> Change:
        ops = tuple(patched("Node", key_of(node), node, edit(node)) for node in some)
        return Change(f"{words(some)} {names}", ops)

    for node in nodes[:_NODES]:
        yield change([node], f"node {key_of(node)}")
    if len(nodes) > 1:
        yield change(nodes, f"{len(nodes)} nodes")


# Volumes


def provide_volumes(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Provide the claim that is missing or unbound, with a volume that every node reaches."""
    about = cause.about
    claims = [about.name] if about is not None and about.kind == _CLAIM else _claims(target)
    space = target.group.partition("/")[0]
    ops: list[Operation] = []
    for name in claims:
        key = f"{space}/{name}"
        known = target.world.of_kind(_CLAIM).get(key)
        volume = _volume(name, space, known)
        if target.world.get("PersistentVolume", key_of(volume)) is None:
            ops.append(Add(object=volume))
        bound = _bound(name, space, known, key_of(volume))
        ops.append(Add(object=bound) if known is None else patched(_CLAIM, key, known, bound))
    if ops:
        what = ", ".join(claims)
        yield Change(f"provide a volume for claim {what} that all nodes reach", tuple(ops))


_CLAIM: Final = "PersistentVolumeClaim"


def _claims(target: Target) -> list[str]:
    pods = target.pods
    return [
        str(volume["persistentVolumeClaim"]["claimName"])
        for volume in (pods[0]["spec"].get("volumes") or () if pods else ())
        if volume.get("persistentVolumeClaim")
    ]


def _volume(name: str, space: str, claim: Manifest | None) -> Manifest:
    spec = (claim or {}).get("spec") or {}
    asked = (spec.get("resources") or {}).get("requests") or {"storage": "1Gi"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{space}-{name}-new"},
        "spec": {
            "capacity": {"storage": asked.get("storage", "1Gi")},
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "storageClassName": spec.get("storageClassName") or "",
            "claimRef": {"kind": _CLAIM, "namespace": space, "name": name},
        },
        "status": {"phase": "Bound"},
    }


def _bound(name: str, space: str, claim: Manifest | None, volume: str) -> Manifest:
    base = claim or {
        "apiVersion": "v1",
        "kind": _CLAIM,
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
        },
    }
    meta = base["metadata"]
    marks = {**(meta.get("annotations") or {}), BIND_COMPLETED: "yes"}
    return {
        **base,
        "metadata": {**meta, "annotations": marks},
        "spec": {**base["spec"], "volumeName": volume},
        "status": {**(base.get("status") or {}), "phase": "Bound"},
    }


# Queues and quotas


def _queue(target: Target, name: str) -> Manifest:
    return target.world.of_kind("Queue").get(name, {})


def _changed(target: Target, name: str, text: str, **fields: Any) -> Change | None:
    """Change fields of a queue's spec; None removes one."""
    queue = _queue(target, name)
    if not queue:
        return None
    spec = {**(queue.get("spec") or {}), **fields}
    new = {**queue, "spec": {key: value for key, value in spec.items() if value is not None}}
    return Change(text, (patched("Queue", name, queue, new),))


def new_queue(_: Target, cause: Finding) -> Iterator[Change | None]:
    """Create the queue that is missing."""
    if cause.about is not None and cause.about.name:
        name = cause.about.name
        yield Change(f"create queue {name}", (Add(object=open_queue(name)),))


def another_queue(target: Target, _: Finding) -> Iterator[Change | None]:
    """Name another queue that is open and takes jobs: the nearest name first."""
    queues = target.world.of_kind("Queue")
    parents = {str((one.get("spec") or {}).get("parent") or "") for one in queues.values()}
    open_ones = [
        name
        for name, one in queues.items()
        if (one.get("status") or {}).get("state", "Open") == "Open"
        and name not in parents
        and name not in ("root", target.queue)
    ]
    near = nearest(target.queue, open_ones)
    open_ones.sort(key=lambda name: (name != near, name))
    for name in open_ones[:_OTHERS]:
        yield target.with_group(f"submit it to queue {name}", {"queue": name})


def reopen_queue(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Open the queue, and those above it that are not open either."""
    name = cause.about.name if cause.about is not None else target.queue
    ops: list[Operation] = []
    words: list[str] = []
    while (queue := _queue(target, name)) and f"queue {name}" not in words:
        state = (queue.get("status") or {}).get("state", "")
        if state != "Open" and (name != "root" or state):
            new = {**queue, "status": {**(queue.get("status") or {}), "state": "Open"}}
            ops.append(patched("Queue", name, queue, new))
            words.append(f"queue {name} (it is {state or 'without a state'})")
        name = str((queue.get("spec") or {}).get("parent") or "")
    if ops:
        yield Change(f"open {' and '.join(words)}", tuple(ops))


def place_in_tree(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Place the queue under the root."""
    name = cause.about.name if cause.about is not None else target.queue
    yield _changed(target, name, f"put queue {name} under root", parent="root")
    for child, one in target.world.of_kind("Queue").items():
        if str((one.get("spec") or {}).get("parent") or "") == name:
            yield target.with_group(f"submit it to queue {child}", {"queue": child})
            return


def raise_limit(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Raise the capability that is overrun, and those above, by the missing amount and more."""
    numbers = cause.numbers
    if cause.about is None or cause.about.kind != "Queue" or "resource" not in numbers:
        return
    refusing = [{"queue": cause.about.name, **numbers}, *numbers.get("above", ())]

    def make(n: int) -> Change | None:
        words: list[str] = []
        ops: list[Operation] = []
        for each in refusing:
            name, queue = str(each["queue"]), _queue(target, str(each["queue"]))
            stated = dict((queue.get("spec") or {}).get("capability") or {})
            raised = _raised(stated, (each, *each.get("more", ())), n)
            new = _changed(target, name, "", capability=stated | raised) if raised else None
            if new is None:
                return None
            words.append(f"of queue {name}: {_amounts(stated, raised)}")
            ops += new.ops
        # a queue may not state more than the one above it
        return Change(f"raise the capability {' and '.join(words)}", tuple(reversed(ops)))

    if (_queue(target, cause.about.name).get("spec") or {}).get("capability"):
        yield make, _RAISES * _PARTS * max(1, len(target.pods))


def _raised(
    stated: Mapping[str, Any], shorts: Iterable[Mapping[str, Any]], n: int
) -> dict[str, str]:
    """Return the stated amounts that are too low, each with a higher one.

    What is not stated has no limit of its own, and a stated amount that already suffices is not
    the one that stops the job.
    """
    found: dict[str, str] = {}
    for short in shorts:
        resource = str(short["resource"])
        wanted = short["used"] + short["request"] * (1 + (n - 1) / _PARTS)
        new = _quantity(resource, wanted)
        old = stated.get(resource)
        if old is not None and parse_quantity(new) > parse_quantity(old):
            found[resource] = new
    return found


def _amounts(old: Mapping[str, Any], new: Mapping[str, str]) -> str:
    return ", ".join(f"{name} from {old[name]} to {amount}" for name, amount in new.items())


def lower_guarantees(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Lower the guarantee of another queue that takes the room."""
    resource = str(cause.numbers.get("resource", ""))
    for name in cause.numbers.get("guarantees", {}):
        spec = _queue(target, name).get("spec") or {}
        stated = dict((spec.get("guarantee") or {}).get("resource") or {})
        old = stated.pop(resource, None)
        if old is None:
            continue
        left = max(0.0, cause.numbers["guarantees"][name] - cause.numbers["over"])
        amount = _quantity(resource, left, up=False)
        if left > 0:
            stated[resource] = amount
        new = {**(spec.get("guarantee") or {}), "resource": stated} if stated else None
        text = f"lower the guarantee of queue {name} for {resource} from {old} to {amount}"
        yield _changed(target, name, text, guarantee=new)


def more_deserved(target: Target, _: Finding) -> Iterator[Change | Sized | None]:
    """Raise what the queue deserves, so that it may reclaim: size 4 adds the requests of a pod."""
    name, pods = target.queue, target.pods
    stated = dict((_queue(target, name).get("spec") or {}).get("deserved") or {})
    reclaims = {"reclaim", "gangreclaim"} & set(target.world.scheduler_conf.actions)
    if not stated or not pods or not reclaims:
        return
    asked = {
        resource: amount
        for resource, amount in requests_of(pods[0]["spec"]).items()
        if resource in stated and amount > 0
    }

    def make(n: int) -> Change | None:
        raised = {
            resource: _quantity(resource, float(held + n * amount / _PARTS))
            for resource, amount in asked.items()
            for held in (Fraction(parse_quantity(stated[resource]), _NANO),)
        }
        text = f"raise what queue {name} deserves: {_amounts(stated, raised)}"
        return _changed(target, name, text, deserved=stated | raised)

    if asked:
        yield make, _PARTS * max(1, min(len(pods), target.least))


def heavier(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Raise the weight of the queue, so that it deserves more."""
    name = cause.about.name if cause.about is not None else target.queue
    old = int((_queue(target, name).get("spec") or {}).get("weight") or 1)
    if len(target.world.of_kind("Queue")) > 1:

        def make(n: int) -> Change | None:
            text = f"raise the weight of queue {name} from {old} to {old + n}"
            return _changed(target, name, text, weight=old + n)

        yield make, _MOST_WEIGHT


def quota_for_pods(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Raise the resource quotas that refuse pods which the gang needs, all together."""
    world, group = target.world, target.group
    del cause  # all quotas that refuse are raised together

    def make(n: int) -> Change | None:
        texts, ops = [], []
        for quota, limits in raised_limits(world, group, n):
            key, old = key_of(quota), quota["spec"]["hard"]
            texts.append(f"{quota['metadata']['name']}: {_amounts(old, limits)}")
            new = {**quota, "spec": {**quota["spec"], "hard": {**old, **limits}}}
            ops.append(patched(RESOURCE_QUOTA, key, quota, new))
        text = f"raise resource quota {' and '.join(texts)}"
        return Change(text, tuple(ops)) if ops else None

    yield make, 2 + refused_count(world, group) - len(needed_pods(world, group))


def wider_quota(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Raise the resource quota that is overrun; its pods may already count in it."""
    about, numbers = cause.about, cause.numbers
    if about is None or about.kind != RESOURCE_QUOTA:
        return
    key = f"{about.namespace}/{about.name}"
    quota = target.world.of_kind(RESOURCE_QUOTA).get(key)
    if quota is None:
        return

    def make(n: int) -> Change | None:
        old = {**((quota.get("spec") or {}).get("hard") or {})}
        old = {**((quota.get("status") or {}).get("hard") or {}), **old}
        hard = _raised(old, (numbers, *numbers.get("more", ())), n)
        new = dict(quota)
        for part in ("spec", "status"):
            if (quota.get(part) or {}).get("hard") is not None:
                new[part] = {**quota[part], "hard": {**quota[part]["hard"], **hard}}
        text = f"raise resource quota {about.name}: {_amounts(old, hard)}"
        return Change(text, (patched(RESOURCE_QUOTA, key, quota, new),)) if hard else None

    yield make, _RAISES * _PARTS


def use_node_groups(target: Target, _: Finding) -> Iterator[Change | None]:
    """Allow the queue to use the existing node groups."""
    name = target.queue
    groups = sorted(
        {
            str(label)
            for one in target.world.of_kind("Node").values()
            if (label := (one["metadata"].get("labels") or {}).get(NODE_GROUP))
        }
    )
    affinity = (_queue(target, name).get("spec") or {}).get("affinity") or {}
    for group in groups:
        near = dict(affinity.get("nodeGroupAffinity") or {})
        far = dict(affinity.get("nodeGroupAntiAffinity") or {})
        wanted, avoided = list(near.get(_REQUIRED) or ()), list(far.get(_REQUIRED) or ())
        if group not in wanted or group in avoided:
            near[_REQUIRED] = [*(each for each in wanted if each != group), group]
            far = set_field(far, _REQUIRED, [each for each in avoided if each != group])
            new = set_field({**affinity, "nodeGroupAffinity": near}, "nodeGroupAntiAffinity", far)
            text = f"allow queue {name} to use node group {group}"
            yield _changed(target, name, text, affinity=new)


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _quantity(resource: str, amount: float, *, up: bool = True) -> str:
    """Write cores, bytes or pieces as a quantity, never too little."""
    name = resource.removeprefix("requests.").removeprefix("limits.")
    if name == "cpu":
        milli = math.ceil(amount * 1000 - 1e-9) if up else math.floor(amount * 1000)
        return format_quantity(resource, milli)
    whole = math.ceil(amount - 1e-9) if up else math.floor(amount)
    return format_quantity(resource, whole)


# The configuration


def _with_conf(target: Target, text: str, edit: Callable[[Conf_], None]) -> Change:
    conf: Conf_ = yaml.safe_load(target.world.conf) or {}
    edit(conf)
    return Change(text, (Conf(text=yaml.safe_dump(conf, sort_keys=False)),))


def add_action(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Add the missing action, where the cause names one."""
    if "action" in cause.numbers:
        yield _with_action(target, str(cause.numbers["action"]))


def evicting(target: Target, _: Finding) -> Iterator[Change | None]:
    """Add an action that makes room by eviction, or let it evict pods of a further queue."""
    actions = target.world.scheduler_conf.actions
    for action in _EVICTING:
        if action not in actions and f"gang{action}" not in actions:
            yield _with_action(target, action)
    if {"reclaim", "gangreclaim"} & {*actions}:
        for name, queue in list(target.world.of_kind("Queue").items()):
            if (queue.get("spec") or {}).get("reclaimable") is False and name != target.queue:
                text = f"make queue {name} reclaimable"
                yield _changed(target, name, text, reclaimable=True)


def _with_action(target: Target, action: str) -> Change:
    known = list(target.world.scheduler_conf.actions)
    actions = [each for each in known if each != action]
    late = action == "backfill" or "allocate" not in actions
    at = len(actions) if late else actions.index("allocate") + 1
    if action == "allocate":
        at = actions.index("enqueue") + 1 if "enqueue" in actions else 0

    def edit(conf: Conf_) -> None:
        conf["actions"] = ", ".join([*actions[:at], action, *actions[at:]])

    if action in known:
        text = f"put the action {action} before {actions[at]}"
        return _with_conf(target, f"{text} in the configuration", edit)
    return _with_conf(target, f"add the action {action} to the configuration", edit)


def larger_factor(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Raise the factor by which overcommit counts the cluster."""
    numbers = cause.numbers
    if "factor" not in numbers:
        return
    factor = float(numbers["factor"])
    for short in (numbers, *numbers.get("more", ())):
        if short["limit"]:
            needed = (short["used"] + short["request"]) * numbers["factor"] / short["limit"]
            factor = max(factor, math.ceil(needed * 100) / 100)

    def edit(conf: Conf_) -> None:
        for plugin in _plugins(conf, "overcommit"):
            plugin["arguments"] = {**(plugin.get("arguments") or {}), "overcommit-factor": factor}

    if factor > float(numbers["factor"]):
        text = f"raise overcommit-factor from {numbers['factor']:g} to {factor:g}"
        yield _with_conf(target, text, edit)


def without_plugin(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Remove the refusing plugin from the configuration."""
    named = cause.numbers.get("plugin") or cause.numbers.get("by")
    names = [named] if named else cause.numbers.get("plugins", [])
    for name in names:
        if name in _NEVER_REMOVED:
            continue

        def edit(conf: Conf_, name: str = str(name)) -> None:
            for tier in conf.get("tiers") or ():
                kept = [one for one in tier.get("plugins") or () if one.get("name") != name]
                tier["plugins"] = kept
            conf["tiers"] = [tier for tier in conf.get("tiers") or () if tier["plugins"]]

        yield _with_conf(target, f"remove plugin {name} from the configuration", edit)


def open_window(target: Target, _: Finding) -> Iterator[Change | None]:
    """Open the revocable zones all day."""

    def edit(conf: Conf_) -> None:
        for plugin in _plugins(conf, "tdm"):
            arguments = dict(plugin.get("arguments") or {})
            for key in arguments:
                if str(key).startswith("tdm.revocable-zone."):
                    arguments[key] = "00:00-23:59"
            plugin["arguments"] = arguments

    yield _with_conf(target, "open the revocable zones all day", edit)


def _plugins(conf: Conf_, name: str) -> Iterator[Conf_]:
    for tier in conf.get("tiers") or ():
        for plugin in tier.get("plugins") or ():
            if plugin.get("name") == name:
                yield plugin
