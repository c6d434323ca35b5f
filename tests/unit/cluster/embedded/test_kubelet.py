"""The simulated kubelet: pods start, last, end and go by the clock; what it writes of them."""

from itertools import pairwise
from typing import Any

import pytest

from pumice.api.times import rfc3339
from pumice.clock import VirtualClock
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import add_node, lose
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import RejectedError
from pumice.testing import pod, pod_group


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    add_node(cluster, "n", {"cpu": "4"})
    return cluster


def bind(cluster: Any, name: str = "p", *, containers: int = 1, **annotations: Any) -> None:
    marks = {f"pumice.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    policy = marks.pop("pumice.dev/policy", "Never")
    listed = [{"name": f"c{number}", "image": f"i{number}"} for number in range(containers)]
    spec = {"restartPolicy": policy, "containers": listed}
    cluster.create(pod(name, annotations=marks, spec=spec))
    cluster.bind("default", name, "n", {})


def status(cluster: Any, name: str = "p") -> Any:
    found = cluster.peek("Pod", "default", name)
    return found and found["status"]


def conditions(cluster: Any) -> dict[str, tuple[str, str]]:
    listed = status(cluster)["conditions"]
    return {one["type"]: (one["status"], one["lastTransitionTime"]) for one in listed}


def at(seconds: float) -> str:
    return rfc3339(seconds)


def phase(cluster: Any, name: str = "p") -> Any:
    found = cluster.peek("Pod", "default", name)
    return found and found["status"]["phase"]


@pytest.mark.parametrize(("lasts", "want"), [(3.0, "Succeeded"), (None, "Running")])
def test_other_pods_run_for_as_long_as_the_caller_says_or_for_ever(
    cluster: Any, lasts: Any, want: str
) -> None:
    kubelet = Kubelet(cluster, durations=lambda _: lasts)
    bind(cluster, run_seconds="soon")
    kubelet.sync()
    cluster.clock.advance(1e6)
    assert phase(cluster) == want


def test_a_pod_runs_for_as_long_as_its_group_states(cluster: Any) -> None:
    cluster.create(pod_group("g", annotations={"pumice.dev/run-seconds": "60"}))
    cluster.create(pod("p", group="g"))
    cluster.bind("default", "p", "n", {})
    Kubelet(cluster).sync()
    cluster.clock.advance(59)
    assert phase(cluster) == "Running"
    cluster.clock.advance(1)
    assert phase(cluster) == "Succeeded"


def first_container(cluster: Any, name: str = "p") -> Any:
    return cluster.get("Pod", "default", name)["status"]["containerStatuses"][0]


def test_each_wait_is_longer_than_the_last_up_to_five_minutes(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster, policy="OnFailure", fail_after_seconds="0.5")
    kubelet.sync()
    times: list[Any] = []
    while len(times) < 8:
        cluster.clock.advance(0.5)
        if first_container(cluster)["restartCount"] > len(times):
            times.append(cluster.now())
    waits = [b - a - 0.5 for a, b in pairwise(times)]
    assert waits == [20, 40, 80, 160, 300, 300, 300]


def test_a_pod_may_fail_a_few_times_and_then_succeed(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster, policy="OnFailure", fail_after_seconds="1", fail_times="2", run_seconds="5")
    kubelet.sync()
    cluster.clock.advance(100)
    assert (phase(cluster), first_container(cluster)["restartCount"]) == ("Succeeded", 2)


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
    with pytest.raises(RejectedError, match="got one that is Failed"):
        kubelet.fail("default", "a")
    kubelet.sync()
    cluster.clock.advance(60)
    assert phase(cluster, "a") == "Failed"
    restarts = cluster.get("Pod", "default", "c")["status"]["containerStatuses"][0]
    assert restarts["restartCount"] == 1


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


@pytest.mark.parametrize(("forgotten", "came_back"), [(False, False), (True, False), (False, True)])
def test_the_pods_of_a_deleted_node_go_too(cluster: Any, forgotten: bool, came_back: bool) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster)
    kubelet.sync()
    cluster.delete("Node", "", "n")
    if forgotten:
        cluster.compact()
    if came_back:
        add_node(cluster, "n", {"cpu": "4"})
    kubelet.sync()
    assert (phase(cluster) is not None) == came_back


def test_a_lost_node_takes_its_pods_along_and_they_fail_first(cluster: Any) -> None:
    bind(cluster)
    _, since = cluster.list("Pod")
    assert lose(cluster, "n") == ["default/p"]
    reported = [(e.type, e.object["status"]["phase"]) for e in cluster.watch("Pod", since=since)]
    assert reported == [("MODIFIED", "Failed"), ("DELETED", "Failed")]
    assert cluster.peek("Node", "", "n") is None


def test_a_start_an_end_and_their_times(cluster: Any) -> None:
    kubelet = Kubelet(cluster, start_delay_s=3, durations=lambda _: 1.0)
    bind(cluster, containers=2, run_seconds="4")
    kubelet.sync()
    cluster.clock.advance(2.9)
    assert status(cluster)["phase"] == "Pending"
    cluster.clock.advance(0.1)
    assert status(cluster)["startTime"] == at(3)
    first = {"name": "c0", "image": "i0", "imageID": "i0", "ready": True, "restartCount": 0}
    running = {**first, "state": {"running": {"startedAt": at(3)}}}
    assert status(cluster)["containerStatuses"] == [
        running,
        {**running, "name": "c1", "image": "i1", "imageID": "i1"},
    ]
    cluster.clock.advance(4)
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": at(3), "finishedAt": at(7)}
    stopped = {**first, "ready": False, "state": {"terminated": ended}}
    assert status(cluster)["containerStatuses"][0] == stopped
    assert conditions(cluster) == {
        "PodScheduled": ("True", at(0)),
        "Ready": ("False", at(7)),
        "ContainersReady": ("False", at(7)),
    }
    assert status(cluster)["phase"] == "Succeeded"
    assert "reason" not in status(cluster)


@pytest.mark.parametrize(
    ("code", "found"),
    [(None, 1), ("0", 1), ("7", 7), ("255", 255), ("256", 255), ("-3", 0), ("odd", 1), ("inf", 1)],
)
def test_an_exit_code_is_one_that_can_be(cluster: Any, code: str | None, found: int) -> None:
    more: Any = {"exit_code": code} if code else {}
    bind(cluster, fail_after_seconds="1", **more)
    Kubelet(cluster).sync()
    cluster.clock.advance(1)
    ended = status(cluster)["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (found, "Error" if found else "Completed")
    assert status(cluster)["phase"] == ("Failed" if found else "Succeeded")


@pytest.mark.parametrize(
    ("fails", "lasts", "phase", "time"),
    [
        ("5", "5", "Failed", 5),
        ("5", "6", "Failed", 5),
        ("6", "5", "Succeeded", 5),
        ("5", "nan", "Failed", 5),
        ("soon", "5", "Succeeded", 5),
        ("0", "5", "Failed", 0),
    ],
)
def test_what_comes_first_counts(
    cluster: Any, fails: str, lasts: str, phase: str, time: float
) -> None:
    bind(cluster, fail_after_seconds=fails, run_seconds=lasts)
    Kubelet(cluster).sync()
    cluster.clock.advance(60)
    ended = status(cluster)["containerStatuses"][0]["state"]["terminated"]
    assert (status(cluster)["phase"], ended["finishedAt"]) == (phase, at(time))


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_a_wait_before_the_next_start_is_written_with_its_times(cluster: Any, policy: str) -> None:
    bind(cluster, policy=policy, fail_after_seconds="2", exit_code="3")
    Kubelet(cluster).sync()
    cluster.clock.advance(2)
    assert status(cluster)["phase"] == "Running"
    (found,) = status(cluster)["containerStatuses"]
    waiting = {
        "reason": "CrashLoopBackOff",
        "message": "back-off 10s restarting failed container",
    }
    ended = {"exitCode": 3, "reason": "Error", "startedAt": at(0), "finishedAt": at(2)}
    assert found["state"] == {"waiting": waiting}
    assert found["lastState"] == {"terminated": ended}
    assert conditions(cluster)["Ready"] == ("False", at(2))
    cluster.clock.advance(10)
    (found,) = status(cluster)["containerStatuses"]
    assert found["state"] == {"running": {"startedAt": at(12)}}
    assert found["lastState"] == {"terminated": ended}
    assert conditions(cluster)["Ready"] == ("True", at(12))
    assert status(cluster)["startTime"] == at(0)


# Another kubelet


def restored(cluster: Any, annotations: Any, **found: Any) -> Kubelet:
    policy = {"restartPolicy": "OnFailure"}
    marks = {f"pumice.dev/{key}": value for key, value in annotations.items()}
    manifest = pod("p", node="n", annotations=marks, spec=policy)
    manifest["status"] = {"phase": "Running", **found}
    cluster.restore([*cluster.list("Node")[0], manifest])
    kubelet = Kubelet(cluster)
    cluster.clock.advance_to(100.0)
    kubelet.sync()
    return kubelet


def container(**more: Any) -> Any:
    return {"name": "main", "restartCount": 0, "ready": True, "image": "", **more}


@pytest.mark.parametrize(
    ("found", "ends_at"),
    [
        ({"startTime": at(90)}, 120),
        ({"containerStatuses": [container(state={"running": {"startedAt": at(95)}})]}, 125),
        (
            {
                "startTime": at(10),
                "containerStatuses": [container(state={"running": {"startedAt": at(95)}})],
            },
            125,
        ),
        ({"startTime": at(95), "containerStatuses": [container(state={})]}, 125),
        ({"startTime": at(95), "containerStatuses": [container(state={"running": None})]}, 125),
        ({}, 130),
        ({"startTime": at(200)}, 130),
        ({"startTime": at(1)}, 100),
    ],
)
def test_the_time_that_a_pod_has_run_counts(cluster: Any, found: Any, ends_at: float) -> None:
    restored(cluster, {"run-seconds": "30"}, **found)
    if ends_at > 100:
        cluster.clock.advance_to(ends_at - 0.1)
        assert status(cluster)["phase"] == "Running"
        cluster.clock.advance_to(ends_at)
    assert status(cluster)["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("grace", "marked", "goes_at"),
    [(30, 120, 120), (30, 110, 110), (5, 120, 105), (30, 90, 100), (None, 115, 115)],
)
def test_some_of_the_grace_of_a_leaving_pod_may_be_over(
    cluster: Any, grace: int | None, marked: float, goes_at: float
) -> None:
    manifest = pod("p", node="n")
    manifest["metadata"]["deletionTimestamp"] = at(marked)
    if grace is not None:
        manifest["metadata"]["deletionGracePeriodSeconds"] = grace
    cluster.restore([*cluster.list("Node")[0], manifest])
    cluster.clock.advance_to(100.0)
    Kubelet(cluster).sync()
    if goes_at > 100:
        cluster.clock.advance_to(goes_at - 0.1)
        assert status(cluster) is not None
        cluster.clock.advance_to(goes_at)
    assert status(cluster) is None


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_over_is_left_alone_unless_it_is_to_go(cluster: Any, phase: str) -> None:
    bind(cluster, run_seconds="5")
    cluster.merge_status("Pod", "default", "p", {"phase": phase})
    kubelet = Kubelet(cluster)
    kubelet.sync()
    version = cluster.version
    cluster.clock.advance(60)
    assert cluster.version == version
    assert cluster.clock.next_at() is None


def test_a_pod_of_odd_content_affects_only_itself(cluster: Any) -> None:
    bind(cluster, "odd")
    cluster.patch("Pod", "default", "odd", {"metadata": {"annotations": {"pumice.dev/x": "y"}}})
    odd = pod("strange", node="n")
    odd["spec"]["containers"] = [{"image": "nameless"}]
    cluster.restore([*cluster.list("Node")[0], odd, pod("well", node="n")])
    for name in ("strange", "well"):
        cluster.merge_status("Pod", "default", name, {"phase": "Pending"})
    Kubelet(cluster).sync()
    assert status(cluster, "well")["phase"] == "Running"
    assert status(cluster, "strange")["phase"] == "Pending"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_what_is_over_cannot_fail(cluster: Any, phase: str) -> None:
    bind(cluster)
    cluster.merge_status("Pod", "default", "p", {"phase": phase})
    with pytest.raises(RejectedError) as caught:
        Kubelet(cluster).fail("default", "p")
    assert caught.value.problem == f"expected a pod that may run, got one that is {phase}"
    cluster.create(pod("q"))
    with pytest.raises(RejectedError) as caught:
        Kubelet(cluster).fail("default", "q")
    assert caught.value.problem == "expected a pod that may run, got one that is Pending on no node"


def test_a_running_pod_has_addresses_of_its_own_and_of_its_node(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    for name in ("p", "q"):
        bind(cluster, name)
    kubelet.sync()
    node = cluster.get("Node", "", "n")["status"]["addresses"][0]
    assert node["type"] == "InternalIP"
    assert {status(cluster, name)["hostIP"] for name in "pq"} == {node["address"]}
    assert len({status(cluster, name)["podIP"] for name in "pq"}) == 2


def test_a_pod_on_the_network_of_its_node_has_the_address_of_the_node(cluster: Any) -> None:
    spec = {"hostNetwork": True, "containers": [{"name": "c", "image": "i"}]}
    cluster.create(pod("p", spec=spec))
    cluster.bind("default", "p", "n", {})
    Kubelet(cluster).sync()
    assert status(cluster)["podIP"] == status(cluster)["hostIP"]


def test_a_pod_that_another_client_removed_meanwhile_is_no_error(cluster: Any) -> None:
    kubelet = Kubelet(cluster)
    bind(cluster)
    kubelet.sync()
    cluster.delete("Pod", "default", "p", grace_s=4)
    kubelet.sync()
    cluster.delete("Pod", "default", "p", grace_s=0)
    cluster.clock.advance(10)
    assert status(cluster) is None
