"""The controllers that are enabled run on a cluster until stopped."""

import threading
from typing import Any

import pytest

from pumice.clock import RealClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.metrics import Metrics
from pumice.serve.controllers import (
    NAMES,
    chosen_controllers,
    discovery_config,
    followed_kinds,
    is_enabled,
    run_controllers,
    unknown_controllers,
)
from pumice.serve.options import FEATURE_GATES, ControllerOptions
from pumice.testing import queue

GROUP = "PodGroup.scheduling.volcano.sh"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ((), True),
        (("*",), True),
        (("*", "-gc-controller"), False),
        (("gc-controller",), True),
        (("+gc-controller",), True),
        (("job-controller",), False),
        (("-job-controller",), False),
        (("gc-controller", "-gc-controller"), True),
    ],
)
def test_the_first_entry_that_names_a_controller_decides(wanted: Any, expected: bool) -> None:
    assert is_enabled("gc-controller", wanted) is expected


def test_all_run_unless_reported_otherwise() -> None:
    names = {controller.name for controller in chosen_controllers(ControllerOptions())}
    assert names == set(NAMES) - {"sharding"}
    chosen = chosen_controllers(ControllerOptions(controllers=("*",)))
    assert {controller.name for controller in chosen} == set(NAMES)


def test_feature_gates_turn_controllers_off() -> None:
    gates = {**FEATURE_GATES, "CronVolcanoJobSupport": False, "VolcanoJobSupport": False}
    chosen = chosen_controllers(ControllerOptions(feature_gates=gates))
    assert {"job", "cronjob"}.isdisjoint(controller.name for controller in chosen)


def test_controllers_that_do_not_exist_are_named_only_if_they_are_wanted() -> None:
    wanted = ("*", "-sharding-controller", "+nodeShard-controller", "hyperNode-controller")
    assert unknown_controllers(wanted) == ["nodeShard-controller"]


def test_the_discovery_settings_are_found_by_the_variables_of_the_chart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("KUBE_POD_NAMESPACE", "HELM_RELEASE_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert discovery_config() == ("volcano-system", "volcano-controller-configmap")
    monkeypatch.setenv("KUBE_POD_NAMESPACE", "batch")
    monkeypatch.setenv("HELM_RELEASE_NAME", "pumice")
    assert discovery_config() == ("batch", "pumice-controller-configmap")


def test_secrets_are_not_followed() -> None:
    kinds = followed_kinds(ControllerOptions())
    assert "Pod" in kinds
    assert len(set(kinds)) == len(kinds)
    assert {"Secret", "ConfigMap", "Service"}.isdisjoint(kinds)


class Cluster(EmbeddedCluster):
    """A cluster in memory that behaves as one that is followed."""

    def __init__(self) -> None:
        super().__init__(RealClock())
        self.missing: list[Any] = []
        self.wakes: list[Any] = []

    def wait_current(self, timeout_s: Any) -> Any:
        return self.missing

    def new_wake(self) -> Any:
        wake = threading.Event()
        self.wakes.append(wake)
        self.listeners.append(lambda *_: wake.set())
        return wake

    def flush(self, timeout_s: Any) -> bool:
        return True


def job(replicas: Any) -> Any:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    task = {"name": "w", "replicas": replicas, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {
            "minAvailable": replicas,
            "schedulerName": "volcano",
            "queue": "default",
            "plugins": {"svc": [], "env": []},
            "tasks": [task],
        },
    }


class Counting(Metrics):
    """Ends the run once so many pods are counted."""

    def __init__(self, wanted: Any, stop: Any) -> None:
        super().__init__()
        self.left = wanted
        self.stop = stop

    def pod_created(self, seconds: Any) -> None:
        super().pod_created(seconds)
        self.left -= 1
        if not self.left:
            self.stop.set()


def test_a_gang_gets_its_pods_and_is_counted() -> None:
    cluster: Any = Cluster()
    stop = threading.Event()
    metrics = Counting(40, stop)
    cluster.create(queue("default"))
    cluster.create(job(40))

    def notice(kind: Any, event: Any) -> None:
        if kind == GROUP and event.type == "ADDED":
            name = event.object["metadata"]["name"]
            cluster.patch(GROUP, "default", name, {"status": {"phase": "Inqueue"}})

    cluster.listeners.append(notice)
    limit = threading.Timer(60, stop.set)
    limit.start()
    run_controllers(cluster, ControllerOptions(), metrics, stop)
    limit.cancel()

    assert len(cluster.list("Pod")[0]) == 40
    assert cluster.get("Service", "default", "gang")
    text = metrics.text()
    assert "volcano_controller_job_to_pod_creation_latency_milliseconds_count 40" in text
    assert 'volcano_queue_pod_group_inqueue_count{queue_name="default"} 1' in text
    assert "pumice_ready 1" in text


def test_nothing_runs_before_all_is_known() -> None:
    cluster: Any = Cluster()
    stop = threading.Event()
    cluster.create(job(1))

    def missing(timeout_s: Any) -> Any:
        stop.set()
        return ["Pod"]

    cluster.wait_current = missing
    run_controllers(cluster, ControllerOptions(), Metrics(), stop)
    assert cluster.list(GROUP)[0] == []


def test_nothing_is_reconciled_while_a_watch_is_lost() -> None:
    cluster: Any = Cluster()
    stop = threading.Event()
    looks: list[int] = []
    cluster.create(queue("default"))

    def lose_a_watch(kind: Any, event: Any) -> None:
        if kind == GROUP and event.type == "ADDED":
            cluster.missing = ["Pod"]
            name = event.object["metadata"]["name"]
            cluster.patch(GROUP, "default", name, {"status": {"phase": "Inqueue"}})

    def look() -> None:
        looks.append(len(cluster.list("Pod")[0]))
        if cluster.missing and len(looks) > 200:
            stop.set()

    cluster.listeners.append(lose_a_watch)
    cluster.create(job(3))
    limit = threading.Timer(60, stop.set)
    limit.start()
    run_controllers(cluster, ControllerOptions(), Metrics(), stop, on_look=look)
    limit.cancel()
    assert cluster.missing
    assert cluster.list("Pod")[0] == []
