"""A served cluster as a whole: a job that is posted runs and completes by itself."""

import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.apiserver.served_cluster import FastClock, RunningPlane, ServedCluster
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.serve.embedded import EmbeddedControlPlane

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
JOB = {
    "metadata": {"name": "train"},
    "spec": {
        "minAvailable": 2,
        "schedulerName": "volcano",
        "tasks": [
            {
                "name": "w",
                "replicas": 2,
                "template": {
                    "metadata": {"annotations": {"pumice.dev/run-seconds": "10"}},
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [
                            {
                                "name": "c",
                                "image": "busybox",
                                "resources": {"requests": {"cpu": "1"}},
                            }
                        ],
                    },
                },
            }
        ],
    },
}
QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {"weight": 5},
}


@pytest.fixture
def served() -> Iterator[Any]:
    cluster = ServedCluster(speed=100)
    cluster.add_nodes(2, {"cpu": "4", "memory": "8Gi"})
    yield cluster
    cluster.stop()


def test_a_posted_job_is_scheduled_runs_and_completes(served: Any) -> None:
    served.start()
    connection = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=30)
    connection.request("POST", JOBS, json.dumps(JOB))
    answer = connection.getresponse()
    assert (answer.status, len(answer.read()) > 0) == (201, True)
    connection.request("GET", f"{JOBS}?watch=true&timeoutSeconds=30")
    stream = connection.getresponse()
    phases = []
    while "Completed" not in phases:
        event = json.loads(stream.readline())
        phases.append(event["object"].get("status", {}).get("state", {}).get("phase", ""))
    connection.close()
    assert phases.index("Running") < phases.index("Completed")
    assert served.failure is None
    assert served.summary().startswith("2 nodes, 1 job, pods: 2 succeeded; cycle ")


def test_nodes_say_what_their_kubelet_reports(served: Any) -> None:
    applied = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "mine"}}
    served.load([applied])
    nodes = served.cluster.list("Node")[0]
    assert [node["metadata"]["labels"]["kubernetes.io/hostname"] for node in nodes] == [
        "mine",
        "node-1",
        "node-2",
    ]
    for node in nodes:
        labels = node["metadata"]["labels"]
        assert (labels["kubernetes.io/os"], labels["kubernetes.io/arch"]) == ("linux", "amd64")
        assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")
    addresses = {node["status"]["addresses"][0]["address"] for node in nodes}
    assert len(addresses) == 3


@pytest.mark.parametrize("named", [{}, {"schedulerName": "default-scheduler"}])
def test_pods_of_the_default_scheduler_are_placed_if_asked(named: Any) -> None:
    cluster = ServedCluster(is_default_scheduler=True)
    try:
        containers = [{"name": "c", "image": "i"}]
        plain = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
        cluster.load([plain | {"spec": {"containers": containers, **named}}])
        cluster.load(
            [
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}}
                | {"spec": {"containers": containers, "schedulerName": "mine"}}
            ]
        )
        cluster.add_nodes(1, {"cpu": "4", "memory": "8Gi"})
        for _ in range(3):
            cluster.plane.step()
        assert cluster.cluster.get("Pod", "default", "p")["status"]["phase"] == "Running"
        assert cluster.cluster.get("Pod", "default", "q")["status"]["phase"] == "Pending"
    finally:
        cluster.stop()


def test_a_quota_holds_back_pods_of_a_job(served: Any) -> None:
    metadata = {"name": "team", "namespace": "default"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    head = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    spec: Any = JOB["spec"]
    served.load([{**quota, "spec": {"hard": {"requests.cpu": "1"}}}])
    served.load([{**head, **JOB, "spec": {**spec, "minAvailable": 1}}])
    served.start()
    cluster, deadline = served.cluster, time.monotonic() + 30
    events: list[Any] = []
    while not events and time.monotonic() < deadline:
        time.sleep(0.02)
        events = [each for each in cluster.list("Event")[0] if each["reason"] == "FailedSync"]
    assert [each["metadata"]["name"] for each in cluster.list("Pod")[0]] == ["train-w-0"]
    assert events[0]["involvedObject"]["name"] == "train"
    assert 'pods "train-w-1" is forbidden: exceeded quota: team, ' in events[0]["message"]
    cluster.patch("ResourceQuota", "default", "team", {"spec": {"hard": {"requests.cpu": "2"}}})
    while len(cluster.list("Pod")[0]) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert cluster.get("ResourceQuota", "default", "team")["status"]["used"] is not None
    assert len(cluster.list("Pod")[0]) == 2


def test_the_job_of_the_examples_runs_once_it_has_a_namespace_and_a_queue(served: Any) -> None:
    example = Path(__file__).parents[3] / "examples" / "train-job.yaml"
    research = {**QUEUE, "metadata": {"name": "research"}}
    served.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ai"}}, research])
    served.load(yaml.safe_load_all(example.read_text()))
    served.start()
    deadline, phases = time.monotonic() + 30, set[str]()
    while phases != {"Running"} and time.monotonic() < deadline:
        time.sleep(0.02)
        phases = {pod["status"]["phase"] for pod in served.cluster.list("Pod", "ai")[0]}
    assert len(served.cluster.list("Pod", "ai")[0]) == 4
    assert phases == {"Running"}


def test_objects_to_start_with_may_change_what_is_there(served: Any) -> None:
    served.load([QUEUE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}])
    found = served.cluster.get("Queue.scheduling.volcano.sh", "", "default")
    assert (found["spec"]["weight"], found["spec"]["parent"]) == (5, "root")
    assert served.cluster.get("Namespace", "", "team")


def test_a_faster_clock_runs_from_now_on() -> None:
    moments = iter([10.0, 12.0, 15.0])
    clock = FastClock(5.0, lambda: next(moments))
    assert clock.now() + 15 == pytest.approx(clock.now())


def test_what_breaks_a_cycle_is_kept_and_the_plane_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FastClock()
    plane = EmbeddedControlPlane(cluster=EmbeddedCluster(clock), period_s=0.01)
    running = RunningPlane(plane, clock)
    monkeypatch.setattr(plane, "step", lambda: 1 / 0)
    running.start()
    while running.cycles < 3:
        time.sleep(0.01)
    running.stop()
    assert isinstance(running.failure, ZeroDivisionError)
