"""Pods that a resource quota refuses are made once it has room, without a time to wait for."""

import threading
from typing import Any

import pytest

from pumice.api.kinds import JOB
from pumice.apiserver.failures import failure
from pumice.clock import VirtualClock
from pumice.cluster.embedded.quotas import PodQuotas
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.kube.paths import refusal
from pumice.controllers.backoff import QuotaBackoff
from pumice.controllers.base import Create, Key, Plan, Record
from pumice.controllers.loop import ControllerLoop
from pumice.controllers.threaded_loop import ThreadedLoop
from pumice.errors import NamespaceTerminatingError
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.testing import node, pod

NAME = {"name": "team", "namespace": "default"}


@pytest.fixture
def plane() -> Any:
    cluster = EmbeddedCluster(VirtualClock(1000.0))
    cluster.quotas = PodQuotas(cluster)
    made = EmbeddedControlPlane(cluster=cluster)
    cluster.create(node("n", cpu=8, memory="8Gi"))
    head = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": NAME}
    cluster.create({**head, "spec": {"hard": {"cpu": "2"}}})
    return made


def job(name: str, *cpus: int | str, runs: int = 0) -> Any:
    marks = {"pumice.dev/run-seconds": str(runs)} if runs else {}
    tasks = [
        {
            "name": f"t{i}",
            "replicas": 1,
            "template": {
                "metadata": {"annotations": marks},
                "spec": {
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}]
                },
            },
        }
        for i, cpu in enumerate(cpus)
    ]
    spec = {"minAvailable": 1, "queue": "default", "schedulerName": "volcano", "tasks": tasks}
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": meta,
        "spec": {**spec, "maxRetry": 3},
    }


def pods(plane: Any) -> set[str]:
    return {one["metadata"]["name"] for one in plane.cluster.list("Pod")[0]}


def test_a_smaller_pod_is_made_beside_a_refused_one(plane: Any) -> None:
    plane.cluster.create(job("a", 1, 3, 1))
    plane.run(until=1010.0)
    assert pods(plane) == {"a-t0-0", "a-t2-0"}
    status = plane.cluster.get(JOB, "default", "a")["status"]
    assert (status["running"], status.get("pending", 0)) == (2, 0)
    assert status["state"]["phase"] == "Running"
    assert status["taskStatusCount"].keys() == {"t0", "t2"}


@pytest.mark.parametrize("refused", [249, 250, 300])
def test_a_large_task_that_is_refused_holds_up_no_other(plane: Any, refused: int) -> None:
    made = job("a", 3, 1)
    made["spec"]["tasks"][0]["replicas"] = refused
    plane.cluster.create(made)
    plane.run(until=1010.0)
    assert pods(plane) == {"a-t1-0"}


def test_nothing_waits_for_a_time(plane: Any) -> None:
    plane.cluster.create(job("a", 3))
    plane.run()
    assert plane.clock.now() < 1010.0
    [event] = [one for one in plane.cluster.list("Event")[0] if one["reason"] == "FailedSync"]
    assert event["message"].startswith(
        "waits until the resource quota has room: Pod default/a-t0-0"
    )


@pytest.mark.parametrize("refused", [1, 300])  # more than are tried at a time
def test_policies_are_followed_in_time_though_pods_are_refused(plane: Any, refused: int) -> None:
    made = job("a", 1, 3)
    made["spec"]["tasks"][1]["replicas"] = refused
    policy = {"event": "PodFailed", "action": "TerminateJob", "timeout": "60s"}
    plane.cluster.create({**made, "spec": {**made["spec"], "policies": [policy]}})
    plane.run(until=1010.0)
    plane.cluster.merge_status("Pod", "default", "a-t0-0", {"phase": "Failed"})
    plane.run(until=1060.0)
    assert plane.cluster.get(JOB, "default", "a")["status"]["state"]["phase"] == "Running"
    plane.run(until=1080.0)
    assert plane.cluster.get(JOB, "default", "a")["status"]["state"]["phase"] == "Terminated"
    assert not plane.controllers.quota_backoff


def test_pods_are_made_when_others_end_the_oldest_job_first(plane: Any) -> None:
    plane.cluster.create(job("old", 2, runs=60))
    plane.run(until=1005.0)
    for name in ("b", "a"):  # the order of names is another one
        plane.cluster.create(job(name, 2))
        plane.run(until=plane.clock.now() + 5)
    assert pods(plane) == {"old-t0-0"}
    plane.run(until=1100.0)
    assert pods(plane) == {"old-t0-0", "b-t0-0"}


@pytest.mark.parametrize("how", ["raised", "deleted"])
def test_pods_are_made_when_the_quota_changes(plane: Any, how: str) -> None:
    plane.cluster.create(job("a", 3))
    plane.run(until=90_000.0)
    if how == "raised":
        plane.cluster.patch("ResourceQuota", "default", "team", {"spec": {"hard": {"cpu": "3"}}})
    else:
        plane.cluster.delete("ResourceQuota", "default", "team")
    plane.run(until=90_002.0)
    assert pods(plane) == {"a-t0-0"}
    assert not plane.controllers.quota_backoff


def quota(used: Any, hard: str = "2") -> Any:
    return {"metadata": NAME, "spec": {"hard": {"cpu": hard}}, "status": {"used": used}}


class Quotas:
    """Quotas of a namespace and the version of their last change."""

    def __init__(self, used: str, name: str = "cpu") -> None:
        self.version, self.used, self.name = 1, used, name

    def use(self, used: str) -> None:
        self.version, self.used = self.version + 1, used

    def waits(self) -> QuotaBackoff[str]:
        return QuotaBackoff(lambda namespace: [quota({self.name: self.used})], lambda: self.version)


def test_a_job_without_room_holds_up_no_smaller_one_behind_it(plane: Any) -> None:
    plane.cluster.create(job("first", 1, runs=60))
    plane.cluster.create(job("second", 1, runs=100))
    plane.run(until=1005.0)
    for name, cpu in (("large", 2), ("small", 1), ("next", 1)):
        plane.cluster.create(job(name, cpu, runs=100))
        plane.run(until=plane.clock.now() + 5)
    plane.run(until=1080.0)
    assert pods(plane) == {"first-t0-0", "second-t0-0", "small-t0-0"}
    plane.run(until=1500.0)
    assert pods(plane) >= {"large-t0-0", "next-t0-0"}


def claim(name: str = "a", **metadata: Any) -> Any:
    named = {"name": name, "namespace": "ns", **metadata}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": named, "spec": {}}


class Maker:
    """Creates a pod for each claim, and records it."""

    name = "maker"
    watches = ("PersistentVolumeClaim", "Pod")

    def concerns(self, kind: Any, manifest: Any, view: Any) -> Any:
        metadata = manifest["metadata"]
        return [Key("PersistentVolumeClaim", metadata["namespace"], metadata["name"])]

    def reconcile(self, key: Any, view: Any) -> Any:
        owner = view.get(key.kind, key.namespace, key.name)
        if owner is None or view.get("Pod", key.namespace, key.name) is not None:
            return Plan()
        reported = Record(owner, "Normal", "Made", "a pod is made", "test")
        return Plan([reported, Create(pod(key.name, namespace=key.namespace))])


class Counting(EmbeddedCluster):
    """Counts the pods that were tried to be created."""

    tried = 0

    def create(self, manifest: Any) -> Any:
        self.tried += manifest["kind"] == "Pod"
        return super().create(manifest)


def going() -> Any:
    """Make a namespace that is being deleted and holds two claims that cannot go yet."""
    cluster = Counting(VirtualClock(0.0))
    for name in ("a", "b"):
        cluster.create(claim(name, finalizers=["test/kept"]))
    cluster.delete("Namespace", "", "ns")
    return cluster


def let_go(cluster: Any) -> None:
    for name in ("a", "b"):
        cluster.patch("PersistentVolumeClaim", "ns", name, {"metadata": {"finalizers": None}})


def test_creations_are_tried_later_and_later_and_reported_once() -> None:
    cluster = going()
    loop = ControllerLoop(cluster, [Maker()], cluster.clock)
    loop.run_until_quiet()
    assert cluster.tried == 1  # the other object's is held back
    for second in range(1, 1000):
        cluster.clock.advance_to(float(second))
        loop.run_until_quiet()
    assert cluster.tried == 10  # at 0, 1, 3, 7, 15, 31, 63, 127, 255 and 511 s
    (reported,) = loop.failures
    assert isinstance(reported.error, NamespaceTerminatingError)


def test_a_new_namespace_of_the_same_name_does_not_wait() -> None:
    cluster = going()
    loop = ControllerLoop(cluster, [Maker()], cluster.clock)
    loop.run_until_quiet()
    let_go(cluster)
    assert cluster.peek("Namespace", "", "ns") is None
    cluster.create(claim())
    loop.run_until_quiet()
    assert cluster.peek("Pod", "ns", "a") is not None


def test_the_threaded_loop_holds_back_too() -> None:
    cluster = going()
    loop = ThreadedLoop(cluster, [Maker()], wake=threading.Event())
    try:
        for number in range(20):
            cluster.patch(
                "PersistentVolumeClaim", "ns", "a", {"metadata": {"labels": {"n": str(number)}}}
            )
            loop.run_until_quiet()
        assert (cluster.tried, len(loop.failures)) == (1, 1)
        let_go(cluster)
        cluster.create(claim())
        loop.run_until_quiet()
        assert cluster.peek("Pod", "ns", "a") is not None
    finally:
        loop.close()


def test_the_refusal_survives_the_way_over_http() -> None:
    cluster = going()
    with pytest.raises(NamespaceTerminatingError) as caught:
        cluster.create(pod("p", namespace="ns"))
    reported = failure(caught.value, cluster.kinds)
    assert (reported["code"], reported["reason"]) == (403, "Forbidden")
    assert reported["message"] == caught.value.problem
    read = refusal(reported, ("Pod", "ns", "p"), 403)
    assert isinstance(read, NamespaceTerminatingError)
    assert (read.namespace, read.problem) == ("ns", caught.value.problem)
