"""MetricsServerUsage: percent of capacity from the resource metrics API."""

import json
from contextlib import closing
from typing import Any

import pytest

from pumice.api.objects import Node
from pumice.cluster.usage import Endpoint, MetricsServerUsage
from pumice.errors import HttpError
from pumice.testing import node
from tests.present import read_as
from tests.unit.cluster.servers import saying, serving

NOW = 1_768_471_200.0  # 2026-01-15T10:00:00Z
NODES = [read_as(Node, node(name, cpu=4, memory="8Gi")) for name in ("n1", "n2", "n3")]


def item(name: Any, cpu: Any = "1", memory: str = "2Gi", when: Any = "2026-01-15T09:59:30Z") -> Any:
    usage = {"cpu": cpu, "memory": memory}
    return {"metadata": {"name": name}, "timestamp": when, "window": "20s", "usage": usage}


def read(*items: Any, nodes: Any = NODES) -> Any:
    return answered({"kind": "NodeMetricsList", "items": items}, nodes)


def answered(answer: Any, nodes: Any = NODES) -> Any:
    content = json.dumps(answer).encode()
    with (
        serving(lambda *_: (200, content)) as server,
        closing(Endpoint(server.url, timeout_s=5.0, token="t")) as endpoint,  # noqa: S106
    ):
        found = MetricsServerUsage(endpoint).read(nodes, NOW)
        for path, headers, _ in server.asked:
            assert path == "/apis/metrics.k8s.io/v1beta1/nodes"
            assert headers["Authorization"] == "Bearer t"
        return found


def test_usage_is_percent_of_the_capacity_and_as_old_as_it_says() -> None:
    assert read(item("n1"), item("n2", "500000000n", "8388608Ki")) == {
        "n1": {"cpu": 25.0, "memory": 25.0, "metricsTime": NOW - 30},
        "n2": {"cpu": 12.5, "memory": 100.0, "metricsTime": NOW - 30},
    }


def test_capacity_counts_not_what_pods_may_use() -> None:
    manifest = node("n1", cpu=4, memory="8Gi")
    manifest["status"]["allocatable"] = {"cpu": "1", "memory": "1Gi"}
    assert read(item("n1"), nodes=[read_as(Node, manifest)])["n1"]["cpu"] == 25.0


def test_a_clock_that_is_ahead_does_not_keep_a_measurement_fresh() -> None:
    assert read(item("n1", when="2027-01-01T00:00:00Z"))["n1"]["metricsTime"] == NOW


def test_nodes_that_nobody_asked_for_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    assert list(read(item("n9", cpu="junk"), item("n1"))) == ["n1"]
    assert caplog.records == []


BAD = [
    item("n2", cpu="junk"), item("n2", cpu="-1"), item("n2", cpu="NaN"), item("n2", cpu=""),
    item("n2", cpu=1), item("n2", cpu=None), item("n2", cpu=["1"]), item("n2", memory="8GB"),
    item("n2", cpu="1E"), item("n2", when="yesterday"), item("n2", when=None), item("n2", when=5),
    item("n2", when="2026-02-31T00:00:00Z"), {"metadata": {"name": "n2"}},
    {"metadata": {"name": "n2"}, "timestamp": "2026-01-15T09:59:30Z", "usage": {"cpu": "1"}},
    {"metadata": {"name": "n2"}, "usage": "1"}, {"metadata": {"name": 2}}, {"metadata": "n2"},
    {}, "junk", None, 5, [],
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=[str(i) for i in range(len(BAD))])
def test_a_bad_item_hurts_only_its_node_and_is_reported_in_one_line(
    bad: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert sorted(read(item("n1"), bad, item("n3"))) == ["n1", "n3"]
    (record,) = caplog.records
    assert "left out 1 samples that cannot be used, the first of" in record.getMessage()


@pytest.mark.parametrize("capacity", [{}, {"cpu": "4"}, {"cpu": "0", "memory": "8Gi"}])
def test_a_node_without_capacity_is_not_measured(capacity: Any) -> None:
    manifest = node("n1")
    manifest["status"]["capacity"] = capacity
    assert list(read(item("n1"), item("n2"), nodes=[read_as(Node, manifest), *NODES[1:]])) == ["n2"]


@pytest.mark.parametrize("items", [None, {}, "x", 5])
def test_an_answer_without_items_is_an_error(items: Any) -> None:
    with pytest.raises(HttpError, match=r"wanted a list of node metrics, found \{"):
        answered({"items": items})


def test_without_nodes_nothing_is_asked() -> None:
    with closing(Endpoint("http://127.0.0.1:1")) as endpoint:
        assert MetricsServerUsage(endpoint).read([], NOW) == {}


def test_an_api_server_without_metrics_says_so() -> None:
    missing = b'{"kind": "Status", "message": "the server could not find the requested resource"}'
    with (
        serving(lambda *_: (404, missing)) as server,
        closing(Endpoint(server.url)) as endpoint,
        pytest.raises(HttpError, match="status 404, 'the server could not find"),
    ):
        MetricsServerUsage(endpoint).read(NODES, NOW)


def test_a_server_that_hangs_costs_one_timeout() -> None:
    with (
        saying(hang=True) as url,
        closing(Endpoint(url, timeout_s=0.1)) as endpoint,
        pytest.raises(HttpError, match="no answer in time"),
    ):
        MetricsServerUsage(endpoint).read(NODES, NOW)
