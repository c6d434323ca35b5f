"""Objects in, rows out: statuses, marks, links, in whatever order things come and go."""

from typing import Any

import numpy as np
import pytest

from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.consistency import check
from pumice.core.resources import CPU, PODS
from pumice.core.snapshot import Snapshot
from pumice.core.status import PHASE_CODE, Status
from pumice.core.tables import NOWHERE
from pumice.testing import node, pdb, pod, pod_group, priority_class, queue
from pumice.testing.samples import snapshot_of

GPU = "nvidia.com/gpu"


class World:
    """An ingest that is fed manifests and checked at every settling."""

    def __init__(self, *manifests: Any, **options: Any) -> None:
        self.ingest = Ingest(Snapshot(), **options)
        self.add(*manifests)

    def add(self, *manifests: Any) -> Any:
        for manifest in manifests:
            self.ingest.upsert(from_manifest(manifest))
        return self.settle()

    def remove(self, *manifests: Any) -> Any:
        for manifest in manifests:
            self.ingest.delete(from_manifest(manifest))
        return self.settle()

    def settle(self) -> Any:
        snapshot = self.ingest.settle()
        check(snapshot)
        return snapshot

    @property
    def snapshot(self) -> Any:
        return self.ingest.snapshot


def leaving(manifest: Any) -> Any:
    manifest["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return manifest


STATUSES = {
    "pending": (pod("p"), Status.PENDING),
    "bound": (pod("p", node="n0", phase="Pending"), Status.BOUND),
    "running": (pod("p", node="n0"), Status.RUNNING),
    "leaving": (leaving(pod("p", node="n0")), Status.RELEASING),
    "leaving before it had a node": (leaving(pod("p")), Status.RELEASING),
    "succeeded": (pod("p", node="n0", phase="Succeeded"), Status.SUCCEEDED),
    "failed": (pod("p", node="n0", phase="Failed"), Status.FAILED),
    "finished while leaving": (leaving(pod("p", node="n0", phase="Failed")), Status.FAILED),
    "unknown": (pod("p", node="n0", phase="Unknown"), Status.UNKNOWN),
}


@pytest.mark.parametrize(("manifest", "wanted"), STATUSES.values(), ids=STATUSES)
def test_a_pod_has_a_status(manifest: Any, wanted: Any) -> None:
    snapshot = snapshot_of([node("n0"), manifest])
    assert wanted == snapshot.tasks.status[0]
    check(snapshot)


@pytest.mark.parametrize(("manifest", "status"), STATUSES.values(), ids=STATUSES)
def test_pods_that_finished_or_wait_take_nothing_of_a_node(manifest: Any, status: Any) -> None:
    snapshot = snapshot_of([node("n0"), manifest])
    holds = status in (Status.BOUND, Status.RUNNING, Status.UNKNOWN) or (
        status == Status.RELEASING and "nodeName" in manifest["spec"]
    )
    assert snapshot.nodes.used[PODS, 0] == holds


def test_leaving_pods_are_used_and_releasing_at_once() -> None:
    snapshot = snapshot_of([node("n0", cpu=4), leaving(pod("p", cpu=1, node="n0"))])
    books = (snapshot.nodes.idle, snapshot.nodes.used, snapshot.nodes.releasing)
    assert [float(layer[CPU, 0]) for layer in books] == [3000, 1000, 1000]


def test_pods_of_other_schedulers_count_where_they_run_and_in_their_jobs() -> None:
    snapshot = snapshot_of(
        [
            node("n0", cpu=4),
            pod("foreign", cpu=1, scheduler="default-scheduler", group="job", node="n0"),
            pod("elsewhere", cpu=1, scheduler="default-scheduler"),
        ]
    )
    assert list(snapshot.tasks.row_of) == ["default/foreign"]
    assert snapshot.jobs.keys[snapshot.tasks.job[0]] == "default/job"
    assert snapshot.nodes.used[CPU, 0] == 1000


def test_a_scheduler_may_have_other_names() -> None:
    world = World(pod("p", scheduler="mine", group="job"), scheduler_names=["mine"])
    assert world.snapshot.tasks.job[0] == 0


def mark(**fields: Any) -> Any:
    return snapshot_of([pod("job-task-7", **fields)]).tasks


def test_priority_is_one_unless_said_and_the_mark_wins() -> None:
    assert mark().priority[0] == 1
    assert mark(priority=5).priority[0] == 5
    note = "volcano.sh/task-priority"
    assert mark(priority=5, annotations={note: "9"}).priority[0] == 9
    assert mark(priority=5, annotations={note: "high"}).priority[0] == 5


@pytest.mark.parametrize(
    ("text", "wanted"), [("true", True), ("T", True), ("false", False), ("yes", False)]
)
def test_preemptable_is_read_as_go_reads_it(text: str, wanted: bool) -> None:
    note = "volcano.sh/preemptable"
    assert mark(annotations={note: text}).preemptable[0] == wanted
    assert mark(labels={note: text}).preemptable[0] == wanted


def test_an_annotation_wins_over_a_label_and_silence_means_preemptable() -> None:
    note = "volcano.sh/preemptable"
    assert not mark(annotations={note: "false"}, labels={note: "true"}).preemptable[0]
    assert mark().preemptable[0]


@pytest.mark.parametrize(
    ("name", "wanted"), [("job-task-7", 7), ("job-7", -1), ("job-task-x", -1), ("a-b-c-12", 12)]
)
def test_the_index_is_the_number_at_the_end_of_a_long_name(name: str, wanted: int) -> None:
    assert snapshot_of([pod(name)]).tasks.index[0] == wanted


def test_roles_gates_and_times_are_read() -> None:
    snapshot = snapshot_of(
        [
            pod("a", role="head", spec={"schedulingGates": [{"name": "g"}]}),
            pod("b", role="head", created="1970-01-01T00:01:00Z"),
        ]
    )
    tasks = snapshot.tasks
    assert (snapshot.roles, tasks.role[:2].tolist()) == (["head"], [0, 0])
    assert tasks.gated[:2].tolist() == [True, False]
    assert (float(tasks.created[1]), bool(np.isnan(tasks.started[1]))) == (60.0, True)


def test_equal_pods_share_a_shape_and_others_do_not() -> None:
    snapshot = snapshot_of(
        [
            pod("a", cpu=1),
            pod("b", cpu=1, priority=9, labels={"x": "y"}),
            pod("c", cpu=2),
            pod("d", cpu=1, namespace="other"),
            pod("e", cpu=1, spec={"nodeSelector": {"a": "b"}}),
        ]
    )
    shapes = snapshot.tasks.shape[:5].tolist()
    assert shapes[0] == shapes[1]
    assert len(set(shapes)) == 4


def test_pods_share_a_class_of_labels_within_a_namespace() -> None:
    labels = {"a": "1", "b": "2"}
    snapshot = snapshot_of(
        [pod("a", labels=labels), pod("b", labels=labels), pod("c", labels=labels, namespace="n")]
    )
    assert snapshot.tasks.label_class[:3].tolist() == [0, 0, 1]
    assert snapshot.label_classes[1] == ("n", labels)


def test_nodes_share_classes_of_taints() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    snapshot = snapshot_of([node("a", taints=[taint]), node("b"), node("c", taints=[taint])])
    assert snapshot.nodes.taint_class.tolist() == [0, 1, 0]


def test_a_resource_named_late_widens_every_table() -> None:
    world = World(node("n0"), queue("q"), pod_group("job", queue="q"), pod("p", group="job", cpu=1))
    world.add(node("n1", resources={GPU: 2}), queue("q", capability={GPU: 1}))
    snapshot = world.snapshot
    row = snapshot.resources.row(GPU)
    assert snapshot.nodes.allocatable[row].tolist() == [0, 2000]
    assert (snapshot.queues.capability[row, 0], snapshot.queues.capability[CPU, 0]) == (
        1000,
        np.inf,
    )
    assert snapshot.queues.capability_given[:, 0].tolist() == [False, False, False, True]


def test_a_pod_before_its_node_moves_in_when_the_node_comes() -> None:
    world = World(pod("p", cpu=1, node="n0"))
    assert world.snapshot.tasks.node[0] == NOWHERE
    world.add(node("n0", cpu=4))
    assert (world.snapshot.tasks.node[0], world.snapshot.nodes.idle[CPU, 0]) == (0, 3000)


def test_pods_of_a_node_that_goes_wait_for_its_return() -> None:
    late = node("n0", cpu=4)
    world = World(late, node("n1"), pod("p", cpu=1, node="n0"), pod("q", cpu=1, node="n1"))
    snapshot = world.remove(late)
    assert snapshot.nodes.names == ["n1"]
    assert snapshot.tasks.node[:2].tolist() == [NOWHERE, 0]
    snapshot = world.add(late)
    assert snapshot.nodes.names == ["n1", "n0"]
    assert snapshot.tasks.node[:2].tolist() == [1, 0]
    world.remove(pod("p"))
    assert snapshot.nodes.idle[CPU, 1] == 4000


def test_a_node_that_changes_keeps_its_pods() -> None:
    world = World(node("n0", cpu=4), pod("p", cpu=1, node="n0"))
    snapshot = world.add(node("n0", cpu=2, unschedulable=True))
    assert (snapshot.nodes.n, snapshot.nodes.idle[CPU, 0]) == (1, 1000)
    assert snapshot.nodes.unschedulable[0]


def test_a_nomination_finds_its_node_whenever_it_comes() -> None:
    late = node("n1")
    world = World(pod("p", nominated_node="n1"), node("n0"))
    assert world.snapshot.tasks.nominated[0] == NOWHERE
    assert world.add(late).tasks.nominated[0] == 1
    assert world.remove(node("n0")).tasks.nominated[0] == 0
    assert world.remove(late).tasks.nominated[0] == NOWHERE
    world.add(late)
    assert world.add(pod("p")).tasks.nominated[0] == NOWHERE


def test_a_pod_that_changes_moves_between_nodes_and_jobs() -> None:
    world = World(node("n0"), node("n1"), queue("default"), pod_group("a"), pod_group("b"))
    world.add(pod("p", group="a", cpu=1))
    snapshot = world.add(pod("p", group="b", cpu=2, node="n1"))
    jobs = snapshot.jobs
    assert [jobs.n_tasks[jobs.row_of[f"default/{name}"]] for name in "ab"] == [0, 1]
    assert snapshot.nodes.used[CPU].tolist() == [0, 2000]
    assert snapshot.queues.allocated[CPU, 0] == 2000


def test_the_only_pod_of_a_job_without_a_group_keeps_its_job_when_it_moves() -> None:
    ingest = Ingest(Snapshot())
    for on in (None, "n0", None):
        things = [node("n0"), pod("p", group="g", cpu=1, node=on)]
        snapshot = ingest.load(from_manifest(each) for each in things)
        job = snapshot.jobs.row_of["default/g"]
        assert (snapshot.tasks.job[0], snapshot.jobs.tasks[job]) == (job, [0])
        check(snapshot)


def test_a_pod_before_its_group_joins_when_the_group_comes() -> None:
    world = World(pod("p", group="job", cpu=1))
    assert not world.snapshot.jobs.listed[0]
    snapshot = world.add(queue("default"), pod_group("job", min_member=3))
    assert snapshot.jobs.listed[0]
    assert (snapshot.jobs.min_member[0], snapshot.queues.pending[CPU, 0]) == (3, 1000)


def test_a_group_leaves_the_session_with_its_queue_and_comes_back() -> None:
    world = World(queue("default"), pod_group("job"), pod("p", group="job", cpu=1))
    snapshot = world.remove(queue("default"))
    assert (snapshot.jobs.listed[0], snapshot.jobs.queue[0]) == (False, NOWHERE)
    snapshot = world.add(queue("default"))
    assert snapshot.jobs.listed[0]
    assert snapshot.queues.pending[CPU, 0] == 1000


def test_a_group_that_goes_leaves_only_what_its_pods_say() -> None:
    fresh = World(pod("p", group="job", cpu=1)).snapshot.jobs
    group = pod_group("job", min_member=4, priority_class="high", min_resources={"cpu": 1})
    world = World(queue("default"), priority_class("high", value=9), pod("p", group="job", cpu=1))
    world.add(group)
    jobs = world.remove(group).jobs
    for name in ("min_member", "priority", "phase", "has_min_resources", "listed", "queue"):
        assert getattr(fresh, name)[0] == getattr(jobs, name)[0]
    assert jobs.n_tasks[0] == 1


def test_a_job_without_group_and_pods_is_forgotten() -> None:
    group = pod_group("job")
    world = World(group, pod("p", group="job"))
    world.remove(group)
    snapshot = world.remove(pod("p"))
    assert (snapshot.jobs.row_of, snapshot.jobs.free) == ({}, [0])


def test_priority_classes_are_found_whenever_they_come() -> None:
    world = World(queue("default"), pod_group("a", priority_class="high"), pod_group("b"))
    assert world.snapshot.jobs.priority[:2].tolist() == [0, 0]
    world.add(
        priority_class("high", value=9), priority_class("usual", value=3, global_default=True)
    )
    assert world.snapshot.jobs.priority[:2].tolist() == [9, 3]
    world.remove(priority_class("high", value=9))
    assert world.snapshot.jobs.priority[:2].tolist() == [3, 3]


def test_of_several_default_classes_the_lowest_counts() -> None:
    classes = [priority_class(f"c{n}", value=n, global_default=True) for n in (5, 2, 8)]
    snapshot = snapshot_of([*classes, queue("default"), pod_group("job")])
    assert snapshot.jobs.priority[0] == 2


def test_queues_know_their_parents_in_any_order() -> None:
    child, parent = queue("child", parent="dept"), queue("dept")
    snapshot = snapshot_of([child, parent])
    assert snapshot.queues.parent[:2].tolist() == [1, NOWHERE]


def test_a_queue_says_what_it_gives() -> None:
    snapshot = snapshot_of(
        [queue("q", weight=3, priority=4, reclaimable=False, deserved={"cpu": 2}, state="Closing")]
    )
    queues = snapshot.queues
    assert (queues.weight[0], queues.priority[0], queues.reclaimable[0]) == (3, 4, False)
    assert (queues.deserved[CPU, 0], queues.deserved_given[:, 0].tolist()) == (
        2000,
        [True, False, False],
    )
    assert not queues.open[0]


@pytest.mark.parametrize(("phase", "wanted"), [("Inqueue", "Inqueue"), ("Odd", "Unknown")])
def test_phases_are_read(phase: str, wanted: str) -> None:
    snapshot = snapshot_of([pod_group("job", phase=phase)])
    assert snapshot.jobs.phase[0] == PHASE_CODE[wanted]


def test_other_kinds_are_kept_by_name() -> None:
    budget = pdb("web", match_labels={"app": "web"}, disruptions_allowed=1)
    world = World(budget)
    assert list(world.snapshot.kind("PodDisruptionBudget")) == ["default/web"]
    world.remove(budget)
    assert world.snapshot.kind("PodDisruptionBudget") == {}


def test_what_was_never_there_can_be_deleted() -> None:
    world = World(node("n0"))
    world.remove(pod("p"), node("n9"), pod_group("g"), queue("q"), priority_class("c", value=1))
    assert world.snapshot.nodes.names == ["n0"]


def test_rows_are_used_again() -> None:
    world = World(*(pod(f"p{i}", cpu=1) for i in range(5)))
    world.remove(pod("p1"), pod("p3"))
    snapshot = world.add(pod("new"), pod("newer"), pod("newest"))
    assert snapshot.tasks.n == 6
    assert snapshot.tasks.free == []


def test_nothing_is_kept_of_nodes_that_pods_no_longer_wait_for() -> None:
    world = World()
    for i in range(20):
        world.add(node(f"n{i}"), pod(f"p{i}", node=f"n{i}"), pod(f"q{i}", node=f"never{i}"))
        world.remove(node(f"n{i}"))
        world.remove(pod(f"p{i}"), pod(f"q{i}"))
    tasks = world.ingest._tasks
    assert (tasks._homeless, tasks._waits) == ({}, {})


def test_pods_that_waited_for_a_node_move_in_once_and_leave() -> None:
    world = World(pod("a", cpu=1, node="n0"), pod("b", cpu=1, node="n0"))
    world.remove(pod("b"))
    snapshot = world.add(node("n0", cpu=4))
    assert snapshot.nodes.idle[CPU, 0] == 3000
    world.remove(node("n0"))
    world.remove(pod("a"))
    assert world.add(node("n0", cpu=4)).nodes.idle[CPU, 0] == 4000


def in_namespace(i: Any) -> Any:
    return pod("p", namespace=f"run-{i}", group="g")


def with_role(i: Any) -> Any:
    return pod("p", role=f"worker-{i}")


def with_taint(i: Any) -> Any:
    return node("n", taints=[{"key": f"k{i}", "effect": "NoSchedule"}])


@pytest.mark.parametrize("make", [in_namespace, with_role, with_taint])
def test_what_is_kept_of_objects_gone_by_is_counted(make: Any) -> None:
    world = World()
    for i in range(30):
        world.add(make(i))
        world.remove(make(i))
    assert world.ingest.litter >= 30
    assert world.ingest.anew().litter == 0


@pytest.mark.parametrize("named", [None, "", "default"])
def test_a_group_that_names_no_queue_counts_in_the_default_one(named: str | None) -> None:
    group = pod_group("g", queue=named)
    world = World(queue("default"), group, pod("p", group="g", cpu=2, node="n0"), node("n0"))
    jobs, queues = world.snapshot.jobs, world.snapshot.queues
    row = jobs.row_of["default/g"]
    assert (jobs.listed[row], jobs.groups[row].spec.queue) == (True, "default")
    assert queues.allocated[CPU, jobs.queue[row]] == 2000


def test_the_default_queue_can_be_another_one_also_after_a_start_anew() -> None:
    ingest = Ingest(Snapshot(), default_queue="spare").anew()
    ingest.load(map(from_manifest, [queue("spare"), queue("default"), pod_group("g", queue=None)]))
    jobs = ingest.snapshot.jobs
    assert ingest.snapshot.queues.names[jobs.queue[jobs.row_of["default/g"]]] == "spare"


def test_a_group_without_a_queue_waits_for_the_default_one() -> None:
    world = World(queue("other"), pod_group("g", queue=None))
    row = world.snapshot.jobs.row_of["default/g"]
    assert not world.snapshot.jobs.listed[row]
    world.add(queue("default"))
    assert world.snapshot.jobs.listed[row]


@pytest.mark.parametrize(
    ("notes", "cpu"),
    [
        ({"volcano.sh/oversubscription-cpu": "1500"}, 5500),
        ({"volcano.sh/oversubscription-cpu": "1.5e3"}, 5500),
        ({"volcano.sh/oversubscription-cpu": "many"}, 4000),
        ({"volcano.sh/oversubscription-cpu": "inf"}, 4000),
        ({"volcano.sh/oversubscription-memory": "1024"}, 4000),
    ],
)
def test_an_agent_can_offer_more_of_a_node(notes: Any, cpu: int) -> None:
    plain, more = node("n", cpu=4, memory="8Gi"), node("n", cpu=4, memory="8Gi")
    more["metadata"]["annotations"] = notes
    running = pod("p", node="n", cpu="1", phase="Running")
    world = World(plain, running)
    nodes = world.add(more).nodes
    assert nodes.allocatable[CPU, 0] == nodes.capacity_amounts[CPU, 0] == cpu
    assert nodes.idle[CPU, 0] == cpu - 1000
    assert world.add(plain).nodes.allocatable[CPU, 0] == 4000
