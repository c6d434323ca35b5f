"""What pods use, as quotas count it."""

from typing import Any

import pytest

from pumice.api.pod_resources import pods_usage


def container(requests: Any = None, limits: Any = None, **more: Any) -> Any:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def usage(n_pods: Any = 1, **spec: Any) -> Any:
    found = pods_usage([(spec, n_pods)])
    return {name: text for name, text in found.items() if name not in ("pods", "count/pods")}


def test_requests_count_twice_limits_under_their_own_name() -> None:
    spec = [container({"cpu": "1", "memory": "1Gi"}, {"cpu": "2"})]
    assert usage(containers=spec) == {
        "cpu": "1",
        "requests.cpu": "1",
        "memory": "1Gi",
        "requests.memory": "1Gi",
        "limits.cpu": "2",
    }


def test_extended_resources_count_with_and_without_prefix_but_not_as_limits() -> None:
    gpu = {"nvidia.com/gpu": "2"}
    assert usage(2, containers=[container(gpu, gpu)]) == {
        "nvidia.com/gpu": "4",
        "requests.nvidia.com/gpu": "4",
    }


@pytest.mark.parametrize(
    ("written", "thrice"),
    [
        ("32Mi", "96Mi"),
        ("1Gi", "3Gi"),
        ("512Mi", "1536Mi"),
        ("128M", "384M"),
        ("1000000", "3M"),
        ("250m", "750m"),
        ("0.5", "1500m"),
        ("100Gi", "300Gi"),
        ("0", "0"),
        ("1Ki", "3Ki"),
    ],
)
def test_an_amount_keeps_the_way_it_is_written(written: str, thrice: str) -> None:
    assert usage(3, containers=[container({"memory": written})])["memory"] == thrice


def test_an_init_container_counts_where_it_needs_more_and_a_sidecar_always() -> None:
    found = usage(
        containers=[container({"cpu": "1"})],
        initContainers=[
            container({"cpu": "500m"}, restartPolicy="Always"),
            container({"cpu": "2"}),
        ],
        overhead={"cpu": "100m"},
    )
    assert found["cpu"] == "2600m"


def test_overhead_adds_to_limits_only_where_there_are_some() -> None:
    spec = [container({"cpu": "1"}, {"cpu": "1"})]
    found = usage(containers=spec, overhead={"cpu": "100m", "memory": "1Mi"})
    assert (found["limits.cpu"], "limits.memory" in found) == ("1100m", False)


def test_a_pod_that_asks_as_a_whole_counts_as_a_whole() -> None:
    spec = [container({"cpu": "1", "nvidia.com/gpu": "1"}, {"cpu": "2"}), container({"cpu": "1"})]
    whole = {"requests": {"cpu": "3"}, "limits": {"cpu": "4", "memory": "2Gi"}}
    assert usage(2, containers=spec, resources=whole, overhead={"cpu": "500m"}) == {
        "cpu": "7",
        "requests.cpu": "7",
        "nvidia.com/gpu": "2",
        "requests.nvidia.com/gpu": "2",
        "limits.cpu": "9",
        "limits.memory": "4Gi",
    }
