"""The moves of a session: what each adds and removes, and that all can be undone."""

from typing import Any

import numpy as np
import pytest

from pumice.core.consistency import cells, changed, check
from pumice.core.resources import CPU, PODS
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.errors import InvariantError
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of


@pytest.fixture(params=[False, True], ids=["view still", "view live"])
def snapshot(request: pytest.FixtureRequest) -> Any:
    built = snapshot_of(
        [
            queue("default"),
            node("n0", cpu=4),
            node("n1", cpu=4),
            pod_group("job", min_member=1),
            *(pod(f"p{i}", group="job", cpu=1) for i in range(3)),
            pod("runs", group="job", cpu=2, node="n0"),
            pod("idle", group="job"),
            pod("stray", cpu=1, node="n1", scheduler="default-scheduler"),
        ]
    )
    built.view_is_live = request.param
    return built


def rows(snapshot: Any, *names: Any) -> Any:
    return [snapshot.tasks.row_of[f"default/{name}"] for name in names]


def amounts(snapshot: Any) -> Any:
    """Return cpu: (idle, used, releasing, pipelined) of n0, and the sums of the job."""
    nodes, jobs = snapshot.nodes, snapshot.jobs
    books = [int(layer[CPU, 0]) for layer in (nodes.idle, nodes.used, nodes.releasing)]
    job = [
        int(layer[CPU, 0]) for layer in (jobs.allocated, jobs.allocated_or_pipelined, jobs.pending)
    ]
    return [*books, int(nodes.pipelined[CPU, 0])], job


def test_a_snapshot_starts_with_what_runs(snapshot: Any) -> None:
    assert amounts(snapshot) == ([2000, 2000, 0, 0], [2000, 2000, 3000])
    check(snapshot)


def test_placing_takes_idle_and_counts_as_allocated(snapshot: Any) -> None:
    (task,) = rows(snapshot, "p0")
    snapshot.place(task, 0)
    assert amounts(snapshot) == ([1000, 3000, 0, 0], [3000, 3000, 2000])
    assert (snapshot.tasks.status[task], snapshot.tasks.node[task]) == (Status.ALLOCATED, 0)
    check(snapshot)


def test_pipelining_promises_room_and_counts_as_booked(snapshot: Any) -> None:
    (task,) = rows(snapshot, "p0")
    snapshot.pipeline(task, 0)
    assert amounts(snapshot) == ([2000, 2000, 0, 1000], [2000, 3000, 2000])
    check(snapshot)


def test_a_promise_can_be_taken_back(snapshot: Any) -> None:
    (task,) = rows(snapshot, "p0")
    before = cells(snapshot)
    snapshot.pipeline(task, 0)
    snapshot.unpipeline(task)
    assert amounts(snapshot) == ([2000, 2000, 0, 0], [2000, 2000, 3000])
    assert snapshot.tasks.node[task] == NOWHERE
    check(snapshot)
    snapshot.journal.rollback(0)
    assert changed(before, cells(snapshot)) == []


def test_evicting_keeps_the_node_and_counts_as_releasing(snapshot: Any) -> None:
    (task,) = rows(snapshot, "runs")
    snapshot.evict(task)
    assert amounts(snapshot) == ([2000, 2000, 2000, 0], [0, 0, 3000])
    assert (snapshot.tasks.status[task], snapshot.tasks.node[task]) == (Status.RELEASING, 0)
    check(snapshot)


def test_a_task_that_asks_for_nothing_takes_a_pod_slot_only(snapshot: Any) -> None:
    (task,) = rows(snapshot, "idle")
    assert snapshot.jobs.n_pending_best_effort[0] == 1
    snapshot.place(task, 1)
    assert snapshot.jobs.n_pending_best_effort[0] == 0
    assert snapshot.nodes.used[PODS, 1] == 2
    check(snapshot)


def test_a_task_of_no_job_can_be_evicted(snapshot: Any) -> None:
    (task,) = rows(snapshot, "stray")
    snapshot.evict(task)
    assert snapshot.nodes.releasing[CPU, 1] == 1000
    check(snapshot)


def test_many_at_once_equal_one_after_the_other(snapshot: Any) -> None:
    tasks = rows(snapshot, "p0", "p1", "p2")
    before = cells(snapshot)
    for task, where in zip(tasks, (0, 1, 0), strict=True):
        snapshot.place(task, where)
    singly = cells(snapshot)
    snapshot.journal.rollback(0)
    snapshot.place_many(np.array(tasks), np.array([0, 1, 0]))
    assert changed(singly, cells(snapshot)) == []
    check(snapshot)
    snapshot.journal.rollback(0)
    assert changed(before, cells(snapshot)) == []


@pytest.fixture(params=[False, True], ids=["view still", "view live"])
def mixed(request: pytest.FixtureRequest) -> Any:
    """Return jobs of two queues and namespaces, with tasks of two shapes that wait and that run."""
    built = snapshot_of(
        [
            queue("default"),
            queue("blue"),
            *(node(f"n{i}", cpu=16) for i in range(4)),
            pod_group("job", min_member=1),
            pod_group("far", queue="blue", namespace="team", min_member=1),
            *(pod(f"a{i}", group="job", cpu=1 + i % 2) for i in range(4)),
            *(pod(f"b{i}", namespace="team", group="far", cpu=1 + i % 2) for i in range(4)),
            *(pod(f"c{i}", group="job", cpu=1 + i % 2, node=f"n{i // 2}") for i in range(4)),
            *(pod(f"d{i}", namespace="team", group="far", cpu=1, node="n1") for i in range(3)),
        ]
    )
    built.view_is_live = request.param
    return built


TOGETHER = {
    "one": (["default/a0"], [2]),
    "of one shape on one node": (["default/a0", "default/a2"], [1, 1]),
    "of one shape on two nodes": (["default/a0", "default/a2"], [1, 3]),
    "of two shapes on one node": (["default/a0", "default/a1"], [0, 0]),
    "of two shapes on two nodes": (["default/a0", "default/a1"], [0, 2]),
    "of two jobs": (["default/a0", "team/b1", "team/b0", "default/a2"], [3, 0, 3, 1]),
}


@pytest.mark.parametrize("which", TOGETHER)
def test_tasks_that_come_together_equal_tasks_that_come_one_by_one(mixed: Any, which: Any) -> None:
    names, nodes = TOGETHER[which]
    tasks = [mixed.tasks.row_of[name] for name in names]
    compare_ways(
        mixed,
        lambda: [mixed.bind(*pair) for pair in zip(tasks, nodes, strict=True)],
        lambda: mixed.bind_each(np.array(tasks), np.array(nodes)),
    )


LEAVING = {
    "one": ["default/c1"],
    "of one node": ["team/d0", "team/d1", "team/d2"],
    "of two jobs on one node": ["team/d0", "default/c2"],
    "of two shapes on two nodes": ["default/c1", "team/d0"],
    "of several nodes, one not yet running": ["default/c0", "default/c3", "team/d1", "team/d0"],
}


@pytest.mark.parametrize("which", LEAVING)
def test_tasks_that_leave_together_equal_tasks_that_leave_one_by_one(
    mixed: Any, which: Any
) -> None:
    mixed.set_status(mixed.tasks.row_of["default/c0"], Status.BOUND)
    tasks = [mixed.tasks.row_of[name] for name in LEAVING[which]]
    compare_ways(
        mixed,
        lambda: [mixed.evict(task) for task in tasks],
        lambda: mixed.evict_each(np.array(tasks)),
    )


def compare_ways(snapshot: Any, singly: Any, together: Any) -> None:
    """Compare cells, logged nodes and what watchers hear; both ways roll back to the start."""
    told: list[Any] = []
    snapshot.view_watchers.append(lambda *change: told.append(change))
    before, mark = cells(snapshot), snapshot.journal.mark()
    found = []
    for way in (singly, together):
        start = len(snapshot.journal.moved)
        way()
        check(snapshot)
        moved = {int(row) for rows in snapshot.journal.moved[start:] for row in np.atleast_1d(rows)}
        found.append((cells(snapshot), moved, sorted(told)))
        snapshot.journal.rollback(mark)
        assert changed(before, cells(snapshot)) == []
        check(snapshot)
        told.clear()
    (one, *heard), (many, *heard_too) = found
    assert changed(one, many) == []
    assert heard == heard_too
    assert changed(before, one) != []


@pytest.mark.parametrize("on", [[1], [1, 1], [0, 2, 0]])
def test_pods_without_rows_are_held_and_let_go(mixed: Any, on: Any) -> None:
    shape = mixed.shapes[mixed.tasks.shape[mixed.tasks.row_of["default/a0"]]]
    before = cells(mixed)
    mixed.count_absent_pods(shape, on, 1)
    with pytest.raises(InvariantError, match="on nodes as jobs count them"):
        check(mixed)  # no job has them
    assert mixed.absent.on_nodes == {(shape.id, at): on.count(at) for at in on}
    assert mixed.nodes.used[CPU, :4].tolist() == [
        before["nodes.books"][1, CPU, at] + 1000 * on.count(at) for at in range(4)
    ]
    mixed.count_absent_pods(shape, on, -1)
    assert mixed.absent.on_nodes == {}
    check(mixed)
    assert changed(before, cells(mixed)) == []


def test_sums_of_requests_and_shapes_are_those_of_the_tasks(mixed: Any) -> None:
    tasks = [mixed.tasks.row_of[f"default/a{i}"] for i in (1, 0, 3)]
    shapes, which = mixed.shapes_of(np.array(tasks))
    assert [shapes[i].id for i in which] == mixed.tasks.shape[tasks].tolist()
    assert len(shapes) == 2
    for given in (tasks, iter(tasks), np.array(tasks)):
        assert mixed.sum_requests(given)[CPU] == 5000
    assert not mixed.sum_requests([]).any()
    assert mixed.request(tasks[0])[CPU] == 2000


def test_the_total_follows_nodes_and_is_a_copy(mixed: Any) -> None:
    mixed.total()[CPU] = 5
    assert mixed.total()[CPU] == 64000
    mixed.nodes.allocatable[CPU, 0] += 1000
    mixed.nodes.generation += 1
    assert mixed.total()[CPU] == 65000


def test_counting_ahead_moves_counts_and_sums_of_the_job(mixed: Any) -> None:
    task, job = mixed.tasks.row_of["team/b1"], mixed.jobs.row_of["team/far"]
    queue_row = mixed.queues.row_of["blue"]
    for pipelined, status, booked in ((False, Status.ALLOCATED, 9), (True, Status.PIPELINED, 3)):
        mixed.count_ahead(task, 3, pipelined=pipelined)
        assert mixed.jobs.counts[[Status.PENDING, status], job].tolist() == [1, 3]
        assert mixed.queues.allocated[CPU, queue_row] == 1000 * booked
        assert mixed.queues.allocated_or_pipelined[CPU, queue_row] == 9000
        assert mixed.jobs.pending[CPU, job] == 0
        mixed.count_ahead(task, -3, pipelined=pipelined)
    check(mixed)


def test_a_status_of_several_tasks_changes_inside_its_class_and_back(mixed: Any) -> None:
    tasks = np.array([mixed.tasks.row_of[f"team/d{i}"] for i in range(3)])
    before = cells(mixed)
    mixed.set_status(tasks, Status.BOUND)
    check(mixed)
    assert mixed.tasks.status[tasks].tolist() == [Status.BOUND] * 3
    mixed.set_status(int(mixed.tasks.row_of["default/c0"]), Status.BOUND)
    check(mixed)
    mixed.journal.rollback(0)
    assert changed(before, cells(mixed)) == []


def test_a_status_changes_inside_its_class_and_back(snapshot: Any) -> None:
    (task,) = rows(snapshot, "p0")
    snapshot.place(task, 0)
    mark = snapshot.journal.mark()
    snapshot.set_status(task, Status.BINDING)
    assert snapshot.jobs.counts[Status.BINDING, 0] == 1
    check(snapshot)
    snapshot.journal.rollback(mark)
    assert snapshot.jobs.counts[Status.BINDING, 0] == 0
    assert snapshot.tasks.status[task] == Status.ALLOCATED


def test_counting_ahead_is_undone_by_the_opposite(snapshot: Any) -> None:
    (task,) = rows(snapshot, "p0")
    before = cells(snapshot)
    snapshot.count_ahead(task, 2)
    assert snapshot.queues.allocated[CPU, 0] == 4000
    snapshot.count_ahead(task, -2)
    assert changed(before, cells(snapshot)) == []


def test_every_move_is_logged_for_its_node(snapshot: Any) -> None:
    (first, second), (runs,) = rows(snapshot, "p0", "p1"), rows(snapshot, "runs")
    snapshot.place(first, 1)
    snapshot.evict(runs)
    snapshot.place_many(np.array([second]), np.array([1]))
    assert [np.atleast_1d(entry).tolist() for entry in snapshot.journal.moved] == [[1], [0], [1]]


def test_watchers_of_the_view_hear_of_every_change_while_it_is_live(snapshot: Any) -> None:
    (first, second), (runs,) = rows(snapshot, "p0", "p1"), rows(snapshot, "runs")
    reported = []
    snapshot.view_watchers.append(lambda *change: reported.append(change))
    snapshot.place(first, 1)
    snapshot.pipeline(second, 0)
    snapshot.unpipeline(second)
    snapshot.evict(runs)
    wanted = [(first, 1, 1), (second, 0, 1), (second, 0, -1), (runs, 0, -1)]
    assert reported == (wanted if snapshot.view_is_live else [])


def test_the_view_follows_only_while_it_is_live(snapshot: Any) -> None:
    (first,), (runs,) = rows(snapshot, "p0"), rows(snapshot, "runs")
    snapshot.place(first, 1)
    snapshot.evict(runs)
    seen = snapshot.nodes.view_pods[:2].tolist(), snapshot.nodes.view_used[CPU, :2].tolist()
    live = ([0, 2], [0, 2000])
    assert seen == (live if snapshot.view_is_live else ([1, 1], [2000, 1000]))


def test_releasing_a_session_puts_every_cell_back_and_stills_the_view(snapshot: Any) -> None:
    before = cells(snapshot)
    first, runs = rows(snapshot, "p0", "runs")
    snapshot.view_watchers.append(lambda *_: None)
    snapshot.place(first, 1)
    snapshot.evict(runs)
    snapshot.release_session()
    assert changed(before, cells(snapshot)) == []
    assert (snapshot.view_is_live, snapshot.view_watchers) == (False, [])
    assert (snapshot.journal.mark(), snapshot.journal.moved) == (0, [])


def test_totals_and_requests_are_columns(snapshot: Any) -> None:
    assert snapshot.total()[CPU] == 8000
    tasks = np.array(rows(snapshot, "runs", "p0", "runs"))
    assert snapshot.requests(tasks)[CPU].tolist() == [2000, 1000, 2000]
    assert snapshot.requests(tasks[:0]).shape == (len(snapshot.resources), 0)
