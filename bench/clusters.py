"""Clusters to time: the same objects for the same arguments, always.

Cases differ in configuration and in what is pending or running; sizes are free.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench import policy_clusters
from bench.policy_clusters import EVICTING, RECLAIMING

Manifest = dict[str, Any]

_DEFAULT = """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
CONFIGURATIONS = {
    "default": _DEFAULT,
    "affinity": _DEFAULT,
    # Volcano remembers a node that refused a role; with spread constraints it may open again.
    "spread": _DEFAULT
    + """configurations:
- name: allocate
  arguments:
    predicateErrorCacheEnable: false
""",
    "shapes": _DEFAULT,
    "many-shapes": _DEFAULT,
    "idle": _DEFAULT,
    "changed": _DEFAULT,
    "binpack": """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: binpack
    arguments:
      binpack.weight: 10
""",
    "capacity": """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: capacity
    enableHierarchy: true
  - name: nodeorder
""",
    "network": """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: network-topology-aware
""",
    "task-topology": """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: task-topology
    arguments:
      task-topology.weight: 10
""",
    **policy_clusters.CONFIGURATIONS,
}
CONFIGURATIONS["tree"] = CONFIGURATIONS["capacity"]
_SHAPES = ((1000, 2), (2000, 4), (4000, 8), (1000, 4), (2000, 16))  # milli-cpu, GiB
_BIG = (8000, 32)
_GANG = 20  # pods in each running group
_RACKS = {"network": 16, "racks": 4}
"""Nodes of a rack, where there are network domains."""
_GREEDY = 2000
"""Queues that lose pods, where there are many."""


@dataclass(frozen=True)
class Case:
    """One cluster: a kind of work and its size."""

    kind: str = "default"
    nodes: int = 1000
    pods: int = 1000
    gang: int = 100
    running: int = 0

    @property
    def name(self) -> str:
        """The name of the case: everything it depends on."""
        return f"{self.kind}-{self.nodes}n-{self.pods}p-g{self.gang}-r{self.running}"

    @property
    def conf(self) -> str:
        """The configuration text."""
        return CONFIGURATIONS[self.kind]

    @property
    def node_usage(self) -> dict[str, Manifest]:
        """What nodes were measured to use, by name."""
        return {
            f"node-{i:05d}": {"cpu": i % 70, "memory": i % 50, "metricsTime": 1768478390.0}
            for i in range(self.nodes if self.kind == "usage" else 0)
        }

    def objects(self) -> list[Manifest]:
        """Return all manifests of the cluster."""
        return list(self.stream())

    def stream(self) -> Iterator[Manifest]:
        """Make the manifests of the cluster one after the other."""
        queues, names = _queues(self)
        yield from map(_node, range(self.nodes))
        if self.kind in _RACKS:
            yield from _domains(self.nodes, _RACKS[self.kind])
        yield from queues
        yield from (_priority_class("low", 10), _priority_class("high", 1000))
        yield from policy_clusters.objects(self.kind, self.nodes, self.pods)
        yield from _running(self, names)
        yield from _pending(self, names)


def _when(seconds: int) -> str:
    day, rest = divmod(seconds, 86400)
    hour, rest = divmod(rest, 3600)
    return f"2026-01-{1 + day:02d}T{hour:02d}:{rest // 60:02d}:{rest % 60:02d}Z"


def _node(i: int) -> Manifest:
    size = 1 + i % 3
    name = f"node-{i:05d}"
    amounts = {"cpu": str(32 * size), "memory": f"{128 * size}Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "zone": f"z{i % 10}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _domains(n_nodes: int, size: int) -> Iterator[Manifest]:
    """Make racks of some nodes, rows of 8 racks, and halls of 4 rows."""
    names = [f"node-{i:05d}" for i in range(n_nodes)]
    for tier, (word, kind) in enumerate(
        (("rack", "Node"), ("row", "HyperNode"), ("hall", "HyperNode"))
    ):
        groups = [names[i : i + size] for i in range(0, len(names), size)]
        names = [f"{word}-{i:04d}" for i in range(len(groups))]
        size = 8 if tier == 0 else 4
        for name, members in zip(names, groups, strict=True):
            chosen = [{"type": kind, "selector": {"exactMatch": {"name": m}}} for m in members]
            yield {
                "apiVersion": "topology.volcano.sh/v1alpha1",
                "kind": "HyperNode",
                "metadata": {"name": name},
                "spec": {"tier": tier + 1, "tierName": word, "members": chosen},
            }


def _queue(name: str, i: int, **spec: Any) -> Manifest:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": name, "creationTimestamp": _when(i)},
        "spec": {"weight": 1 + i % 4, "reclaimable": True, **spec},
        "status": {"state": "Open"},
    }


def _priority_class(name: str, value: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _queues(case: Case) -> tuple[list[Manifest], list[str]]:
    if case.kind == "capacity":
        return _queue_tree(case.nodes, 10, 10)
    if case.kind == "tree":
        return _queue_tree(case.nodes, 50, 99)
    if case.kind in RECLAIMING:
        rich = {"cpu": str(64 * case.nodes), "memory": f"{256 * case.nodes}Gi"}
        little = {"cpu": "1", "memory": "1Gi"}
        greedy = [_queue(name, 0, deserved=little) for name in _greedy(case.kind)]
        return [*greedy, _queue("starved", 1, deserved=rich)], ["starved"]
    names = [f"q{i}" for i in range(4)]
    return [_queue(name, i) for i, name in enumerate(names)], names


def _greedy(kind: str) -> list[str]:
    """Name the queues that hold more than they deserve."""
    return [f"greedy-{i}" for i in range(_GREEDY)] if kind == "reclaim-queues" else ["greedy"]


def _queue_tree(n_nodes: int, n_branches: int, n_leaves: int) -> tuple[list[Manifest], list[str]]:
    """Make a root, some departments and some teams in each."""
    deserved = {"cpu": str(max(1, n_nodes // 2)), "memory": f"{2 * n_nodes}Gi"}
    queues = [_queue("root", 0)]
    branches, leaves = range(n_branches), range(n_leaves)
    for d in branches:
        queues.append(_queue(f"d{d}", d, parent="root"))
        teams = (_queue(f"d{d}-t{t}", t, parent=f"d{d}", deserved=deserved) for t in leaves)
        queues.extend(teams)
    return queues, [f"d{d}-t{t}" for t in leaves for d in branches]


def _running(case: Case, queues: list[str]) -> Iterator[Manifest]:
    if case.kind in EVICTING:
        yield from _full_nodes(case, queues)
        return
    for j in range(case.running // _GANG):
        name, shape = f"run{j:05d}", _SHAPES[j % len(_SHAPES)]
        yield _group(name, queues[j % len(queues)], _GANG, shape, 100 + j, phase="Running")
        for k in range(_GANG):
            on = f"node-{(j * _GANG + k) % case.nodes:05d}"
            yield _pod(name, k, shape, 100 + j, on=on)


def _full_nodes(case: Case, queues: list[str]) -> Iterator[Manifest]:
    """Fill every node with low-priority pods of 8 cpu and 32 GiB."""
    places = [f"node-{i:05d}" for i in range(case.nodes) for _ in range(4 * (1 + i % 3))]
    owners = _greedy(case.kind) if case.kind in RECLAIMING else queues
    size = _GANG if len(owners) < _GREEDY else 4
    for j, start in enumerate(range(0, len(places), size)):
        owner = owners[j % len(owners)]
        name, age = f"old{j:05d}", 100 + j % 50000
        yield _group(name, owner, 1, _BIG, age, phase="Running", cls="low")
        for k, on in enumerate(places[start : start + size]):
            yield _pod(name, k, _BIG, age, on=on, priority=10)


def _pending(case: Case, queues: list[str]) -> Iterator[Manifest]:
    evicting = case.kind in EVICTING
    high = evicting and case.kind not in RECLAIMING
    for j in range(-(-case.pods // case.gang)):
        name, age = f"new{j:05d}", 200000 + j
        shape = _SHAPES[j % len(_SHAPES)]
        if case.kind == "shapes":
            shape = (1000 + 10 * (j % 200), 2 + j % 7)
        if case.kind == "many-shapes":
            shape = (1000 + j % 1000, 2 + j % 7)
        if evicting or case.kind == "racks":
            shape = _BIG
        members = min(case.gang, case.pods - j * case.gang)
        queue = queues[j % len(queues)]
        group = _group(
            name, queue, members, shape, age, phase="Inqueue", cls="high" if high else ""
        )
        if case.kind in _RACKS:
            group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 2}
        if case.kind == "elastic":
            group["spec"]["minMember"] = 1
        if case.kind == "task-topology":
            group["metadata"]["annotations"] = {"volcano.sh/task-topology-affinity": "ps,w"}
        yield group
        for k in range(members):
            priority = 1000 if high else None
            pod = _pod(name, k, shape, age, constraint=case.kind, priority=priority)
            yield from policy_clusters.constrain(case.kind, pod)
            yield pod


def _group(
    name: str,
    queue: str,
    members: int,
    shape: tuple[int, int],
    age: int,
    *,
    phase: str,
    cls: str = "",
) -> Manifest:
    minimum = {"cpu": f"{shape[0] * members}m", "memory": f"{shape[1] * members}Gi"}
    spec: Manifest = {"minMember": members, "queue": queue, "minResources": minimum}
    if cls:
        spec["priorityClassName"] = cls
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": "bench",
            "uid": name,
            "creationTimestamp": _when(age),
        },
        "spec": spec,
        "status": {"phase": phase},
    }


def _pod(
    group: str,
    k: int,
    shape: tuple[int, int],
    age: int,
    *,
    on: str = "",
    constraint: str = "",
    priority: int | None = None,
) -> Manifest:
    requests = {"cpu": f"{shape[0]}m", "memory": f"{shape[1]}Gi"}
    container = {"name": "c", "image": "busybox", "resources": {"requests": requests}}
    spec: Manifest = {"schedulerName": "volcano", "containers": [container]}
    if on:
        spec["nodeName"] = on
    if priority is not None:
        spec["priority"] = priority
    role = "ps" if constraint == "task-topology" and k % 4 == 0 else "w"
    mates = {"matchLabels": {"job": group}}
    if constraint == "affinity":
        term = {"labelSelector": mates, "topologyKey": "kubernetes.io/hostname"}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": required}
    if constraint == "spread":
        spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**spread, "labelSelector": mates}]
    name = f"{group}-w-{k}"
    marks = {"scheduling.k8s.io/group-name": group, "volcano.sh/task-spec": role}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "bench",
            "uid": name,
            "labels": {"job": group},
            "creationTimestamp": _when(age),
            "annotations": marks,
        },
        "spec": spec,
        "status": {"phase": "Running" if on else "Pending"},
    }
