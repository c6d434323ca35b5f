"""Pods without a node: each has a condition and an event that name its own reason."""

from typing import Any

import pytest

from pumice.api.annotations import QUEUE_GATE
from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import pod, pod_group, priority_class

QUEUE = "Queue.scheduling.volcano.sh"

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
PREEMPTING = CONF.replace("backfill", "backfill, preempt")
QUOTAS = CONF + "- plugins: [{name: capacity}]\n"


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    make_queues(cluster)
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi", "pods": "110"})
    return cluster


def live(cluster: Any, conf: str = CONF, **options: Any) -> Any:
    return LiveScheduler(cluster, Scheduler(parse_conf(conf)), **options)


def create(cluster: Any, group: str, cpus: Any, least: int = 1, **more: Any) -> None:
    """Create a group and its pods, of which an earlier one is tried first."""
    cluster.create(pod_group(group, min_member=least, phase=None))
    for number, cpu in enumerate(cpus):
        created = f"1970-01-01T00:00:{number:02}Z"
        cluster.create(pod(f"{group}-{number}", group=group, cpu=cpu, created=created, **more))


def cycles(scheduler: Any, n: int = 3) -> None:
    for _ in range(n):
        scheduler.cycle()


def run(cluster: Any, *pods: str) -> None:
    """Start pods as a kubelet does: once deleted they leave after their grace period."""
    for name in pods:
        cluster.merge_status("Pod", "default", name, {"phase": "Running"})


def waiting(cluster: Any) -> dict[str, tuple[str, str]]:
    """Return reason and message of the pods whose condition is that they have no node."""
    return {
        each["metadata"]["name"]: (one["reason"], one.get("message", ""))
        for each in cluster.list("Pod")[0]
        for one in each["status"].get("conditions", ())
        if (one["type"], one["status"]) == ("PodScheduled", "False")
    }


def failures(cluster: Any) -> Any:
    """Return pod, message and count of the events about pods without a node."""
    return {
        (each["involvedObject"]["name"], each["message"], each["count"])
        for each in cluster.list("Event")[0]
        if (each["type"], each["reason"]) == ("Warning", "FailedScheduling")
    }


def test_a_pod_beyond_the_minimum_of_a_running_group_is_seen(cluster: Any) -> None:
    create(cluster, "elastic", [1, 100])
    cycles(live(cluster))
    text = "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert waiting(cluster) == {"elastic-1": ("Unschedulable", text)}
    assert failures(cluster) == {("elastic-1", text, 1)}


def test_pods_of_a_short_gang_that_would_fit_are_schedulable(cluster: Any) -> None:
    create(cluster, "gang", [1, 1, 100], least=3)
    cycles(live(cluster))
    assert waiting(cluster) == {
        "gang-0": (
            "Schedulable",
            "Pod default/gang-0 can possibly be assigned to n, once minAvailable is satisfied",
        ),
        "gang-1": (
            "Schedulable",
            "Pod default/gang-1 can possibly be assigned to n, once minAvailable is satisfied",
        ),
        "gang-2": ("Unschedulable", "0/1 nodes are unavailable: 1 Insufficient cpu."),
    }


def test_a_pod_without_requests_is_seen(cluster: Any) -> None:
    create(cluster, "best", [None], spec={"nodeSelector": {"x": "y"}})
    cycles(live(cluster))
    reason, message = waiting(cluster)["best-0"]
    assert reason == "Unschedulable"
    assert message.startswith("0/1 nodes are unavailable: 1 node(s) didn't match Pod's node")


def test_as_many_pods_are_seen_as_find_no_room(cluster: Any) -> None:
    create(cluster, "deployment", [1] * 50)
    for number in range(6):
        add_node(cluster, f"m{number}", {"cpu": "4", "memory": "8Gi", "pods": "110"})
    cycles(live(cluster))
    text = "0/7 nodes are unavailable: 7 Insufficient cpu."
    assert [*waiting(cluster).values()] == [("Unschedulable", text)] * 22


def test_nothing_is_written_while_nothing_changes(cluster: Any) -> None:
    create(cluster, "elastic", [1, 100, 100])
    create(cluster, "gang", [1, 1, 100], least=3)
    create(cluster, "best", [None], spec={"nodeSelector": {"x": "y"}})
    scheduler = live(cluster)
    cycles(scheduler)
    before = cluster.version
    assert scheduler.cycle().decisions.waiting_pods == {}
    cycles(scheduler)
    assert cluster.version == before


def test_a_condition_follows_its_cause_while_the_group_runs(cluster: Any) -> None:
    create(cluster, "elastic", [1, 100])
    scheduler = live(cluster)
    cycles(scheduler)
    add_node(cluster, "m", {"cpu": "8", "memory": "8Gi", "pods": "110"})
    cycles(scheduler)
    text = "0/2 nodes are unavailable: 2 Insufficient cpu."
    assert waiting(cluster) == {"elastic-1": ("Unschedulable", text)}
    add_node(cluster, "large", {"cpu": "128", "memory": "8Gi", "pods": "110"})
    cycles(scheduler)
    assert waiting(cluster) == {}


def test_a_pod_that_its_queue_refuses_has_the_text_of_its_group(cluster: Any) -> None:
    cluster.patch(QUEUE, "", "default", {"spec": {"capability": {"cpu": "1"}}})
    create(cluster, "g", [1, 1])
    cycles(live(cluster, QUOTAS))
    (found,) = waiting(cluster).values()
    standing = "pod group is ready, 1 Bound, 1 Pending, 1 minAvailable"
    assert found == ("Unschedulable", f"{standing}; Pending: 1 Unschedulable")


def test_pods_of_a_group_that_is_not_admitted_are_seen(cluster: Any) -> None:
    """A Volcano Job that is not admitted has none; those of a Deployment exist at once."""
    cluster.patch(QUEUE, "", "default", {"spec": {"capability": {"cpu": "1"}}})
    cluster.create(pod_group("g", min_member=2, phase=None, min_resources={"cpu": "8"}))
    for number in range(2):
        cluster.create(pod(f"g-{number}", group="g", cpu=4))
    cycles(live(cluster, QUOTAS))
    standing = "pod group is not ready, 2 Pending, 2 minAvailable"
    text = ("Unschedulable", f"{standing}; Pending: 2 Unschedulable")
    assert waiting(cluster) == {"g-0": text, "g-1": text}


def test_gated_pods_and_those_of_no_known_queue_are_left_alone(cluster: Any) -> None:
    create(cluster, "shut", [100], spec={"schedulingGates": [{"name": QUEUE_GATE}]})
    cluster.create(pod_group("lost", queue="nowhere", phase=None))
    cluster.create(pod("lost-0", group="lost", cpu=1))
    cycles(live(cluster))
    assert {name: reason for name, (reason, _) in waiting(cluster).items()} == {
        "shut-0": "SchedulingGated"
    }


def test_a_pod_that_waits_for_evicted_ones_names_its_node(cluster: Any) -> None:
    cluster.create(priority_class("high", value=1000))
    create(cluster, "low", [2, 2], spec={"terminationGracePeriodSeconds": 30})
    scheduler = live(cluster, PREEMPTING)
    cycles(scheduler)
    run(cluster, "low-0", "low-1")
    cluster.create(pod_group("high", priority_class="high", phase=None))
    cluster.create(pod("high-0", group="high", cpu=2, priority_class="high"))
    cycles(scheduler)
    once = "once resource is released and minAvailable is satisfied"
    text = f"Pod default/high-0 can possibly be assigned to n, {once}"
    assert waiting(cluster) == {"high-0": ("Unschedulable", text)}
    assert cluster.get("Pod", "default", "high-0")["status"]["nominatedNodeName"] == "n"


def test_a_gang_given_up_while_it_waited_for_room_says_so(cluster: Any) -> None:
    create(cluster, "low", [3], spec={"terminationGracePeriodSeconds": 30})
    scheduler = live(cluster)
    cycles(scheduler)
    run(cluster, "low-0")
    cluster.delete("Pod", "default", "low-0")
    create(cluster, "gang", [1, 3, 100], least=3)
    cycles(scheduler)
    found = waiting(cluster)
    assert found["gang-0"][0] == "Schedulable"
    once = "once resource is released and minAvailable is satisfied"
    text = f"Pod default/gang-1 can possibly be assigned to n, {once}"
    assert found["gang-1"] == ("Unschedulable", text)


def test_a_cluster_without_nodes_shows_its_pods_to_autoscalers() -> None:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    make_queues(cluster)
    create(cluster, "first", [1])
    cycles(live(cluster))
    assert waiting(cluster)["first-0"][0] == "Unschedulable"


def test_conditions_may_be_left_out(cluster: Any) -> None:
    create(cluster, "elastic", [1, 100])
    cycles(live(cluster, write_conditions=False))
    assert waiting(cluster) == {}
