"""Volumes of a job: claims that it describes are made, claims that it names must exist."""

from typing import Any

import pytest

from pumice.api.kinds import CLAIM
from pumice.controllers.job.objects import new_claims, provisioned
from pumice.controllers.job.state import JobState
from tests.unit.controllers.fakes import FakeView
from tests.unit.controllers.job.stage import Stage, job, task

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
