"""Where a world comes from: files of every kind, a cluster, and what is left out."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.api.times import epoch
from pumice.controllers.expected import is_expected
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.object_store import DEFAULT_NOW
from pumice.diagnosis.sources import load_job, load_world
from pumice.errors import ConfError, InputError, ManifestError, NotFoundError
from pumice.testing import node, pod, pod_group, queue, resource_claim_template

OBJECTS = [
    node("n1", created="2026-01-15T09:00:00Z"),
    queue("default"),
    pod_group("j"),
    pod("j-0", group="j", cpu=1, created="2026-01-15T10:00:00Z"),
]
CONF = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
JOB: Any = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "ai"},
    "spec": {
        "minAvailable": 2,
        "queue": "default",
        "tasks": [
            {
                "name": "worker",
                "replicas": 3,
                "template": {
                    "spec": {
                        "containers": [
                            {"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}
                        ]
                    }
                },
            }
        ],
    },
}


def write(folder: Any, name: Any, content: Any) -> Any:
    path = folder / name
    text = json.dumps(content) if name.endswith(".json") else yaml.safe_dump_all(content)
    path.write_text(content if isinstance(content, str) else text)
    return path


def keys(world: Any) -> Any:
    return [f"{one['kind']} {one['metadata']['name']}" for one in world.objects]


def test_output_of_kubectl_is_one_list(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": OBJECTS}
    world = load_world([write(tmp_path, "all.json", listed)])
    assert keys(world) == ["Node n1", "Queue default", "PodGroup j", "Pod j-0"]


def test_a_list_of_one_kind_is_unpacked(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "PodList", "items": OBJECTS[3:]}
    assert keys(load_world([write(tmp_path, "pods.json", listed)])) == ["Pod j-0"]


def test_files_and_folders_are_joined_and_the_later_object_counts(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    first = write(tmp_path, "a.yaml", OBJECTS)
    write(tmp_path / "more", "b.yaml", [node("n1", cpu=64), node("n2")])
    world = load_world([first, tmp_path / "more"])
    assert keys(world) == ["Node n1", "Queue default", "PodGroup j", "Pod j-0", "Node n2"]
    assert world.of_kind("Node")["n1"]["status"]["allocatable"]["cpu"] == "64"


def test_a_text_is_read_like_a_file() -> None:
    assert keys(load_world([yaml.safe_dump_all(OBJECTS)])) == keys(load_world([json_list()]))


def json_list() -> Any:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}) + "\n"


def test_the_time_is_the_latest_that_objects_speak_of(tmp_path: Path) -> None:
    world = load_world([write(tmp_path, "a.yaml", OBJECTS)])
    assert world.now == 1_768_471_200.0


def test_without_any_time_the_default_of_scenarios_holds(tmp_path: Path) -> None:
    assert load_world([write(tmp_path, "a.yaml", [queue("q")])]).now == DEFAULT_NOW


def test_a_stated_time_wins(tmp_path: Path) -> None:
    assert load_world([write(tmp_path, "a.yaml", OBJECTS)], now=5.0).now == 5.0


def test_a_scenario_brings_its_configuration_time_and_usage(tmp_path: Path) -> None:
    scenario = {
        "now": "2026-01-15T10:00:00Z",
        "seed": 7,
        "conf": CONF,
        "nodeUsage": {"n1": {"cpu": 50}},
        "objects": OBJECTS,
    }
    world = load_world([write(tmp_path, "s.json", scenario)])
    assert (world.now, world.seed, world.conf) == (1_768_471_200.0, 7, CONF)
    assert world.node_usage == {"n1": {"metricsTime": world.now, "cpu": 50.0}}


def test_a_scenario_may_name_other_files_and_hold_a_mapping_as_configuration(
    tmp_path: Path,
) -> None:
    write(tmp_path, "objects.yaml", OBJECTS)
    scenario = {"conf": yaml.safe_load(CONF), "objectsFrom": ["objects.yaml"]}
    world = load_world([write(tmp_path, "s.json", scenario)])
    assert len(world.objects) == 4
    assert world.scheduler_conf.actions == ("allocate",)


def test_objects_of_a_scenario_may_be_text(tmp_path: Path) -> None:
    scenario = {"objects": yaml.safe_dump_all(OBJECTS)}
    assert len(load_world([write(tmp_path, "s.json", scenario)]).objects) == 4


def test_the_config_map_of_volcano_is_used(tmp_path: Path) -> None:
    conf = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-scheduler-configmap"},
        "data": {"volcano-scheduler.conf": CONF},
    }
    world = load_world([write(tmp_path, "a.yaml", [*OBJECTS, conf])])
    assert world.conf == CONF
    assert world.conf_source.endswith("ConfigMap volcano-scheduler-configmap")


def test_a_named_configuration_wins(tmp_path: Path) -> None:
    other = CONF.replace("allocate", "backfill")
    conf = write(tmp_path, "x.conf", other)
    scenario = write(tmp_path, "s.json", {"conf": CONF, "objects": OBJECTS})
    assert load_world([scenario], conf).conf == other


def test_a_bad_configuration_is_refused_at_once(tmp_path: Path) -> None:
    conf = write(tmp_path, "x.conf", "actions: [\n")
    with pytest.raises(ConfError):
        load_world([write(tmp_path, "a.yaml", OBJECTS)], conf)


def test_kinds_that_scheduling_does_not_read_are_counted(tmp_path: Path) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    plain = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "b"}}
    world = load_world([write(tmp_path, "a.yaml", [*OBJECTS, service, service, plain])])
    assert world.left_out == {"Service": 2, "Job": 1}


def test_a_bad_object_is_reported_with_its_file(tmp_path: Path) -> None:
    bad = pod("p", cpu="1x")
    with pytest.raises(ManifestError, match=r"a\.yaml:1: Pod default/p"):
        load_world([write(tmp_path, "a.yaml", [bad])])


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="expected manifests, a scenario or a snapshot"):
        load_world([write(tmp_path, "a.json", {"tiers": []})])


def test_a_queue_without_status_is_taken_as_open_unless_a_scenario_says_so(tmp_path: Path) -> None:
    bare = {name: part for name, part in queue("q").items() if name != "status"}
    manifest = load_world([write(tmp_path, "a.yaml", [bare])])
    scenario = load_world([write(tmp_path, "s.json", {"objects": [bare]})])
    assert manifest.of_kind("Queue")["q"]["status"] == {"state": "Open"}
    assert "status" not in scenario.of_kind("Queue")["q"]


def test_a_volcano_job_stands_for_its_pod_group_and_pods(tmp_path: Path) -> None:
    world = load_world([write(tmp_path, "a.yaml", [JOB])], now=1_768_471_200.0)
    group = world.groups["ai/train"]
    assert group["spec"]["minMember"] == 2
    counted = {"pods": "2", "count/pods": "2", "limits.cpu": "4"}  # limits are no requests yet
    assert group["spec"]["minResources"] == counted
    assert group["metadata"]["creationTimestamp"] == "2026-01-15T10:00:00Z"
    pods = world.pods_by_group["ai/train"]
    assert [pod["metadata"]["name"] for pod in pods] == [f"train-worker-{i}" for i in range(3)]
    requests = pods[0]["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "2"}  # the API server takes them from the limits
    assert "default" in world.of_kind("Queue")


def with_task(**fields: Any) -> Any:
    spec = JOB["spec"]
    return {**JOB, "spec": {**spec, "tasks": [{**spec["tasks"][0], **fields}]}}


def test_pods_of_a_volcano_job_have_its_zone_its_numa_policy_and_its_labels(tmp_path: Path) -> None:
    marked = with_task(topologyPolicy="restricted")
    marks = {"volcano.sh/revocable-zone": "*", "volcano.sh/jdb-min-available": "1"}
    marked["metadata"] = {**JOB["metadata"], "annotations": marks}
    world = load_world([write(tmp_path, "a.yaml", [marked])])
    meta = world.pods_by_group["ai/train"][2]["metadata"]
    assert marks.items() <= meta["annotations"].items()
    assert meta["annotations"]["volcano.sh/numa-topology-policy"] == "restricted"
    assert meta["labels"]["volcano.sh/task-index"] == "2"
    assert meta["labels"]["volcano.sh/queue-name"] == "default"


def test_a_job_for_a_revocable_zone_starts_on_its_nodes_by_night(tmp_path: Path) -> None:
    """Its pods were once made without the zone, and no node fitted."""
    conf = (
        'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: tdm\n'
        "    arguments: {tdm.revocable-zone.rz1: 00:00-00:00}\n"
    )
    job = {**JOB, "metadata": {**JOB["metadata"]}}
    job["metadata"]["annotations"] = {"volcano.sh/revocable-zone": "*"}
    night = node("n1", labels={"volcano.sh/revocable-zone": "rz1"})
    scenario = {"conf": conf, "objects": [night, queue("default"), job]}
    world = load_world([write(tmp_path, "s.json", scenario)], now=1_768_471_200.0)
    assert explain_job(world, "train").state == "starts"


def test_a_task_that_waits_for_another_has_no_pods_yet(tmp_path: Path) -> None:
    first, second = with_task(name="first"), with_task(name="second", dependsOn={"name": ["first"]})
    both = {
        **JOB,
        "spec": {**JOB["spec"], "tasks": first["spec"]["tasks"] + second["spec"]["tasks"]},
    }
    world = load_world([write(tmp_path, "a.yaml", [both])])
    names = [pod["metadata"]["name"] for pod in world.pods_by_group["ai/train"]]
    assert names == [f"train-first-{index}" for index in range(3)]


def test_only_pods_that_are_missing_are_expected(tmp_path: Path) -> None:
    group = pod_group("train", namespace="ai", phase="Inqueue")
    there = pod("train-worker-1", namespace="ai", group="train", cpu=2)
    world = load_world([write(tmp_path, "a.yaml", [JOB, group, there])])
    pods = {one["metadata"]["name"]: is_expected(one) for one in world.pods_by_group["ai/train"]}
    assert pods == {"train-worker-0": True, "train-worker-1": False, "train-worker-2": True}


def test_the_claims_of_a_volcano_job_come_with_it(tmp_path: Path) -> None:
    def claims(**more: Any) -> Any:
        volumes = [
            {"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"], **more}}
        ]
        job = {**JOB, "spec": {**JOB["spec"], "volumes": volumes}}
        world = load_world([write(tmp_path, "a.yaml", [job, waiting, node("n1", cpu=8)])])
        (claim,) = world.of_kind("PersistentVolumeClaim").values()
        assert explain_job(world, "train").state == "starts"
        return claim["status"]["phase"] if "status" in claim else "Pending"

    waiting = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "waiting"},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    assert claims() == "Bound"  # a provisioner has made the volume before pods come
    assert claims(storageClassName="waiting") == "Pending"


def test_claims_are_made_from_templates(tmp_path: Path) -> None:
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
    job = {**JOB, "spec": {**JOB["spec"], "tasks": [{**JOB["spec"]["tasks"][0]}]}}
    job["spec"]["tasks"][0]["template"] = {"spec": {"containers": [{"name": "c"}], **spec}}
    templates = [resource_claim_template("t"), resource_claim_template("t", namespace="ai")]
    alone = pod("p", group="j", spec=spec)
    world = load_world([write(tmp_path, "all.yaml", [*OBJECTS, *templates, alone, job])])
    made = [one for one in world.objects if one["kind"] == "ResourceClaim"]
    names = [f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in made]
    assert names == ["default/p-gpu", *(f"ai/train-worker-{i}-gpu" for i in range(3))]
    assert [is_expected(one) for one in made] == [False, True, True, True]


def test_a_job_brings_its_templates(tmp_path: Path) -> None:
    found = load_job(write(tmp_path, "job.yaml", [JOB, resource_claim_template("t")]), DEFAULT_NOW)
    assert {one["kind"] for one in found} == {"Job", "ResourceClaimTemplate"}
    with pytest.raises(InputError):
        load_job(write(tmp_path, "none.yaml", [resource_claim_template("t")]), DEFAULT_NOW)


def test_a_volcano_job_that_has_its_pod_group_is_not_made_twice(tmp_path: Path) -> None:
    group = pod_group("train-123", namespace="ai")
    group["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "train"}]
    world = load_world([write(tmp_path, "a.yaml", [JOB, group])])
    assert list(world.groups) == ["ai/train-123"]


def test_a_volcano_job_without_tasks_is_refused(tmp_path: Path) -> None:
    bare = {**JOB, "spec": {}}
    with pytest.raises(ManifestError, match="at least one task"):
        load_world([write(tmp_path, "a.yaml", [bare])])


def test_a_plain_pod_of_a_new_job_is_ours_though_it_names_no_scheduler(tmp_path: Path) -> None:
    lone = pod("lone", cpu=1)
    del lone["spec"]["schedulerName"]
    [found] = load_job(write(tmp_path, "a.yaml", [lone]), 1_768_471_200.0)
    assert found["spec"]["schedulerName"] == "volcano"


def test_a_file_without_a_job_is_refused_as_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a Volcano job, a pod group or pods"):
        load_job(write(tmp_path, "a.yaml", [queue("q")]), 0.0)


class Fake:
    """As much of a cluster as is read."""

    def now(self) -> float:
        return 42.0

    def list(self, kind: Any, namespace: str = "", labels: Any = None) -> Any:
        group = kind.partition(".")[0]
        return [one for one in OBJECTS if one["kind"] == group], "1"

    def get(self, kind: Any, namespace: Any, name: Any) -> None:
        raise NotFoundError(kind, namespace, name)


def test_anything_that_speaks_the_cluster_protocol_is_a_source() -> None:
    cluster: Any = Fake()
    world = load_world([cluster])
    assert sorted(keys(world)) == ["Node n1", "Pod j-0", "PodGroup j", "Queue default"]
    assert world.now == 1_768_471_200.0  # not before what its objects speak of


def test_now_is_when_a_pod_was_reported_to_go_and_not_when_it_must_be_gone(tmp_path: Path) -> None:
    leaving = pod("p", node="node-a")
    leaving["metadata"] |= {
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:10:00Z",
        "deletionGracePeriodSeconds": 60,
    }
    found = load_world([write(tmp_path, "a.yaml", [node("node-a"), leaving])])
    assert found.now == epoch("2026-01-01T00:09:00Z")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({}, "got an empty mapping"),
        ({"tiers": []}, "got a mapping with 'tiers'"),
        (dict.fromkeys("abcdef", 1), "got a mapping with 'a', 'b', 'c', 'd' and 2 more"),
        ({"kind": "PodList", "apiVersion": "v1", "items": 5}, "PodList: items: expected a list"),
        ({"objects": [{"kind": "PodList", "items": 5}]}, "PodList: items: expected a list, got 5"),
    ],
)
def test_what_a_file_has_instead_is_described(tmp_path: Path, content: Any, found: str) -> None:
    with pytest.raises(ManifestError) as refused:
        load_world([write(tmp_path, "a.json", content)])
    assert found in str(refused.value)
