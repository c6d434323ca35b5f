"""Small generated clusters with a bit of everything, the same for the same seed.

For checks that need a cluster but not a particular one.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pumice.api.annotations import NODE_GROUP, ZONE
from pumice.api.kinds import Manifest
from pumice.api.meta import KubeObject
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.testing.builders import node, pdb, pod, pod_group, priority_class, queue

_GPU = "nvidia.com/gpu"
_TAINT = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
_DISLIKE = {"key": "old", "value": "yes", "effect": "PreferNoSchedule"}
_TOLERATION = {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}
_QUEUES = ("red", "green", "blue")
_NAMESPACES = ("default", "team")


def snapshot_of(objects: Iterable[Manifest]) -> Snapshot:
    """Load manifests, as a scheduler would before a session."""
    things: list[KubeObject] = [from_manifest(manifest) for manifest in objects]
    return Ingest(Snapshot()).load(things)


def open_session(objects: Iterable[Manifest], *tiers: Sequence[Plugin], **options: Any) -> Session:
    """Open a session on manifests with tiers of plugins, every switch on."""
    enabled = [[Enabled(plugin, {}) for plugin in tier] for tier in tiers]
    return Session(snapshot_of(objects), enabled, **options)


def sample_cluster(seed: int, *, nodes: int = 12, pods: int = 40) -> list[Manifest]:
    """Make a cluster: zones, taints, gpus, queues, priorities, gangs running and waiting."""
    rng = np.random.default_rng(seed)
    objects = [
        priority_class("low", value=1),
        priority_class("high", value=1000),
        queue("default", created=_time(0)),
        queue("red", weight=3, created=_time(1), capability={"cpu": 24, "memory": "64Gi"}),
        queue("green", weight=1, created=_time(2), deserved={"cpu": 8, "memory": "16Gi"}),
        queue("blue", weight=2, created=_time(3), guarantee={"cpu": 2}, reclaimable=False),
        pdb("web", match_labels={"app": "web"}, disruptions_allowed=1),
        *(_node(rng, i) for i in range(nodes)),
    ]
    room = [[1000 * int(one["status"]["allocatable"]["cpu"]), 0] for one in objects[-nodes:]]
    made = 0
    while made < pods:
        size = min(int(rng.integers(1, 6)), pods - made)
        objects += _job(rng, len(objects), size, room)
        made += size
    return objects


def _time(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


def _node(rng: np.random.Generator, i: int) -> Manifest:
    gpus = {_GPU: 4} if i % 4 == 0 else {}
    taints = [_TAINT] if i % 5 == 3 else [_DISLIKE] if i % 5 == 1 else []
    return node(
        f"n{i:02d}",
        cpu=int(rng.choice([4, 8, 16])),
        memory=f"{int(rng.choice([8, 16, 32]))}Gi",
        pods=int(rng.choice([5, 20, 110])),
        labels={
            ZONE: f"z{i % 3}",
            "disk": "ssd" if rng.random() < 0.5 else "hdd",
            NODE_GROUP: "left" if i % 2 else "right",
        },
        taints=taints,
        unschedulable=i % 11 == 10,
        resources=gpus,
        created=_time(i),
    )


def _job(rng: np.random.Generator, number: int, size: int, room: list[list[int]]) -> list[Manifest]:
    """Make one gang; a running one takes available cpu."""
    name, namespace = f"job{number}", str(rng.choice(_NAMESPACES))
    cpu = int(rng.choice([0, 500, 1000, 2000]))
    running = cpu > 0 and rng.random() < 0.5
    level = str(rng.choice(["low", "high"]))
    group = pod_group(
        name,
        namespace=namespace,
        min_member=int(rng.integers(1, size + 1)),
        queue=str(rng.choice(_QUEUES)),
        phase="Running" if running else str(rng.choice(["Pending", "Inqueue"])),
        min_resources={"cpu": f"{cpu}m"} if rng.random() < 0.5 else None,
        priority_class=level,
        created=_time(number),
    )
    shared = _pod_fields(rng, cpu)
    members = []
    for i in range(size):
        home = _home(room, cpu) if running else None
        members.append(
            pod(
                f"{name}-main-{i}",
                namespace=namespace,
                group=name,
                role="main" if i else "head",
                node=home,
                priority=1000 if level == "high" else 1,
                preemptable=bool(rng.random() < 0.8),
                created=_time(number + i),
                **shared,
            )
        )
    return [group, *members]


def _pod_fields(rng: np.random.Generator, cpu: int) -> dict[str, Any]:
    """Choose what the pods of a job share."""
    fields: dict[str, Any] = {"labels": {"app": str(rng.choice(["web", "db", "batch"]))}}
    if cpu:
        fields |= {"cpu": f"{cpu}m", "memory": f"{int(rng.integers(1, 5))}Gi"}
    spec: dict[str, Any] = {}
    if rng.random() < 0.3:
        spec["tolerations"] = [_TOLERATION]
    if rng.random() < 0.3:
        spec["nodeSelector"] = {"disk": str(rng.choice(["ssd", "hdd"]))}
    if cpu and rng.random() < 0.2:
        fields["resources"] = {_GPU: 1}
    if rng.random() < 0.5:
        spec |= _spread(rng)
    return fields | ({"spec": spec} if spec else {})


def _spread(rng: np.random.Generator) -> dict[str, Any]:
    """Choose how a pod keeps near to, or away from, others."""
    zone = ZONE
    others = {"matchLabels": {"app": str(rng.choice(["web", "db"]))}}
    term = {"labelSelector": others, "topologyKey": str(rng.choice([zone, "disk"]))}
    near = {"weight": int(rng.integers(1, 101)), "podAffinityTerm": term}
    kind = int(rng.integers(4))
    if kind == 0:
        rule: dict[str, Any] = {"preferredDuringSchedulingIgnoredDuringExecution": [near]}
        return {"affinity": {str(rng.choice(["podAffinity", "podAntiAffinity"])): rule}}
    if kind == 1:
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return {"affinity": {"podAntiAffinity": rule}}
    if kind == 2:
        when = str(rng.choice(["DoNotSchedule", "ScheduleAnyway"]))
        skew = {"maxSkew": 1, "topologyKey": zone, "whenUnsatisfiable": when}
        return {"topologySpreadConstraints": [{**skew, "labelSelector": others}]}
    return {"hostNetwork": True}


def _home(room: list[list[int]], cpu: int) -> str | None:
    """Find the first node with cpu and a pod slot left, and take them."""
    for i, place in enumerate(room):
        if place[0] >= cpu and place[1] < 4:
            place[0] -= cpu
            place[1] += 1
            return f"n{i:02d}"
    return None
