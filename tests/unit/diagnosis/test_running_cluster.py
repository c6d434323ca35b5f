"""A running cluster as the source of a world."""

from pathlib import Path
from typing import Any

import pytest

from pumice.api.conf import DEFAULT_CONF
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.dashboard.material import ALL_KINDS, gather
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.sources import load_world
from pumice.diagnosis.whatif import Question, what_if
from pumice.errors import NotFoundError, RejectedError
from pumice.testing import node, pod, pod_group, queue
from tests.present import present

NOW = 1_768_471_200.0
CONF = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
JOB: Any = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default", "uid": "u"},
    "spec": {
        "minAvailable": 2,
        "queue": "default",
        "tasks": [
            {
                "name": "w",
                "replicas": 2,
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
            }
        ],
    },
}


def config_map(name: Any, text: Any, namespace: str = "volcano-system") -> Any:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"volcano-scheduler.conf": text},
    }


@pytest.fixture
def cluster() -> Any:
    made = EmbeddedCluster(VirtualClock(NOW))
    for manifest in (node("n1"), queue("default"), pod_group("j"), pod("j-0", group="j", cpu=1)):
        made.create(manifest)
    default = made.get("Queue.scheduling.volcano.sh", "", "default")
    made.update_status({**default, "status": {"state": "Open"}})
    return made


def test_objects_and_time_are_the_clusters(cluster: Any) -> None:
    world = load_world([cluster])
    assert {"n1"} == set(world.of_kind("Node"))
    assert list(world.groups) == ["default/j"]
    assert world.now == NOW
    assert (world.conf, world.conf_source) == (DEFAULT_CONF, "the built-in configuration")


def test_a_cluster_whose_time_runs_fast_is_ahead_of_the_machine(cluster: Any) -> None:
    cluster.clock.advance_to(NOW + 60)
    cluster.create(pod_group("late", created="2026-01-15T10:01:00Z"))
    cluster.now = lambda: NOW
    assert load_world([cluster]).now == NOW + 60


def test_the_configuration_is_that_of_the_config_map(cluster: Any) -> None:
    cluster.create(config_map("volcano-scheduler-configmap", CONF))
    world = load_world([cluster])
    assert world.scheduler_conf.actions == ("allocate",)
    assert world.conf_source == "ConfigMap volcano-system/volcano-scheduler-configmap"


def test_a_config_map_of_another_release_is_found_by_its_key(cluster: Any) -> None:
    cluster.create(config_map("prod-scheduler-configmap", CONF, "batch"))
    assert load_world([cluster]).conf_source == "ConfigMap batch/prod-scheduler-configmap"


def test_a_named_configuration_wins(cluster: Any, tmp_path: Path) -> None:
    cluster.create(config_map("volcano-scheduler-configmap", CONF))
    other = tmp_path / "x.conf"
    other.write_text(CONF.replace("allocate", "backfill"))
    world = load_world([cluster], other)
    assert (world.scheduler_conf.actions, world.conf_source) == (("backfill",), str(other))


class Hiding:
    """A cluster that does not serve or show some kinds."""

    def __init__(self, cluster: Any, errors: Any) -> None:
        self._cluster = cluster
        self._errors = errors

    def __getattr__(self, name: Any) -> Any:
        return getattr(self._cluster, name)

    def list(self, kind: Any, namespace: str = "", labels: Any = None) -> Any:
        if kind in self._errors:
            raise self._errors[kind]
        return self._cluster.list(kind, namespace, labels)


def test_a_kind_that_is_not_served_has_no_objects(cluster: Any) -> None:
    hiding = Hiding(cluster, {"HyperNode.topology.volcano.sh": NotFoundError()})
    assert load_world([hiding]).notes == ()


def test_a_kind_that_is_hidden_is_noted(cluster: Any) -> None:
    refused = RejectedError(problem="forbidden")
    world = load_world([Hiding(cluster, {"ResourceQuota": refused})])
    assert world.notes == ("ResourceQuota left out: forbidden",)


def test_without_limit_ranges_no_pod_is_said_to_state_too_little(cluster: Any) -> None:
    metadata = {"name": "team", "namespace": "default"}
    spec = {"hard": {"requests.cpu": "9"}}
    cluster.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}
    )
    cluster.create(JOB)
    shown = explain_job(load_world([cluster]), "train")
    assert [each.code.value for each in shown.causes] == ["QuotaExceeded"]
    refused = RejectedError(problem="forbidden")
    world = load_world([Hiding(cluster, {"LimitRange": refused})])
    found = explain_job(world, "train")
    assert "QuotaExceeded" not in [each.code.value for each in found.causes]
    assert "LimitRange left out: forbidden" in found.notes
    assert present(what_if(world, Question(job="train")).job).state == "now"


def test_without_pods_nothing_can_be_said(cluster: Any) -> None:
    with pytest.raises(RejectedError):
        load_world([Hiding(cluster, {"Pod": RejectedError(problem="forbidden")})])


def test_an_odd_object_does_not_hide_the_others(cluster: Any) -> None:
    cluster.create(pod("odd", cpu="1x"))
    world = load_world([cluster])
    assert "default/j-0" in world.of_kind("Pod")
    assert "Pod default/odd" in world.notes[0]


def test_an_odd_job_does_not_hide_the_others(cluster: Any) -> None:
    cluster.create({**JOB, "spec": {**JOB["spec"], "plugins": {"nope": []}}})
    world = load_world([cluster])
    assert "default/j-0" in world.of_kind("Pod")
    assert world.notes[0].startswith("left out: cluster: Job default/train: spec.plugins: expected")


def test_unusable_measurements_are_noted(cluster: Any) -> None:
    conf = CONF + '  - name: usage\nmetrics:\n  type: prometheus\n  address: "x"\n'
    cluster.create(config_map("volcano-scheduler-configmap", conf))
    assert load_world([cluster]).notes[0].startswith("node usage left out: ")


def group_of_job(phase: str = "Pending") -> Any:
    group = pod_group("train-u", min_member=2, phase=phase)
    owner = {"apiVersion": JOB["apiVersion"], "kind": "Job", "name": "train", "uid": "u"}
    group["metadata"]["ownerReferences"] = [owner]
    return group


def test_pods_that_the_controller_has_still_to_make_are_expected(cluster: Any) -> None:
    cluster.create(group_of_job())
    cluster.create(JOB)
    world = load_world([cluster])
    found = explain_job(world, "train")
    assert (found.name, found.expected, found.state) == ("default/train", 2, "starts")
    assert world.plain("default/train-u waits") == "default/train waits"


def test_pods_of_a_job_that_ended_are_not_expected(cluster: Any) -> None:
    made = cluster.create(JOB)
    cluster.update_status({**made, "status": {"state": {"phase": "Completed"}}})
    assert "default/train" not in load_world([cluster]).groups


def test_the_dashboard_knows_which_kinds_are_hidden(cluster: Any) -> None:
    refused = RejectedError(problem="forbidden")
    hiding: Any = Hiding(cluster, {"LimitRange": refused})
    world = gather(hiding, ALL_KINDS, now=0.0).to_world()
    assert world.hidden == {"LimitRange": "forbidden"}
    assert world.notes == ("LimitRange left out: forbidden",)
