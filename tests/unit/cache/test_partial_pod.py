"""What is read of a pod that cannot be read as a whole."""

from typing import Any

import pytest

from pumice.api.objects import Pod
from pumice.cache.partial_pod import is_partial, partial_pod
from pumice.testing import pod
from tests.present import present, read_as


def test_place_marks_and_requests_are_read_and_the_rest_is_left_out() -> None:
    manifest = pod(
        "p", cpu=2, resources={"x.org/a": 1}, node="n", group="g", labels={"a": "b"}, priority=7
    )
    manifest["spec"]["tolerations"] = [{"operator": "Resembles"}]
    found = present(partial_pod(manifest))
    assert is_partial(found)
    assert (found.metadata.name, found.metadata.labels) == ("p", {"a": "b"})
    assert found.metadata.annotations == {"scheduling.k8s.io/group-name": "g"}
    assert (found.spec.node_name, found.spec.priority) == ("n", 7)
    assert found.spec.containers[0].resources.requests == {"cpu": "2", "x.org/a": "1"}
    assert found.status.phase == "Running"


def test_what_it_asks_for_as_a_whole_is_read() -> None:
    manifest = pod("p", cpu=2, node="n")
    manifest["spec"]["resources"] = {"requests": {"cpu": "5", "memory": "much"}}
    manifest["spec"]["tolerations"] = [{"operator": "Resembles"}]
    found = present(partial_pod(manifest))
    assert present(found.spec.resources).requests == {"cpu": "5"}


def test_a_pod_that_was_read_is_glimpsed_at_alike() -> None:
    manifest = pod("p", cpu=2, node="n", group="g")
    read = read_as(Pod, manifest)
    assert partial_pod(read) == partial_pod(manifest)
    assert not is_partial(read)


@pytest.mark.parametrize(
    "requests", [{"cpu": "lots"}, {"cpu": []}, {"cpu": "-1"}, {3: 4}, [], None, {"x/\ud800": 1}]
)
def test_amounts_that_cannot_be_read_do_not_count(requests: Any) -> None:
    container = {"resources": {"requests": requests}}
    spec = {"containers": [container, None, 3], "initContainers": "no", "overhead": {"cpu": 1}}
    metadata = {"name": "p", "labels": {"a": 1}}
    found = present(partial_pod({"metadata": metadata, "spec": spec, "status": 1}))
    assert [each.resources.requests for each in found.spec.containers] == [{}, {}, {}]
    assert found.spec.overhead == {"cpu": 1}


@pytest.mark.parametrize("manifest", [{}, {"metadata": None}, {"metadata": {"name": ""}}])
def test_without_a_name_there_is_nothing_to_see(manifest: Any) -> None:
    assert partial_pod(manifest) is None


def test_sidecars_and_deletion_are_read() -> None:
    manifest = pod("p", cpu=2, node="n")
    policies = ["Always", "OnFailure", None]
    manifest["spec"]["initContainers"] = [{"restartPolicy": each} for each in policies]
    manifest["metadata"] |= {"namespace": "ns", "uid": "u", "resourceVersion": "7"}
    found = present(partial_pod(manifest))
    assert [each.restart_policy for each in found.spec.init_containers] == ["Always", "", ""]
    meta = found.metadata
    assert (meta.namespace, meta.uid, meta.resource_version) == ("ns", "u", "7")
    assert not meta.deletion_timestamp
    manifest["metadata"]["deletionTimestamp"] = "soon"
    assert present(partial_pod(manifest)).metadata.deletion_timestamp


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (7, 7),
        (-(2**31), -(2**31)),
        (-(2**31) - 1, None),
        (2**31 - 1, 2**31 - 1),
        (2**31, None),
        ("7", None),
        (None, None),
    ],
)
def test_a_priority_has_32_bits(given: Any, read: int | None) -> None:
    manifest = pod("p", cpu=2, node="n")
    manifest["spec"]["priority"] = given
    assert present(partial_pod(manifest)).spec.priority == read


def test_only_texts_are_labels_and_annotations() -> None:
    manifest = pod("p", node="n", annotations={"volcano.sh/preemptable": "true", "other": "x"})
    manifest["metadata"]["labels"] = {"a": "b", "c": 1, 2: "d"}
    found = present(partial_pod(manifest))
    assert found.metadata.labels == {"a": "b"}
    assert found.metadata.annotations == {"volcano.sh/preemptable": "true"}
