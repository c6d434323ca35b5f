"""Containers that are resized in place hold the larger of what is asked and what is reported."""

from typing import Any

import pytest

from pumice.api.objects import from_manifest
from pumice.api.pods import Pod
from pumice.errors import ManifestError


def amounts(cpu: str) -> dict[str, str]:
    return {"cpu": cpu, "memory": "1Gi"}


def resized(status: Any, init: Any = ()) -> Pod:
    main = {"name": "main", "resources": {"requests": amounts("1"), "limits": amounts("2")}}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [main], "initContainers": list(init), "nodeName": "n"},
        "status": {"phase": "Running", **status},
    }
    made = from_manifest(manifest)
    assert isinstance(made, Pod)
    return made


def told(name: str, cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": amounts(cpu), **more}}


def test_what_a_kubelet_reports_is_in_the_containers_and_nowhere_else() -> None:
    status = {"containerStatuses": [told("main", "3", limits=amounts("4"))]}
    pod = resized(status)
    assert pod.spec.containers[0].resources.requests == amounts("3")
    assert pod.spec.containers[0].resources.limits == amounts("4")
    assert pod.status == resized({}).status


@pytest.mark.parametrize(
    "report",
    [
        told("main", "1", limits=amounts("2")),
        told("main", "500m"),
        told("other", "3"),
        {"name": "main", "allocatedResources": amounts("3")},
        {"name": "main", "resources": None},
        {"name": "main", "resources": {}},
    ],
)
def test_a_report_of_nothing_more_changes_nothing(report: Any) -> None:
    assert resized({"containerStatuses": [report]}) == resized({})
    assert resized({"containerStatuses": None}) == resized({})


@pytest.mark.parametrize(("policy", "cpu"), [("Always", "3"), (None, "1")])
def test_of_init_containers_only_sidecars_are_resized(policy: Any, cpu: str) -> None:
    init = {"name": "i", "resources": {"requests": amounts("1")}, "restartPolicy": policy}
    pod = resized({"initContainerStatuses": [told("i", "3")]}, init=[init])
    assert pod.spec.init_containers[0].resources.requests == amounts(cpu)


@pytest.mark.parametrize(
    ("conditions", "cpu"),
    [
        ([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}], "500m"),
        ([{"type": "PodResizePending", "status": "True", "reason": "Deferred"}], "1"),
        ([{"type": "PodResizeInProgress", "status": "True", "reason": "Infeasible"}], "1"),
    ],
)
def test_a_refused_resize_counts_as_reported(conditions: Any, cpu: str) -> None:
    status = {"containerStatuses": [told("main", "500m")], "conditions": conditions}
    assert resized(status).spec.containers[0].resources.requests == amounts(cpu)


def test_a_report_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ManifestError, match="many"):
        resized({"containerStatuses": [told("main", "many")]})
