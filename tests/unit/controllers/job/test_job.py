"""The life of a job: PodGroup, pods, phases, counts."""

from typing import Any

import pytest

from pumice.api.kinds import CLAIM
from pumice.controllers.base import Create, Key
from pumice.controllers.job.actions import BATCH
from pumice.controllers.job.objects import provisioned
from pumice.testing.recorded.stage import NAMESPACE
from tests.unit.controllers.job.stage import JOB, PODGROUP, Stage, job, task


def test_the_counts_of_a_finished_job_are_those_of_its_pods() -> None:
    stage = Stage().start(job(minAvailable=1))
    stage.put("j-w-0", "Succeeded")
    stage.put("j-w-1", "Failed")
    assert stage.phase == "Completed"
    assert stage.status["succeeded"] == 1
    assert stage.status["failed"] == 1
    assert stage.status["taskStatusCount"] == {"w": {"phase": {"Succeeded": 1, "Failed": 1}}}
    assert stage.podgroup is None


def test_scaling_to_nothing_keeps_the_phase() -> None:
    stage = Stage().start(job())
    stage.patch_spec("tasks/0/replicas", 0)
    stage.gone("j-w-0", "j-w-1")
    assert stage.phase == "Running"
    assert stage.pods() == {}


def test_the_podgroup_of_a_job_scaled_to_nothing_has_no_least_number_and_empty_resources() -> None:
    stage = Stage().start(job(task(requests={"cpu": "100m"})))
    for path in ("minAvailable", "tasks/0/minAvailable", "tasks/0/replicas"):
        stage.patch_spec(path, 0)
    spec = stage.podgroup["spec"]
    assert "minMember" not in spec
    assert (spec["minResources"], spec["minTaskMember"]) == ({}, {"w": 0})
    stage.gone("j-w-0", "j-w-1")
    assert stage.podgroup["spec"] == spec
    for path in ("tasks/0/replicas", "tasks/0/minAvailable", "minAvailable"):
        stage.patch_spec(path, 1)
    assert stage.podgroup["spec"]["minMember"] == 1
    assert stage.podgroup["spec"]["minResources"]["cpu"] == "100m"


def test_a_job_without_pods_begins_with_empty_resources() -> None:
    stage = Stage().start(job(task("w", 0)), running=False)
    assert stage.podgroup["spec"] == {
        "minResources": {}, "minTaskMember": {"w": 0}, "queue": "default",
    }  # fmt: skip


def test_a_pod_that_a_kill_pass_did_not_get_to_goes_at_the_next_look() -> None:
    """A restart that was cut short after its status was written is finished later."""
    stage = Stage().start(job(minAvailable=1))
    broken = stage.job
    stage.cluster.update_status({**broken, "status": {**broken["status"], "version": 5}})
    stage.settle()
    assert stage.deleting() == {"j-w-0", "j-w-1"}


def test_a_restart_that_was_cut_short_leaves_no_failed_pod_of_the_version_before() -> None:
    """A gang that counts a dead pod among its members would never start again."""
    stage = Stage().start(job())
    status = stage.job["status"]
    failed = stage.pods()["j-w-1"]["metadata"]["uid"]
    cut = {**status, "version": 1, "retryCount": 1, "state": {"phase": "Restarting"}}
    stage.cluster.merge_status("Pod", "ns", "j-w-1", {"phase": "Failed"})
    stage.cluster.update_status({**stage.job, "status": cut})
    stage.settle()
    again = stage.pods().get("j-w-1", {"metadata": {}})["metadata"]
    assert again.get("uid") != failed or again.get("deletionTimestamp")


def test_what_an_abort_spared_a_resumed_job_keeps() -> None:
    stage = Stage().start(job())
    status = stage.job["status"]
    resumed = {**status, "version": 2, "retryCount": 1, "state": {"phase": "Restarting"}}
    stage.cluster.merge_status("Pod", "ns", "j-w-1", {"phase": "Succeeded"})
    stage.cluster.update_status({**stage.job, "status": resumed})
    stage.settle()
    assert "j-w-1" in stage.pods()


def test_a_job_that_waits_gets_its_pod_group_back() -> None:
    """Nothing else would ever be heard of it: pods without a pod group are never placed."""
    stage = Stage().start(job(), running=False)
    name = stage.podgroup["metadata"]["name"]
    stage.cluster.delete("PodGroup.scheduling.volcano.sh", "ns", name)
    stage.settle()
    assert stage.podgroup["metadata"]["name"] == name


def test_a_job_whose_pods_ended_while_its_pod_group_was_gone_finishes() -> None:
    """No pod will change any more, so the pod group must come back by itself."""
    stage = Stage().start(job())
    before = stage.podgroup["metadata"]["name"]
    stage.cluster.delete(PODGROUP, "ns", before)
    stage.put("j-w-0", "Succeeded")  # the pod group comes back, waits, and counts nothing
    stage.put("j-w-1", "Succeeded")
    assert stage.phase == "Running"
    stage.cluster.delete(PODGROUP, "ns", stage.podgroup["metadata"]["name"])
    stage.settle()
    stage.admit()
    assert stage.phase == "Completed"


def test_a_job_of_ended_and_waiting_pods_gets_its_pod_group_back() -> None:
    """It runs by its phase, but no pod of it does: the others are never placed without one."""
    stage = Stage().start(job(minAvailable=1), running=False)
    stage.put("j-w-0", "Running")
    stage.put("j-w-0", "Succeeded")
    stage.cluster.delete(PODGROUP, "ns", stage.podgroup["metadata"]["name"])
    stage.settle()
    assert stage.phase == "Running"
    assert stage.podgroup is not None


def test_a_running_job_gets_its_pod_group_back_when_a_pod_changes() -> None:
    stage = Stage().start(job())
    stage.cluster.delete(PODGROUP, "ns", stage.podgroup["metadata"]["name"])
    stage.settle()
    assert stage.podgroup is None
    stage.put("j-w-0", "Succeeded")
    assert stage.podgroup is not None


def test_partitions_are_labelled_and_become_sub_groups() -> None:
    parts = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
    manifest = job(task("w", 4, partitionPolicy=parts), minAvailable=2)
    del manifest["spec"]["tasks"][0]["minAvailable"]
    stage = Stage().start(manifest, running=False)
    labels = [pod["metadata"]["labels"]["volcano.sh/partition-id"] for pod in stage.pods().values()]
    assert labels == ["0", "0", "1", "1"]
    assert stage.podgroup["spec"]["minTaskMember"] == {"w": 2}
    policy = stage.podgroup["spec"]["subGroupPolicy"][0]
    assert (policy["name"], policy["subGroupSize"], policy["minSubGroups"]) == ("w", 2, 1)
    assert policy["matchLabelKeys"] == ["volcano.sh/partition-id"]


def test_a_job_waits_for_its_queue_however_much_else_happens() -> None:
    """Only looks that were due count against the retry limit."""
    stage = Stage(["--max-requeue-num=3"])
    stage.cluster.create(job(queue="later") | {"metadata": {"name": "j", "namespace": "ns"}})
    for number in range(10):
        stage.loop.run_until_quiet()
        stage.cluster.patch(JOB, "ns", "j", {"metadata": {"labels": {"n": str(number)}}})
    assert "status" not in stage.job or not stage.phase
    stage.settle()
    assert stage.phase == "Terminated"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            {"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "2"},
            "min-available",
        ),
        ({"volcano.sh/jdb-max-unavailable": "2"}, "max-unavailable"),
    ],
)
def test_a_pod_gets_one_disruption_budget(given: Any, kept: str) -> None:
    stage = Stage().start(job(annotations=given), running=False)
    annotations = stage.pods()["j-w-0"]["metadata"]["annotations"]
    assert [key for key in annotations if "jdb" in key] == [f"volcano.sh/jdb-{kept}"]


def test_a_pod_volume_name_is_new_for_each_pod_and_the_claim_is_one() -> None:
    volume = {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    stage = Stage().start(job(volumes=[volume]), running=False)
    volumes = [pod["spec"]["volumes"][0] for pod in stage.pods().values()]
    assert len({one["name"] for one in volumes}) == 2
    assert len({one["persistentVolumeClaim"]["claimName"] for one in volumes}) == 1


def test_objects_of_plugins_are_made_at_the_start_and_kept_in_step() -> None:
    stage = Stage().start(job(plugins={"svc": [], "env": []}))
    assert stage.status["controlledResources"] == {"plugin-env": "env", "plugin-svc": "svc"}
    assert stage.phase == "Running"
    stage.patch_spec("plugins/ssh", [])
    assert "plugin-ssh" not in stage.status["controlledResources"], "only at the start"

    def there(kind: str) -> Any:
        found = stage.cluster.list(kind, "ns")[0]
        return {one["metadata"]["name"]: one for one in found}

    assert list(there("Service")) == ["j"]
    assert there("ConfigMap")["j-svc"]["data"]["VC_W_NUM"] == "2"
    stage.patch_spec("minAvailable", 1)
    stage.patch_spec("tasks/0/minAvailable", 1)
    stage.patch_spec("tasks/0/replicas", 3)
    assert there("ConfigMap")["j-svc"]["data"]["VC_W_NUM"] == "3"
    version = there("ConfigMap")["j-svc"]["metadata"]["resourceVersion"]
    stage.put("j-w-0", "Running", restartCount=1)
    assert there("ConfigMap")["j-svc"]["metadata"]["resourceVersion"] == version
    stage.cluster.delete("Service", "ns", "j")
    stage.cluster.delete("ConfigMap", "ns", "j-svc")
    stage.put("j-w-0", "Running", restartCount=2)
    assert list(there("ConfigMap")) == ["j-svc"]
    assert list(there("Service")) == []  # only at the start


def test_an_object_of_somebody_else_is_not_rewritten() -> None:
    stage = Stage()
    metadata = {"name": "j-svc", "namespace": "ns"}
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
    stage.cluster.create(theirs)
    stage.start(job(plugins={"svc": []}))
    assert stage.cluster.get("ConfigMap", "ns", "j-svc")["data"] == {"a": "b"}


HUGE = 2_000_000_000


def names(stage: Any, start: str) -> list[str]:
    return [name for name in stage.pods() if name.startswith(start)]


def admitted(*manifests: Any) -> Any:
    """Bring jobs in, so that their pods are about to be made."""
    stage = Stage()
    stage.play({"apply": list(manifests)})
    for group in stage.cluster.list(PODGROUP, NAMESPACE)[0]:
        name = group["metadata"]["name"]
        stage.cluster.merge_status(PODGROUP, NAMESPACE, name, {"phase": "Inqueue"})
    return stage


def test_a_job_of_two_billion_pods_takes_turns_with_others() -> None:
    huge = job(task("w", HUGE, minAvailable=1), name="huge")
    small = job(task("w", 3), name="small")
    stage = admitted(huge, small)
    stage.loop.run_until_quiet(limit=6)
    assert len(names(stage, "small-")) == 3
    made = len(names(stage, "huge-"))
    assert 0 < made <= 6 * BATCH
    assert made % BATCH == 0
    stage.loop.run_until_quiet(limit=2000)
    assert len(names(stage, "huge-")) > made


@pytest.mark.parametrize(
    ("missing", "made"),
    [
        ([100, 0, 150], [100, 0, 150]),
        ([1, BATCH, BATCH], [1, 125, 124]),
        ([HUGE, 2], [BATCH - 2, 2]),
        ([2] * (BATCH + 1), [1] * (BATCH + 1)),
    ],
)
def test_every_task_has_its_turn(missing: list[int], made: list[int]) -> None:
    tasks = [task(f"t{i:03}", replicas, minAvailable=0) for i, replicas in enumerate(missing)]
    stage = admitted(job(*tasks, name="j", minAvailable=1))
    assert [*stage.loop.view.refresh()]
    (controller,) = (one for one in stage.loop._controllers if one.name == "job")
    plan = controller.reconcile(Key(JOB, NAMESPACE, "j"), stage.loop.view)
    pods = [one.manifest for one in plan.effects if isinstance(one, Create)]
    order = [one["metadata"]["name"].split("-")[1] for one in pods if one["kind"] == "Pod"]
    assert order == [f"t{i:03}" for i, number in enumerate(made) for _ in range(number)]
    assert plan.is_part


def test_a_task_that_waits_for_two_billion_pods_costs_nothing() -> None:
    waits = task("b", 1, dependsOn={"name": ["a"]})
    stage = admitted(job(task("a", HUGE, minAvailable=1), waits, name="j"))
    stage.loop.run_until_quiet(limit=3)
    assert names(stage, "j-b-") == []


DISK = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def test_a_claim_that_is_named_twice_is_mounted_once() -> None:
    given = {"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": "mine"}, "spec": DISK}
    stage = Stage()
    stage.play({"apply": [given]})
    volumes = [{"mountPath": path, "volumeClaimName": "mine"} for path in ("/a", "/b")]
    stage.start(job(task("w", 1), volumes=volumes), running=False)
    spec = stage.pods()["j-w-0"]["spec"]
    assert sum("persistentVolumeClaim" in one for one in spec["volumes"]) == 1
    mounts = [one["mountPath"] for one in spec["containers"][0]["volumeMounts"]]
    assert "/a" in mounts
    assert "/b" not in mounts


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (DISK, {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}),
        ({}, {"capacity": {}, "accessModes": []}),
        ({"resources": {}}, {"capacity": {}, "accessModes": []}),
    ],
)
def test_a_provisioned_claim_and_its_volume_are_bound(spec: Any, wanted: Any) -> None:
    claim = {"kind": CLAIM, "metadata": {"name": "c", "namespace": "ns"}, "spec": spec}
    bound, volume = provisioned(claim)
    assert bound == {
        **claim,
        "spec": {**spec, "volumeName": "c"},
        "status": {"phase": "Bound"},
    }
    assert volume == {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "c"},
        "spec": wanted,
        "status": {"phase": "Bound"},
    }
