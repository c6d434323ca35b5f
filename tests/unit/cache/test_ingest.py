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
def test_a_pod_has_a_status_and_takes_of_its_node_while_it_may_run(
    manifest: Any, wanted: Any
) -> None:
    snapshot = snapshot_of([node("n0"), manifest])
    assert wanted == snapshot.tasks.status[0]
    check(snapshot)
    holds = wanted in (Status.BOUND, Status.RUNNING, Status.UNKNOWN) or (
        wanted == Status.RELEASING and "nodeName" in manifest["spec"]
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


def test_a_pod_before_its_node_moves_in_when_the_node_comes() -> None:
    world = World(pod("p", cpu=1, node="n0"))
    assert world.snapshot.tasks.node[0] == NOWHERE
    world.add(node("n0", cpu=4))
    assert (world.snapshot.tasks.node[0], world.snapshot.nodes.idle[CPU, 0]) == (0, 3000)


def test_the_only_pod_of_a_job_without_a_group_keeps_its_job_when_it_moves() -> None:
    ingest = Ingest(Snapshot())
    for on in (None, "n0", None):
        things = [node("n0"), pod("p", group="g", cpu=1, node=on)]
        snapshot = ingest.load(from_manifest(each) for each in things)
        job = snapshot.jobs.row_of["default/g"]
        assert (snapshot.tasks.job[0], snapshot.jobs.tasks[job]) == (job, [0])
        check(snapshot)


def test_of_several_default_classes_the_lowest_counts() -> None:
    classes = [priority_class(f"c{n}", value=n, global_default=True) for n in (5, 2, 8)]
    snapshot = snapshot_of([*classes, queue("default"), pod_group("job")])
    assert snapshot.jobs.priority[0] == 2


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
