"""The binder: decisions become writes; one that fails leaves the others alone."""

import pytest

from pumice.api.decisions import Condition, Decisions, PodGroupState
from pumice.binder import Binder
from pumice.cluster.embedded.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.testing import pod, pod_group, queue

GROUP = "PodGroup.scheduling.volcano.sh"
QUEUE = "Queue.scheduling.volcano.sh"


@pytest.fixture
def cluster():
    cluster = EmbeddedCluster(VirtualClock(0.0))
    for name in ("p", "q"):
        cluster.create(pod(name, group="g"))
    cluster.create(pod_group("g"))
    cluster.create(queue("default"))
    return cluster


def reasons(cluster):
    return {(e["involvedObject"]["name"], e["reason"]) for e in cluster.list("Event")[0]}


def test_pods_are_bound_with_their_annotations_and_told(cluster):
    decided = Decisions(binds={"default/p": "n"}, annotations={"default/p": {"k": "v"}})
    applied = Binder(cluster).apply(decided)
    bound = cluster.get("Pod", "default", "p")
    assert applied.bound == ["default/p"]
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["annotations"]["k"] == "v"
    assert reasons(cluster) == {("p", "Scheduled")}


def test_a_bind_that_fails_is_reported_and_the_next_goes_on(cluster):
    cluster.bind("default", "p", "elsewhere", {})
    decided = Decisions(binds={"default/p": "n", "default/gone": "n", "default/q": "n"})
    applied = Binder(cluster).apply(decided)
    assert list(applied.failed) == ["default/p", "default/gone"]
    assert applied.bound == ["default/q"]
    assert ("p", "FailedScheduling") in reasons(cluster)


def test_victims_are_evicted_before_pods_are_bound(cluster):
    cluster.bind("default", "q", "n", {})
    _, since = cluster.list("Pod")
    decided = Decisions(binds={"default/p": "n"}, evictions=["default/q", "default/gone"])
    applied = Binder(cluster).apply(decided)
    assert applied.evicted == ["default/q"]
    assert not applied.errors
    told = [e.object["metadata"]["name"] for e in cluster.watch("Pod", since=since)]
    assert told[0] == "q"
    assert told[-1] == "p"
    assert cluster.get("Pod", "default", "q")["metadata"]["deletionTimestamp"]


def test_a_nomination_is_written_to_the_status(cluster):
    Binder(cluster).apply(Decisions(nominated={"default/p": "n"}))
    assert cluster.get("Pod", "default", "p")["status"]["nominatedNodeName"] == "n"


def test_a_group_gets_phase_counts_and_hyper_node(cluster):
    state = PodGroupState(phase="Running", hyper_node="h", running=2, succeeded=1, failed=3)
    Binder(cluster).apply(Decisions(pod_groups={"default/g": state, "default/gone": state}))
    group = cluster.get(GROUP, "default", "g")
    assert group["status"] == {
        "phase": "Running",
        "conditions": [],
        "running": 2,
        "succeeded": 1,
        "failed": 3,
    }
    assert group["metadata"]["annotations"] == {"volcano.sh/job-allocated-hypernode": "h"}


def test_a_condition_that_says_the_same_keeps_its_time(cluster):
    binder = Binder(cluster)
    waits = Condition("Unschedulable", "True", "NotEnoughResources", "m")
    ready = Condition("Scheduled", "True", "r")
    binder.apply(Decisions(pod_groups={"default/g": PodGroupState("Inqueue", [waits])}))
    cluster.clock.advance(60)
    binder.apply(Decisions(pod_groups={"default/g": PodGroupState("Running", [waits, ready])}))
    conditions = cluster.get(GROUP, "default", "g")["status"]["conditions"]
    times = {c["type"]: (c["lastTransitionTime"], c["transitionID"]) for c in conditions}
    assert times == {
        "Unschedulable": ("1970-01-01T00:00:00Z", "1"),
        "Scheduled": ("1970-01-01T00:01:00Z", "2"),
    }


def test_a_queue_shows_what_is_allocated_and_nothing_more(cluster):
    binder = Binder(cluster)
    binder.apply(Decisions(queues={"default": {"cpu": "2", "memory": "1Gi"}}))
    binder.apply(Decisions(queues={"default": {"cpu": "1"}}))
    assert cluster.get(QUEUE, "", "default")["status"]["allocated"] == {"cpu": "1"}
    before = cluster.version
    binder.apply(Decisions(queues={"default": {"cpu": "1"}}))
    assert cluster.version == before


def test_waiting_pods_are_told_why_once(cluster):
    binder = Binder(cluster)
    decided = Decisions(unschedulable={"default/g": "too small"})
    waiting = {"default/g": ["default/p", "default/gone"]}
    binder.apply(decided, waiting)
    (condition,) = cluster.get("Pod", "default", "p")["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == "too small"
    assert ("p", "FailedScheduling") in reasons(cluster)
    before = cluster.version
    binder.apply(decided, waiting)
    assert cluster.version == before
    cluster.clock.advance(60)
    binder.apply(Decisions(unschedulable={"default/g": "still"}), waiting)
    (condition,) = cluster.get("Pod", "default", "p")["status"]["conditions"]
    assert condition["message"] == "still"
    assert condition["lastTransitionTime"] == "1970-01-01T00:00:00Z"


def test_a_pod_that_was_bound_meanwhile_does_not_wait(cluster):
    cluster.bind("default", "p", "n", {})
    decided = Decisions(unschedulable={"default/g": "too small"})
    Binder(cluster).apply(decided, {"default/g": ["default/p"]})
    (condition,) = cluster.get("Pod", "default", "p")["status"]["conditions"]
    assert condition["status"] == "True"


def test_conditions_may_be_left_out(cluster):
    decided = Decisions(unschedulable={"default/g": "too small"})
    Binder(cluster, write_conditions=False).apply(decided, {"default/g": ["default/p"]})
    assert "conditions" not in cluster.get("Pod", "default", "p")["status"]
