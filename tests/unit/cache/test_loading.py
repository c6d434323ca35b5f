"""A cluster that is loaded at once has the tables of one that is loaded object by object."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from pumice.api.objects import KubeObject, from_manifest, in_namespace
from pumice.cache import new_tasks
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
@pytest.mark.parametrize("batch", [1, 4])
def test_it_does_not_matter_how_many_pods_are_written_together(
    monkeypatch: pytest.MonkeyPatch, seed: int, batch: int
) -> None:
    whole = Ingest(Snapshot()).load(drawn(seed, again=8))
    check(whole)
    monkeypatch.setattr(new_tasks, "_BATCH", batch)
    assert_same(Ingest(Snapshot()).load(drawn(seed, again=8)), whole)


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


def test_objects_before_one_that_fails_are_counted_and_later_ones_as_they_come() -> None:
    things, single, whole = drawn(1), Ingest(Snapshot()), Ingest(Snapshot())
    half = len(things) // 2

    def failing() -> Iterator[Any]:
        yield from things[:half]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        whole.load(failing())
    for thing in drawn(1):
        single.upsert(thing)
    for thing in things[half:]:
        whole.upsert(thing)
    check(whole.settle())
    assert_same(whole.settle(), single.settle())


def test_a_group_that_goes_while_a_cluster_is_loaded_leaves_its_pods() -> None:
    group, task = (
        from_manifest(in_namespace(each))
        for each in (pod_group("a", min_member=1, queue="q"), pod("a-w-0", group="a"))
    )
    ingest = Ingest(Snapshot())
    with ingest.counting_once():
        ingest.upsert(group)
        ingest.upsert(task)
        ingest.delete(group)
    snapshot = ingest.settle()
    check(snapshot)
    assert snapshot.jobs.tasks[snapshot.jobs.row_of["default/a"]] == [0]


def test_the_later_of_two_groups_of_one_name_counts() -> None:
    groups = [pod_group("a", min_member=n, queue=name) for n, name in ((1, "p"), (3, "q"))]
    objects = [queue("p"), queue("q"), pod_group("b", min_member=2, queue="q"), *groups]
    snapshot = Ingest(Snapshot()).load(from_manifest(in_namespace(each)) for each in objects)
    jobs = snapshot.jobs
    assert jobs.keys[: jobs.n] == ["default/b", "default/a"]
    assert jobs.min_member[: jobs.n].tolist() == [2, 3]
    assert jobs.queue[: jobs.n].tolist() == [1, 1]


def test_a_pod_of_another_scheduler_counts_only_on_a_node() -> None:
    objects = [pod(f"p-w-{i}", scheduler="other", node=name) for i, name in enumerate(["n0", None])]
    snapshot = Ingest(Snapshot()).load(from_manifest(in_namespace(each)) for each in objects)
    assert list(snapshot.tasks.row_of) == ["default/p-w-0"]


def test_pods_alike_share_their_parts() -> None:
    first, *others = (from_manifest(in_namespace(pod(f"p-w-{i}", node="n0"))) for i in range(3))
    same = msgspec.structs.replace(
        first, metadata=msgspec.structs.replace(first.metadata, name="p-w-9")
    )
    snapshot = Ingest(Snapshot()).load([first, same, *others])
    pods: list[Any] = snapshot.tasks.pods[:4]
    assert pods[1].spec is pods[0].spec
    for part in ("containers", "overhead", "node_selector", "scheduler_name"):
        assert len({id(getattr(each.spec, part)) for each in pods}) == 1
    for part in ("annotations", "labels", "namespace"):
        assert len({id(getattr(each.metadata, part)) for each in pods}) == 1
    assert len({id(each.status) for each in pods}) == 1


def test_a_pod_with_another_status_keeps_its_specification() -> None:
    running = pod("p-w-0", node="n0")
    marks = {**running["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    leaving = {**running, "metadata": marks}
    ingest = Ingest(Snapshot())
    ingest.load([from_manifest(in_namespace(each)) for each in (node("n0"), running)])
    pods: list[Any] = ingest.snapshot.tasks.pods
    before = pods[0].spec
    ingest.upsert(from_manifest(in_namespace(leaving)))
    check(ingest.settle())
    assert pods[0].metadata.deletion_timestamp
    assert pods[0].spec is before
