"""What each source of node usage makes of an answer, sample by sample."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.objects import from_manifest
from pumice.cluster.usage.measured import (
    CustomMetricsUsage,
    ElasticsearchUsage,
    MetricsServerUsage,
    PrometheusUsage,
)
from pumice.cluster.usage.source import StaticUsage, UsageCache
from pumice.errors import HttpError
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

NOW = 1000.0
NODES: Any = [from_manifest(node(name, cpu=4, memory="8Gi")) for name in ("a", "b")]


class Service:
    """Answers in turn; takes down what it is asked."""

    address = "http://s"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    def deadline(self) -> float:
        return 7.0

    def get(self, path: str, query: Any = None, *, deadline: float) -> Any:
        assert deadline == 7.0
        self.asked.append((path, query))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def post(self, path: str, question: Any, *, deadline: float) -> Any:
        return self.get(path, question, deadline=deadline)


# Prometheus


def vector(*items: Any) -> Any:
    return {"status": "success", "data": {"resultType": "vector", "result": list(items)}}


def sample(name: Any = "a", value: Any = "50", when: Any = 900) -> Any:
    return {"metric": {"instance": name}, "value": [when, value]}


@pytest.mark.parametrize(
    ("item", "found"),
    [
        (sample(), (50.0, 900.0)),
        (sample(value="1e1"), (10.0, 900.0)),
        (sample(value="0"), (0.0, 900.0)),
        (sample(value="1000"), (1000.0, 900.0)),
        (sample(value="1001"), None),
        (sample(value="-1"), None),
        (sample(value="NaN"), None),
        (sample(value="+Inf"), None),
        (sample(value=""), None),
        (sample(value="1_0"), None),
        (sample(value="\u0661"), None),
        (sample(value="1e9999"), None),
        (sample(value="9" * 41), None),
        (sample(value=50), None),
        (sample(when=0), (50.0, 0.0)),
        (sample(when=1.5), (50.0, 1.5)),
        (sample(when=1e11), (50.0, NOW)),
        (sample(when=1.1e11), None),
        (sample(when=-1), None),
        (sample(when=True), None),
        (sample(when="900"), None),
        (sample(when=10**400), None),
        (sample(when=float("nan")), None),
        ({"metric": {"instance": "a"}, "value": [900, "50", 1]}, None),
        ({"metric": {"instance": "a"}, "value": "50"}, None),
        ({"metric": {"instance": "a"}}, None),
        (sample(name=5), None),
        ({"metric": "a", "value": [900, "50"]}, None),
        ("odd", None),
    ],
)
def test_samples_of_prometheus(item: Any, found: Any, caplog: pytest.LogCaptureFixture) -> None:
    service: Any = Service(vector(item))
    usage = PrometheusUsage(service, period_s=60.0).read(NODES, NOW)
    if found is None:
        assert usage == {}
        assert "left out 2 samples that cannot be used" in caplog.text
    else:
        percent, when = found
        assert usage == {"a": {"cpu": percent, "memory": percent, "metricsTime": when}}
        assert caplog.text == ""


def test_prometheus_is_asked_twice_for_all_nodes() -> None:
    service: Any = Service(vector(sample(), sample(value="70"), sample("b", "20"), sample("x")))
    usage = PrometheusUsage(service, period_s=60.5).read(NODES, NOW)
    assert (usage["a"]["cpu"], usage["b"]["cpu"]) == (50.0, 20.0)
    assert [path for path, _ in service.asked] == ["/api/v1/query"] * 2
    queries = [query for _, query in service.asked]
    assert [query["time"] for query in queries] == ["1000.000"] * 2
    assert all("[60500ms:30s]" in query["query"] for query in queries)
    assert "node_cpu_seconds_total" in queries[0]["query"]
    assert "node_memory" in queries[1]["query"]
    assert PrometheusUsage(service).read([], NOW) == {}
    assert len(service.asked) == 2


@pytest.mark.parametrize("also", [(), (sample(),)])
def test_samples_of_strangers_alone_are_warned_of(
    also: Any, caplog: pytest.LogCaptureFixture
) -> None:
    service: Any = Service(vector(sample("x:9100"), *also))
    PrometheusUsage(service).read(NODES, NOW)
    assert caplog.text.count("no sample is for a node of this cluster") == (0 if also else 2)
    assert ("'x:9100'" in caplog.text) == (not also)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {**vector(), "status": "error"},
        {"status": "success", "data": []},
        {"status": "success", "data": {"resultType": "matrix", "result": []}},
        {"status": "success", "data": {"resultType": "vector", "result": {}}},
    ],
)
def test_an_answer_without_a_vector_is_an_error(answer: Any) -> None:
    service: Any = Service(answer)
    with pytest.raises(HttpError, match="expected a vector of samples"):
        PrometheusUsage(service).read(NODES, NOW)


# Elasticsearch


def bucket(key: Any = "a", cpu: Any = 0.5, memory: Any = 0.25, latest: Any = 900_000) -> Any:
    values = {"cpu": cpu, "mem": memory, "latest": latest}
    return {"key": key, **{name: {"value": value} for name, value in values.items()}}


def found(*buckets: Any, **more: Any) -> Any:
    return {"aggregations": {"nodes": {"buckets": list(buckets)}}, **more}


def elastic(service: Any) -> ElasticsearchUsage:
    return ElasticsearchUsage(service, index="m*,a b", host_field="host.name", period_s=90.4)


@pytest.mark.parametrize(
    ("item", "usage"),
    [
        (bucket(), (50.0, 25.0, 900.0)),
        (bucket(latest=2_000_000), (50.0, 25.0, NOW)),
        (bucket(cpu=0, memory=0, latest=0), (0.0, 0.0, 0.0)),
        (bucket(cpu=10.0, memory=10), (1000.0, 1000.0, 900.0)),
        (bucket(cpu=10.1), None),
        (bucket(memory=10.1), None),
        (bucket(cpu=-0.1), None),
        (bucket(cpu=None), None),
        (bucket(memory=None), None),
        (bucket(latest=None), None),
        (bucket(latest=1e15), None),
        (bucket(latest=True), None),
        (bucket(cpu="1"), None),
        ({"key": "a", "cpu": 1, "mem": 1, "latest": 1}, None),
        (bucket(key=5), None),
        ("odd", None),
    ],
)
def test_averages_of_elasticsearch(item: Any, usage: Any, caplog: pytest.LogCaptureFixture) -> None:
    read = elastic(Service(found(item))).read(NODES, NOW)
    if usage is None:
        assert read == {}
        assert "left out 1 samples that cannot be used" in caplog.text
    else:
        cpu, memory, when = usage
        assert read == {"a": {"cpu": cpu, "memory": memory, "metricsTime": when}}


def test_elasticsearch_is_asked_for_some_nodes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(found(bucket(), bucket("x")))
    assert set(elastic(service).read(NODES, NOW)) == {"a"}
    ((path, question),) = service.asked[:1]
    assert path == "/m*,a%20b/_search"
    assert question["size"] == 0
    recent, terms = question["query"]["bool"]["filter"]
    assert recent == {"range": {"@timestamp": {"gte": "now-90s", "lt": "now"}}}
    assert terms == {"terms": {"host.name": ["a", "b"]}}
    assert question["aggs"]["nodes"]["terms"] == {"field": "host.name", "size": 2}
    monkeypatch.setattr(ElasticsearchUsage, "BATCH", 1)
    service = Service(found(bucket()), found(bucket("b")))
    assert set(elastic(service).read(NODES, NOW)) == {"a", "b"}
    assert [asked["aggs"]["nodes"]["terms"]["size"] for _, asked in service.asked] == [1, 1]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (found(timed_out=True), "searched only part of the documents"),
        ({}, "expected averages by node"),
        ({"aggregations": []}, "expected averages by node"),
        ({"aggregations": {"nodes": []}}, "expected averages by node"),
        ({"aggregations": {"nodes": {"buckets": {}}}}, "expected averages by node"),
    ],
)
def test_an_answer_without_averages_is_an_error(answer: Any, problem: str) -> None:
    with pytest.raises(HttpError, match=problem):
        elastic(Service(answer)).read(NODES, NOW)


# The API server


def value(name: Any = "a", part: Any = "500m", when: Any = "1970-01-01T00:15:00Z") -> Any:
    return {"describedObject": {"name": name}, "value": part, "timestamp": when}


@pytest.mark.parametrize(
    ("item", "percent"),
    [
        (value(), 50.0),
        (value(part="0"), 0.0),
        (value(part="10"), 1000.0),
        (value(part="11"), None),
        (value(part="-1"), None),
        (value(part="odd"), None),
        (value(part=1), None),
        (value(when="odd"), None),
        (value(when=None), None),
        (value(name=5), None),
        ({"describedObject": "a", "value": "1", "timestamp": "t"}, None),
        ("odd", None),
    ],
)
def test_values_of_the_custom_metrics_api(
    item: Any, percent: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    service: Any = Service({"items": [value("x"), item, value(part="900m", name="b")]})
    read = CustomMetricsUsage(service).read(NODES, NOW)
    assert read["b"] == {"cpu": 90.0, "memory": 90.0, "metricsTime": 900.0}
    assert read.get("a", {}).get("cpu") == percent
    assert ("left out 2 samples" in caplog.text) == (percent is None)


def test_the_version_that_the_server_has_is_kept() -> None:
    absent = HttpError("u", "no", 404)
    service: Any = Service(absent, {"items": [value()]})
    source = CustomMetricsUsage(service)
    assert set(source.read(NODES, NOW)) == {"a"}
    paths = [path for path, _ in service.asked]
    stem = "/apis/custom.metrics.k8s.io"
    assert paths == [
        f"{stem}/v1beta2/nodes/*/node_cpu_usage_avg",
        f"{stem}/v1beta1/nodes/*/node_cpu_usage_avg",
        f"{stem}/v1beta1/nodes/*/node_memory_usage_avg",
    ]
    assert source.read([], NOW) == {}
    service.answers = [absent]
    for count in (4, 6):  # the known version, then both
        with pytest.raises(HttpError):
            source.read(NODES, NOW)
        assert len(service.asked) == count
    service.answers = [HttpError("u", "down", 503)]
    with pytest.raises(HttpError, match="down"):
        source.read(NODES, NOW)
    assert len(service.asked) == 7
    service.answers = [{"items": {}}]
    with pytest.raises(HttpError, match="expected values of node_cpu_usage_avg"):
        source.read(NODES, NOW)


def metric(name: Any = "a", when: Any = "1970-01-01T00:15:00Z", **usage: Any) -> Any:
    used = {"cpu": "2", "memory": "2Gi", **usage}
    return {"metadata": {"name": name}, "timestamp": when, "usage": used}


@pytest.mark.parametrize(
    ("item", "usage"),
    [
        (metric(), (50.0, 25.0, 900.0)),
        (metric(when="1970-01-01T01:00:00Z"), (50.0, 25.0, NOW)),
        (metric(cpu="0", memory="0"), (0.0, 0.0, 900.0)),
        (metric(cpu="40"), (1000.0, 25.0, 900.0)),
        (metric(cpu="41"), None),
        (metric(memory="81Gi"), None),
        (metric(cpu=2), None),
        (metric(memory=None), None),
        (metric(cpu="odd"), None),
        (metric(when="odd"), None),
        (metric(when=5), None),
        (metric(name=None), None),
        ({"metadata": {"name": "a"}, "timestamp": "t", "usage": []}, None),
        ({"metadata": "a"}, None),
        ("odd", None),
    ],
)
def test_metrics_of_nodes(item: Any, usage: Any, caplog: pytest.LogCaptureFixture) -> None:
    service: Any = Service({"items": [metric("x"), item]})
    read = MetricsServerUsage(service).read(NODES, NOW)
    if usage is None:
        assert read == {}
        assert "left out 1 samples" in caplog.text
    else:
        cpu, memory, when = usage
        assert read == {"a": {"cpu": cpu, "memory": memory, "metricsTime": when}}
    assert MetricsServerUsage(service).read([], NOW) == {}
    assert service.asked == [("/apis/metrics.k8s.io/v1beta1/nodes", None)]


@pytest.mark.parametrize("capacity", [{}, {"cpu": "4"}, {"cpu": "0", "memory": "8Gi"}])
def test_a_node_without_capacity_is_not_measured(capacity: Any) -> None:
    bare: Any = from_manifest({**node("a"), "status": {"capacity": capacity}})
    service: Any = Service({"items": [metric()]})
    assert MetricsServerUsage(service).read([bare], NOW) == {}
    service.answers = [{"items": None}]
    with pytest.raises(HttpError, match="expected a list of node metrics"):
        MetricsServerUsage(service).read([bare], NOW)


# The cache


def test_a_source_is_read_once_in_a_period_and_keeps_what_it_knew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Source:
        def __init__(self) -> None:
            self.answer: Any = {"a": {"cpu": 1.0}}

        def read(self, nodes: Any, now: float) -> Any:
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    source = Source()
    cache = UsageCache(source, 30.0)
    assert cache.latest() == {}
    assert cache.refresh(100.0, NODES)
    assert not cache.refresh(100.0, NODES)
    assert not cache.refresh(129.9, NODES)
    source.answer = {"b": {"cpu": 2.0}}
    taken = cache.latest()
    assert cache.refresh(130.0, NODES)
    assert taken == {"a": {"cpu": 1.0}}
    assert cache.latest() == {"a": {"cpu": 1.0}, "b": {"cpu": 2.0}}
    source.answer = HttpError("u", "is away")
    assert not cache.refresh(160.0, NODES)
    assert "node usage could not be read" in caplog.text
    assert set(cache.latest()) == {"a", "b"}
    source.answer = {}
    assert not cache.refresh(189.9, NODES)
    assert cache.refresh(50.0, NODES[:1])  # the clock was set back
    assert set(cache.latest()) == {"a"}


def test_stated_usage_is_current_unless_it_has_a_time() -> None:
    source = StaticUsage({"a": {"cpu": 1.0}, "b": {"cpu": 2.0, "metricsTime": 5.0}, "x": {}})
    assert source.read(NODES, NOW) == {
        "a": {"cpu": 1.0, "metricsTime": NOW},
        "b": {"cpu": 2.0, "metricsTime": 5.0},
    }
    assert StaticUsage().read(NODES, NOW) == {}


CONF = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: usage}]}]
"""


@pytest.mark.parametrize(("age", "bound"), [(0, False), (299, False), (301, True)])
def test_the_usage_plugin_takes_what_a_cache_holds_and_judges_its_age(
    age: int, bound: bool
) -> None:
    """A node that is too busy is closed; five minutes later that is unknown, and it is open."""
    now = 1_768_471_200.0
    cache = UsageCache(StaticUsage({"a": {"cpu": 95.0, "memory": 1.0}}), 30.0)
    cache.refresh(now - age, NODES)
    world = [node("a"), queue("default"), pod_group("g"), pod("p", group="g", cpu=1)]
    decisions = Scheduler(parse_conf(CONF)).cycle(world, now, cache.latest())
    assert bool(decisions.binds) == bound
