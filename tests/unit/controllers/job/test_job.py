"""The life of a job: PodGroup, pods, phases, counts."""

import time
from typing import Any

import pytest

from pumice.api.kinds import CLAIM
from pumice.controllers.base import Create, Key
from pumice.controllers.job.actions import BATCH
from pumice.controllers.job.objects import new_claims, provisioned
from pumice.controllers.job.state import JobState
from pumice.testing.recorded.stage import NAMESPACE
from tests.unit.controllers.fakes import FakeView
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


def test_a_resting_job_is_left_alone() -> None:
    stage = Stage().start(job(task(replicas=1)))
    stage.put("j-w-0", "Succeeded")
    before = stage.cluster.version
    stage.loop.look_at("job", Key(JOB, "ns", "j"))
    stage.settle()
    assert stage.cluster.version == before


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


def test_scaling_up_makes_the_missing_indices_and_tells_the_podgroup() -> None:
    stage = Stage().start(job(task(requests={"cpu": "100m"})))
    stage.patch_spec("minAvailable", 3)
    stage.patch_spec("tasks/0/minAvailable", 3)
    stage.patch_spec("tasks/0/replicas", 3)
    assert set(stage.pods()) == {"j-w-0", "j-w-1", "j-w-2"}
    assert stage.podgroup["spec"]["minMember"] == 3
    assert stage.podgroup["spec"]["minTaskMember"] == {"w": 3}
    assert stage.podgroup["spec"]["minResources"]["cpu"] == "300m"


def test_why_the_podgroup_waits_is_reported_on_the_job() -> None:
    stage = Stage()
    stage.play({"apply": [job()]})
    waiting = {"type": "Unschedulable", "status": "True", "message": "0/3 nodes fit"}
    stage.admit("Inqueue", conditions=[{**waiting, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    assert "PodGroup ns:j unschedulable, reason: 0/3 nodes fit" in stage.messages()


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


def test_at_the_last_retry_ended_pods_are_kept() -> None:
    given = job(maxRetry=1, policies=[{"event": "PodFailed", "action": "RestartJob"}])
    stage = Stage().start(given)
    stage.put("j-w-0", "Failed")
    assert "j-w-0" in stage.pods()
    stage.gone("j-w-1")
    assert stage.phase == "Failed"
    assert stage.status["failed"] == 1


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


def test_suspend_and_resume() -> None:
    stage = Stage().start(job())
    stage.command("AbortJob")
    stage.gone("j-w-0", "j-w-1")
    assert stage.phase == "Aborted"
    stage.command("ResumeJob")
    assert stage.phase == "Pending"
    stage.admit()
    stage.run("j-w-0", "j-w-1")
    assert stage.phase == "Running"
    assert stage.status["retryCount"] == 1


def test_a_pod_volume_name_is_new_for_each_pod_and_the_claim_is_one() -> None:
    volume = {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    stage = Stage().start(job(volumes=[volume]), running=False)
    volumes = [pod["spec"]["volumes"][0] for pod in stage.pods().values()]
    assert len({one["name"] for one in volumes}) == 2
    assert len({one["persistentVolumeClaim"]["claimName"] for one in volumes}) == 1


def test_a_plugin_without_objects_is_not_listed() -> None:
    stage = Stage().start(job(plugins={"hcclrank": [], "env": []}))
    assert stage.status["controlledResources"] == {"plugin-env": "env"}


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


def test_tasks_are_looked_up_at_once_however_many_there_are() -> None:
    many = [task(f"t{number}", 1) for number in range(15_000)]
    state = JobState(job(*many), FakeView(), None)
    started = time.process_time()
    assert [state.task(one["name"]) for one in many] == many
    assert time.process_time() - started < 1


def test_a_first_status_shows_what_must_run() -> None:
    stage = Stage()
    stage.play({"apply": [job()]})
    assert stage.status["minAvailable"] == 2
    assert stage.phase == "Pending"
    assert [one["status"] for one in stage.status["conditions"]] == ["Pending"]


def test_pods_beyond_the_replicas_go_and_count_as_leaving() -> None:
    stage = Stage().start(job(task("w", 3), minAvailable=1))
    stage.patch_spec("tasks/0/minAvailable", 1)
    stage.patch_spec("tasks/0/replicas", 1)
    assert stage.deleting() == {"j-w-1", "j-w-2"}
    assert (stage.status["running"], stage.status["terminating"]) == (1, 2)
    marks = stage.pods()["j-w-1"]["metadata"]["annotations"]
    assert "volcano.sh/controller-out-of-sync" not in marks


def test_a_job_of_a_queue_of_several_clusters_is_marked_first() -> None:
    stage = Stage()
    stage.play({"apply": [job()]})
    stage.cluster.patch(
        "Queue.scheduling.volcano.sh", "", "default", {"spec": {"extendClusters": [{"name": "c"}]}}
    )
    stage.settle()
    stage.cluster.patch(JOB, "ns", "j", {"metadata": {"labels": {"a": "b"}}})
    stage.settle()
    assert stage.job["metadata"]["annotations"]["volcano.sh/job-forwarding"] == "true"
    stage.admit()
    labels = stage.pods()["j-w-0"]["metadata"]["labels"]
    assert labels["volcano.sh/job-forwarding"] == "true"


def test_a_plugin_that_is_unknown_is_reported_and_ends_the_job_in_no_way() -> None:
    stage = Stage()
    stage.play({"apply": [job(plugins={"zzz": []})]})
    found = [
        event for event in stage.cluster.list("Event", "ns")[0] if event["reason"] == "PluginError"
    ]
    assert found[0]["message"].endswith("failed to get plugin zzz")
    assert stage.pods() == {}
    assert stage.phase == "Pending"


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


def test_what_is_made_at_a_time_is_counted_and_the_rest_follows() -> None:
    stage = admitted(job(task("a", BATCH - 1), task("b", BATCH + 2), name="j"))
    key = Key(JOB, NAMESPACE, "j")
    assert [*stage.loop.view.refresh()]
    (controller,) = (one for one in stage.loop._controllers if one.name == "job")
    plan = controller.reconcile(key, stage.loop.view)
    made = [one for one in plan.effects if type(one).__name__ == "Create"]
    assert sum(one.manifest["kind"] == "Pod" for one in made) == BATCH
    assert plan.is_part
    stage.loop.look_at("job", key)
    stage.settle()
    assert len(stage.pods()) == 2 * BATCH + 1
    assert stage.status["pending"] == 2 * BATCH + 1


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


def claims(stage: Any) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in stage.cluster.list(CLAIM, "ns")[0]}


def test_a_described_claim_is_made_once_named_in_the_job_and_owned_by_it() -> None:
    stage = Stage().start(job(volumes=[{"mountPath": "/a", "volumeClaim": DISK}]))
    ((name, claim),) = claims(stage).items()
    assert name.startswith("j-pvc-")
    assert claim["spec"]["resources"] == DISK["resources"]
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == (
        "Job", stage.job["metadata"]["uid"], True,
    )  # fmt: skip
    assert [one["volumeClaimName"] for one in stage.job["spec"]["volumes"]] == [name]
    assert stage.status["controlledResources"] == {f"volume-pvc-{name}": name}


def test_a_named_claim_is_used_and_not_made() -> None:
    given = {"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": "mine"}, "spec": DISK}
    stage = Stage()
    stage.play({"apply": [given]})
    stage.start(job(volumes=[{"mountPath": "/a", "volumeClaimName": "mine"}]))
    assert list(claims(stage)) == ["mine"]
    assert stage.phase == "Running"
    spec = stage.pods()["j-w-0"]["spec"]
    (mounted,) = (one for one in spec["volumes"] if "persistentVolumeClaim" in one)
    assert mounted["persistentVolumeClaim"] == {"claimName": "mine"}
    assert {"mountPath": "/a", "name": mounted["name"]} in spec["containers"][0]["volumeMounts"]


def test_a_job_whose_claim_is_missing_waits_for_it() -> None:
    volumes = [{"mountPath": "/a", "volumeClaimName": "mine"}]
    stage = Stage()
    stage.play({"apply": [job(volumes=volumes)]})
    assert stage.pods() == {}
    assert claims(stage) == {}


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


def test_only_claims_that_are_described_and_missing_are_new() -> None:
    manifest = job(volumes=[])
    manifest["metadata"] |= {"namespace": "ns", "uid": "u"}
    volumes: list[Any] = [
        {"volumeClaimName": "there", "volumeClaim": DISK},
        {"volumeClaimName": "missing", "volumeClaim": DISK},
        {"volumeClaimName": "named"},
    ]
    there = {"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": "there", "namespace": "ns"}}
    state = JobState.read(manifest, FakeView(there))
    assert [one["metadata"]["name"] for one in new_claims(state, volumes)] == ["missing"]
