"""check() finds every disagreement between tables and names the tasks behind it."""

from typing import Any

import numpy as np
import pytest

from pumice.core.consistency import cells, changed, check
from pumice.core.resources import CPU
from pumice.core.status import Status
from pumice.core.tables import IDLE, PIPELINED, RELEASING, USED, VIEW
from pumice.errors import InvariantError
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of


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
    "a gone task": (
        swap("tasks", "status", int(Status.GONE)),
        "a task row is gone exactly if it is free",
    ),
    "a free node": (lambda s: s.nodes.free.append(5), "a node row is never free"),
    "a namespace that does not exist": (swap("jobs", "namespace", 4), "a job's namespace"),
    "a narrow table": (lambda s: s.resources.learn(["x.org/gpu"]), "node columns are as wide as"),
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


def test_a_node_that_comes_over_committed_must_not_be_filled_further() -> None:
    snapshot = snapshot_of(
        [node("n0", cpu=1), pod("a", cpu=3, node="n0"), pod_group("g"), pod("b", group="g", cpu=1)]
    )
    snapshot.place(snapshot.tasks.row_of["default/b"], 0)
    with pytest.raises(InvariantError) as caught:
        check(snapshot)
    assert caught.value.story[0] == "n0, cpu idle: the tasks say -2000.0, the table says -3000.0"


@pytest.fixture
def busy() -> Any:
    """Return a session under way: tasks of every kind, of jobs and of none, with rows and without.

    The table of tasks starts with one that runs, so that row 0 is not where nothing is.
    """
    snapshot = snapshot_of(
        [
            queue("default"),
            queue("blue"),
            *(node(f"n{i}", cpu=8, resources={"x.org/gpu": 2}) for i in range(3)),
            pod("stray", cpu=1, memory="1Gi", node="n2", scheduler="other"),
            pod_group("job", min_member=1),
            pod_group("far", queue="blue", namespace="team", min_member=1),
            pod_group("unlisted", queue="blue", namespace="team"),
            *(pod(f"p{i}", group="job", cpu=1, resources={"x.org/gpu": 1}) for i in range(4)),
            *(pod(f"t{i}", namespace="team", group="far", memory="2Gi") for i in range(3)),
            pod("idle", group="job"),
            pod("placed-idle", group="job"),
            *(pod(f"runs{i}", group="job", cpu=2, node="n0") for i in range(2)),
            pod("lost", group="job", cpu=1, node="n1", phase="Unknown"),
            pod("done", group="job", cpu=1, node="n1", phase="Succeeded"),
            pod("homeless", group="job", cpu=1, node="gone-node"),
        ]
    )
    snapshot.view_is_live = True
    rows = snapshot.tasks.row_of
    snapshot.count_absent_pods(snapshot.shapes[snapshot.tasks.shape[0]], [1, 1, 2], 1)
    snapshot.place(rows["default/p0"], 0)
    snapshot.bind(rows["default/p1"], 2)
    snapshot.pipeline(rows["team/t0"], 1)
    snapshot.place(rows["default/placed-idle"], 1)
    snapshot.evict(rows["default/runs1"])
    snapshot.evict(rows["default/homeless"])
    unlisted = snapshot.jobs.row_of["team/unlisted"]
    snapshot.absent.jobs.add(unlisted)
    held = 3 * snapshot.request(0)
    snapshot.add_to_sums(unlisted, np.stack([held, held, held]))
    return snapshot


SUMMED = {
    "nodes": ["books", "view_pods", "view_nonzero"],
    "jobs": ["counts", "n_tasks", "n_pending_best_effort", "sums"],
    "queues": ["sums"],
    "namespaces": ["sums"],
}


def test_a_session_under_way_agrees_and_each_single_cell_matters(busy: Any) -> None:
    check(busy)
    for kind, names in SUMMED.items():
        table = getattr(busy, kind)
        for name in names:
            column = getattr(table, name)[..., : table.n]
            for at in np.ndindex(column.shape):
                old = column[at]
                column[at] += 1 if old < 1e6 else 100
                with pytest.raises(InvariantError):
                    check(busy)
                column[at] = old
    check(busy)


@pytest.mark.parametrize(("over", "refused"), [(0.0, False), (0.3, False), (0.5, True)])
def test_each_placement_may_overshoot_by_less_than_a_step(over: float, refused: bool) -> None:
    pods = [pod(f"p{i}", group="g", cpu=1) for i in range(4)]
    snapshot = snapshot_of([queue("default"), node("n0", cpu=3), node("n1"), pod_group("g"), *pods])
    snapshot.place_many(np.arange(4), np.array([0, 0, 0, 1]))
    snapshot.nodes.allocatable[CPU, 0] -= over
    snapshot.nodes.books[IDLE, CPU, 0] -= over
    if not refused:
        check(snapshot)
        return
    with pytest.raises(InvariantError, match="filled beyond what it offers") as caught:
        check(snapshot)
    assert caught.value.story[0].startswith("n0, cpu idle: the tasks say 0.0, the table says -0.5")
    assert named(caught.value) == {"default/p0", "default/p1", "default/p2"}


def named(error: InvariantError) -> set[str]:
    """Return the tasks that a story names."""
    return {line.partition(" is ")[0] for line in error.story[1:]}


def test_columns_that_differ_are_named_and_new_ones_are_not(snapshot: Any) -> None:
    snapshot.plugin_columns["weight"] = np.array([1.0, np.nan])
    before = cells(snapshot)
    assert changed(before, cells(snapshot)) == []
    snapshot.plugin_columns["weight"][0] = 2.0
    snapshot.plugin_columns["late"] = np.zeros(2)
    snapshot.nodes.view_pods[0] += 1
    assert sorted(changed(before, cells(snapshot))) == ["nodes.view_pods", "nodes.weight"]
