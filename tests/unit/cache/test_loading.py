"""A cluster that is loaded at once has the tables of one that is loaded object by object."""

from typing import Any

import numpy as np
import pytest

from pumice.api.objects import KubeObject, from_manifest, in_namespace
from pumice.cache.ingest import Ingest
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.testing import node, pod, pod_group, queue

NODES = [f"n{i}" for i in range(5)]
JOBS = [f"job{i}" for i in range(4)]


def drawn_pod(rng: np.random.Generator, name: str) -> dict[str, Any]:
    """Draw a pod that waits, runs on a node or on an unknown one, or is another scheduler's."""
    home = rng.choice([*NODES, "elsewhere", ""])
    return pod(
        name,
        group=str(rng.choice([*JOBS, "unknown"])),
        role=str(rng.choice(["driver", "worker"])),
        cpu=int(rng.integers(1, 4)),
        resources={"example.com/gpu": 1} if rng.random() < 0.2 else None,
        node=str(home) or None,
        priority=int(rng.integers(3)),
        scheduler=str(rng.choice(["volcano", "volcano", "other"])),
        nominated_node="n1" if not home else None,
    )


def drawn_node(rng: np.random.Generator, name: str) -> dict[str, Any]:
    """Draw a node, tainted, cordoned, old or none of these, with or without a scalar resource."""
    made = node(name, cpu=int(rng.integers(64, 66)))
    made["spec"] = {"unschedulable": True} if rng.random() < 0.2 else {}
    if rng.random() < 0.4:
        made["spec"]["taints"] = [{"key": str(rng.choice(["a", "b"])), "effect": "NoSchedule"}]
    if rng.random() < 0.4:
        made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    if rng.random() < 0.4:
        made["status"]["allocatable"]["example.com/card"] = 2
    return made


def drawn(seed: int, *, again: int = 0) -> list[KubeObject]:
    """Draw a cluster in any order; ``again`` pods come once more, in another state."""
    rng = np.random.default_rng(seed)
    groups = [pod_group(name, min_member=i, queue="q") for i, name in enumerate(JOBS)]
    groups[2]["spec"]["minResources"] = {"cpu": "3", "example.com/licence": "1"}
    names = [f"p-w-{i}" for i in range(30)]
    names += [str(name) for name in rng.choice(names, again)]
    pods = [drawn_pod(rng, name) for name in names]
    nodes = [drawn_node(rng, str(each)) for each in [*NODES, *rng.choice(NODES, again // 4)]]
    objects = [queue("q"), *nodes, *groups, *pods]
    rng.shuffle(objects)
    return [from_manifest(in_namespace(each)) for each in objects]


SPECS: list[dict[str, Any]] = [
    {},
    {"nodeName": "n1"},
    {"nodeName": "n2"},
    {"nodeName": "elsewhere"},
    {"nodeName": "n1", "schedulerName": "other"},
    {"schedulerName": "other"},
    {"priorityClassName": "high"},
    {"hostNetwork": True},
    {"priority": 7},
    {"overhead": {"cpu": "1"}},
    {"nodeSelector": {"zone": "z"}},
    {"resources": {"requests": {"cpu": "9"}}},
    {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "5"}}}]},
    {"tolerations": [{"key": "t", "operator": "Exists"}]},
    {"schedulingGates": [{"name": "example.com/wait"}]},
    {"resourceClaims": [{"name": "c", "resourceClaimName": "claim"}]},
    {"volumes": [{"name": "token-1"}]},
    {"volumes": [{"name": "token-2"}]},
    {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]},
    {"affinity": {"podAntiAffinity": {}}},
    {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ]
    },
]
METADATA: list[dict[str, Any]] = [
    {},
    {"uid": "u"},
    {"namespace": "other"},
    {"labels": {"a": "b"}},
    {"annotations": {"scheduling.k8s.io/group-name": "job2"}},
    {"annotations": {"volcano.sh/preemptable": "false"}},
    {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": "v"},
    {"deletionTimestamp": "2026-01-01T00:00:00Z"},
]
STATUSES: list[dict[str, Any]] = [
    {},
    {"phase": "Running"},
    {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
    {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    {"phase": "Succeeded"},
    {"nominatedNodeName": "n1"},
]


def drawn_in_runs(seed: int) -> list[KubeObject]:
    """Draw pods of which each is mostly like the one before, or else differs in one field."""
    rng = np.random.default_rng(seed)
    pods, parts = [], {"spec": 0, "metadata": 0, "status": 0}
    choices = {"spec": SPECS, "metadata": METADATA, "status": STATUSES}
    for i in range(200):
        if rng.random() < 0.4:
            part = str(rng.choice(list(parts)))
            parts[part] = int(rng.integers(len(choices[part]))) if rng.random() < 0.7 else 0
        name = f"p-w-{i if rng.random() < 0.95 else int(rng.integers(200))}"
        one = pod(name, group="job1", cpu=1)
        for part, which in parts.items():
            one.setdefault(part, {}).update(choices[part][which])
        pods.append(one)
    objects = [pod_group(name, queue="q") for name in JOBS[:2]]
    objects += [queue("q"), *(node(name, cpu=64) for name in NODES)]
    return [from_manifest(in_namespace(each)) for each in (*objects, *pods)]


def content(snapshot: Snapshot) -> dict[str, Any]:
    """Return the rows in use of every table, with what they are known by."""
    found: dict[str, Any] = {}
    for kind in ("nodes", "tasks", "jobs", "queues", "namespaces"):
        table = getattr(snapshot, kind)
        found[kind] = list(table.row_of.items())
        for name, value in vars(table).items():
            if isinstance(value, np.ndarray):
                found[f"{kind}.{name}"] = value[..., : table.n].tolist()
            elif isinstance(value, list) and name != "free":
                found[f"{kind}.{name}"] = value[: table.n]
    shapes = [(each.request.tolist(), each.annotations) for each in snapshot.shapes]
    found |= {"shapes": shapes, "labels": snapshot.label_classes, "roles": snapshot.roles}
    return found | {"taints": snapshot.taint_sets}


def assert_same(found: Snapshot, wanted: Snapshot) -> None:
    left, right = content(found), content(wanted)
    assert [name for name in right if repr(left[name]) != repr(right[name])] == []


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("again", [0, 8])
def test_tables_are_those_of_the_way_one_by_one(seed: int, again: int) -> None:
    single = Ingest(Snapshot())
    for thing in drawn(seed, again=again):
        single.upsert(thing)
    whole = Ingest(Snapshot()).load(drawn(seed, again=again))
    check(whole)
    assert_same(whole, single.settle())


@pytest.mark.parametrize("seed", range(30))
def test_a_pod_like_the_one_before_it_gets_the_row_that_it_would_get_alone(seed: int) -> None:
    single = Ingest(Snapshot())
    for thing in drawn_in_runs(seed):
        single.upsert(thing)
    whole = Ingest(Snapshot()).load(drawn_in_runs(seed))
    check(whole)
    assert_same(whole, single.settle())


@pytest.mark.parametrize("seed", range(10))
def test_objects_may_also_go_while_a_cluster_is_loaded(seed: int) -> None:
    things, rng = drawn(seed), np.random.default_rng(seed)
    order = rng.permutation([*range(len(things))] * 2).tolist()
    single, whole = Ingest(Snapshot()), Ingest(Snapshot())
    with whole.counting_once():
        for ingest in (single, whole):
            seen: set[int] = set()
            for which in order:
                verb = ingest.delete if which in seen else ingest.upsert
                verb(drawn(seed)[which])
                seen.add(which)
    check(whole.settle())
    assert_same(whole.settle(), single.settle())
