"""CustomMetricsUsage: load from the custom metrics API, as Prometheus' adapter serves it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pumice.api.objects import Node
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.credentials import StaticCredentials
from pumice.cluster.usage import usage_source
from pumice.cluster.usage.api_server import ApiServer
from pumice.errors import HttpError
from pumice.testing import node
from tests.present import read_as
from tests.unit.cluster.servers import serving

NOW = 1_768_471_200.0  # 2026-01-15T10:00:00Z
NODES = [read_as(Node, node(name)) for name in ("n1", "n2", "n3")]
CPU, MEMORY = "node_cpu_usage_avg", "node_memory_usage_avg"


def value(name: Any, amount: Any, when: Any = "2026-01-15T09:59:30Z") -> Any:
    described = {"kind": "Node", "name": name, "apiVersion": "/v1"}
    return {"describedObject": described, "timestamp": when, "value": amount}


@contextmanager
def adapter(cpu: Any, memory: Any, version: str = "v1beta2") -> Iterator[Any]:
    """Serve the API in one version, as an API server does for the adapter behind it."""
    base = f"/apis/custom.metrics.k8s.io/{version}/nodes/*"
    items = {f"{base}/{CPU}": cpu, f"{base}/{MEMORY}": memory}

    def answer(path: str, _headers: Any) -> tuple[int, bytes]:
        if path not in items:
            status = {"kind": "Status", "code": 404, "message": "the server could not find it"}
            return 404, json.dumps(status).encode()
        return 200, json.dumps({"kind": "MetricValueList", "items": items[path]}).encode()

    with serving(answer) as server:
        yield server


def read(cpu: Any, memory: Any, version: str = "v1beta2") -> Any:
    with adapter(cpu, memory, version) as server:
        source = usage_source({"type": "prometheus_adaptor", "address": server.url, "token": "t"})
        found = source.read(NODES, NOW)
        assert {headers["Authorization"] for _, headers, _ in server.asked} == {"Bearer t"}
        return found


def test_parts_of_one_become_percent_and_the_older_sample_dates_both() -> None:
    cpu = [value("n1", "450m"), value("n2", "1"), value("other", "junk")]
    memory = [value("n1", "250m", "2026-01-15T09:58:00Z"), value("n2", "62500u")]
    assert read(cpu, memory) == {
        "n1": {"cpu": 45.0, "memory": 25.0, "metricsTime": NOW - 120},
        "n2": {"cpu": 100.0, "memory": 6.25, "metricsTime": NOW - 30},
    }


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_the_version_that_the_server_has_is_found_once(version: str) -> None:
    with adapter([value("n1", "1")], [value("n1", "1")], version) as server:
        source = usage_source({"type": "prometheus_adaptor", "address": server.url})
        assert [list(source.read(NODES, NOW)) for _ in range(2)] == [["n1"], ["n1"]]
        assert len(server.asked) == 4 + (version == "v1beta1")


def test_a_server_without_the_api_is_an_error() -> None:
    with pytest.raises(HttpError, match="status 404, 'the server could not find it'"):
        read([], [], "v3")


@pytest.mark.parametrize(
    "bad", [value("n2", "much"), value("n2", 1), value("n2", "20"), value("n2", "1", 5), {}, None]
)
def test_a_bad_value_hurts_only_its_node(bad: Any, caplog: pytest.LogCaptureFixture) -> None:
    good = [value("n1", "1"), value("n3", "1")]
    assert sorted(read([*good, bad], [*good, value("n2", "1")])) == ["n1", "n3"]
    assert "left out 1 samples" in caplog.text


@pytest.mark.parametrize("items", [None, {}, "junk"])
def test_an_answer_without_values_is_an_error(items: Any) -> None:
    with pytest.raises(HttpError, match=f"wanted values of {CPU}, found"):
        read(items, [])


def test_without_an_address_the_api_server_of_the_cluster_is_asked_as_who_one_is() -> None:
    with adapter([value("n1", "500m")], [value("n1", "250m")], "v1beta1") as server:
        connection = Connection(server.url, credentials=StaticCredentials("Bearer mine"))
        with KubeCluster(connection) as cluster:
            source = usage_source(
                {"type": "prometheus_adapt", "timeout": "5s"},
                lambda timeout_s: ApiServer(cluster, timeout_s),
            )
            usage = {"cpu": 50.0, "memory": 25.0, "metricsTime": NOW - 30}
            assert source.read(NODES, NOW) == {"n1": usage}
        assert {headers["Authorization"] for _, headers, _ in server.asked} == {"Bearer mine"}


def test_the_answers_of_the_api_server_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.cluster.usage.api_server.MAX_ANSWER", 100)
    with adapter([value("n1", "1")] * 9, []) as server, KubeCluster(Connection(server.url)) as own:
        source = usage_source(
            {"type": "prometheus_adaptor"}, lambda timeout_s: ApiServer(own, timeout_s)
        )
        with pytest.raises(HttpError, match="100"):
            source.read(NODES, NOW)
