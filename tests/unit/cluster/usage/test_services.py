"""Services that measure nodes, over HTTP: what is sent, and what a bad server can do."""

import base64
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pumice.api.objects import Node
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.credentials import StaticCredentials
from pumice.cluster.usage.api_server import ApiServer
from pumice.cluster.usage.conf import usage_source
from pumice.cluster.usage.endpoint import Endpoint
from pumice.cluster.usage.measured import PrometheusUsage
from pumice.errors import HttpError
from pumice.testing import node
from tests.present import read_as
from tests.unit.cluster import servers
from tests.unit.cluster.servers import CA_FILE, OK, saying

NOW = 1_768_471_200.0  # 2026-01-15T10:00:00Z
NODES = [read_as(Node, node(name)) for name in ("n1", "n2", "n3")]
VECTOR = [{"metric": {"instance": f"n{i}"}, "value": [NOW, "5"]} for i in (1, 2, 3)]
GOOD = {"status": "success", "data": {"resultType": "vector", "result": VECTOR}}
AVERAGES = {"cpu": {"value": 0.5}, "mem": {"value": 0.25}, "latest": {"value": NOW * 1000}}
FOUND = {"aggregations": {"nodes": {"buckets": [{"key": "n2", **AVERAGES}]}}}
VALUE = {"describedObject": {"name": "n1"}, "timestamp": "2026-01-15T09:59:30Z", "value": "500m"}


def good(*_: Any) -> tuple[int, bytes]:
    return 200, json.dumps(GOOD).encode()


def test_all_nodes_are_asked_for_on_one_connection_at_an_address_that_may_have_a_path() -> None:
    with servers.serving(good) as server:
        assert len(ask(f"{server.url}/prom/", 5.0)) == 3
        assert [path.partition("?")[0] for path, _, _ in server.asked] == ["/prom/api/v1/query"] * 2
        assert len(server.connections) == 1


def test_index_field_user_and_period_of_a_search_are_those_of_the_section() -> None:
    section = {
        "type": "elasticsearch",
        "elasticsearch.index": "beats-2026,more",
        "elasticsearch.hostnameFieldName": "agent.name",
        "elasticsearch.username": "reader",
        "elasticsearch.password": "pass:word",
        "period": "1m",
        "tls.caFile": CA_FILE,
    }
    with servers.serving(lambda *_: (200, json.dumps(FOUND).encode()), tls=True) as server:
        found = usage_source({**section, "address": server.url}).read(NODES, NOW)
        ((path, headers, body),) = server.asked
    assert found == {"n2": {"cpu": 50.0, "memory": 25.0, "metricsTime": NOW}}
    assert path == "/beats-2026,more/_search"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"reader:pass:word"
    assert headers["Content-Type"] == "application/json"
    asked = json.loads(body)["query"]["bool"]["filter"]
    assert asked[0]["range"]["@timestamp"]["gte"] == "now-60s"
    assert asked[1] == {"terms": {"agent.name": ["n1", "n2", "n3"]}}


def test_a_server_is_verified_unless_the_section_says_otherwise() -> None:
    with servers.serving(lambda *_: (200, json.dumps(FOUND).encode()), tls=True) as server:
        section = {"type": "elasticsearch", "address": server.url}
        with pytest.raises(HttpError, match="certificate verify failed"):
            usage_source(section).read(NODES, NOW)
        assert server.asked == []
        skipping = usage_source({**section, "tls.insecureSkipVerify": "true"})
        assert list(skipping.read(NODES, NOW)) == ["n2"]


def values(path: str, _headers: Any) -> tuple[int, bytes]:
    """Serve the custom metrics API in one version, as an API server does for its adapter."""
    if "/custom.metrics.k8s.io/v1beta1/nodes/*/" not in path:
        return 404, b'{"kind": "Status", "code": 404, "message": "the server could not find it"}'
    return 200, json.dumps({"items": [VALUE] * 9}).encode()


@pytest.mark.parametrize("cap", [10_000, 100])
def test_without_an_address_the_api_server_of_the_cluster_is_asked_as_who_one_is(
    cap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.cluster.usage.api_server.MAX_ANSWER", cap)
    with servers.serving(values) as server:
        connection = Connection(server.url, credentials=StaticCredentials("Bearer mine"))
        with KubeCluster(connection) as cluster:
            section = {"type": "prometheus_adapt", "timeout": "5s"}
            source = usage_source(section, lambda timeout_s: ApiServer(cluster, timeout_s))
            if cap == 100:  # its answers are bounded
                with pytest.raises(HttpError, match="100"):
                    source.read(NODES, NOW)
            else:
                usage = {"cpu": 50.0, "memory": 50.0, "metricsTime": NOW - 30}
                assert source.read(NODES, NOW) == {"n1": usage}
        assert {headers["Authorization"] for _, headers, _ in server.asked} == {"Bearer mine"}


def ask(url: Any, timeout_s: Any = 0.2, **options: Any) -> Any:
    """Read once and close."""
    with closing(Endpoint(url, timeout_s=timeout_s, **options)) as endpoint:
        return PrometheusUsage(endpoint).read(NODES, NOW)


def test_a_server_that_hangs_costs_one_timeout() -> None:
    with saying(hang=True) as url, pytest.raises(HttpError, match="no answer in time"):
        ask(url)


def test_a_flood_is_cut_off_at_the_cap() -> None:
    flood = [b"x" * 65536] * 100
    with saying(OK, b"\r\n", *flood) as url, pytest.raises(HttpError, match="more than 1048576"):
        ask(url, timeout_s=5.0, max_answer=1 << 20)


@pytest.mark.parametrize("content", [b"<html>", b"", b"[]", b"\x00\xff", b'{"a":' * 100_000])
def test_garbage_is_an_error(content: Any) -> None:
    with servers.serving(lambda *_: (200, content)) as server, pytest.raises(HttpError):
        ask(server.url, timeout_s=5.0)


@pytest.mark.parametrize(
    ("status", "content", "match"),
    [
        (422, b'{"status": "error", "error": "too many samples"}', "422, 'too many samples'"),
        (403, b'{"kind": "Status", "message": "forbidden"}', "403, 'forbidden'"),
        (404, b'{"error": {"reason": "no such index [metricbeat]"}}', "404, 'no such index"),
        (503, b"try later", "answered with status 503$"),
        (500, b'{"error": 5}', "answered with status 500$"),
        (302, b"", "answered with status 302$"),
    ],
)
def test_a_refusal_is_reported_with_its_reason(status: int, content: bytes, match: str) -> None:
    with (
        servers.serving(lambda *_: (status, content)) as server,
        pytest.raises(HttpError, match=match),
    ):
        ask(server.url, timeout_s=5.0)


class TestToken:
    @contextmanager
    def guarded(self, *, tls: bool = False) -> Iterator[Any]:
        """Run a server that wants the token it has at the moment."""

        def check(_path: Any, headers: Any) -> Any:
            if headers["Authorization"] != f"Bearer {server.token}":
                return 401, b'{"error": "who are you"}'
            return good()

        with servers.serving(check, tls=tls) as server:
            server.token = "first"  # noqa: S105  of a test
            yield server

    def test_without_a_token_none_is_sent(self) -> None:
        with self.guarded() as server:
            with pytest.raises(HttpError, match="401, 'who are you'"):
                ask(server.url, 5.0)
            assert "Authorization" not in server.asked[0][1]

    def test_a_token_file_is_read_again_for_each_reading(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("first\n")
        with self.guarded() as server, closing(Endpoint(server.url, token_file=file)) as endpoint:
            source = PrometheusUsage(endpoint)
            assert len(source.read(NODES, NOW)) == 3
            server.token = "second"  # noqa: S105  of a test
            with pytest.raises(HttpError, match="401"):
                source.read(NODES, NOW)
            file.write_text("second\n")
            assert len(source.read(NODES, NOW)) == 3

    def test_a_token_file_that_is_missing_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(HttpError, match="gone: No such file"):
            ask("http://127.0.0.1:1", token_file=tmp_path / "gone")

    @pytest.mark.parametrize("text", ["", "two words", "a\r\nHost: b", "schlüssel", "x" * 40_000])
    def test_a_token_that_is_none_is_an_error_and_not_shown(
        self, tmp_path: Path, text: Any
    ) -> None:
        file = tmp_path / "secret"
        file.write_text(text)
        with pytest.raises(HttpError, match=r"secret: expected one token, in ASCII$"):
            ask("http://127.0.0.1:1", token_file=file)

    def test_a_given_token_that_is_none_is_not_shown_either(self) -> None:
        with pytest.raises(HttpError, match=r"^http://x: token: expected one token, in ASCII$"):
            ask("http://x", token="a\r\nb")  # noqa: S106  of a test

    def test_it_is_not_sent_to_one_that_is_not(self) -> None:
        with self.guarded(tls=True) as server:
            with pytest.raises(HttpError, match="CERTIFICATE_VERIFY_FAILED"):
                ask(server.url, 5.0, token="first")  # noqa: S106  of a test
            assert server.asked == []
