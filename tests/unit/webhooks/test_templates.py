"""Kubernetes' rules for pod templates, with its messages."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.webhooks.go_types import decode
from pumice.webhooks.pods.template import TemplateChecks, check_pod

CONTAINER = {"name": "main", "image": "busybox"}


def findings(spec: Any = None, metadata: Any = None, name: str = "worker", **container: Any) -> Any:
    """Check a template of one container."""
    pod = {"containers": [{**CONTAINER, **container}], **(spec or {})}
    template = decode({"metadata": metadata or {}, "spec": pod}, "v1.PodTemplateSpec")
    return [str(one) for one in TemplateChecks().errors(template, name=name, namespace="default")]


AT = "template.spec.containers[0]"
MESSAGES = yaml.safe_load((Path(__file__).parent / "template_messages.yaml").read_text("utf-8"))


def test_a_plain_template_is_fine_and_is_not_changed() -> None:
    template = decode({"spec": {"containers": [CONTAINER]}}, "v1.PodTemplateSpec")
    before = copy.deepcopy(template)
    assert list(TemplateChecks().errors(template, name="worker", namespace="default")) == []
    assert template == before


@pytest.mark.parametrize("source", ["flocker", "quobyte", "storageos"])
def test_a_source_that_kubernetes_no_longer_mounts_is_a_source_without_rules(source: str) -> None:
    assert findings({"volumes": [{"name": "a", source: {}}]}) == []
    [found] = findings({"volumes": [{"name": "a", source: {}, "emptyDir": {}}]})
    assert found.endswith("may not specify more than 1 volume type")


@pytest.mark.parametrize("row", MESSAGES["containers"], ids=lambda row: row["message"][:40])
def test_a_container_breaks_a_rule(row: Any) -> None:
    spec = {"containers": [{**CONTAINER, **row["fields"]}]}
    assert f"{AT}.{row['message']}" in findings(spec)


@pytest.mark.parametrize("row", MESSAGES["pods"], ids=lambda row: row["message"][:40])
def test_a_pod_breaks_a_rule(row: Any) -> None:
    assert f"template.spec.{row['message']}" in findings(row["fields"])


def test_ports_on_the_hosts_network_must_be_the_same() -> None:
    ports = [{"containerPort": 80, "hostPort": 81}, {"containerPort": 90}]
    text = "must match `containerPort` when `hostNetwork` is true"
    wanted = f"{AT}.ports[0].hostPort: Invalid value: 81: {text}"
    assert findings({"hostNetwork": True}, ports=ports) == [wanted]


def test_labels_and_annotations_are_named_without_metadata() -> None:
    bad = findings(metadata={"labels": {"a": "v v"}, "annotations": {"A b": "x"}})
    assert [one.partition(":")[0] for one in bad] == ["template.labels", "template.annotations"]


def test_an_empty_volume_an_image_with_a_blank_and_a_negative_grace_pass() -> None:
    spec = {"volumes": [{"name": "v"}], "terminationGracePeriodSeconds": -1}
    mounts = [{"name": "v", "mountPath": "rel"}]
    assert findings(spec, image=" busybox", volumeMounts=mounts) == []


def test_a_pod_is_checked_more_strictly_than_a_template() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"nodeName": "n", "schedulingGates": [{"name": "g"}],
                 "containers": [CONTAINER | {"image": " x"}]},
    }  # fmt: skip
    image = "must not have leading or trailing whitespace"
    assert [str(one) for one in check_pod(decode(pod, "v1.Pod"))] == [
        f'spec.containers[0].image: Invalid value: " x": {image}',
        "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    ]


def test_the_name_of_the_task_must_be_a_name() -> None:
    assert findings(name="Bad")[0].startswith('metadata.name: Invalid value: "Bad"')


def test_claims_of_ephemeral_volumes_are_checked() -> None:
    claim = {"spec": {"accessModes": ["Some"], "resources": {"requests": {"storage": "0"}}}}
    volume = {"name": "a", "ephemeral": {"volumeClaimTemplate": claim}}
    at = "template.spec.volumes[0].ephemeral.volumeClaimTemplate.spec"
    modes = '"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'
    assert findings({"volumes": [volume]}) == [
        f'{at}.accessModes: Unsupported value: "Some": supported values: {modes}',
        f'{at}.resources[storage]: Invalid value: "0": must be greater than zero',
    ]


def test_sources_of_a_projected_volume_must_not_overlap() -> None:
    items = [{"key": "k", "path": "same"}]
    sources = [
        {"secret": {"name": "s", "items": items}},
        {"configMap": {"name": "c", "items": items}},
    ]
    found = findings({"volumes": [{"name": "a", "projected": {"sources": sources}}]})
    assert found == [
        'template.spec.volumes[0].projected: Invalid value: "c": conflicting duplicate paths'
    ]


def test_what_does_not_exist_on_windows_is_refused_there() -> None:
    spec = {"os": {"name": "windows"}, "hostPID": True, "securityContext": {"runAsUser": 1}}
    assert findings(spec, securityContext={"privileged": True}) == [
        "template.spec.hostPID: Forbidden: cannot be set for a windows pod",
        "template.spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
        f"{AT}.securityContext.privileged: Forbidden: cannot be set for a windows pod",
    ]
