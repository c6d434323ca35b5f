"""The custom resource definitions: Volcano's names, every field that is used, mistakes refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from deploy.crds import RESOURCES
from pumice.api.groups import PodGroup, Queue
from pumice.api.kinds import BUILT_IN
from pumice.api.meta import Part
from pumice.api.nodes import HyperNode, Numatopology
from tests.unit.deploy.broad_run import broad_run, job_spec
from tests.unit.deploy.structural import problems

ROOT = Path(__file__).resolve().parents[3]
DEFINITIONS = [resource.manifest() for resource in RESOURCES]
OURS = {resource.kind.group for resource in RESOURCES}
KNOWN = [kind for kind in BUILT_IN if kind.group in OURS]


def schema_of(kind: Any) -> Any:
    resource = next(one for one in RESOURCES if one.kind.kind == kind)
    return resource.manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def job(**spec: Any) -> Any:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {**job_spec(), **spec},
    }


def of_pods(**spec: Any) -> Any:
    """Return a job of one task, with this in the specification of its pods."""
    containers = [{"name": "c", "image": "busybox"}]
    return job(tasks=[{"name": "w", "template": {"spec": {"containers": containers, **spec}}}])


PODS = ".spec.tasks[0].template"


def queue(**spec: Any) -> Any:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": spec,
    }


@pytest.mark.parametrize("kind", KNOWN, ids=lambda kind: kind.name)
def test_a_definition_agrees_with_the_kinds_the_clusters_know(kind: Any) -> None:
    spec = next(
        one["spec"]
        for one in DEFINITIONS
        if (one["spec"]["group"], one["spec"]["names"]["kind"]) == (kind.group, kind.kind)
    )
    names, version = spec["names"], spec["versions"][0]
    assert (kind.version, kind.plural, kind.short_names) == (
        version["name"],
        names["plural"],
        tuple(names.get("shortNames", ())),
    )
    assert kind.namespaced == (spec["scope"] == "Namespaced")
    assert kind.has_status == ("subresources" in version)


def test_everything_a_run_stores_is_accepted_and_nothing_of_it_dropped() -> None:
    found = {
        (manifest["kind"], problem)
        for manifest in broad_run().seen
        if manifest["apiVersion"].partition("/")[0] in OURS
        for problem in problems(DEFINITIONS, manifest)
    }
    assert found == set()


def test_the_run_stores_objects_of_most_kinds() -> None:
    kinds = {m["kind"] for m in broad_run().seen if m["apiVersion"].partition("/")[0] in OURS}
    assert {"Job", "CronJob", "JobFlow", "JobTemplate", "PodGroup", "Queue"} <= kinds


def fields_of(struct: Any) -> Iterator[Any]:
    for field in msgspec.structs.fields(struct):
        yield field.encode_name, field.type


def parts_in(annotation: Any) -> Iterator[Any]:
    """Return the structs inside a type such as ``tuple[X, ...] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from parts_in(inner)


def missing(struct: Any, schema: Any, path: Any) -> Iterator[Any]:
    """List the fields of a type that a schema would drop."""
    while "items" in schema or "additionalProperties" in schema:
        schema = schema.get("items") or schema["additionalProperties"]
    known = schema.get("properties", {})
    for name, annotation in fields_of(struct):
        if name == "metadata":
            continue
        if name not in known:
            yield f"{path}.{name}"
            continue
        for part in parts_in(annotation):
            yield from missing(part, known[name], f"{path}.{name}")


@pytest.mark.parametrize("struct", [HyperNode, Numatopology, PodGroup, Queue])
def test_every_field_the_scheduler_reads_is_kept(struct: Any) -> None:
    assert [*missing(struct, schema_of(struct.__name__), "")] == []


def manifests_in(folder: Any) -> Iterator[Any]:
    for path in sorted((ROOT / folder).rglob("*.yaml")):
        if path.parent.name == "lint":  # these are wrong on purpose
            continue
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if not isinstance(document, dict):  # a list of changes
                continue
            group = str(document.get("apiVersion", "")).partition("/")[0]
            if group in OURS:
                yield pytest.param(document, id=f"{path.name}-{document['metadata'].get('name')}")


@pytest.mark.parametrize("manifest", [*manifests_in("examples")])
def test_every_example_is_accepted(manifest: str) -> None:
    assert problems(DEFINITIONS, manifest) == []


ACCEPTED = {
    "a pod template as Go writes it": job(
        tasks=[
            {
                "replicas": 1,
                "template": {
                    "metadata": {"creationTimestamp": None, "labels": {"app": "x"}},
                    "spec": {
                        "hostUsers": False,
                        "containers": [
                            {
                                "name": "c",
                                "ports": [{"containerPort": 80}],
                                "resources": {"requests": {"cpu": 1, "memory": "1Gi"}},
                                "restartPolicyRules": [
                                    {"action": "Restart", "exitCodes": {"operator": "In"}}
                                ],
                            }
                        ],
                    },
                },
            }
        ]
    ),
    "policies of every form": job(
        policies=[
            {"event": "*", "action": "RestartJob"},
            {"events": ["PodFailed", "TaskFailed"], "action": "AbortJob", "timeout": "10m"},
            {"exitCode": -1, "action": "CompleteJob"},
        ]
    ),
    "a claim of a new kind": job(
        volumes=[{"mountPath": "/d", "volumeClaim": {"dataSourceRef": {"kind": "X", "name": "y"}}}]
    ),
    "amounts as numbers and texts": queue(
        weight=1,
        capability={"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": "2"},
        deserved={"cpu": "500m"},
        guarantee={"resource": {"cpu": "1e3", "memory": "0.5Gi"}},
    ),
    "a queue with everything": queue(
        parent="root",
        priority=3,
        reclaimable=False,
        dequeueStrategy="fifo",
        type="batch",
        extendClusters=[{"name": "far", "weight": 1, "capacity": {"cpu": 1}}],
        affinity={
            "nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["a"]},
            "nodeGroupAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": ["b"]},
        },
    ),
    "a part of the network": {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "s1"},
        "spec": {
            "tier": 1,
            "tierName": "rack",
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "node-1"}}},
                {"type": "Node", "selector": {"regexMatch": {"pattern": "^rack-.*"}}},
                {"type": "HyperNode", "selector": {"labelMatch": {"matchLabels": {"a": "b"}}}},
            ],
        },
    },
    "a flow with probes and a patch": {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "f"},
        "spec": {
            "jobRetainPolicy": "retain",
            "flows": [
                {
                    "name": "a",
                    "patch": {"jobSpec": {"queue": "fast"}},
                    "dependsOn": {
                        "targets": ["b"],
                        "probe": {
                            "httpGetList": [{"path": "/", "port": 80, "taskName": "t"}],
                            "tcpSocketList": [{"port": 22}],
                            "taskStatusList": [{"taskName": "t", "phase": "Running"}],
                        },
                    },
                }
            ],
        },
    },
}

REFUSED = {
    "a job without tasks": (job(tasks=[]), ".spec.tasks"),
    "a negative minAvailable": (job(minAvailable=-1), ".spec.minAvailable"),
    "a number as text": (job(minAvailable="two"), ".spec.minAvailable"),
    "an unknown event": (
        job(policies=[{"event": "PodVanished", "action": "AbortJob"}]),
        ".spec.policies[0].event",
    ),
    "a task name with capitals": (job(tasks=[{"name": "Worker"}]), ".spec.tasks[0].name"),
    "a nameless container": (
        job(tasks=[{"template": {"spec": {"containers": [{"image": "x"}]}}}]),
        ".spec.tasks[0].template.spec.containers[0].name",
    ),
    "an amount that is none": (
        job(
            tasks=[
                {
                    "template": {
                        "spec": {
                            "containers": [
                                {"name": "c", "resources": {"requests": {"cpu": "many"}}}
                            ]
                        }
                    }
                }
            ]
        ),
        ".spec.tasks[0].template.spec.containers[0].resources.requests.cpu",
    ),
    "a volume without a place": (
        job(volumes=[{"volumeClaimName": "c"}]),
        ".spec.volumes[0].mountPath",
    ),
    "a misspelt field": (job(minAvailabel=1), ".spec.minAvailabel"),
    "a misspelt field of a pod": (of_pods(hostNetwrok=True), f"{PODS}.spec.hostNetwrok"),
    "a misspelt field of a container": (
        of_pods(containers=[{"name": "c", "imagePullPolcy": "Always"}]),
        f"{PODS}.spec.containers[0].imagePullPolcy",
    ),
    "a misspelt field deep in a pod": (
        of_pods(volumes=[{"name": "v", "projected": {"sources": [{"configmap": {"name": "c"}}]}}]),
        f"{PODS}.spec.volumes[0].projected.sources[0].configmap",
    ),
    "a misspelt field of a pod's metadata": (
        job(tasks=[{"template": {"metadata": {"labelz": {"a": "b"}}}}]),
        f"{PODS}.metadata.labelz",
    ),
    "a misspelt field of a pod in a template": (
        {
            "apiVersion": "flow.volcano.sh/v1alpha1",
            "kind": "JobTemplate",
            "metadata": {"name": "t"},
            "spec": of_pods(tolerationz=[])["spec"],
        },
        f"{PODS}.spec.tolerationz",
    ),
    "a misspelt field of a pod in a cron job": (
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "CronJob",
            "metadata": {"name": "c"},
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {"spec": of_pods(affinityy={})["spec"]},
            },
        },
        PODS.replace(".spec", ".spec.jobTemplate.spec", 1) + ".spec.affinityy",
    ),
    "a weight of nothing": (queue(weight=0), ".spec.weight"),
    "a capability that is no amount": (queue(capability={"cpu": "lots"}), ".spec.capability.cpu"),
    "a strategy of one's own": (queue(dequeueStrategy="lifo"), ".spec.dequeueStrategy"),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_volcano_knows_is_accepted_whole(case: Any) -> None:
    assert problems(DEFINITIONS, ACCEPTED[case]) == []


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_refused_where_it_was_made(case: Any) -> None:
    manifest, path = REFUSED[case]
    assert [place for place, _ in problems(DEFINITIONS, manifest)] == [path]


def test_a_patch_of_a_flow_has_no_defaults() -> None:
    """Otherwise it would overwrite the template with unwritten values."""
    flows = schema_of("JobFlow")["properties"]["spec"]["properties"]["flows"]["items"]
    spec = flows["properties"]["patch"]["properties"]["jobSpec"]["properties"]
    assert [name for name, part in spec.items() if "default" in part] == []


def test_a_job_has_the_defaults_of_volcano() -> None:
    spec = schema_of("Job")["properties"]["spec"]["properties"]
    assert {name: part["default"] for name, part in spec.items() if "default" in part} == {
        "maxRetry": 3,
        "queue": "default",
    }


LARGEST = 100_000
"""Characters; kubectl apply keeps what was applied in an annotation, which may have 256 KiB."""


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one["metadata"]["name"])
def test_a_definition_is_of_a_sane_size(definition: Any) -> None:
    assert len(json.dumps(definition, separators=(",", ":"))) < LARGEST
