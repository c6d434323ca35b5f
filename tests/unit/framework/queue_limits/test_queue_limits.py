"""Limits of queues by policy, and what each queue may still hold and reserve."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.api.kinds import Manifest
from pumice.core.resources import CPU, Column
from pumice.core.snapshot import Snapshot
from pumice.core.tables import NOWHERE
from pumice.core.views import Job
from pumice.framework.plugin import Plugin
from pumice.framework.queue_limits.limits import (
    BRANCH,
    LEAF,
    MISPLACED,
    ClusterLimit,
    QueueCommitments,
    QueueTree,
)
from pumice.framework.queue_limits.stated import StatedLimits
from pumice.framework.queue_limits.weighted import WeightedLimits
from pumice.plugins.capacity import Capacity
from pumice.plugins.proportion import Proportion
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of

TWENTY = node("n", cpu=20, memory="100Gi", pods=100)
TREE = [
    queue("root"),
    queue("top", parent="root", capability={"cpu": 8}, guarantee={"cpu": 2}),
    queue("left", parent="top", capability={"cpu": 6}),
    queue("right", parent="top"),
    queue("lost", parent="nowhere"),
]


def running(job: str, in_queue: str, n: int, **more: Any) -> list[Manifest]:
    pods = [pod(f"{job}-{i}", group=job, cpu=1, node="n") for i in range(n)]
    return [pod_group(job, queue=in_queue, phase="Running", min_member=n, **more), *pods]


def waiting(job: str, in_queue: str, n: int, phase: str = "Inqueue") -> list[Manifest]:
    pods = [pod(f"{job}-{i}", group=job, cpu=1) for i in range(n)]
    group = pod_group(job, queue=in_queue, phase=phase, min_member=n, min_resources={"cpu": str(n)})
    return [group, *pods]


def snapshot(*objects: Manifest) -> Snapshot:
    return snapshot_of([TWENTY, *objects])


def cpus(snapshot: Snapshot, column: Column, *names: str) -> list[float]:
    rows = snapshot.queues.row_of
    return [column[CPU, rows[name]] / 1000 for name in names]


def test_the_tree_knows_who_is_above_and_under_whom() -> None:
    cluster = snapshot(*TREE)
    tree, rows = QueueTree.of(cluster), cluster.queues.row_of
    assert tree.ancestors[rows["left"]] == (rows["root"], rows["top"])
    assert set(tree.subtree[rows["top"]]) == {rows[name] for name in ("top", "left", "right")}
    assert [tree.rank(rows[name]) for name in ("left", "top", "lost")] == [LEAF, BRANCH, MISPLACED]
    assert tree.ancestor(rows["left"], 1) == rows["top"]
    assert tree.ancestor(rows["left"], 2) == NOWHERE  # the root has no say


def test_amounts_are_summed_up_the_tree() -> None:
    cluster = snapshot(*TREE)
    amounts = np.zeros_like(cluster.queues.deserved)
    for name, cpu in (("left", 1000.0), ("right", 2000.0), ("lost", 4000.0)):
        amounts[CPU, cluster.queues.row_of[name]] = cpu
    summed = QueueTree.of(cluster).sum_up(amounts)
    assert cpus(cluster, summed, "left", "right", "top", "root", "lost") == [1, 2, 3, 3, 4]
    assert np.array_equal(QueueTree.flat(cluster).sum_up(amounts), amounts)


def test_a_tree_is_kept_until_a_queue_changes() -> None:
    cluster = snapshot(*TREE)
    tree = QueueTree.of(cluster)
    assert QueueTree.of(cluster) is tree
    objects: list[Any] = cluster.queues.objects
    row = cluster.queues.row_of["left"]
    objects[row] = replace(objects[row], spec=replace(objects[row].spec, parent="right"))
    moved = QueueTree.of(cluster)
    assert moved is not tree
    assert moved.ancestors[row][-1] == cluster.queues.row_of["right"]


def test_in_a_tree_the_tightest_limit_on_the_way_up_counts() -> None:
    cluster = snapshot(*TREE, *running("a", "right", 5))
    limits = StatedLimits.of(cluster, cluster.total(), hierarchy=True)
    assert cpus(cluster, limits.real_capability, "top", "left", "right") == [8, 6, 8]
    left, right, lost = cpus(cluster, limits.holdable(), "left", "right", "lost")
    assert (left, right, lost) == (3, 3, np.inf)  # top has 8 and holds 5
    assert limits.held(cluster.queues.row_of["top"])[CPU] == 5000
    assert limits.current() is limits


def test_side_by_side_each_queue_has_its_own_limit() -> None:
    cluster = snapshot(*TREE, *running("a", "right", 5))
    limits = StatedLimits.of(cluster, cluster.total(), hierarchy=False)
    assert cpus(cluster, limits.holdable(), "left", "right", "top") == [6, 13, 8]


def test_a_part_by_weight_is_a_limit_that_follows_demand() -> None:
    queues = [queue("one", weight=1), queue("three", weight=3, capability={"cpu": 12})]
    cluster = snapshot(*queues, *running("a", "one", 5), *waiting("b", "three", 20))
    limits = WeightedLimits.of(cluster, cluster.total())
    assert cpus(cluster, limits.deserved, "one", "three") == [5, 12]
    assert cpus(cluster, limits.holdable(), "one", "three") == [0, 12]
    assert cpus(cluster, limits.real_capability, "one", "three") == [20, 12]
    cluster.queues.pending[CPU, cluster.queues.row_of["three"]] = 4000
    assert cpus(cluster, limits.deserved, "three") == [12]
    assert cpus(cluster, limits.current().deserved, "three") == [4]


@pytest.mark.parametrize("plugin", [Capacity, Proportion])
def test_what_jobs_reserve_counts_beside_what_they_hold(plugin: type[Plugin]) -> None:
    objects = [
        queue("q", capability={"cpu": 10}),
        *running("a", "q", 3, min_resources={"cpu": "2"}),
        *waiting("b", "q", 4),
        *waiting("c", "q", 2, phase="Pending"),
    ]
    cluster = snapshot(*objects)
    limits = plugin().queue_limits(cluster, cluster.total())
    assert limits is not None
    # 10 less 3 held and 4 reserved; 1 of the 3 is elastic
    assert cpus(cluster, limits.reservable(), "q") == [4]


def test_a_job_that_is_admitted_reserves_from_then_on() -> None:
    cluster = snapshot(queue("q"), *waiting("a", "q", 4), *waiting("b", "q", 2, phase="Pending"))
    commitments = QueueCommitments(cluster)
    q = cluster.queues.row_of["q"]
    assert commitments.of_queue(q)[CPU] == 4000
    commitments.admit(Job(cluster, cluster.jobs.row_of["default/b"]))
    assert commitments.of_queue(q)[CPU] == 6000
    assert np.array_equal(commitments.by_queue()[:, q], commitments.of_queue(q))


def test_the_limit_of_the_cluster_is_the_same_for_every_queue() -> None:
    objects = [queue("p"), queue("q"), *running("a", "p", 3), *waiting("b", "q", 4)]
    cluster = snapshot(*objects)
    limit = ClusterLimit(cluster, cluster.total() * 1.5)
    assert limit.idle()[CPU] == 27000
    assert cpus(cluster, limit.reservable(), "p", "q") == [23, 23]
