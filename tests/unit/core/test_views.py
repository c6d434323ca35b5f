"""What hooks are handed: rows of nodes, and single tasks, jobs and queues."""

from typing import Any

import numpy as np
import pytest

from pumice.core.resources import CPU, PODS
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, NodeFacts, NodeRow, Nodes, Queue, Task
from pumice.framework.columns import Jobs, Queues, Tasks
from pumice.framework.equal_tasks import ImaginedNodes
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
    assert part.names == [full.names[i] for i in part.index]
    assert part.labels == [full.labels[i] for i in part.index]
    assert [each.metadata.name for each in part.objects] == part.names
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


def test_imagined_nodes_have_copies_of_a_task_on_them(snapshot: Any) -> None:
    shape = task_of(snapshot, "waits").shape
    for live in (False, True):
        snapshot.view_is_live = live
        imagined = ImaginedNodes(snapshot, np.array([1, 1]), shape, np.array([0.0, 2.0]))
        assert imagined.idle[CPU].tolist() == [5000, 3000]
        assert imagined.used[CPU].tolist() == [3000, 5000]
        assert imagined.future_idle[CPU].tolist() == [5000, 3000]
        assert imagined.view_pods.tolist() == ([1, 3] if live else [1, 1])
        assert imagined.view_used[CPU].tolist() == ([3000, 5000] if live else [3000, 3000])
        assert imagined.view_nonzero[CPU].tolist() == imagined.view_used[CPU].tolist()


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
