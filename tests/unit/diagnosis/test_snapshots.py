"""Snapshots: saved without secrets, read back the same, summed up and compared."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.snapshots import diff_worlds, save_world, summarise
from pumice.diagnosis.sources import load_world
from pumice.testing import node, pod, pod_group, queue

OBJECTS = [
    node("n1", cpu=4, resources={"example.com/gpu": 2}),
    node("n2", cpu=8, unschedulable=True),
    queue("default", weight=3),
]


def written(tmp_path: Path, world: Any, name: str = "s.yaml") -> Any:
    path = tmp_path / name
    path.write_text(save_world(world, name="s", as_json=name.endswith(".json")))
    return load_world([path])


@pytest.mark.parametrize("name", ["s.yaml", "s.json"])
def test_a_saved_world_is_read_back_the_same(
    world: Any, job: Any, tmp_path: Path, name: str
) -> None:
    first = world([*OBJECTS, *job("j", cpu=1)])
    usage = {"n1": {"cpu": 30.0, "metricsTime": first.now}}
    first = ClusterState(
        objects=first.objects, now=first.now, conf=first.conf, node_usage=usage, seed=5
    )
    again = written(tmp_path, first, name)
    assert (again.objects, again.now, again.seed) == (first.objects, first.now, first.seed)
    assert again.node_usage == usage
    assert again.scheduler_conf == first.scheduler_conf
    assert diff_worlds(first, again).is_empty


def test_nothing_that_may_be_a_secret_is_saved(world: Any) -> None:
    member = pod("p", group="g", cpu=1, annotations={"keep": "me"})
    container = member["spec"]["containers"][0]
    container |= {"env": [{"name": "TOKEN", "value": "hush"}], "args": ["hush"]}
    member["metadata"]["managedFields"] = [{"manager": "hush"}]
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    member["metadata"]["annotations"][applied] = "hush"
    text = save_world(world([member]))
    assert "hush" not in text
    assert "keep: me" in text
    assert "image: busybox:1" in text


def test_nothing_that_may_be_a_secret_is_saved_of_jobs() -> None:
    container = {"name": "c", "image": "busybox:1", "args": ["hush"], "env": [{"name": "hush"}]}
    task = {"name": "w", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    meta = {"name": "train", "namespace": "default", "uid": "u"}
    version = "batch.volcano.sh/v1alpha1"
    keys = ["--ssh-private-key=hush", "-ssh-private-key", "hush", "--ssh-port=23"]
    spec = {"tasks": [task], "plugins": {"ssh": keys, "svc": []}}
    given = {"apiVersion": version, "kind": "Job", "metadata": meta, "spec": spec}
    text = save_world(load_world([json.dumps({"objects": [given]}) + "\n"]))
    assert "hush" not in text
    assert "image: busybox:1" in text
    assert "--ssh-port=23" in text


def test_kinds_that_a_cluster_hid_stay_hidden(world: Any, tmp_path: Path) -> None:
    hidden = {"LimitRange": "forbidden"}
    again = written(tmp_path, replace(world(OBJECTS), hidden=hidden))
    assert again.hidden == hidden
    assert not again.knows_defaults
    assert again.notes == ("LimitRange left out: forbidden",)


def test_a_summary_counts_nodes_queues_jobs_and_pods(world: Any, job: Any) -> None:
    objects = [*OBJECTS, *job("runs", cpu=1, nodes=["n1"]), *job("j", cpu=2, pods=2)]
    found = summarise(world(objects))
    assert (found.nodes, found.closed_nodes) == (2, ["n2"])
    cpu = found.resources[0]
    assert (cpu.resource, cpu.total, cpu.free, cpu.largest_free) == ("cpu", "12", "11", "3")
    assert cpu.percent == 8.3
    (default,) = found.queues
    assert (default.weight, default.state) == (3, "Open")
    assert default.allocated == {"cpu": "1", "pods": "1"}
    assert default.pending == {"cpu": "4", "pods": "2"}
    assert default.jobs == found.phases == {"Pending": 1, "Running": 1}
    assert found.pods == {"Pending": 2, "Running": 1}
    assert json.dumps(found.to_dict())


def test_a_difference_names_objects_fields_and_decisions(world: Any, job: Any) -> None:
    old = world([*OBJECTS, *job("a", cpu=4), *job("gone", cpu=1, nodes=["n1"])])
    new = world([*OBJECTS, *job("a", cpu=3), pod_group("new")])
    found = diff_worlds(old, new)
    assert found.added == {"PodGroup": ["default/new"]}
    assert found.removed == {"Pod": ["default/gone-0"], "PodGroup": ["default/gone"]}
    path = "spec.containers[0].resources.requests.cpu"
    assert found.changed == {"Pod": {"default/a-0": {path: ("4", "3")}}}
    assert found.decisions["binds"] == {"default/a-0": ("", "n1")}
    assert found.decisions["why"]["default/a"][1] == ""
    assert not found.conf
    assert json.dumps(found.to_dict())


def test_another_configuration_is_a_difference(world: Any) -> None:
    old, new = world(OBJECTS), world(OBJECTS, actions="allocate")
    assert diff_worlds(old, new).conf


def test_a_job_that_was_submitted_again_is_the_same_job_in_a_difference(world: Any) -> None:
    def submitted(uid: str, cpu: int) -> list[Any]:
        group, one = pod_group(f"j-{uid}"), pod("j-0", group=f"j-{uid}", cpu=cpu)
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": uid}
        group["metadata"]["ownerReferences"] = [owner]
        return [*OBJECTS, group, one]

    found = diff_worlds(world(submitted("1", 2)), world(submitted("2", 5)))
    assert found.decisions["why"].keys() == {"default/j"}
    assert "phases" not in found.decisions
