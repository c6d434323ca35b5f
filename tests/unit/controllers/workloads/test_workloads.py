"""Workloads of Kubernetes on a whole embedded cluster: their pods come, move and go."""

from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import all_controllers
from pumice.controllers.workloads import WorkloadController
from pumice.serve.embedded import EmbeddedControlPlane


class Plane:
    """A control plane whose clock moves by hand."""

    def __init__(self) -> None:
        self.cluster = EmbeddedCluster(VirtualClock())
        self.plane = EmbeddedControlPlane(
            controllers=(*all_controllers(), WorkloadController()), cluster=self.cluster
        )
        add_node(self.cluster, "n", {"cpu": "100", "pods": "1000"})

    def run(self, seconds: float = 60.0) -> None:
        self.plane.run(self.cluster.now() + seconds)

    def pods(self, phase: str = "") -> list[Any]:
        found = self.cluster.list("Pod")[0]
        return [pod for pod in found if phase in ("", pod["status"]["phase"])]

    def get(self, kind: str, name: str = "web") -> Any:
        return self.cluster.get(kind, "default", name)

    def patch(self, kind: str, spec: Any, name: str = "web") -> None:
        self.cluster.patch(kind, "default", name, {"spec": spec})


def template(image: str = "a", **annotations: str) -> Any:
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": annotations},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }


def workload(kind: str, **spec: Any) -> Any:
    group = "batch/v1" if kind == "Job" else "apps/v1"
    chosen = {} if kind == "Job" else {"selector": {"matchLabels": {"app": "web"}}}
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"template": template(), **chosen, **spec},
    }


@pytest.fixture
def plane() -> Plane:
    return Plane()


def images(pods: list[Any]) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods)


def condition(manifest: Any, kind: str) -> Any:
    return next((c for c in manifest["status"]["conditions"] if c["type"] == kind), None)


def test_a_deployment_makes_its_pods(plane: Plane) -> None:
    plane.cluster.create(workload("Deployment", replicas=60))
    plane.run()
    assert len(plane.pods("Running")) == 60
    status = plane.get("Deployment.apps")["status"]
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    assert {status[name] for name in names} == {60}
    assert status["observedGeneration"] == 1
    assert condition({"status": status}, "Available")["status"] == "True"
    assert condition({"status": status}, "Progressing")["reason"] == "NewReplicaSetAvailable"
    (replica_set,) = plane.cluster.list("ReplicaSet.apps")[0]
    assert replica_set["status"]["readyReplicas"] == 60
    pod = plane.pods()[0]
    assert pod["metadata"]["ownerReferences"][0]["name"] == replica_set["metadata"]["name"]
    assert pod["metadata"]["labels"]["app"] == "web"
    assert pod["spec"]["schedulerName"] == "volcano"


def test_a_deployment_is_scaled_and_deleted_with_its_pods(plane: Plane) -> None:
    plane.cluster.create(workload("Deployment", replicas=5))
    plane.run()
    kept = {pod["metadata"]["name"] for pod in plane.pods()}
    plane.patch("Deployment.apps", {"replicas": 8})
    plane.run()
    assert kept < {pod["metadata"]["name"] for pod in plane.pods("Running")}
    plane.patch("Deployment.apps", {"replicas": 2})
    plane.run()
    assert len(plane.pods("Running")) == 2
    plane.cluster.delete("Deployment.apps", "default", "web")
    plane.run()
    assert (plane.pods(), plane.cluster.list("ReplicaSet.apps")[0]) == ([], [])


def test_a_rolling_update_never_has_too_few_or_too_many_pods(plane: Plane) -> None:
    limits = {"maxSurge": 1, "maxUnavailable": 1}
    strategy = {"type": "RollingUpdate", "rollingUpdate": limits}
    plane.cluster.create(workload("Deployment", replicas=6, strategy=strategy))
    plane.run()
    seen = []

    def look(*_: Any) -> None:
        pods = [p for p in plane.pods() if not p["metadata"].get("deletionTimestamp")]
        seen.append((len(pods), sum(p["status"]["phase"] == "Running" for p in pods)))

    plane.plane.on_cycle.append(look)
    plane.patch("Deployment.apps", {"template": template("b")})
    plane.run(600)
    assert images(plane.pods()) == ["b"] * 6
    assert max(count for count, _ in seen) <= 7
    assert min(running for _, running in seen) >= 5
    assert condition(plane.get("Deployment.apps"), "Progressing")["reason"] == (
        "NewReplicaSetAvailable"
    )


def test_recreate_waits_until_the_old_pods_are_gone(plane: Plane) -> None:
    plane.cluster.create(workload("Deployment", replicas=3, strategy={"type": "Recreate"}))
    plane.run()
    seen = []
    plane.plane.on_cycle.append(lambda _: seen.append({*images(plane.pods())}))
    plane.patch("Deployment.apps", {"template": template("b")})
    plane.run(600)
    assert images(plane.pods("Running")) == ["b"] * 3
    assert {"a", "b"} not in seen


def test_a_rollback_uses_the_replica_set_of_before(plane: Plane) -> None:
    plane.cluster.create(workload("Deployment", replicas=2))
    plane.run()
    plane.patch("Deployment.apps", {"template": template("b")})
    plane.run(600)
    back = template("a")  # as clients in Go write it
    back["metadata"] |= {"creationTimestamp": None}
    back["spec"] |= {"securityContext": {}, "volumes": []}
    plane.patch("Deployment.apps", {"template": back})
    plane.run(600)
    sets = plane.cluster.list("ReplicaSet.apps")[0]
    name = "deployment.kubernetes.io/revision"
    revisions = {images_of(one): one["metadata"]["annotations"][name] for one in sets}
    assert revisions == {"a": "3", "b": "2"}
    assert plane.get("Deployment.apps")["metadata"]["annotations"][name] == "3"


def images_of(replica_set: Any) -> str:
    return str(replica_set["spec"]["template"]["spec"]["containers"][0]["image"])


def test_old_replica_sets_are_kept_up_to_a_limit(plane: Plane) -> None:
    plane.cluster.create(workload("Deployment", replicas=1, revisionHistoryLimit=1))
    for image in "abcd":
        plane.patch("Deployment.apps", {"template": template(image)})
        plane.run(600)
    assert sorted(map(images_of, plane.cluster.list("ReplicaSet.apps")[0])) == ["c", "d"]


def test_pods_count_as_available_once_they_were_ready_for_long_enough(plane: Plane) -> None:
    plane.cluster.create(workload("Deployment", replicas=2, minReadySeconds=30))
    plane.run(20)
    status = plane.get("Deployment.apps")["status"]
    assert (status["readyReplicas"], status.get("availableReplicas")) == (2, None)
    plane.run(20)
    assert plane.get("Deployment.apps")["status"]["availableReplicas"] == 2


def test_a_stateful_set_makes_pods_and_claims_in_order(plane: Plane) -> None:
    plane.cluster.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "disk"},
            "provisioner": "example.com/disk",
        }
    )
    wanted = {"storageClassName": "disk", "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": wanted}
    plane.cluster.create(
        workload("StatefulSet", replicas=3, serviceName="web", volumeClaimTemplates=[claim])
    )
    counts = []
    plane.plane.on_cycle.append(lambda _: counts.append(len(plane.pods())))
    plane.run()
    assert [pod["metadata"]["name"] for pod in plane.pods("Running")] == ["web-0", "web-1", "web-2"]
    assert counts[0] < 3
    claims = [one["metadata"]["name"] for one in plane.cluster.list("PersistentVolumeClaim")[0]]
    assert claims == ["data-web-0", "data-web-1", "data-web-2"]
    pod = plane.get("Pod", "web-1")
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data-web-1"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "web")
    status = plane.get("StatefulSet.apps")["status"]
    assert (status["readyReplicas"], status["currentRevision"]) == (3, status["updateRevision"])


def test_a_stateful_set_shrinks_from_its_end_and_is_updated_from_there(plane: Plane) -> None:
    plane.cluster.create(workload("StatefulSet", replicas=4, podManagementPolicy="Parallel"))
    plane.run()
    assert len(plane.pods("Running")) == 4
    plane.patch("StatefulSet.apps", {"replicas": 3})
    plane.run()
    assert [pod["metadata"]["name"] for pod in plane.pods()] == ["web-0", "web-1", "web-2"]
    update = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    plane.patch("StatefulSet.apps", {"template": template("b"), "updateStrategy": update})
    plane.run(600)
    assert {pod["metadata"]["name"]: images([pod])[0] for pod in plane.pods("Running")} == {
        "web-0": "a",
        "web-1": "b",
        "web-2": "b",
    }


def job(**spec: Any) -> Any:
    made = workload("Job", **spec)
    made["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return made


def lasting(seconds: int, **marks: str) -> Any:
    return template("a", **{"pumice.dev/run-seconds": str(seconds), **marks})


def test_a_job_runs_until_enough_pods_succeeded(plane: Plane) -> None:
    plane.cluster.create(job(template=lasting(10), completions=5, parallelism=2))
    plane.run(5)
    assert plane.get("Job.batch")["status"]["active"] == 2
    plane.run(600)
    found = plane.get("Job.batch")
    assert (found["status"]["succeeded"], found["status"].get("active")) == (5, None)
    assert condition(found, "Complete")["status"] == "True"
    assert found["status"]["completionTime"]
    uid = found["metadata"]["uid"]
    selected = found["spec"]["selector"]["matchLabels"]
    assert selected == {"batch.kubernetes.io/controller-uid": uid}
    assert all(selected.items() <= pod["metadata"]["labels"].items() for pod in plane.pods())


def test_the_pods_of_an_indexed_job_have_numbers(plane: Plane) -> None:
    plane.cluster.create(
        job(template=lasting(10), completions=3, parallelism=3, completionMode="Indexed")
    )
    plane.run(600)
    assert plane.get("Job.batch")["status"]["completedIndexes"] == "0-2"
    variables = [pod["spec"]["containers"][0]["env"][0] for pod in plane.pods()]
    assert sorted(one["value"] for one in variables) == ["0", "1", "2"]


def test_a_job_fails_once_too_many_pods_failed(plane: Plane) -> None:
    failing = template("a", **{"pumice.dev/fail-after-seconds": "1"})
    plane.cluster.create(job(template=failing, backoffLimit=2))
    plane.run(5)
    assert plane.get("Job.batch")["status"]["failed"] == 1  # it waits before it tries again
    plane.run(600)
    found = plane.get("Job.batch")
    assert condition(found, "Failed")["reason"] == "BackoffLimitExceeded"
    assert (found["status"]["failed"], len(plane.pods())) == (3, 3)


def test_a_suspended_job_has_no_pods_until_it_is_resumed(plane: Plane) -> None:
    plane.cluster.create(job(template=lasting(600), suspend=True))
    plane.run(5)
    assert plane.pods() == []
    assert condition(plane.get("Job.batch"), "Suspended")["status"] == "True"
    plane.patch("Job.batch", {"suspend": False})
    plane.run(5)
    assert len(plane.pods("Running")) == 1
    plane.patch("Job.batch", {"suspend": True})
    plane.run(60)
    assert plane.pods() == []


def test_a_job_has_a_deadline_and_a_time_to_live(plane: Plane) -> None:
    limits = {"activeDeadlineSeconds": 20, "ttlSecondsAfterFinished": 30}
    plane.cluster.create(job(template=lasting(600), **limits))
    plane.run(45)
    assert condition(plane.get("Job.batch"), "Failed")["reason"] == "DeadlineExceeded"
    plane.run(60)
    assert (plane.cluster.list("Job.batch")[0], plane.pods()) == ([], [])


def test_a_job_of_another_controller_is_left_alone(plane: Plane) -> None:
    plane.cluster.create(job(managedBy="kueue.x-k8s.io/multikueue"))
    plane.run()
    assert plane.pods() == []


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "Job"])
@pytest.mark.parametrize("spec", [{}, {"replicas": 2}, {"replicas": 2, "template": {}}])
def test_an_odd_workload_hurts_nobody(plane: Plane, kind: str, spec: Any) -> None:
    manifest = {**workload(kind), "spec": spec}
    plane.cluster.create(manifest)
    plane.cluster.create({**workload("Deployment", replicas=1), "metadata": {"name": "good"}})
    plane.run()
    assert len(plane.pods("Running")) == 1
