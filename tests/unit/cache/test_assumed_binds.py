"""Binds that are assumed together leave the tables that they leave one by one."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.api.objects import from_manifest
from pumice.api.pods import Pod, PodStatus
from pumice.cache.informer import Informer
from pumice.cache.ingest import Ingest
from pumice.cache.task_rows import TaskRows
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.consistency import cells, changed, check
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.testing import node, pod, pod_group, queue

NODES = [f"n{i}" for i in range(5)]
SHAPES: list[dict[str, Any]] = [
    {"cpu": 1, "memory": "1Gi"},
    {"cpu": "100m"},
    {},
    {"cpu": 2, "memory": "1Ei"},  # its sums are not exact
]


def filled(seed: int) -> EmbeddedCluster:
    """Make jobs of pods of several shapes, some of them nominated or held by nobody."""
    rng, cluster = np.random.default_rng(seed), EmbeddedCluster()
    objects = [queue("default"), *(node(name, cpu=640, memory="7Ei") for name in NODES)]
    for job in range(6):
        objects.append(pod_group(f"g{job}", min_member=1))
        for number in range(int(rng.choice((1, 2, 4, 9)))):
            shape = SHAPES[int(rng.integers(len(SHAPES))) if job % 2 else job // 2]
            made = pod(f"g{job}-{number}", group=f"g{job}" if job != 4 else None, **shape)
            if rng.random() < 0.1:
                made.setdefault("status", {})["nominatedNodeName"] = "n1"
            objects.append(made)
    cluster.restore(objects)
    return cluster


def followed(cluster: EmbeddedCluster) -> Informer:
    informer = Informer(cluster, Ingest(Snapshot()))
    informer.sync()
    return informer


def compare(one: Informer, two: Informer) -> None:
    for each in (one, two):
        each.settle()
        check(each.snapshot)
    first, second = one.snapshot, two.snapshot
    assert changed(cells(first), cells(second)) == []
    assert first.tasks.pods == second.tasks.pods
    assert first.jobs.tasks == second.jobs.tasks
    assert first.nodes.tasks == second.nodes.tasks


@pytest.mark.parametrize("seed", range(12))
def test_tables_are_those_of_the_way_one_by_one(seed: int) -> None:
    rng, cluster = np.random.default_rng(seed), filled(seed)
    one, two = followed(cluster), followed(cluster)
    left = [*one.snapshot.tasks.row_of]
    if seed % 3 == 0:  # else the pods of a job follow each other
        rng.shuffle(left)
    while left:
        n = int(rng.integers(1, 12))
        pods, left = left[:n], left[n:]
        binds = {each: str(rng.choice([*NODES, "gone"] if seed % 2 else NODES)) for each in pods}
        marks = {each: {"card": "1"} for each in pods if rng.random() < 0.1}
        for each, on in binds.items():
            one.assume(each, on, marks.get(each))
        two.assume_all({**binds, "default/unknown": "n0"}, marks)
        compare(one, two)
        for undone in rng.choice(pods, 1):
            one.undo(str(undone))
            two.undo(str(undone))
        compare(one, two)
    for each, row in [*two.snapshot.tasks.row_of.items()]:
        if two.snapshot.tasks.status[row] == Status.BOUND and two.waits_for(
            each, _uid(two, each), "bound"
        ):
            namespace, _, name = each.partition("/")
            known = two.snapshot.tasks.pods[row]
            assert isinstance(known, Pod)
            if known.spec.node_name in NODES:
                cluster.bind(namespace, name, known.spec.node_name, {})
    one.sync()
    two.sync()
    compare(one, two)


def _uid(informer: Informer, pod: str) -> str:
    known = informer.known("Pod", pod)
    assert known is not None
    return known.metadata.uid


def test_equal_pods_are_placed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    bind_alike = TaskRows.bind_alike

    def recorded(self: TaskRows, pods: Any) -> bool:
        sizes.append(len(pods))
        return bind_alike(self, pods)

    monkeypatch.setattr(TaskRows, "bind_alike", recorded)
    cluster = EmbeddedCluster()
    gang = [pod(f"p{number}", group="g", cpu=1) for number in range(9)]
    cluster.restore([node("n0", cpu=64), queue("default"), pod_group("g"), *gang])
    informer = followed(cluster)
    informer.assume_all(dict.fromkeys(informer.snapshot.tasks.row_of, "n0"), {})
    assert sizes == [9]


def test_tables_that_were_damaged_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = filled(1)
    one, two = followed(cluster), followed(cluster)
    binds = dict.fromkeys(one.snapshot.tasks.row_of, "n0")

    def broken(*_: object) -> None:
        two.snapshot.tasks.status[:] = Status.RUNNING
        raise ValueError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(TaskRows, "bind_alike", broken)
        two.assume_all(binds, {})
    for each, on in binds.items():
        one.assume(each, on)
    one.settle()
    two.settle()
    check(two.snapshot)
    for each, row in one.snapshot.tasks.row_of.items():
        other = two.snapshot.tasks.row_of[each]
        assert one.snapshot.tasks.status[row] == two.snapshot.tasks.status[other]
        assert one.snapshot.tasks.node[row] == two.snapshot.tasks.node[other]


def test_only_waiting_pods_that_get_a_node_are_of_a_class() -> None:
    """Job and shape; None for whatever else has changed, or is not as it was."""
    things = [
        *(node("n0", cpu=8), queue("default"), pod_group("g"), pod("p", group="g", cpu=1)),
        *(pod("q", group="g", cpu=1), pod("alone", cpu=1), pod("r", group="g", cpu=1, node="n0")),
        pod("foreign", cpu=1, scheduler="other"),
        pod("lost", group="g", cpu=1, node="gone"),
        pod("named", group="g", cpu=1, nominated_node="n0"),
    ]
    ingest = Ingest(Snapshot())
    known = {each["metadata"]["name"]: from_manifest(each) for each in things}
    snapshot = ingest.load(known.values())

    def found(name: str, on: str = "n0", **changes: Any) -> Any:
        before = known[name]
        assert isinstance(before, Pod)
        bound = replace(before, spec=replace(before.spec, node_name=on), **changes)
        return ingest.waiting_class(bound, before)

    row = snapshot.tasks.row_of["default/p"]
    same = (int(snapshot.tasks.job[row]), int(snapshot.tasks.shape[row]))
    assert found("p") == found("q") == same
    assert found("p", on="elsewhere") is None
    assert [found(name) for name in ("alone", "r", "foreign", "lost", "named")] == [None] * 5
    one = known["p"]
    assert found("p", metadata=replace(one.metadata, labels={"a": "b"})) is None
    assert found("p", status=PodStatus(start_time="2026-01-01T00:00:00Z")) is None
    assert isinstance(one, Pod)
    moved = replace(one, spec=replace(one.spec, node_name="n0"))
    assert ingest.waiting_class(moved, replace(one)) is None
