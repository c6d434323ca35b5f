"""A dump has the cache without confidential parts of pods."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.serve.cache_dump import write_dump
from pumice.testing import node, pod, queue

JOB = "Job.batch.volcano.sh"
QUEUE = "Queue.scheduling.volcano.sh"
HIDDEN = {"env": [{"name": "PASSWORD", "value": "hush"}], "command": ["hush"]}


@pytest.fixture
def cluster() -> Any:
    return EmbeddedCluster(VirtualClock())


@pytest.fixture
def dump(cluster: Any, tmp_path: Path) -> Any:
    def write(*kinds: Any, **options: Any) -> Any:
        path = write_dump(cluster, kinds, str(tmp_path), "cache", **options)
        return path, json.loads(path.read_text())

    return write


def test_a_dump_holds_objects_without_environments(cluster: Any, dump: Any) -> None:
    manifest = pod("a", cpu=1)
    manifest["spec"]["containers"][0].update(HIDDEN)
    manifest["spec"]["volumes"] = [{"name": "v", "hostPath": {"path": "/hush"}}]
    for one in (manifest, node("n"), queue("q")):
        cluster.create(one)
    path, content = dump("Pod", "Node", QUEUE)
    objects = content["objects"]
    assert objects["Pod"][0]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert "q" in [one["metadata"]["name"] for one in objects[QUEUE]]
    assert content["left_out"] == 0
    assert "hush" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_dump_holds_only_annotations_of_schedulers(cluster: Any, dump: Any) -> None:
    manifest = pod("a", cpu=1)
    manifest["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps(HIDDEN),
        "evil-volcano.sh/note": "hush",
        "volcano.sh": "hush",
        "volcano.sh/task-spec": "worker",
        "scheduling.volcano.sh/queue-name": "q",
        "scheduling.k8s.io/group-name": "g",
    }
    cluster.create(manifest)
    path, content = dump("Pod")
    assert "hush" not in path.read_text()
    assert content["objects"]["Pod"][0]["metadata"]["annotations"] == {
        "volcano.sh/task-spec": "worker",
        "scheduling.volcano.sh/queue-name": "q",
        "scheduling.k8s.io/group-name": "g",
    }


def test_a_dump_holds_no_templates_of_pods_and_no_last_words_of_containers(
    cluster: Any, dump: Any
) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i", **HIDDEN}]}}
    cluster.create(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "j", "namespace": "default"},
            "spec": {
                "minAvailable": 1,
                "tasks": [{"name": "t", "replicas": 1, "template": template}],
                "volumes": [{"mountPath": "/hush"}],
            },
        }
    )
    ended = {"name": "c", "state": {"terminated": {"exitCode": 1, "message": "hush"}}}
    status = {"phase": "Failed", "containerStatuses": [ended], "initContainerStatuses": [ended]}
    cluster.create(pod("a", cpu=1))
    cluster.update_status({**cluster.get("Pod", "default", "a"), "status": status})
    path, content = dump(JOB, "Pod")
    assert "hush" not in path.read_text()
    assert content["objects"][JOB][0]["spec"]["minAvailable"] == 1
    assert content["objects"]["Pod"][0]["status"]["phase"] == "Failed"


def test_a_dump_ends_at_its_bound_and_tells_what_is_missing(cluster: Any, dump: Any) -> None:
    for number in range(20):
        cluster.create(pod(f"p{number:02}", cpu=1))
    path, content = dump("Pod", biggest=2_000)
    assert path.stat().st_size < 2_500
    reported = len(content["objects"]["Pod"])
    assert 0 < reported < 20
    assert content["left_out"] == 20 - reported


def test_only_the_last_two_dumps_stay(cluster: Any, dump: Any, tmp_path: Path) -> None:
    (tmp_path / "cache-other.json").touch()
    paths = []
    for _ in range(4):
        cluster.clock.advance(1)
        paths.append(dump("Pod")[0])
    assert {*tmp_path.iterdir()} == {tmp_path / "cache-other.json", *paths[-2:]}
