"""What a pod amounts to: containers, the pod as a whole, overhead, and what limits fill in."""

from typing import Any

import pytest

from pumice.api.pod_resources import asked_amounts, default_requests, pod_amounts
from pumice.api.quantity import amount


def container(requests: Any = None, limits: Any = None, **more: Any) -> dict[str, Any]:
    given = {"requests": requests, "limits": limits}
    return {"name": "c", "resources": {k: v for k, v in given.items() if v}, **more}


def texts(spec: Any, side: Any) -> dict[str, str]:
    return {name: str(each) for name, each in pod_amounts(spec, side).items()}


@pytest.mark.parametrize(
    ("whole", "requests"),
    [
        ({}, {"cpu": "2250m", "memory": "1Gi", "nvidia.com/gpu": "1"}),
        ({"cpu": "8"}, {"cpu": "8250m", "memory": "1Gi", "nvidia.com/gpu": "1"}),
        ({"cpu": "1", "memory": "3Gi"}, {"cpu": "1250m", "memory": "3Gi", "nvidia.com/gpu": "1"}),
        ({"nvidia.com/gpu": "5"}, {"cpu": "2250m", "memory": "1Gi", "nvidia.com/gpu": "1"}),
    ],
)
def test_what_a_pod_states_replaces_the_sum_of_its_containers(whole: Any, requests: Any) -> None:
    spec = {
        "containers": [container({"cpu": "1", "memory": "1Gi"}), container({"nvidia.com/gpu": 1})],
        "initContainers": [container({"cpu": 1}, restartPolicy="Always"), container({"cpu": "1"})],
        "resources": {"requests": whole},
        "overhead": {"cpu": "250m"},
    }
    assert texts(spec, "requests") == requests


def test_overhead_comes_on_top_of_limits_there_are() -> None:
    spec = {
        "containers": [container(limits={"cpu": "1"}), container(limits={"memory": "0"})],
        "overhead": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"},
    }
    assert texts(spec, "limits") == {"cpu": "2", "memory": "0"}


def test_the_larger_amount_keeps_its_spelling() -> None:
    spec = {
        "containers": [container({"memory": "1Gi"})],
        "initContainers": [container({"memory": "2G"})],
    }
    assert texts(spec, "requests") == {"memory": "2G"}


FILLED: dict[str, tuple[Any, Any, Any]] = {
    "a container asks for its limits": (
        {"containers": [container({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"})]},
        [{"cpu": "1", "memory": "1Gi"}],
        None,
    ),
    "a pod asks for what its containers ask for, and else for its limits": (
        {
            "containers": [container({"cpu": "1"}), container({"cpu": "500m"})],
            "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
        },
        [{"cpu": "1"}, {"cpu": "500m"}],
        {"cpu": "1500m", "memory": "1Gi"},
    ),
    "what a pod asks for stays": (
        {
            "containers": [container({"memory": "1Gi"})],
            "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}},
        },
        [{"memory": "1Gi"}],
        {"cpu": "3", "memory": "1Gi"},
    ),
    "without limits of the pod nothing is filled in": (
        {"containers": [container({"cpu": "1"})], "resources": {"requests": {"memory": "1Gi"}}},
        [{"cpu": "1"}],
        {"memory": "1Gi"},
    ),
    "huge pages of containers are the pod's": (
        {
            "containers": [container({}, {"hugepages-2Mi": "4Mi"})] * 2,
            "resources": {"requests": {"cpu": "1"}},
        },
        [{"hugepages-2Mi": "4Mi"}] * 2,
        {"cpu": "1", "hugepages-2Mi": "8Mi"},
    ),
}


@pytest.mark.parametrize("name", FILLED)
def test_requests_follow_from_limits(name: str) -> None:
    spec, containers, whole = FILLED[name]
    default_requests(spec, amount)
    assert [each["resources"]["requests"] for each in spec["containers"]] == containers
    assert (spec.get("resources") or {}).get("requests") == whole


def test_what_a_pod_asks_for_follows_from_limits_and_leaves_its_spec_as_it_was() -> None:
    spec = {
        "containers": [container({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"})],
        "initContainers": [container(limits={"cpu": "3"})],
        "overhead": {"cpu": "250m"},
    }
    before = repr(spec)
    asked = {name: str(each) for name, each in asked_amounts(spec).items()}
    assert asked == {"cpu": "3250m", "memory": "1Gi"}
    assert repr(spec) == before
