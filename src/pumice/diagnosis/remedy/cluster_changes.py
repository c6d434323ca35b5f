"""Changes of nodes and volumes, and waiting for others to end."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from pumice.api.annotations import BIND_COMPLETED, HOSTNAME, NOT_READY_TAINTS, NUMA_POLICY
from pumice.api.kinds import ENDED_PHASES, RESOURCE_QUOTA, Manifest
from pumice.api.quantity import format_quantity, parse_quantity
from pumice.api.times import overdue_s
from pumice.api.wording import counted, first_of, verb
from pumice.controllers.expected import is_expected
from pumice.diagnosis.changes import Add, Change, Operation, Remove, Wait, new_nodes, patched
from pumice.diagnosis.cluster_state import group_of, key_of
from pumice.diagnosis.remedy.target import Target, requests_of
from pumice.diagnosis.settings import add_nodes, biggest_first
from pumice.examine.findings import Finding

Sized = tuple[Callable[[int], Change | None], int]
_NANO: Final = 10**9
_KINDS: Final = 4
_ENLARGED: Final = 2
"""How many kinds of nodes are tried with more than they have."""
_JOBS: Final = 12
_NAMED: Final = 3
_NODES: Final = 4
_TIMES: Final = 4
_OURS: Final = "volcano.sh/"
"""In the names of labels that plugins read, whatever a job asks for."""
_KEPT: Final = (HOSTNAME, NUMA_POLICY)


def more_nodes(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Add nodes like existing ones: like the one that comes nearest, then the biggest first."""
    nodes = _one_of_each_kind(target.world.of_kind("Node"), str(cause.numbers.get("nearest", "")))
    if not _reads_labels(target):
        nodes = list({_kind(node, labels=False): node for node in reversed(nodes)}.values())[::-1]
    pods = len(target.pods) or int(target.spec.get("minMember") or 1)
    largest = _TIMES * max(1, pods)
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
    offered = {
        name: format_quantity(name, float(amount * (1000 if name == "cpu" else 1)))
        for name, amount in most.items()
    }
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
            found[name] = format_quantity(name, float(amount * (1000 if name == "cpu" else 1)))
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
    closed = [
        node
        for node in target.world.of_kind("Node").values()
        if (node.get("spec") or {}).get("unschedulable")
    ]

    def opened(node: Manifest) -> Manifest:
        spec = {k: v for k, v in node["spec"].items() if k != "unschedulable"}
        return {**node, "spec": spec}

    yield from _nodes(closed, opened, lambda _: "uncordon")


def untaint(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Remove a taint from nodes: each alone, then all."""
    texts = set(cause.numbers.get("taints", ()))

    def clean(node: Manifest) -> Manifest:
        taints = [one for one in node["spec"]["taints"] if taint_of(one) not in texts]
        spec = {**node["spec"], "taints": taints}
        return {**node, "spec": {k: v for k, v in spec.items() if v or k != "taints"}}

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
