"""What users of Volcano complain about most, each as a case that must not go wrong here.

The numbers are those of issues of volcano-sh/volcano.
"""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.cache.informer import Informer
from pumice.cache.ingest import Ingest
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.snapshot import Snapshot
from pumice.scenarios.objects import advance
from pumice.scheduler import Scheduler
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.testing import node, pod, pod_group, priority_class, queue

GROUP = "PodGroup.scheduling.volcano.sh"
JOB = "Job.batch.volcano.sh"


def conf(actions: str, *second_tier: str) -> Any:
    plugins = ", ".join(f"{{name: {name}}}" for name in second_tier)
    return parse_conf(f"""
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{plugins}]
""")


RECLAIM = conf("enqueue, allocate, backfill, reclaim", "predicates", "capacity", "nodeorder")
PREEMPT = conf("enqueue, allocate, preempt", "predicates", "nodeorder")


def held(group: str, queue: str, cpus: Any, **options: Any) -> Any:
    """A job whose pods run on node n."""
    pods = [
        pod(f"{group}-{i}", group=group, cpu=cpu, node="n", **options) for i, cpu in enumerate(cpus)
    ]
    return [pod_group(group, queue=queue, phase="Running"), *pods]


def waiting(group: str, queue: str, cpus: Any, *, phase: str = "Pending", **options: Any) -> Any:
    need = options.pop("min_resources", None)
    pods = [pod(f"{group}-{i}", group=group, cpu=cpu, **options) for i, cpu in enumerate(cpus)]
    member = len(cpus)
    return [
        pod_group(group, queue=queue, min_member=member, phase=phase, min_resources=need),
        *pods,
    ]


# Reclaim does not happen when it should


def test_reclaim_works_though_deserved_leaves_a_resource_out() -> None:
    """4658: what is deserved names cpu only, pods ask for memory too."""
    world = [node("n", cpu=4), queue("mine", deserved={"cpu": 2}), queue("theirs")]
    world += held("borrowed", "theirs", [1] * 4, memory="1Gi")
    world += waiting("due", "mine", [1], memory="1Gi")
    decided = Scheduler(RECLAIM).cycle(world, 0.0)
    assert len(decided.evictions) == 1
    assert decided.pipelined == {"default/due-0": "n"}


def test_reclaim_adds_small_victims_up() -> None:
    """4151: no victim alone is large enough."""
    world = [node("n", cpu=8), queue("mine", deserved={"cpu": 6}), queue("theirs")]
    world += held("borrowed", "theirs", [1] * 8)
    world += waiting("due", "mine", [4])
    decided = Scheduler(RECLAIM).cycle(world, 0.0)
    assert len(decided.evictions) == 4
    assert decided.pipelined == {"default/due-0": "n"}


@pytest.mark.parametrize(("more", "admitted"), [((), True), (("overcommit",), False)])
def test_a_full_cluster_keeps_a_job_from_reclaiming_only_under_overcommit(
    more: Any, admitted: bool
) -> None:
    """4679, 569: kept, for that is what overcommit is for; without it capacity admits the job."""
    plugins = (*more, "predicates", "capacity", "nodeorder")
    world = [node("n", cpu=4), queue("mine", deserved={"cpu": 2}), queue("theirs")]
    world += held("borrowed", "theirs", [1] * 4)
    world += waiting("due", "mine", [1, 1], min_resources={"cpu": 2})
    decided = Scheduler(conf("enqueue, allocate, reclaim", *plugins)).cycle(world, 0.0)
    assert (decided.pod_groups["default/due"].phase == "Inqueue") is admitted
    assert len(decided.evictions) == (2 if admitted else 0)
    if not admitted:
        assert decided.records["default/due"].numbers["at"] == "cluster"


# Evictions that help nobody, and loops


def test_nobody_goes_for_a_gang_that_cannot_start_all_the_same() -> None:
    """5022, 5026: one of two pods would find room, the other needs a node that is not there."""
    world = [node("n", cpu=4), queue("default"), priority_class("high", value=10)]
    world += held("low", "default", [1] * 4)
    gang = pod_group("high", min_member=2, priority_class="high")
    near = pod("near", group="high", cpu=1, priority=10)
    far = pod("far", group="high", cpu=1, priority=10, spec={"nodeSelector": {"pool": "none"}})
    decided = Scheduler(PREEMPT).cycle([*world, gang, near, far], 0.0)
    assert decided.evictions == []
    assert decided.pipelined == {}


def test_no_more_go_than_are_needed() -> None:
    """5984, 5994: ten could go, the room of one is enough."""
    world = [node("n", cpu=10), queue("default"), priority_class("high", value=10)]
    world += held("low", "default", [1] * 10)
    world += [pod_group("high", priority_class="high"), pod("p", group="high", cpu=1, priority=10)]
    decided = Scheduler(PREEMPT).cycle(world, 0.0)
    assert len(decided.evictions) == 1
    assert decided.pipelined == {"default/p": "n"}


def test_an_eviction_in_vain_is_not_repeated() -> None:
    """4925: amounts would do, but a pod that stays keeps it away; kept, and it ends there."""
    avoid = {
        "labelSelector": {"matchLabels": {"app": "lone"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [avoid]}}
    guard = pod("guard", node="n", cpu=1, labels={"app": "lone"})
    world = [node("n", cpu=4), queue("mine", deserved={"cpu": 2}), queue("theirs"), guard]
    world += held("borrowed", "theirs", [1] * 3)
    world += waiting("due", "mine", [1], spec={"affinity": affinity})
    scheduler, evicted = Scheduler(RECLAIM), []
    for second in range(4):
        decided = scheduler.cycle(world, float(second))
        evicted.append(len(decided.evictions))
        world = advance(world, decided)
    assert evicted == [1, 0, 0, 0]


def test_equals_of_one_queue_do_not_evict_each_other() -> None:
    """377: twice as many one-pod jobs as there is room for, under reclaim."""
    control = plane(RECLAIM, cpu=4)
    for number in range(8):
        control.cluster.create(pod_group(f"g{number}", phase=None))
        control.cluster.create(pod(f"p{number}", group=f"g{number}", cpu=1))
    evicted: list[str] = []
    control.on_cycle.append(lambda cycle: evicted.extend(cycle.decisions.evictions))
    control.run(until=30, max_cycles=40)
    assert evicted == []
    assert len(running(control)) == 4


def test_a_reclaimed_job_does_not_win_its_room_back() -> None:
    """4947: its queue holds nothing any more and goes first, but the job must be admitted again."""
    control = plane(RECLAIM, cpu=5)
    control.cluster.create(queue("one", deserved={"cpu": 3}))
    control.cluster.create(queue("two", deserved={"cpu": 5}))
    control.cluster.create(job("large", "one", 4, "PodEvicted", "RestartJob"))
    control.cluster.create(job("small", "two", 1, "PodEvicted", "RestartJob"))
    control.run(until=5)
    evicted: list[str] = []
    control.on_cycle.append(lambda cycle: evicted.extend(cycle.decisions.evictions))
    control.cluster.create(job("due", "two", 4, "PodEvicted", "RestartJob"))
    control.run(until=60)
    assert evicted == ["default/large-w-0"]
    assert running(control) == {"due-w-0", "small-w-0"}


# Admission to queues


def test_a_job_that_is_refused_reserves_nothing() -> None:
    """4385: overcommit would admit the first job, its queue does not; the second has the room."""
    policy = conf("enqueue", "overcommit", "capacity")
    world = [node("n", cpu=10), queue("small", capability={"cpu": 2}), queue("wide")]
    world += waiting("first", "small", [5, 5], min_resources={"cpu": 10})
    world += waiting("second", "wide", [5, 5], min_resources={"cpu": 10})
    decided = Scheduler(policy).cycle(world, 0.0)
    phases = {name: state.phase for name, state in decided.pod_groups.items()}
    assert phases == {"default/first": "Pending", "default/second": "Inqueue"}


def test_what_a_job_holds_is_not_reserved_again() -> None:
    """4235: it runs with all it needs; there is room for another of the same size."""
    policy = conf("enqueue", "predicates", "capacity")
    world = [node("n", cpu=8), queue("q", capability={"cpu": 8})]
    runs = held("runs", "q", [2, 2])
    runs[0]["spec"]["minResources"] = {"cpu": "4"}
    world += [*runs, *waiting("next", "q", [2, 2], min_resources={"cpu": 4})]
    decided = Scheduler(policy).cycle(world, 0.0)
    assert decided.pod_groups["default/next"].phase == "Inqueue"


# One bad queue


@pytest.mark.parametrize("parents", [{"a": "b", "b": "a"}, {"a": "nowhere"}, {"a": "a"}])
def test_a_bad_queue_stops_nobody_else(parents: Any) -> None:
    """4673, 3914, 4227: a circle or a missing parent."""
    tree = parse_conf("""
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true}]
""")
    bad = [queue(name, parent=parent) for name, parent in parents.items()]
    world = [node("n", cpu=4), queue("root"), queue("good", parent="root"), *bad]
    world += [*waiting("fine", "good", [1]), *waiting("lost", "a", [1])]
    decided = Scheduler(tree).cycle(world, 0.0)
    assert decided.binds == {"default/fine-0": "n"}
    assert "misplaced" in decided.explanations["default/lost"]


# Counters


def test_a_queue_shows_nothing_once_its_pods_are_gone() -> None:
    """2280, 3293: what is allocated follows the pods, and goes back to nothing."""
    control = plane(RECLAIM, cpu=4)
    control.cluster.create(pod_group("g", phase=None))
    control.cluster.create(pod("p", group="g", cpu=2, spec={"terminationGracePeriodSeconds": 0}))
    control.run(until=3)
    assert allocated(control) == {"cpu": "2", "pods": "1"}
    control.cluster.delete("Pod", "default", "p")
    control.run(until=6)
    assert allocated(control) == {}


# Lives of jobs


@pytest.mark.parametrize("action", ["RestartTask", "RestartPod"])
def test_a_failed_pod_is_made_anew(action: str) -> None:
    """1866, 5385: and neither the other pods nor the pod group are touched by RestartPod."""
    control = plane(RECLAIM, cpu=4)
    control.cluster.create(job("j", "default", 1, "PodFailed", action, replicas=2))
    control.run(until=3)
    before = uids(control)
    group = control.cluster.list(GROUP)[0][0]["metadata"]["uid"]
    fail(control, "j-w-0")
    control.run(until=8)
    after = uids(control)
    assert running(control) == {"j-w-0", "j-w-1"}
    assert after["j-w-0"] != before["j-w-0"]
    assert (after["j-w-1"] == before["j-w-1"]) is (action == "RestartPod")
    assert control.cluster.list(GROUP)[0][0]["metadata"]["uid"] == group


@pytest.mark.parametrize("action", ["RestartTask", "RestartPod"])
def test_a_pod_that_does_not_start_in_time_is_made_anew(action: str) -> None:
    """4743: PodPending with a timeout."""
    control = plane(RECLAIM, cpu=4)
    made = job("j", "default", 1, "PodPending", action)
    made["spec"]["policies"][0]["timeout"] = "10s"
    made["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"] = {"pool": "later"}
    control.cluster.create(made)
    control.run(until=3)
    before = uids(control)
    control.run(until=20)
    assert uids(control)["j-w-0"] != before["j-w-0"]


def test_an_eviction_restarts_a_task_once() -> None:
    """4814: the pods that the restart itself deletes do not restart it again."""
    control = plane(RECLAIM, cpu=4)
    control.cluster.create(job("j", "default", 1, "PodEvicted", "RestartTask", replicas=3))
    control.run(until=3)
    control.cluster.delete("Pod", "default", "j-w-0", grace_s=0)
    control.run(until=30)
    (found,) = control.cluster.list(JOB)[0]
    assert found["status"].get("retryCount", 0) <= 1
    assert found["status"]["state"]["phase"] == "Running"
    assert len(running(control)) == 3


# The scheduler's picture of the cluster


def test_a_pod_on_its_way_out_keeps_its_room() -> None:
    """2700, 2282: else the kubelet reports OutOfcpu."""
    leaving = pod("old", node="n", cpu=4)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world = [node("n", cpu=4), queue("default"), leaving, *waiting("new", "default", [4])]
    assert Scheduler(RECLAIM).cycle(world, 0.0).binds == {}


def test_pods_count_again_when_their_node_comes_back() -> None:
    """4888, 4970: the node is reported late, or disappears and returns; its pods stay known."""
    cluster = EmbeddedCluster(VirtualClock(0.0))
    for manifest in (queue("default"), pod("old", node="n", cpu=3)):
        cluster.create(manifest)
    informer = Informer(cluster, Ingest(Snapshot()), wants_node=lambda _: True)
    idle = []
    for change in (add, remove, add):
        change(cluster)
        informer.sync()
        nodes = informer.snapshot.nodes
        if "n" in nodes.row_of:
            idle.append(float(nodes.idle[0, nodes.row_of["n"]]))
    assert idle == [1000.0, 1000.0]


def add(cluster: Any) -> None:
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})


def remove(cluster: Any) -> None:
    cluster.delete("Node", "", "n")


# A control plane to look at


def plane(policy: Any, cpu: int) -> Any:
    control = EmbeddedControlPlane(policy, clock=VirtualClock(0.0))
    add_node(control.cluster, "n", {"cpu": str(cpu), "memory": "64Gi"})
    return control


def job(name: str, queue: str, cpu: int, event: str, action: str, *, replicas: int = 1) -> Any:
    requests = {"requests": {"cpu": str(cpu)}}
    containers = [{"name": "main", "image": "app", "resources": requests}]
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": containers,
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "queue": queue,
            "minAvailable": replicas,
            "maxRetry": 9,
            "policies": [{"event": event, "action": action}],
            "tasks": [{"name": "w", "replicas": replicas, "template": {"spec": spec}}],
        },
    }


def running(control: Any) -> Any:
    return {
        each["metadata"]["name"]
        for each in control.cluster.list("Pod")[0]
        if each["status"]["phase"] == "Running"
    }


def uids(control: Any) -> Any:
    pods = control.cluster.list("Pod")[0]
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in pods}


def fail(control: Any, name: str) -> None:
    status = {"status": {"phase": "Failed"}}
    control.cluster.patch("Pod", "default", name, status, subresource="status")


def allocated(control: Any) -> Any:
    found = control.cluster.get("Queue.scheduling.volcano.sh", "", "default")
    return found["status"].get("allocated", {})
