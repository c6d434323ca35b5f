"""Answers about pods that are still to be made name the quotas that would refuse them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.refused_pods import refused_pods
from pumice.diagnosis.sources import load_world
from pumice.diagnosis.whatif import Question, what_if

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node"},
    "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
}


def quota(cpu: str, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team"},
        "spec": {"hard": {"requests.cpu": cpu}},
        "status": status,
    }


def job(name: str, replicas: int) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {
            "minAvailable": 1,
            "tasks": [{"name": "w", "replicas": replicas, "template": template}],
        },
    }


def made(name: str, job_name: str) -> dict[str, Any]:
    """Return a running pod of a job."""
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": job_name,
        "uid": f"uid-{job_name}",
        "controller": True,
    }
    group = {"scheduling.k8s.io/group-name": f"{job_name}-uid-{job_name}"}
    spec = job(job_name, 1)["spec"]["tasks"][0]["template"]["spec"]
    marks = {**group, "volcano.sh/task-spec": "w", "volcano.sh/job-name": job_name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "ownerReferences": [owner],
            "annotations": marks,
            "labels": {"volcano.sh/job-name": job_name},
        },
        "spec": {**spec, "schedulerName": "volcano", "nodeName": "node"},
        "status": {"phase": "Running"},
    }


def written(folder: Path, *objects: dict[str, Any]) -> Path:
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([NODE, *objects]), encoding="utf-8")
    return file


def refusal(pod: str, used: int, hard: int) -> str:
    return (
        f'pods "{pod}" is forbidden: exceeded quota: team, requested: requests.cpu=1, '
        f"used: requests.cpu={used}, limited: requests.cpu={hard}"
    )


def test_pods_beyond_a_quota_are_noted_and_earlier_ones_count(tmp_path: Path) -> None:
    world = load_world([written(tmp_path, quota("2"), job("big", 4))])
    note = (
        f"default/big: the cluster would refuse 2 of its 4 missing pods: {refusal('big-w-2', 2, 2)}"
    )
    assert refused_pods(world) == [note]
    assert note in explain_job(world, "big").notes
    assert note in what_if(world, Question(job="big")).notes


def test_a_job_that_is_not_asked_about_is_not_named(tmp_path: Path) -> None:
    world = load_world([written(tmp_path, quota("1"), job("big", 2), job("small", 1))])
    assert not [note for note in explain_job(world, "small").notes if "refuse" in note]


def test_what_a_cluster_counted_decides(tmp_path: Path) -> None:
    counted = {"hard": {"requests.cpu": "5"}, "used": {"requests.cpu": "5"}}
    world = load_world([written(tmp_path, quota("5", **counted), job("big", 1))])
    why = refusal("big-w-0", 5, 5)
    assert refused_pods(world) == [
        f"default/big: the cluster would refuse its only missing pod: {why}"
    ]


@pytest.mark.parametrize("cpu", ["4", "100"])
def test_pods_with_room_are_not_noted(tmp_path: Path, cpu: str) -> None:
    assert refused_pods(load_world([written(tmp_path, quota(cpu), job("big", 4))])) == []


def test_many_jobs_are_counted(tmp_path: Path) -> None:
    jobs = [job(f"j{i}", 1) for i in range(5)]
    found = refused_pods(load_world([written(tmp_path, quota("0"), *jobs)]))
    assert len(found) == 4
    assert found[-1] == "quotas refuse pods of 2 more jobs"


def test_existing_pods_are_told_from_those_to_be_made(tmp_path: Path) -> None:
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "big-uid-big",
            "ownerReferences": made("x", "big")["metadata"]["ownerReferences"],
        },
        "spec": {"minMember": 1, "queue": "default"},
        "status": {"phase": "Running"},
    }
    file = written(tmp_path, quota("1"), job("big", 2), group, made("big-w-0", "big"))
    ran = CliRunner().invoke(main, ["explain", "big", "-f", str(file)])
    assert ran.exit_code == 0
    assert "1 running; 1 of them not made yet" in ran.stdout
    assert f"refuse its only missing pod: {refusal('big-w-1', 1, 1)}" in ran.stderr
