"""The simulated kubelet: pods start, last, end, and go, all by the clock."""

from itertools import pairwise
from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import add_node, lose
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import RejectedError
from pumice.testing import pod


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    add_node(cluster, "n", {"cpu": "4"})
    return cluster


def bind(cluster: Any, name: str = "p", policy: str = "Never", **annotations: Any) -> None:
    marks = {f"pumice.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    cluster.create(pod(name, annotations=marks, spec={"restartPolicy": policy}))
    cluster.bind("default", name, "n", {})


def phase(cluster: Any, name: str = "p") -> Any:
    found = cluster.peek("Pod", "default", name)
    return found and found["status"]["phase"]


def test_a_bound_pod_runs_and_is_ready(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster)
    kubelet.sync()
    status = cluster.get("Pod", "default", "p")["status"]
    assert status["phase"] == "Running"
    assert status["containerStatuses"][0]["ready"]
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions == {"PodScheduled": "True", "Ready": "True", "ContainersReady": "True"}


def test_a_pod_without_a_node_waits(cluster: Any) -> None:
    cluster.create(pod("p"))
    Kubelet(cluster).sync()
    assert phase(cluster) == "Pending"


def test_a_pod_may_take_time_to_start(cluster: Any) -> None:
    kubelet = Kubelet(cluster, start_delay_s=5)
    bind(cluster)
    kubelet.sync()
    cluster.clock.advance(4.9)
    assert phase(cluster) == "Pending"
    cluster.clock.advance(0.1)
    assert phase(cluster) == "Running"


def test_a_pod_runs_for_as_long_as_its_annotation_says(cluster: Any) -> None:
    kubelet = Kubelet(cluster, durations=lambda _: 1.0)
    bind(cluster, run_seconds="10")
    kubelet.sync()
    cluster.clock.advance(9.9)
    kubelet.sync()
    assert phase(cluster) == "Running"
    cluster.clock.advance(0.1)
    status = cluster.get("Pod", "default", "p")["status"]
    assert status["phase"] == "Succeeded"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@pytest.mark.parametrize(("lasts", "want"), [(3.0, "Succeeded"), (None, "Running")])
def test_other_pods_run_for_as_long_as_the_caller_says_or_for_ever(
    cluster: Any, lasts: Any, want: str
) -> None:
    kubelet = Kubelet(cluster, durations=lambda _: lasts)
    bind(cluster, run_seconds="soon")
    kubelet.sync()
    cluster.clock.advance(1e6)
    assert phase(cluster) == want


def test_a_pod_fails_when_its_annotation_says_so(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster, fail_after_seconds="2", exit_code="137", run_seconds="5")
    kubelet.sync()
    cluster.clock.advance(5)
    status = cluster.get("Pod", "default", "p")["status"]
    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


def container(cluster: Any, name: str = "p") -> Any:
    return cluster.get("Pod", "default", name)["status"]["containerStatuses"][0]


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_a_container_that_failed_starts_again_if_the_policy_says_so(
    cluster: Any, policy: str
) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster, policy=policy, fail_after_seconds="2", exit_code="3")
    kubelet.sync()
    cluster.clock.advance(2)
    kubelet.sync()
    found = container(cluster)
    assert (phase(cluster), found["ready"], found["restartCount"]) == ("Running", False, 0)
    assert found["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert found["lastState"]["terminated"]["exitCode"] == 3
    cluster.clock.advance(10)
    kubelet.sync()
    found = container(cluster)
    assert (found["ready"], found["restartCount"]) == (True, 1)
    assert "running" in found["state"]


def test_each_wait_is_longer_than_the_last_up_to_five_minutes(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster, policy="OnFailure", fail_after_seconds="0.5")
    kubelet.sync()
    times: list[Any] = []
    while len(times) < 8:
        cluster.clock.advance(0.5)
        if container(cluster)["restartCount"] > len(times):
            times.append(cluster.now())
    waits = [b - a - 0.5 for a, b in pairwise(times)]
    assert waits == [20, 40, 80, 160, 300, 300, 300]


def test_a_pod_may_fail_a_few_times_and_then_succeed(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster, policy="OnFailure", fail_after_seconds="1", fail_times="2", run_seconds="5")
    kubelet.sync()
    cluster.clock.advance(100)
    assert (phase(cluster), container(cluster)["restartCount"]) == ("Succeeded", 2)


def test_a_pod_that_waits_to_start_again_may_be_deleted(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster, policy="OnFailure", fail_after_seconds="1")
    kubelet.sync()
    cluster.clock.advance(2)
    cluster.delete("Pod", "default", "p", grace_s=1)
    kubelet.sync()
    cluster.clock.advance(60)
    assert phase(cluster) is None


def test_a_pod_that_ends_before_it_would_fail_succeeds(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster, fail_after_seconds="5", run_seconds="2")
    kubelet.sync()
    cluster.clock.advance(10)
    assert phase(cluster) == "Succeeded"


def test_pods_fail_finish_and_restart_on_request(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    for name in "abc":
        bind(cluster, name, run_seconds="60")
    kubelet.sync()
    kubelet.fail("default", "a", 3, reason="Evicted", message="disk is full")
    kubelet.finish("default", "b")
    kubelet.restart("default", "c")
    failed = cluster.get("Pod", "default", "a")["status"]
    assert (failed["phase"], failed["reason"], failed["message"]) == (
        "Failed",
        "Evicted",
        "disk is full",
    )
    assert phase(cluster, "b") == "Succeeded"
    running = cluster.get("Pod", "default", "c")["status"]
    assert running["containerStatuses"][0]["restartCount"] == 1
    with pytest.raises(RejectedError, match="found it Failed"):
        kubelet.fail("default", "a")
    kubelet.sync()
    cluster.clock.advance(60)
    assert phase(cluster, "a") == "Failed"
    restarts = cluster.get("Pod", "default", "c")["status"]["containerStatuses"][0]
    assert restarts["restartCount"] == 1


def test_a_pod_on_no_node_cannot_fail(cluster: Any) -> None:
    cluster.create(pod("p"))
    with pytest.raises(RejectedError, match="on no node"):
        Kubelet(cluster).fail("default", "p")


@pytest.mark.parametrize(("grace_s", "leaves"), [(None, 30), (4, 4), (0, 0)])
def test_a_pod_that_is_to_go_is_confirmed_after_its_grace(
    cluster: Any, grace_s: Any, leaves: int
) -> None:
    kubelet = Kubelet(cluster, grace_s=grace_s)
    bind(cluster, run_seconds="10")
    kubelet.sync()
    cluster.delete("Pod", "default", "p")
    kubelet.sync()
    cluster.clock.advance(leaves - 0.1 if leaves else 0)
    assert (phase(cluster) is None) == (leaves == 0)
    cluster.clock.advance(0.1)
    assert phase(cluster) is None


def test_a_pod_deleted_before_the_kubelet_saw_it_goes_too(cluster: Any) -> None:
    kubelet = Kubelet(cluster, grace_s=0)
    bind(cluster)
    cluster.delete("Pod", "default", "p")
    kubelet.sync()
    assert phase(cluster) is None


def test_the_end_of_a_pod_does_not_touch_its_successor(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster, run_seconds="10")
    kubelet.sync()
    cluster.delete("Pod", "default", "p", grace_s=0)
    bind(cluster, run_seconds="100")
    kubelet.sync()
    cluster.clock.advance(50)
    assert phase(cluster) == "Running"


def test_a_kubelet_that_starts_late_lets_running_pods_end(cluster: Any) -> None:
    cluster.restore([pod("p", node="n", annotations={"pumice.dev/run-seconds": "7"})])
    Kubelet(cluster).sync()
    cluster.clock.advance(7)
    assert phase(cluster) == "Succeeded"


def test_a_kubelet_that_missed_too_much_looks_at_everything(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster, "old", run_seconds="5")
    kubelet.sync()
    cluster.delete("Pod", "default", "old", grace_s=0)
    bind(cluster, "new")
    cluster.compact()
    kubelet.sync()
    assert phase(cluster, "new") == "Running"
    assert cluster.clock.next_at() is None


def test_a_pod_bound_to_a_node_that_is_not_there_is_taken_away(cluster: Any) -> None:
    cluster.create(pod("p"))
    cluster.bind("default", "p", "nowhere", {})
    Kubelet(cluster).sync()
    assert phase(cluster) is None


def test_a_pod_reported_to_go_sooner_goes_sooner(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster)
    kubelet.sync()
    cluster.delete("Pod", "default", "p")
    kubelet.sync()
    cluster.delete("Pod", "default", "p", grace_s=3)
    kubelet.sync()
    cluster.clock.advance(3)
    assert phase(cluster) is None


@pytest.mark.parametrize("forgotten", [False, True])
def test_the_pods_of_a_deleted_node_go_too(cluster: Any, forgotten: bool) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster)
    kubelet.sync()
    cluster.delete("Node", "", "n")
    if forgotten:
        cluster.compact()
    kubelet.sync()
    assert phase(cluster) is None


def test_a_lost_node_takes_its_pods_along_and_they_fail_first(cluster: Any) -> None:
    bind(cluster)
    _, since = cluster.list("Pod")
    assert lose(cluster, "n") == ["default/p"]
    reported = [(e.type, e.object["status"]["phase"]) for e in cluster.watch("Pod", since=since)]
    assert reported == [("MODIFIED", "Failed"), ("DELETED", "Failed")]
    assert cluster.peek("Node", "", "n") is None
