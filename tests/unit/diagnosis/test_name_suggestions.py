"""Names that belong to no job: what they are, and which jobs to ask for in their place."""

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.diagnosis.cluster_state import UnknownJobError, maker_named
from pumice.diagnosis.sources import load_world
from pumice.testing import node, pod, pod_group, queue

VOLCANO = "batch.volcano.sh/v1alpha1"


def owned(manifest: Any, kind: str, name: str, version: str = "apps/v1") -> Any:
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": "u"}
    manifest["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return manifest


def volcano_job(name: str, **labels: str) -> Any:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": VOLCANO,
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": {key.replace("_", "/"): labels[key] for key in labels},
        },
        "spec": {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": template}]},
    }


def deployed(name: str, replica_set: str, **more: Any) -> Any:
    made = pod(name, cpu=1, **more)
    made["metadata"]["labels"] = {"pod-template-hash": replica_set.rpartition("-")[2]}
    return owned(made, "ReplicaSet", replica_set)


def hint(tmp_path: Path, name: str, *objects: Any) -> str:
    file = tmp_path / "w.json"
    items = [queue("team"), node("n1"), *objects]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    with pytest.raises(UnknownJobError) as refused:
        load_world([file]).find_job(name)
    return refused.value.hint


@pytest.mark.parametrize("name", ["nightly", "default/nightly"])
def test_a_cron_job_is_answered_with_its_jobs(tmp_path: Path, name: str) -> None:
    jobs = [owned(volcano_job(f"nightly-{n}"), "CronJob", "nightly", VOLCANO) for n in "ab"]
    assert hint(tmp_path, name, *jobs) == (
        "the jobs of CronJob default/nightly are default/nightly-a, default/nightly-b: "
        "explain one of them"
    )


def test_a_job_flow_and_its_template_are_answered_with_the_job(tmp_path: Path) -> None:
    label = {"volcano.sh_createdByJobTemplate": "default.model"}
    job = owned(volcano_job("flow-model", **label), "JobFlow", "flow", "flow.volcano.sh/v1alpha1")
    assert hint(tmp_path, "flow", job) == (
        "the job of JobFlow default/flow is default/flow-model: explain that"
    )
    assert hint(tmp_path, "model", job) == (
        "the job of JobTemplate default/model is default/flow-model: explain that"
    )


def test_a_deployment_is_known_by_its_pods(tmp_path: Path) -> None:
    pods = [deployed(f"web-5d4-{n}", "web-5d4", spec={"schedulerName": "other"}) for n in "ab"]
    assert hint(tmp_path, "web", *pods) == (
        "the pods of Deployment default/web are left to the scheduler other"
    )
    ours = deployed("web-5d4-a", "web-5d4")
    assert hint(tmp_path, "web", ours) == (
        "the job of Deployment default/web is default/web-5d4: explain that"
    )


def test_a_cron_job_of_kubernetes_is_known_by_the_pods_of_its_jobs(tmp_path: Path) -> None:
    made = owned(pod("tidy-29000000-x", cpu=1), "Job", "tidy-29000000", "batch/v1")
    assert hint(tmp_path, "tidy", made) == (
        "the job of CronJob default/tidy is default/tidy-29000000: explain that"
    )


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("team", "team is a queue: 'pumice queue order' lists"),
        ("n1", "n1 is a node: 'pumice explain' without a name lists"),
        ("web", "Deployment default/web has no job and no pod here; name a job"),
        ("default/web", "Deployment default/web has no job and no pod here; name a job"),
        ("nothing", "there is none at all"),
    ],
)
def test_other_objects_are_named(tmp_path: Path, name: str, found: str) -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    assert hint(tmp_path, name, deployment).startswith(found)


@pytest.mark.parametrize(
    "name", ["podgroup/team/train", "PodGroup/train", "pg/team/train", "pod/team/train-0"]
)
def test_a_job_is_found_by_a_name_with_a_kind_before_it(name: str) -> None:
    objects = [
        pod_group("train", namespace="team"),
        pod("train-0", namespace="team", group="train"),
    ]
    world = load_world([json.dumps({"objects": objects}) + "\n"])
    assert world.find_job(name) == "team/train"


def test_of_objects_of_one_name_that_which_makes_pods_is_named(tmp_path: Path) -> None:
    kinds = [("v1", "ServiceAccount"), ("apps/v1", "Deployment"), ("v1", "Service")]
    there = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "team"}}
        for version, kind in kinds
    ]
    assert hint(tmp_path, "web", *there).startswith("Deployment team/web has no job")
    assert hint(tmp_path, "team/web", *there).startswith("Deployment team/web has no job")


def test_an_object_without_a_namespace_is_named_as_it_stands(tmp_path: Path) -> None:
    version = "rbac.authorization.k8s.io/v1"
    role = {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": "admin"}}
    assert hint(tmp_path, "admin", role).startswith("ClusterRole admin has no job")


def test_a_name_that_is_only_a_namespace_names_nothing() -> None:
    cluster = EmbeddedCluster()
    assert maker_named(cluster, "default/") == ""


def test_a_cluster_is_asked_for_what_makes_jobs() -> None:
    cluster = EmbeddedCluster()
    cluster.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}})
    assert maker_named(cluster, "agent").startswith("DaemonSet default/agent has no job and no pod")
    assert maker_named(cluster, "default/agent").startswith("DaemonSet default/agent ")
    assert maker_named(cluster, "lab/agent") == ""
