"""Faults in objects: the field, what was found there and what was wanted."""

from typing import Any

import pytest

from pumice.api.decode import spell_path
from pumice.api.objects import from_manifest
from pumice.errors import ABSENT, ManifestError

SCHEDULING = "scheduling.volcano.sh/v1beta1"


def manifest(kind: Any, api_version: Any, **fields: Any) -> Any:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def pod_with(**spec: Any) -> Any:
    return manifest("Pod", "v1", spec=spec)


REFUSED = {
    "no object at all": ([], "", [], "an object with apiVersion and kind"),
    "no kind": ({"apiVersion": "v1"}, "kind", ABSENT, "a non-empty string"),
    "an empty version": ({"apiVersion": "", "kind": "Pod"}, "apiVersion", "", "a non-empty string"),
    "no metadata": ({"apiVersion": "v1", "kind": "Pod"}, "metadata", ABSENT, "a mapping"),
    "no name": (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {}},
        "metadata.name",
        ABSENT,
        "a non-empty string",
    ),
    "an empty name": (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ""}},
        "metadata.name",
        "",
        "a non-empty string",
    ),
    "a label that is a number": (
        manifest("Pod", "v1", metadata={"name": "x", "labels": {"a": "b", "c": 1}}),
        "metadata.labels.c",
        1,
        "a string",
    ),
    "a label key that is a number": (
        manifest("Pod", "v1", metadata={"name": "x", "labels": {1: "b"}}),
        "metadata.labels",
        1,
        "a string as key",
    ),
    "a time that is none": (
        manifest("Pod", "v1", metadata={"name": "x", "creationTimestamp": "now"}),
        "metadata.creationTimestamp",
        "now",
        "an RFC 3339 time",
    ),
    "a request that is no quantity": (
        pod_with(containers=[{}, {"resources": {"requests": {"nvidia.com/gpu": "two"}}}]),
        "spec.containers[1].resources.requests[nvidia.com/gpu]",
        "two",
        "a quantity",
    ),
    "a request that is a list": (
        pod_with(initContainers=[{"resources": {"limits": {"cpu": "1", "memory": [1]}}}]),
        "spec.initContainers[0].resources.limits.memory",
        [1],
        "a string or an integer or a number",
    ),
    "an unknown operator": (
        pod_with(tolerations=[{"operator": "Exist"}]),
        "spec.tolerations[0].operator",
        "Exist",
        "one of Equal, Exists, Gt, Lt",
    ),
    "a required field left out": (
        pod_with(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z"}]),
        "spec.topologySpreadConstraints[0].whenUnsatisfiable",
        ABSENT,
        "one of DoNotSchedule, ScheduleAnyway",
    ),
    "a priority beyond 32 bits": (
        pod_with(priority=2**31),
        "spec.priority",
        2**31,
        "an integer from -2147483648 to 2147483647",
    ),
    "a mapping for a list": (pod_with(containers={}), "spec.containers", {}, "a list"),
    "a text for a yes or no": (
        manifest("Node", "v1", spec={"unschedulable": "yes"}),
        "spec.unschedulable",
        "yes",
        "true or false",
    ),
    "a member number beyond 32 bits": (
        manifest("PodGroup", SCHEDULING, spec={"minTaskMember": {"ps": 1, "worker": 2**40}}),
        "spec.minTaskMember.worker",
        2**40,
        "an integer from",
    ),
    "a wrong value inside a mapping of mappings": (
        manifest(
            "Numatopology",
            "nodeinfo.volcano.sh/v1alpha1",
            spec={"cpuDetail": {"0": {"numa": 0}, "1": {"numa": "x"}}},
        ),
        "spec.cpuDetail.1.numa",
        "x",
        "an integer",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_wrong_field_is_named_with_what_was_found_and_wanted(what: Any) -> None:
    given, field, found, wanted = REFUSED[what]
    with pytest.raises(ManifestError) as caught:
        from_manifest(given, source="pods.yaml")
    error = caught.value
    assert (field, found, "pods.yaml") == (error.field, error.found, error.file)
    assert error.wanted.startswith(wanted)


def test_an_error_names_the_object() -> None:
    given = manifest("Pod", "v1", metadata={"name": "p", "namespace": "ns", "uid": 5})
    with pytest.raises(ManifestError) as caught:
        from_manifest(given, source="pods.yaml:7")
    assert str(caught.value) == (
        "pods.yaml:7: Pod ns/p: metadata.uid: expected a string, got 5 (put it in quotes)"
    )


@pytest.mark.parametrize(
    ("version", "kind", "hint"),
    [
        ("v1", "pod", "did you mean Pod?"),
        ("v1", "PodGrup", "did you mean PodGroup?"),
        ("apps/v1", "Xyz", "known: CSIDriver"),
    ],
)
def test_an_unknown_kind_suggests_the_nearest(version: str, kind: str, hint: str) -> None:
    with pytest.raises(ManifestError) as caught:
        from_manifest(manifest(kind, version))
    assert caught.value.hint.startswith(hint)


def test_a_known_kind_of_another_version_is_refused_with_the_right_one() -> None:
    with pytest.raises(ManifestError) as caught:
        from_manifest(manifest("Queue", "scheduling.volcano.sh/v1alpha1"))
    assert caught.value.field == "apiVersion"
    assert caught.value.wanted == "Queue of scheduling.volcano.sh/v1beta1"


def test_a_path_is_spelled_as_kubernetes_spells_it() -> None:
    path = ("spec", "containers", 0, "resources", "requests", "example.com/gpu")
    assert spell_path(path) == "spec.containers[0].resources.requests[example.com/gpu]"


def test_the_path_leads_to_the_fault() -> None:
    with pytest.raises(ManifestError) as caught:
        from_manifest(pod_with(containers=[{"ports": [{"hostPort": "http"}]}]))
    assert caught.value.path == ("spec", "containers", 0, "ports", 0, "hostPort")
