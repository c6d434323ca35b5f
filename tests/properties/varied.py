"""Crowded clusters with one or more of everything else that a cluster may have.

Each feature changes a cluster of ``crowded`` and its configuration: devices, volumes, windows,
network domains, trees of queues, gates and more.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.sources import load_world
from pumice.testing import hyper_node, pdb, priority_class, queue
from tests.properties.crowded import Manifest, conf, group_of, scene
from tests.properties.full_clusters import Dice

NOW: Final = "2026-01-15T10:00:00Z"
_CARD: Final = 8000


@dataclass
class Draw:
    """A cluster to be changed."""

    dice: Dice
    objects: list[Manifest]
    conf: Manifest
    usage: dict[str, Any] = field(default_factory=dict)
    features: list[str] = field(default_factory=list)

    def of(self, kind: str) -> list[Manifest]:
        """List the objects of a kind."""
        return [one for one in self.objects if one["kind"] == kind]

    @property
    def waiting(self) -> list[Manifest]:
        """Pods without a node."""
        return [one for one in self.of("Pod") if not one["spec"].get("nodeName")]

    @property
    def running(self) -> list[Manifest]:
        """Pods on nodes."""
        return [one for one in self.of("Pod") if one["spec"].get("nodeName")]

    @property
    def mine(self) -> list[Manifest]:
        """Pods of the job that is asked about."""
        return [one for one in self.waiting if group_of(one) == "default/ask"]

    def plug(self, name: str, **arguments: Any) -> None:
        """Add a plugin, or replace it."""
        tier = self.conf["tiers"][1]["plugins"]
        made = {"name": name, **({"arguments": arguments} if arguments else {})}
        tier[:] = [*(one for one in tier if one["name"] != name), made]

    def act(self, *actions: str) -> None:
        """Add one of some actions."""
        known = self.conf["actions"].split(", ")
        if not set(actions) & set(known):
            known.insert(known.index("allocate") + 1, self.dice.one_of(actions))
        self.conf["actions"] = ", ".join(known)

    @property
    def content(self) -> Manifest:
        """The cluster as a file."""
        more = {"nodeUsage": self.usage} if self.usage else {}
        return {"objects": self.objects, "conf": json.dumps(self.conf), "now": NOW, **more}


def varied(seed: int) -> Draw:
    """Draw a cluster with one to three features."""
    draw = Draw(Dice(seed + 1000), scene(seed), json.loads(conf(seed)))
    for one in (*draw.of("PodGroup"), *draw.of("Pod")):
        one["metadata"]["creationTimestamp"] = "2026-01-15T09:59:50Z"
    for one in draw.running:
        one["status"]["startTime"] = "2026-01-15T09:59:50Z"
    for one in draw.of("Pod"):
        if draw.dice.chance(0.5):
            _marks(one)["pumice.dev/run-seconds"] = str(draw.dice.between(20, 90))
    names = [*FEATURES]
    draw.features = [names[seed % len(names)]]
    draw.features += [draw.dice.one_of(names) for _ in range(draw.dice.between(0, 2))]
    for name in dict.fromkeys(draw.features):
        FEATURES[name](draw)
    return draw


def loaded(content: Manifest) -> ClusterState:
    """Load a cluster as the commands do."""
    return load_world([json.dumps(content)])


def _name(one: Manifest) -> str:
    return str(one["metadata"]["name"])


def _marks(one: Manifest) -> dict[str, str]:
    found: dict[str, str] = one["metadata"].setdefault("annotations", {})
    return found


def _ask(one: Manifest, resource: str, amount: int | str) -> None:
    asks = one["spec"]["containers"][0].setdefault("resources", {})
    asks.setdefault("requests", {})[resource] = str(amount)
    asks.setdefault("limits", {})[resource] = str(amount)


# Time


def _waiting_times(draw: Draw) -> None:
    draw.plug("sla", **({"sla-waiting-time": "25m"} if draw.dice.chance(0.5) else {}))
    for one in draw.of("PodGroup"):
        if draw.dice.chance(0.5):
            _marks(one)["sla-waiting-time"] = draw.dice.one_of(["10m", "20m30s", "40m"])


def _windows(draw: Draw) -> None:
    times = draw.dice.one_of(["09:00-11:00", "10:01-10:03", "12:00-13:00"])
    draw.plug("tdm", **{"tdm.revocable-zone.rz1": times, "tdm.evict.period": "30s"})
    for one in draw.of("Node"):
        if draw.dice.chance(0.5):
            one["metadata"]["labels"]["volcano.sh/revocable-zone"] = "rz1"
    for one in draw.of("Pod"):
        if draw.dice.chance(0.5):
            _marks(one)["volcano.sh/revocable-zone"] = "*"


# Nodes


def _usage(draw: Draw) -> None:
    draw.plug("usage", thresholds={"cpu": 80, "mem": 80})
    for one in draw.of("Node"):
        load = {part: draw.dice.one_of([10, 50, 90]) for part in ("cpu", "memory")}
        draw.usage[_name(one)] = load


def _sick(draw: Draw) -> None:
    for one in draw.of("Node"):
        if draw.dice.chance(0.3):
            key = f"node.kubernetes.io/{draw.dice.one_of(['not-ready', 'unreachable'])}"
            one["spec"]["taints"] = [{"key": key, "effect": "NoSchedule"}]


def _node_groups(draw: Draw) -> None:
    draw.plug("nodegroup", **({"strict": False} if draw.dice.chance(0.4) else {}))
    for one in draw.of("Node"):
        if draw.dice.chance(0.8):
            one["metadata"]["labels"]["volcano.sh/nodegroup-name"] = draw.dice.one_of(["g1", "g2"])
    for one in draw.of("Queue"):
        rule = draw.dice.one_of(["required", "preferred"])
        groups = draw.dice.one_of([["g1"], ["g2"], ["g1", "g2"]])
        near = {f"{rule}DuringSchedulingIgnoredDuringExecution": groups}
        one["spec"]["affinity"] = {"nodeGroupAffinity": near}
        if draw.dice.chance(0.4):
            limit = json.dumps({"g1": {"cpu": draw.dice.one_of(["1", "2", "4"])}})
            _marks(one)["volcano.sh/nodegroup-resource-limits"] = limit


def _domains(draw: Draw) -> None:
    draw.plug("network-topology-aware")
    names = [_name(one) for one in draw.of("Node")]
    racks = {f"s{i}": names[i::2] for i in range(2) if names[i::2]}
    draw.objects += [hyper_node(name, tier=1, nodes=nodes) for name, nodes in racks.items()]
    draw.objects.append(hyper_node("top", tier=2, children=racks))
    for one in draw.of("PodGroup"):
        if one["status"]["phase"] != "Running":
            mode = draw.dice.one_of(["hard", "hard", "soft"])
            tier = draw.dice.one_of([1, 1, 2])
            one["spec"]["networkTopology"] = {"mode": mode, "highestTierAllowed": tier}


# Devices and volumes


def _cards(draw: Draw) -> None:
    """Draw cards that are shared by memory, or taken whole."""
    shared = draw.dice.chance(0.5)
    switch = "GPUSharingEnable" if shared else "GPUNumberEnable"
    draw.plug("deviceshare", **{f"deviceshare.{switch}": True})
    free: dict[str, list[int]] = {}
    for one in draw.of("Node"):
        n, status = draw.dice.between(0, 2), one["status"]
        free[_name(one)] = [_CARD] * n
        status.setdefault("capacity", dict(status["allocatable"]))
        for part in ("allocatable", "capacity") if n else ():
            status[part]["volcano.sh/gpu-memory"] = str(_CARD * n)
            status[part]["volcano.sh/gpu-number"] = str(n)
    resource = "volcano.sh/gpu-memory" if shared else "volcano.sh/gpu-number"
    for one in draw.running:
        amount = draw.dice.one_of([2000, 5000]) if shared else _CARD
        cards = free[one["spec"]["nodeName"]]
        at = next((i for i, left in enumerate(cards) if left >= amount), None)
        if at is not None and draw.dice.chance(0.5):
            cards[at] -= amount
            _marks(one)["volcano.sh/gpu-index"] = str(at)
            _ask(one, resource, amount if shared else 1)
    for one in draw.waiting:
        if draw.dice.chance(0.7):
            _ask(one, resource, draw.dice.one_of([2000, 4000, 9000] if shared else [1, 2]))


def _virtual_cards(draw: Draw) -> None:
    draw.plug("deviceshare", **{"deviceshare.VGPUEnable": True})
    for one in draw.of("Node"):
        n, name = draw.dice.between(0, 2), _name(one)
        cards = "".join(f"GPU-{name}-{i},4,{_CARD},NVIDIA-A100,true,hami-core:" for i in range(n))
        _marks(one)["volcano.sh/node-vgpu-register"] = cards
        for what, amount in (("number", 4), ("memory", _CARD), ("cores", 100)):
            one["status"]["allocatable"][f"volcano.sh/vgpu-{what}"] = str(amount * n)
    for one in draw.waiting:
        if draw.dice.chance(0.7):
            _ask(one, "volcano.sh/vgpu-number", draw.dice.one_of([1, 1, 2]))
            _ask(one, "volcano.sh/vgpu-memory", draw.dice.one_of([2000, 6000, 9000]))


def _volumes(draw: Draw) -> None:
    made = [("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer")]
    made += [("now", "example.com/disk", "Immediate")]
    for name, provisioner, mode in made:
        head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
        more = {"provisioner": provisioner, "volumeBindingMode": mode}
        draw.objects.append({**head, "metadata": {"name": name}, **more})
    draw.objects += [_volume(f"v{i}", draw.dice.one_of("ab")) for i in range(2)]
    for one in draw.mine:
        kind, claim = draw.dice.one_of(["none", "local", "now", "missing"]), f"claim-{_name(one)}"
        if kind != "none":
            source = {"persistentVolumeClaim": {"claimName": claim}}
            one["spec"]["volumes"] = [{"name": "data", **source}]
        if kind in ("local", "now"):
            draw.objects.append(_claim(claim, kind, draw.dice.one_of(["5Gi", "50Gi"])))


def _volume(name: str, pool: str) -> Manifest:
    match = {"key": "pool", "operator": "In", "values": [pool]}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "hostPath": {"path": "/srv"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [match]}]}},
    }
    head = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}}
    return {**head, "spec": spec, "status": {"phase": "Available"}}


def _claim(name: str, storage: str, size: str) -> Manifest:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage,
        "resources": {"requests": {"storage": size}},
    }
    meta = {"name": name, "namespace": "default"}
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
    return {**head, "spec": spec, "status": {"phase": "Pending"}}


# Evictions


def _budgets(draw: Draw) -> None:
    draw.plug("pdb")
    draw.act("preempt", "gangpreempt")
    for one in draw.running:
        one["metadata"].setdefault("labels", {})["app"] = draw.dice.one_of("xy")
    allowed = draw.dice.one_of([0, 0, 1])
    draw.objects.append(pdb("b", match_labels={"app": "x"}, disruptions_allowed=allowed))


def _polite(draw: Draw) -> None:
    draw.objects.append(priority_class("polite", value=2000, preemption_policy="Never"))
    draw.act("preempt", "gangpreempt")
    draw.act("reclaim", "gangreclaim")
    fields = {"priority": 2000, "priorityClassName": "polite", "preemptionPolicy": "Never"}
    for one in draw.mine:
        one["spec"].update(fields)


def _critical(draw: Draw) -> None:
    draw.act("preempt", "gangpreempt")
    for one in draw.running:
        if draw.dice.chance(0.4):
            one["spec"]["priorityClassName"] = "system-node-critical"


# Queues


def _tree(draw: Draw) -> None:
    """Draw a tree with amounts at each level, in which queues may be closed or misplaced."""
    dice, tier = draw.dice, draw.conf["tiers"][1]["plugins"]
    tier[:] = [one for one in tier if one["name"] not in ("proportion", "capacity")]
    tier.append({"name": "capacity", "enableHierarchy": True})
    draw.objects[:] = [one for one in draw.objects if one["kind"] != "Queue"]
    draw.objects += [queue("root"), queue("default", parent="root")]
    limits: list[Manifest | None] = [None, {"cpu": 4}, {"cpu": 6, "memory": "16Gi"}]
    leaves = {"lc": "dept", "ld": dice.one_of(["dept", "dept", "nowhere"])}
    for name, parent, size in [("dept", "root", 3), *((k, v, 1) for k, v in leaves.items())]:
        made = queue(
            name,
            parent=parent,
            state=dice.one_of(["Open", "Open", "Open", "Open", "Closed"]),
            capability=dice.one_of(limits),
            deserved=dice.one_of([None, {"cpu": 2 * size}]),
            guarantee=dice.one_of([None, None, {"cpu": size}]),
            reclaimable=dice.chance(0.7),
        )
        draw.objects.append(made)
    for one in draw.of("PodGroup"):
        one["spec"]["queue"] = dice.one_of([*leaves, "default", "default", "gone"])


# Pods


def _gates(draw: Draw) -> None:
    for one in draw.waiting:
        if draw.dice.chance(0.35):
            one["spec"]["schedulingGates"] = [{"name": draw.dice.one_of(["hold", "other"])}]


def _nominated(draw: Draw) -> None:
    for one in draw.waiting:
        if draw.dice.chance(0.4):
            one["status"]["nominatedNodeName"] = _name(draw.dice.one_of(draw.of("Node")))


def _roles(draw: Draw) -> None:
    counts: dict[str, int] = {}
    for one in draw.mine:
        role = _marks(one).setdefault("volcano.sh/task-spec", draw.dice.one_of(["t0", "t1"]))
        counts[role] = counts.get(role, 0) + 1
    (group,) = [one for one in draw.of("PodGroup") if _name(one) == "ask"]
    least = {role: draw.dice.between(1, n) for role, n in counts.items()}
    group["spec"]["minTaskMember"] = least
    draw.plug("task-topology")
    _marks(group)["volcano.sh/task-topology-affinity"] = "t0,t1"


def _without_requests(draw: Draw) -> None:
    for one in draw.mine:
        if draw.dice.chance(0.5):
            one["spec"]["containers"][0]["resources"] = {}


def _other_amounts(draw: Draw) -> None:
    for one in draw.of("Node"):
        if draw.dice.chance(0.5):
            one["status"]["allocatable"]["example.com/ssd"] = str(draw.dice.between(1, 2))
    for one in draw.mine:
        if draw.dice.chance(0.4):
            _ask(one, "example.com/ssd", draw.dice.between(1, 3))


def _fewer_plugins(draw: Draw) -> None:
    for tier in draw.conf["tiers"]:
        kept = [one for one in tier["plugins"] if draw.dice.chance(0.75)]
        tier["plugins"] = kept or tier["plugins"][:1]


FEATURES: Final[dict[str, Callable[[Draw], None]]] = {
    "waiting times": _waiting_times,
    "windows": _windows,
    "usage": _usage,
    "sick nodes": _sick,
    "node groups": _node_groups,
    "network domains": _domains,
    "cards": _cards,
    "virtual cards": _virtual_cards,
    "volumes": _volumes,
    "budgets": _budgets,
    "polite": _polite,
    "critical": _critical,
    "tree": _tree,
    "gates": _gates,
    "nominated": _nominated,
    "roles": _roles,
    "without requests": _without_requests,
    "other amounts": _other_amounts,
    "fewer plugins": _fewer_plugins,
}
