"""check() finds every disagreement between tables and names the tasks behind it."""

from typing import Any

import numpy as np
import pytest

from pumice.core.consistency import check
from pumice.core.resources import CPU
from pumice.core.status import Status
from pumice.core.tables import IDLE, PIPELINED, RELEASING, USED, VIEW
from pumice.errors import InvariantError
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import sample_cluster, snapshot_of


@pytest.fixture
def snapshot() -> Any:
    return snapshot_of(
        [
            queue("default"),
            node("n0", cpu=4),
            pod_group("job", min_member=1),
            pod("waits", group="job", cpu=1),
            pod("runs", group="job", cpu=2, node="n0"),
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_what_was_taken_in_agrees(seed: Any) -> None:
    check(snapshot_of(sample_cluster(seed)))


def test_an_empty_snapshot_agrees() -> None:
    check(snapshot_of([]))


def test_pods_without_any_job_agree() -> None:
    check(snapshot_of([node("n0"), pod("waits", cpu=1), pod("runs", cpu=1, node="n0")]))


def spoil_books(layer: Any) -> Any:
    def spoil(snapshot: Any) -> None:
        snapshot.nodes.books[layer, CPU, 0] += 1

    return spoil


def spoil_sums(table: Any, layer: Any) -> Any:
    def spoil(snapshot: Any) -> None:
        getattr(snapshot, table).sums[layer, CPU, 0] += 1

    return spoil


def swap(table: Any, column: Any, value: Any) -> Any:
    def spoil(snapshot: Any) -> None:
        getattr(getattr(snapshot, table), column)[0] = value

    return spoil


SPOILT = {
    "used": (spoil_books(USED), "'used' of a node"),
    "idle": (spoil_books(IDLE), "'idle' of a node"),
    "releasing": (spoil_books(RELEASING), "'releasing' of a node"),
    "pipelined": (spoil_books(PIPELINED), "'pipelined' of a node"),
    "view": (spoil_books(VIEW), "'view_used' of a node"),
    "pods in view": (swap("nodes", "view_pods", 7), "view_pods counts"),
    "assumed amounts": (lambda s: s.nodes.view_nonzero.fill(3), "'view_nonzero' of a node"),
    "a job's sum": (spoil_sums("jobs", 0), "'allocated' of a job"),
    "a queue's sum": (spoil_sums("queues", 1), "'allocated_or_pipelined' of a queue"),
    "a namespace's sum": (spoil_sums("namespaces", 2), "'pending' of a namespace"),
    "counts": (lambda s: s.jobs.counts.fill(1), "'counts' of a job"),
    "number of tasks": (swap("jobs", "n_tasks", 9), "'n_tasks' of a job"),
    "tasks that ask for nothing": (
        swap("jobs", "n_pending_best_effort", 1),
        "'n_pending_best_effort' of a job",
    ),
    "a status": (swap("tasks", "status", int(Status.RUNNING)), "of a job"),
    "tasks of a node": (lambda s: s.nodes.tasks[0].clear(), "a node lists"),
    "tasks of a job": (lambda s: s.jobs.tasks[0].append(0), "lists its tasks once"),
    "a node that does not exist": (swap("tasks", "node", 4), "a task's node names a row"),
    "a job that does not exist": (swap("tasks", "job", 4), "a task's job names a row"),
    "a shape that does not exist": (swap("tasks", "shape", -1), "a task's shape names a row"),
    "a queue that does not exist": (swap("jobs", "queue", 4), "a job's queue names a row"),
    "a parent that does not exist": (swap("queues", "parent", 4), "a queue's parent names a row"),
    "taints that do not exist": (swap("nodes", "taint_class", 4), "a node's taint class"),
    "a name without a row": (lambda s: s.nodes.row_of.update(ghost=0), "row_of finds every node"),
    "a row without a name": (lambda s: s.jobs.row_of.clear(), "row_of finds every job"),
    "a free row twice": (lambda s: s.queues.free.extend([5, 5]), "free queue rows"),
    "a free row that is used": (lambda s: s.tasks.free.append(0), "row_of finds every task"),
    "a narrow table": (lambda s: s.resources.learn(["x.org/gpu"]), "as wide as"),
}


@pytest.mark.parametrize(("spoil", "rule"), SPOILT.values(), ids=SPOILT)
def test_a_disagreement_is_noticed(snapshot: Any, spoil: Any, rule: Any) -> None:
    spoil(snapshot)
    with pytest.raises(InvariantError) as caught:
        check(snapshot)
    assert rule in caught.value.rule


def test_the_story_tells_the_numbers_and_the_tasks(snapshot: Any) -> None:
    snapshot.nodes.books[USED, CPU, 0] = 2500
    with pytest.raises(InvariantError) as caught:
        check(snapshot)
    assert caught.value.story == (
        "n0, cpu: the tasks say 2000.0, the table says 2500.0",
        "default/runs is Running, asks for cpu 2000, pods 1",
    )


def test_a_long_story_is_cut() -> None:
    pods = [pod(f"p{i}", cpu="1m", node="n0") for i in range(20)]
    snapshot = snapshot_of([node("n0"), *pods])
    snapshot.nodes.books[USED, CPU, 0] += 1
    with pytest.raises(InvariantError, match="and 8 more tasks"):
        check(snapshot)


def test_a_session_must_not_fill_a_node_beyond_what_it_offers(snapshot: Any) -> None:
    snapshot.place(snapshot.tasks.row_of["default/waits"], 0)
    check(snapshot)
    snapshot.nodes.allocatable[CPU, 0] = 2500
    snapshot.nodes.books[IDLE, CPU, 0] = -500
    with pytest.raises(InvariantError, match="filled beyond what it offers"):
        check(snapshot)


def test_a_node_may_come_over_committed() -> None:
    snapshot = snapshot_of(
        [node("n0", cpu=1), pod("a", cpu=3, node="n0"), pod_group("g"), pod("b", group="g")]
    )
    check(snapshot)
    snapshot.place(snapshot.tasks.row_of["default/b"], 0)
    check(snapshot)


def test_checking_changes_nothing(snapshot: Any) -> None:
    before = snapshot.nodes.books.copy()
    check(snapshot)
    assert np.array_equal(before, snapshot.nodes.books)
