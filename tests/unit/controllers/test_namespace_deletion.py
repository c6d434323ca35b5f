"""Namespaces that are being deleted: creations wait, the log has one line, a new one is noticed."""

import threading
from typing import Any

import pytest

from pumice.apiserver.failures import failure
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.kube.paths import refusal
from pumice.controllers import all_controllers
from pumice.controllers.backoff import NamespaceDeletions
from pumice.controllers.base import Create, Delete, Key, Plan, Record
from pumice.controllers.effects import carry_out
from pumice.controllers.loop import ControllerLoop
from pumice.controllers.threaded_loop import ThreadedLoop
from pumice.errors import NamespaceTerminatingError, RejectedError
from pumice.testing import pod

KEY = Key("PersistentVolumeClaim", "ns", "a")


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


def test_news_from_a_namespace_that_is_being_deleted_leads_to_no_further_try() -> None:
    cluster = going()
    loop = ControllerLoop(cluster, [Maker()], cluster.clock)
    loop.run_until_quiet()
    for number in range(50):
        cluster.patch(
            "PersistentVolumeClaim", "ns", "a", {"metadata": {"labels": {"n": str(number)}}}
        )
        loop.run_until_quiet()
    assert (cluster.tried, len(loop.failures)) == (1, 1)


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


def test_a_job_whose_namespace_goes_is_not_filled_up_again() -> None:
    cluster = Counting(VirtualClock(0.0))
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    cluster.create({**queue, "metadata": {"name": "default"}, "spec": {"weight": 1}})
    template = {"spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    task = {"name": "w", "replicas": 9, "minAvailable": 9, "template": template}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": {"queue": "default", "minAvailable": 9, "tasks": [task]},
    }
    cluster.create(job)
    loop = ControllerLoop(cluster, all_controllers(), cluster.clock)
    loop.run_until_quiet()
    (group,), _ = cluster.list("PodGroup.scheduling.volcano.sh")
    cluster.update({**group, "status": {"phase": "Inqueue"}})
    loop.run_until_quiet()
    assert cluster.tried == 9
    namespace = cluster.get("Namespace", "", "ns")
    namespace["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster.restore([namespace])  # its pods go first, the job is not reported yet
    for index in range(9):
        cluster.delete("Pod", "ns", f"j-w-{index}", grace_s=0)
        loop.run_until_quiet()
    assert (cluster.tried, len(loop.failures)) == (9 + 1, 1)


def test_what_does_not_create_is_not_held_back() -> None:
    holds = NamespaceDeletions()
    assert holds.refused("ns", 0.0)
    assert not holds.refused("ns", 0.5)  # another one of the same moment
    create, other = Create(claim()), Create(claim(namespace="other"))
    assert holds.wait_s([create], 0.5) == 0.5
    assert holds.wait_s([other, Delete(KEY)], 0.5) == 0.0
    assert holds.wait_s([create], 1.0) == 0.0
    assert not holds.refused("ns", 1.0)
    assert holds.wait_s([create], 1.0) == 2.0


def test_a_change_of_a_known_object_is_no_sign_of_a_new_namespace() -> None:
    holds = NamespaceDeletions()
    holds.refused("ns", 0.0)
    holds.notice(("PersistentVolumeClaim", claim(uid="1"), claim(uid="1")))
    holds.notice(("PersistentVolumeClaim", claim(uid="1"), None))
    assert holds.left_s("ns", 0.0) == 1.0
    holds.notice(("PersistentVolumeClaim", claim(uid="1"), claim(uid="2")))
    assert holds.left_s("ns", 0.0) == 0.0


def test_namespaces_that_are_long_gone_are_forgotten() -> None:
    holds = NamespaceDeletions()
    holds.refused("old", 0.0)
    holds.refused("new", 5000.0)
    assert holds.refused("old", 5000.0)


def test_an_event_in_a_namespace_that_is_being_deleted_is_left_out() -> None:
    class Refusing:
        def record(self, *_: Any) -> None:
            raise NamespaceTerminatingError("Event", "ns", "e", "no")

    refusing: Any = Refusing()
    assert carry_out(refusing, Record(claim(), "Normal", "R", "m", "s")) is None


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


@pytest.mark.parametrize("details", [None, [], {"causes": None}, {"causes": ["x", {"reason": 1}]}])
def test_another_refusal_is_not_taken_for_it(details: Any) -> None:
    reported = {"kind": "Status", "reason": "Forbidden", "message": "no", "details": details}
    assert type(refusal(reported, ("Pod", "ns", "p"), 403)) is RejectedError
