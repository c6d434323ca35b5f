"""ElasticsearchUsage: averages by host, from a server that evaluates the search it is sent."""

import base64
import json
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from pumice.api.objects import Node
from pumice.cluster.usage import ElasticsearchUsage, Endpoint, usage_source
from pumice.errors import HttpError
from pumice.testing import node
from tests.present import read_as
from tests.unit.cluster.servers import CA_FILE, saying, serving

NOW = 1_768_471_200.0
NODES = [read_as(Node, node(name)) for name in ("n1", "n2", "n3")]


def document(
    host: str, cpu: Any = 0.5, mem: Any = 0.25, age_s: float = 30.0, agent: str = ""
) -> Any:
    fields = {"host.hostname": host, "@timestamp": NOW - age_s, "agent.name": agent}
    measured = {"host.cpu.usage": cpu, "system.memory.actual.used.pct": mem}
    return fields | {key: value for key, value in measured.items() if value is not None}


def search(documents: list[Any], question: Any) -> dict[str, Any]:
    """Evaluate as much of the query language as a search for load uses."""
    recent, hosts = question["query"]["bool"]["filter"]
    within = re.fullmatch(r"now-(\d+)s", recent["range"]["@timestamp"]["gte"])
    assert within is not None
    assert recent["range"]["@timestamp"]["lt"] == "now"
    ((host_field, wanted),) = hosts["terms"].items()
    found = [
        one
        for one in documents
        if one["@timestamp"] >= NOW - int(within[1]) and one.get(host_field) in wanted
    ]
    (group,) = question["aggs"].items()
    name, rule = group
    keys = sorted({one[rule["terms"]["field"]] for one in found})[: rule["terms"]["size"]]
    buckets = [
        {"key": key, **_metrics([d for d in found if d[host_field] == key], rule["aggs"])}
        for key in keys
    ]
    answer = {"took": 3, "timed_out": False, "aggregations": {name: {"buckets": buckets}}}
    return answer if question["size"] == 0 else {}


def _metrics(documents: list[Any], rules: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"doc_count": len(documents)}
    for name, rule in rules.items():
        ((how, field),) = ((how, one["field"]) for how, one in rule.items())
        values = [one[field] for one in documents if field in one]
        if how == "max":
            out[name] = {"value": max(values) * 1000 if values else None}
        else:
            assert how == "avg"
            out[name] = {"value": sum(values) / len(values) if values else None}
    return out


@contextmanager
def elasticsearch(*documents: Any, tls: bool = False) -> Iterator[Any]:
    def answer(path: str, _headers: Any) -> tuple[int, bytes]:
        if not path.endswith("/_search"):
            return 404, b"{}"
        question = json.loads(server.asked[-1][2])
        return 200, json.dumps(search(list(documents), question)).encode()

    with serving(answer, tls=tls) as server:
        yield server


def section(url: str, **more: str) -> dict[str, str]:
    return {"type": "elasticsearch", "address": url, **more}


def read(*documents: Any, nodes: Any = NODES, **more: str) -> Any:
    with elasticsearch(*documents) as server:
        return usage_source(section(server.url, **more)).read(nodes, NOW)


def test_documents_of_the_last_minutes_are_averaged_by_host() -> None:
    found = read(
        document("n1", 0.25, 0.5, age_s=40),
        document("n1", 0.75, 0.25, age_s=20),
        document("n1", 1.0, 1.0, age_s=700),
        document("n2", 0.125, 0.125, age_s=100),
        document("other", 1.0, 1.0),
    )
    assert found == {
        "n1": {"cpu": 50.0, "memory": 37.5, "metricsTime": NOW - 20},
        "n2": {"cpu": 12.5, "memory": 12.5, "metricsTime": NOW - 100},
    }


def test_one_search_of_the_index_answers_for_all_nodes() -> None:
    with elasticsearch(document("n1")) as server:
        usage_source(section(server.url)).read(NODES, NOW)
        ((path, headers, _),) = server.asked
    assert path == "/metricbeat-*/_search"
    assert headers["Content-Type"] == "application/json"
    assert "Authorization" not in headers


def test_index_field_user_and_period_are_those_of_the_section() -> None:
    own = {
        "elasticsearch.index": "beats-2026,more",
        "elasticsearch.hostnameFieldName": "agent.name",
        "elasticsearch.username": "reader",
        "elasticsearch.password": "pass:word",
        "period": "1m",
    }
    with elasticsearch(document("x", agent="n2")) as server:
        found = usage_source(section(server.url, **own)).read(NODES, NOW)
        ((path, headers, body),) = server.asked
    assert list(found) == ["n2"]
    assert path == "/beats-2026,more/_search"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"reader:pass:word"
    assert b'"now-60s"' in body


def test_many_nodes_are_searched_for_in_parts() -> None:
    many = [read_as(Node, node(f"n{i}")) for i in range(10_001)]
    with elasticsearch(document("n0"), document("n10000")) as server:
        found = usage_source(section(server.url)).read(many, NOW)
        assert [len(json.loads(body)["query"]["bool"]["filter"][1]["terms"]["host.hostname"])
                for _, _, body in server.asked] == [10_000, 1]  # fmt: skip
    assert sorted(found) == ["n0", "n10000"]


@pytest.mark.parametrize("bad", [{"cpu": None}, {"mem": None}, {"cpu": -1}, {"cpu": 100.0}])
def test_a_host_without_both_figures_is_left_out_and_reported(
    bad: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert list(read(document("n1", **bad), document("n2"))) == ["n2"]
    assert "left out 1 samples that cannot be used, the first of 'n1'" in caplog.text


def answered(status: int, content: Any) -> Any:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    with serving(lambda *_: (status, body)) as server:
        return usage_source(section(server.url)).read(NODES, NOW)


def test_a_refusal_is_reported_with_its_reason() -> None:
    said = {"error": {"type": "x", "reason": "no such index [metricbeat]"}, "status": 404}
    with pytest.raises(HttpError, match=r"status 404, 'no such index \[metricbeat\]'"):
        answered(404, said)
    with pytest.raises(HttpError, match=r"status 401$"):
        answered(401, b"")


@pytest.mark.parametrize(
    "answer",
    [{}, {"aggregations": None}, {"aggregations": {"nodes": {"buckets": {}}}}, {"hits": {}}],
)
def test_an_answer_without_averages_is_an_error(answer: Any) -> None:
    with pytest.raises(HttpError, match=r"_search: wanted averages by node, found"):
        answered(200, answer)


@pytest.mark.parametrize("bucket", [None, 5, {}, {"key": 3}, {"key": "n1"}, {"key": ["n1"]}])
def test_odd_groups_hurt_nobody_else(bucket: Any) -> None:
    good = {"key": "n2", "cpu": {"value": 0.5}, "mem": {"value": 0}, "latest": {"value": NOW * 1e3}}
    answer = {"aggregations": {"nodes": {"buckets": [bucket, good]}}}
    assert answered(200, answer) == {"n2": {"cpu": 50.0, "memory": 0.0, "metricsTime": NOW}}


def test_a_search_that_was_cut_short_is_an_error() -> None:
    with pytest.raises(HttpError, match="only part of the documents"):
        answered(200, {"timed_out": True, "aggregations": {"nodes": {"buckets": []}}})


def test_a_server_that_hangs_costs_one_timeout() -> None:
    begun = time.monotonic()
    with saying(hang=True) as url, pytest.raises(HttpError, match="no answer in time"):
        usage_source(section(url, timeout="300ms")).read(NODES, NOW)
    assert time.monotonic() - begun < 3


def test_a_flood_is_cut_off() -> None:
    flood = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"
    with (
        saying(flood, b"x" * 4096, hang=True) as url,
        closing(Endpoint(url, timeout_s=5.0, max_answer=1000)) as endpoint,
        pytest.raises(HttpError, match="1000"),
    ):
        ElasticsearchUsage(endpoint, index="a", host_field="b", period_s=60).read(NODES, NOW)


def test_a_server_is_verified_unless_the_section_says_otherwise() -> None:
    with elasticsearch(document("n1"), tls=True) as server:
        trusting = section(server.url, **{"tls.caFile": CA_FILE})
        assert list(usage_source(trusting).read(NODES, NOW)) == ["n1"]
        skipping = section(server.url, **{"tls.insecureSkipVerify": "true"})
        assert list(usage_source(skipping).read(NODES, NOW)) == ["n1"]
        with pytest.raises(HttpError, match="certificate verify failed"):
            usage_source(section(server.url)).read(NODES, NOW)
