"""What hooks are handed: rows of nodes, and single tasks, jobs and queues."""

from typing import Any

import numpy as np
import pytest

from pumice.core.resources import CPU, PODS
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, NodeFacts, NodeRow, Nodes, Queue, Task
from pumice.framework.columns import Jobs, Queues, Tasks
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import snapshot_of
from tests.present import present

LIVE = ["idle", "used", "releasing", "pipelined", "view_used", "view_nonzero", "view_pods"]
TAINT = {"key": "a", "value": "b", "effect": "NoSchedule"}


@pytest.fixture
def snapshot() -> Any:
    return snapshot_of(
        [
            priority_class("high", value=7),
            queue("default", state="Open"),
            queue("shut", state="Closed"),
            node("n0", cpu=4, labels={"zone": "a"}),
            node("n1", cpu=8, unschedulable=True, taints=[TAINT]),
            node("n2", cpu=2),
            pod_group("job", min_member=2, priority_class="high", min_resources={"cpu": 2}),
            pod("waits", group="job", cpu=1, role="worker", priority=5),
            pod("runs", group="job", cpu=3, node="n1"),
            pod("modest", group="job", preemptable=False),
            pod("alone", cpu=1, node="n0"),
        ]
    )


def task_of(snapshot: Any, name: Any) -> Any:
    return Task(snapshot, snapshot.tasks.row_of[f"default/{name}"])


@pytest.mark.parametrize("rows", [slice(1, 2), np.array([2, 0])], ids=["slice", "rows"])
def test_some_rows_are_the_same_rows_of_all(snapshot: Any, rows: Any) -> None:
    part, full = Nodes(snapshot, rows), Nodes(snapshot)
    for name in (*LIVE, "allocatable", "capacity", "future_idle"):
        assert getattr(part, name).tolist() == getattr(full, name)[..., rows].tolist()
    assert part.index.tolist() == np.arange(3)[rows].tolist()
    assert part.names.tolist() == [full.names[i] for i in part.index]
    assert part.labels == [full.labels[i] for i in part.index]
    assert [each.metadata.name for each in part.objects] == part.names.tolist()
    assert len(part) == len(part.index)
    assert part.unschedulable.tolist() == full.unschedulable[rows].tolist()
    assert part.taint_class.tolist() == full.taint_class[rows].tolist()


def test_facts_know_nothing_that_moves(snapshot: Any) -> None:
    facts = NodeFacts(snapshot)
    assert [name for name in LIVE if hasattr(facts, name)] == []
    assert [len(facts.taint_sets[i]) for i in facts.taint_class] == [0, 1, 0]


def test_future_idle_follows_leaving_and_promised_tasks(snapshot: Any) -> None:
    snapshot.evict(task_of(snapshot, "runs").row)
    snapshot.pipeline(task_of(snapshot, "waits").row, 1)
    nodes = Nodes(snapshot)
    assert (nodes.idle[CPU, 1], nodes.future_idle[CPU, 1]) == (5000, 7000)


def test_one_node_at_a_time(snapshot: Any) -> None:
    row = NodeRow(snapshot, 1)
    assert (row.name, row.labels["kubernetes.io/hostname"]) == ("n1", "n1")
    assert [float(column[CPU]) for column in (row.allocatable, row.idle, row.used)] == [
        8000, 5000, 3000,
    ]  # fmt: skip
    assert row.object.spec.unschedulable


def test_a_task_tells_what_it_is(snapshot: Any) -> None:
    task = task_of(snapshot, "waits")
    assert (task.key, task.name, task.namespace) == ("default/waits", "waits", "default")
    assert (task.status, task.node, task.role, task.priority) == (
        Status.PENDING, NOWHERE, "worker", 5,
    )  # fmt: skip
    assert task.request[:, 0].tolist() == [1000, 0, 1]
    assert (task.best_effort, task.preemptable) == (False, True)
    assert task.pod.metadata.name == "waits"
    assert task.queue == snapshot.queues.row_of["default"]


def test_a_task_of_no_job_has_no_queue(snapshot: Any) -> None:
    task = task_of(snapshot, "alone")
    assert (task.job, task.queue, task.role) == (NOWHERE, NOWHERE, "")
    assert task.node == 0


def test_a_task_that_asks_for_nothing_is_best_effort(snapshot: Any) -> None:
    task = task_of(snapshot, "modest")
    assert (task.best_effort, task.preemptable) == (True, False)
    assert task.request[PODS, 0] == 1


def test_a_job_counts_its_tasks(snapshot: Any) -> None:
    job = Job(snapshot, snapshot.jobs.row_of["default/job"])
    assert (job.key, job.priority, job.min_member) == ("default/job", 7, 2)
    assert (job.ready, job.waiting, job.pending_best_effort, len(job.tasks)) == (1, 0, 1, 3)
    assert [float(c[CPU]) for c in (job.allocated, job.allocated_or_pipelined, job.pending)] == [
        3000,
        3000,
        1000,
    ]
    assert present(job.min_resources)[CPU] == 2000
    assert job.group.metadata.name == "job"
    snapshot.pipeline(task_of(snapshot, "waits").row, 0)
    assert (job.ready, job.waiting, float(job.allocated_or_pipelined[CPU])) == (1, 1, 4000)


def test_a_job_may_not_say_what_it_needs() -> None:
    snapshot = snapshot_of([queue("default"), pod_group("job")])
    assert Job(snapshot, 0).min_resources is None


def test_a_queue_is_open_or_not(snapshot: Any) -> None:
    opened, shut = (Queue(snapshot, snapshot.queues.row_of[name]) for name in ("default", "shut"))
    assert (opened.name, opened.is_open, shut.is_open) == ("default", True, False)
    assert (float(opened.allocated_or_pipelined[CPU]), opened.object.spec.weight) == (3000, 1)


def test_columns_for_orders_are_rows_of_the_tables(snapshot: Any) -> None:
    jobs = Jobs(snapshot, np.array([0]))
    assert (len(jobs), jobs.priority.tolist(), jobs.min_member.tolist()) == (1, [7], [2])
    assert (jobs.ready.tolist(), jobs.pending_best_effort.tolist()) == ([1], [1])
    assert (jobs.allocated_or_pipelined[CPU].tolist(), jobs.queue.tolist(), len(jobs.created)) == (
        [3000],
        [0],
        1,
    )
    queues = Queues(snapshot, np.array([1, 0]))
    assert (len(queues), queues.allocated_or_pipelined[CPU].tolist(), queues.priority.tolist()) == (
        2, [0, 3000], [0, 0],
    )  # fmt: skip
    rows = np.array([task_of(snapshot, name).row for name in ("waits", "alone")])
    tasks = Tasks(snapshot, rows)
    assert (len(tasks), tasks.priority.tolist(), tasks.job.tolist()) == (2, [5, 1], [0, NOWHERE])
    assert tasks.role.tolist() == [0, NOWHERE]


HOURS = "example.com/hours"


@pytest.fixture
def marked() -> Any:
    """Objects with labels, annotations and times; the second of each kind has none."""
    time = "2026-01-01T00:00:{}Z"
    notes = {HOURS: "22-06"}
    running = {"phase": "Running", "startTime": time.format("09")}
    return snapshot_of(
        [
            queue(
                "night",
                weight=3,
                priority=2,
                parent="root",
                capability={"cpu": 8},
                deserved={"cpu": 4},
                guarantee={"cpu": 2},
                created=time.format("01"),
                labels={"team": "a"}, annotations=notes,
            ),
            queue("root", state="Closed"),
            node("fresh", created=time.format("02"), labels={"pool": "spot"}, annotations=notes),
            node("plain"),
            pod_group("job", queue="night", namespace="ns", created=time.format("03"),
                      phase="Inqueue", labels={"team": "a"}, annotations=notes),
            pod_group("other", queue="root"),
            pod("job-w-0", namespace="ns", group="job", cpu=1, node="fresh", role="worker",
                created=time.format("04"), labels={"app": "web"}, annotations=notes)
            | {"status": running},
            pod("alone", cpu=2, group="other"),
        ]
    )  # fmt: skip


T0 = 1_767_225_600.0


def views_of(snapshot: Any) -> Any:
    """Pair the columns of every kind with its single rows."""
    jobs = np.array([snapshot.jobs.row_of[key] for key in ("ns/job", "default/other")])
    queues = np.array([snapshot.queues.row_of[name] for name in ("night", "root")])
    tasks = np.array([snapshot.tasks.row_of[key] for key in ("ns/job-w-0", "default/alone")])
    return {
        "nodes": (Nodes(snapshot), [NodeRow(snapshot, row) for row in (0, 1)]),
        "jobs": (Jobs(snapshot, jobs), [Job(snapshot, row) for row in jobs.tolist()]),
        "queues": (Queues(snapshot, queues), [Queue(snapshot, row) for row in queues.tolist()]),
        "tasks": (Tasks(snapshot, tasks), [Task(snapshot, row) for row in tasks.tolist()]),
    }


@pytest.mark.parametrize(
    ("kind", "names", "label", "created"),
    [
        ("nodes", ["fresh", "plain"], ("pool", ["spot", ""]), [T0 + 2, 0]),
        ("jobs", ["job", "other"], ("team", ["a", ""]), [T0 + 3, 0]),
        ("queues", ["night", "root"], ("team", ["a", ""]), [T0 + 1, 0]),
        ("tasks", ["job-w-0", "alone"], ("app", ["web", ""]), [T0 + 4, 0]),
    ],
)
def test_every_row_has_a_name_labels_annotations_and_an_age(
    marked: Any, kind: Any, names: Any, label: Any, created: Any
) -> None:
    columns, rows = views_of(marked)[kind]
    key, values = label
    assert columns.names.tolist() == [row.name for row in rows] == names
    assert columns.label(key).tolist() == [row.labels.get(key, "") for row in rows] == values
    assert columns.annotation(HOURS, "always").tolist() == ["22-06", "always"]
    assert [row.annotations.get(HOURS) for row in rows] == ["22-06", None]
    assert columns.created.tolist() == [row.created for row in rows] == created
    assert (columns.label(key) == values[0]).tolist() == [True, False]
    assert [each.metadata.name for each in columns.objects] == names
    assert columns.labels == [row.labels for row in rows]
    assert columns.resources.row("cpu") == CPU


def test_a_column_of_some_rows_is_these_rows_of_the_column_of_all(marked: Any) -> None:
    for kind, (columns, _) in views_of(marked).items():
        part = type(columns)(marked, columns.index[1:])
        for name in ("names", "created"):
            assert getattr(part, name).tolist() == getattr(columns, name)[1:].tolist(), kind
        assert part.annotation(HOURS).tolist() == columns.annotation(HOURS)[1:].tolist()


def test_a_queue_shows_what_its_manifest_says_and_what_its_jobs_have(marked: Any) -> None:
    queues, (night, root) = views_of(marked)["queues"]
    assert (night.weight, night.priority, root.priority) == (3, 2, 0)
    assert queues.weight.tolist() == [night.weight, root.weight]
    assert queues.parent.tolist() == [night.parent, root.parent] == [root.row, NOWHERE]
    assert queues.is_open.tolist() == [night.is_open, root.is_open] == [True, False]
    for name, values in {
        "capability": [8000, np.inf],
        "deserved": [4000, 0],
        "guarantee": [2000, 0],
        "allocated": [1000, 0],
        "pending": [0, 2000],
    }.items():
        amounts = getattr(queues, name)
        assert amounts[CPU].tolist() == [getattr(q, name)[CPU] for q in (night, root)] == values


def test_jobs_and_tasks_as_columns_show_what_single_ones_do(marked: Any) -> None:
    jobs, (job, other) = views_of(marked)["jobs"]
    assert jobs.namespaces.tolist() == [job.namespace, other.namespace] == ["ns", "default"]
    assert jobs.keys.tolist() == [job.key, other.key]
    assert jobs.phase.tolist() == [job.phase, other.phase] == ["Inqueue", "Pending"]
    assert jobs.allocated[CPU].tolist() == [1000, 0]
    assert jobs.pending[CPU].tolist() == [0, 2000]
    assert jobs.queues.annotation(HOURS).tolist() == ["22-06", ""]
    tasks, (runs, waits) = views_of(marked)["tasks"]
    assert tasks.request[CPU].tolist() == [1000, 2000]
    assert tasks.started.tolist()[0] == runs.started == T0 + 9
    assert np.isnan([tasks.started[1], waits.started]).all()
    assert tasks.role_names.tolist() == [runs.role, waits.role] == ["worker", ""]
    assert tasks.namespaces.tolist() == ["ns", "default"]


def test_a_job_whose_pod_group_is_not_there_has_no_labels() -> None:
    snapshot = snapshot_of([pod("p", group="later", cpu=1)])
    row = snapshot.jobs.row_of["default/later"]
    assert (Job(snapshot, row).labels, Job(snapshot, row).object) == ({}, None)
    assert Jobs(snapshot, np.array([row])).annotation(HOURS).tolist() == [""]
