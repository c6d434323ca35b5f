"""Random clusters in which a job waits for several reasons at once, and sums done by hand.

Nothing here asks the code that explains: nodes and queues are judged from the manifests alone.
"""

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from pumice.api.quantity import parse_quantity
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.sources import load_world
from pumice.testing import node, pod, pod_group, priority_class, queue
from tests.properties.full_clusters import Dice

GPU: Final = "nvidia.com/gpu"
_NANO: Final = 10**9
_LEVELS: Final = {"low": 1, "mid": 50, "high": 1000}
_TAINTS: Final = (
    {"key": "dedicated", "value": "ml", "effect": "NoSchedule"},
    {"key": "flaky", "effect": "PreferNoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
)
Manifest = dict[str, Any]


# Clusters


def scene(seed: int) -> list[Manifest]:
    """Draw nodes that are full, tainted or cordoned, queues with limits, and a job ``ask``."""
    dice = Dice(seed)
    leaves = ["blue", "green", "default"]
    objects = [priority_class(name, value=value) for name, value in _LEVELS.items()]
    objects += [queue("root"), queue("team", parent="root", capability=_limit(dice, 2))]
    objects += [_leaf(dice, name) for name in leaves]
    rooms = {f"n{i}": dice.one_of([2000, 4000, 8000]) for i in range(dice.between(1, 5))}
    objects += [_node(dice, name, cpu) for name, cpu in rooms.items()]
    for number in range(dice.between(0, 5)):
        objects += _running(dice, f"old{number}", dice.one_of(leaves), rooms)
    for name in ["new", "ask"][dice.between(0, 1) :]:
        objects += _waiting(dice, name, dice.one_of(leaves))
    return objects


def conf(seed: int) -> str:
    """Draw a configuration."""
    dice = Dice(seed)
    actions = ["allocate", "backfill"]
    actions[:0] = ["enqueue"] * dice.chance(0.8)
    actions[-1:-1] = ["preempt"] * dice.chance(0.4) + ["reclaim"] * dice.chance(0.4)
    limits: Manifest = dice.one_of(
        [
            {"name": "proportion"},
            {"name": "capacity"},
            {"name": "capacity", "enableHierarchy": True},
        ]
    )
    first = [{"name": name} for name in ("priority", "gang", "conformance")]
    second = [limits, {"name": "predicates"}, {"name": "nodeorder"}]
    second += [{"name": "overcommit"}] * dice.chance(0.4)
    return json.dumps(
        {"actions": ", ".join(actions), "tiers": [{"plugins": first}, {"plugins": second}]}
    )


def world_of(objects: list[Manifest], configuration: str) -> ClusterState:
    """Load a cluster as the commands do."""
    now = "2026-01-15T10:00:00Z"
    return load_world([json.dumps({"objects": objects, "conf": configuration, "now": now})])


def _limit(dice: Dice, times: int = 1) -> Manifest | None:
    cpu = {"cpu": times * dice.one_of([2, 4, 8])}
    return dice.one_of([None, cpu, {**cpu, "memory": f"{8 * times}Gi"}])


def _leaf(dice: Dice, name: str) -> Manifest:
    return queue(
        name,
        parent=dice.one_of(["root", "team"]),
        weight=dice.between(1, 3),
        state="Open" if dice.chance(0.9) else "Closed",
        capability=_limit(dice),
        deserved=dice.one_of([None, {"cpu": 2}]),
    )


def _node(dice: Dice, name: str, cpu: int) -> Manifest:
    return node(
        name,
        cpu=f"{cpu}m",
        memory="32Gi",
        pods=dice.one_of([110, 110, 3]),
        labels={"pool": dice.one_of("ab"), "kubernetes.io/hostname": name},
        taints=[dice.one_of(_TAINTS)] if dice.chance(0.25) else [],
        unschedulable=dice.chance(0.1),
        resources={GPU: 2} if dice.chance(0.2) else None,
    )


def _running(dice: Dice, name: str, where: str, rooms: dict[str, int]) -> list[Manifest]:
    cpu, level = dice.one_of([500, 1000, 2000]), dice.one_of([*_LEVELS])
    made = []
    for i in range(dice.between(1, 4)):
        hosts = [host for host, room in rooms.items() if room >= cpu]
        if hosts:
            host = dice.one_of(hosts)
            rooms[host] -= cpu
            made.append(
                pod(
                    f"{name}-{i}",
                    group=name,
                    cpu=f"{cpu}m",
                    memory="1Gi",
                    node=host,
                    priority=_LEVELS[level],
                    priority_class=level,
                    preemptable=dice.chance(0.8),
                )
            )
            if dice.chance(0.1):
                gone = {"deletionTimestamp": "2026-01-15T10:00:10Z"}
                made[-1]["metadata"] |= gone | {"deletionGracePeriodSeconds": 10}
    least = max(1, len(made) - dice.between(0, 1))
    group = pod_group(name, queue=where, min_member=least, phase="Running", priority_class=level)
    return [group, *made] if made else []


def _waiting(dice: Dice, name: str, where: str) -> list[Manifest]:
    """Draw a gang whose pods may differ, with or without requests, of which all or some start."""
    level, kinds = dice.one_of([*_LEVELS]), [_kind(dice) for _ in range(dice.between(1, 3))]
    size = dice.between(len(kinds), 6)
    pods = []
    for i in range(size):
        kind = i * len(kinds) // size
        pods.append(
            pod(
                f"{name}-{i}",
                group=name,
                role=f"t{kind}" if len(kinds) > 1 else None,
                priority=_LEVELS[level],
                priority_class=level,
                **kinds[kind],
            )
        )
    least = dice.one_of([size, size, 1, (size + 1) // 2])
    group = pod_group(
        name,
        queue=where,
        min_member=least,
        phase=dice.one_of(["Pending", "Inqueue"]),
        priority_class=level,
    )
    return [group, *pods]


def _kind(dice: Dice) -> Manifest:
    if dice.chance(0.1):
        asks: Manifest = {}
    else:
        asks = {"cpu": dice.one_of(["500m", "1", "2", "3"]), "memory": dice.one_of([None, "2Gi"])}
        asks["resources"] = asks["limits"] = {GPU: 1} if dice.chance(0.15) else None
    spec: Manifest = {"nodeSelector": {"pool": dice.one_of("abz")}} if dice.chance(0.2) else {}
    if dice.chance(0.3):
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return {**asks, "spec": spec}


# Sums by hand


def amount(text: Any) -> Fraction:
    """Read a quantity."""
    return Fraction(parse_quantity(text), _NANO)


def requests(one: Manifest) -> dict[str, Fraction]:
    """Add up what a pod asks for."""
    found: dict[str, Fraction] = {}
    for container in one["spec"]["containers"]:
        for name, text in ((container.get("resources") or {}).get("requests") or {}).items():
            found[name] = found.get(name, Fraction(0)) + amount(text)
    return found


def key(one: Manifest) -> str:
    """Name an object."""
    space = one["metadata"].get("namespace")
    return f"{space}/{one['metadata']['name']}" if space else str(one["metadata"]["name"])


def group_of(one: Manifest) -> str:
    """Name the pod group of a pod."""
    return f"default/{one['metadata']['annotations']['scheduling.k8s.io/group-name']}"


def is_leaving(one: Manifest) -> bool:
    """Return whether a pod is terminating."""
    return "deletionTimestamp" in one["metadata"]


class Book:
    """The objects of a cluster, to be looked up."""

    def __init__(self, objects: list[Manifest]) -> None:
        self.nodes = {key(one): one for one in objects if one["kind"] == "Node"}
        self.pods = {key(one): one for one in objects if one["kind"] == "Pod"}
        self.queues = {key(one): one for one in objects if one["kind"] == "Queue"}
        self.groups = {key(one): one for one in objects if one["kind"] == "PodGroup"}

    def on(self, name: str) -> list[Manifest]:
        """List the pods of a node."""
        return [one for one in self.pods.values() if one["spec"].get("nodeName") == name]

    def lacks(self, asked: Mapping[str, Fraction], name: str, *, empty: bool) -> dict[str, float]:
        """Return what a node lacks for a pod once leaving pods are gone, or if it were empty."""
        room = {res: amount(x) for res, x in self.nodes[name]["status"]["allocatable"].items()}
        for one in () if empty else self.on(name):
            for resource, held in requests(one).items() if not is_leaving(one) else ():
                room[resource] = room.get(resource, Fraction(0)) - held
        return {
            resource: float(need - room.get(resource, Fraction(0)))
            for resource, need in asked.items()
            if need > room.get(resource, 0)
        }

    def refuses(self, constraint: str, one: Manifest, name: str) -> bool:
        """Return whether a constraint keeps a pod off a node."""
        return _REFUSES[constraint](self, one, name)

    def held(self, queue_name: str, resource: str) -> float:
        """Add up what the pods of a queue, and of those under it, hold."""
        under = {queue_name}
        for _ in range(3):
            under |= {
                name for name, one in self.queues.items() if one["spec"].get("parent") in under
            }
        return float(
            sum(
                requests(one).get(resource, Fraction(0))
                for one in self.pods.values()
                if one["spec"].get("nodeName")
                and not is_leaving(one)
                and self.groups[group_of(one)]["spec"]["queue"] in under
            )
        )


def _taints(book: Book, one: Manifest, name: str) -> set[str]:
    tolerated = {each["key"] for each in one["spec"].get("tolerations") or ()}
    taints = book.nodes[name]["spec"].get("taints") or ()
    return {each["key"] for each in taints if each["effect"] == "NoSchedule"} - tolerated


def _selects(book: Book, one: Manifest, name: str) -> bool:
    labels = book.nodes[name]["metadata"]["labels"]
    return all(labels.get(k) == v for k, v in (one["spec"].get("nodeSelector") or {}).items())


_UNREADY: Final = "node.kubernetes.io/not-ready"
_REFUSES: Final[Mapping[str, Callable[[Book, Manifest, str], bool]]] = {
    "capacity": lambda book, one, name: bool(book.lacks(requests(one), name, empty=True)),
    "NodeUnschedulable": lambda book, _, name: bool(book.nodes[name]["spec"].get("unschedulable")),
    "NodeNotReady": lambda book, one, name: _UNREADY in _taints(book, one, name),
    "NodeSelector": lambda book, one, name: not _selects(book, one, name),
    "Taint": lambda book, one, name: bool(_taints(book, one, name) - {_UNREADY}),
    "PodLimit": lambda book, _, name: (
        len(book.on(name)) >= int(book.nodes[name]["status"]["allocatable"]["pods"])
    ),
    "InsufficientResource": lambda book, one, name: bool(
        book.lacks(requests(one), name, empty=False)
    ),
}
