"""PrometheusUsage: what is asked, what is believed, and what a bad server can do."""

import json
import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pumice.api.objects import Node
from pumice.cluster.http.tls import tls_context
from pumice.cluster.usage import Endpoint, PrometheusUsage
from pumice.errors import HttpError
from pumice.testing import node
from tests.present import read_as
from tests.unit.cluster import servers
from tests.unit.cluster.servers import CA_FILE, OK, saying, unused_port

NOW = 1_768_471_200.0
NODES = [read_as(Node, node(name)) for name in ("n1", "n2", "n3")]


def sample(name: Any, text: Any, when: Any = NOW) -> Any:
    return {"metric": {"instance": name}, "value": [when, text]}


def vector(*samples: Any) -> Any:
    return {"status": "success", "data": {"resultType": "vector", "result": list(samples)}}


def answering(cpu: Any, memory: Any) -> Any:
    """Answer the two queries, distinguished by their metric."""

    def answer(path: Any, _headers: Any) -> Any:
        (query,) = parse_qs(urlsplit(path).query)["query"]
        return 200, json.dumps(cpu if "node_cpu_seconds_total" in query else memory).encode()

    return answer


@contextmanager
def serving(cpu: Any, memory: Any) -> Iterator[Any]:
    with (
        servers.serving(answering(cpu, memory)) as server,
        closing(Endpoint(server.url, timeout_s=5.0)) as endpoint,
    ):
        yield server, PrometheusUsage(endpoint)


def read(cpu: Any, memory: Any) -> Any:
    with serving(cpu, memory) as (_, source):
        return source.read(NODES, NOW)


GOOD = vector(sample("n1", "12.5"), sample("n2", "0"), sample("n3", "1e1"))


def test_cpu_and_memory_of_each_node_are_joined() -> None:
    memory = vector(sample("n3", "30"), sample("n1", "10"), sample("n2", "20"))
    assert read(GOOD, memory) == {
        "n1": {"cpu": 12.5, "memory": 10.0, "metricsTime": NOW},
        "n2": {"cpu": 0.0, "memory": 20.0, "metricsTime": NOW},
        "n3": {"cpu": 10.0, "memory": 30.0, "metricsTime": NOW},
    }


def test_all_nodes_are_asked_for_in_two_queries_of_this_moment_on_one_connection() -> None:
    with serving(GOOD, GOOD) as (server, source):
        source.read(NODES, NOW)
        assert [urlsplit(path).path for path, _, _ in server.asked] == ["/api/v1/query"] * 2
        assert [parse_qs(urlsplit(path).query)["time"] for path, _, _ in server.asked] == [
            ["1768471200.000"], ["1768471200.000"],
        ]  # fmt: skip
        assert len(server.connections) == 1


@pytest.mark.parametrize(("period_s", "shown"), [(600.0, "[600000ms:30s]"), (90.5, "[90500ms:")])
def test_load_is_averaged_over_the_period(period_s: float, shown: str) -> None:
    with serving(GOOD, GOOD) as (server, source):
        PrometheusUsage(source._service, period_s=period_s).read(NODES, NOW)
        for path, _, _ in server.asked:
            assert shown in parse_qs(urlsplit(path).query)["query"][0]


def test_an_address_may_have_a_path() -> None:
    with servers.serving(answering(GOOD, GOOD)) as server:
        with closing(Endpoint(f"{server.url}/prom/")) as endpoint:
            PrometheusUsage(endpoint).read(NODES, NOW)
        assert server.asked[0][0].startswith("/prom/api/v1/query?")


def test_without_nodes_nothing_is_asked() -> None:
    with serving(GOOD, GOOD) as (server, source):
        assert source.read([], NOW) == {}
        assert server.asked == []


def test_a_measurement_is_as_old_as_the_older_of_its_two_samples() -> None:
    cpu, memory = vector(sample("n1", "1", NOW - 5)), vector(sample("n1", "1", NOW - 9))
    assert read(cpu, memory)["n1"]["metricsTime"] == NOW - 9


def test_a_clock_that_is_ahead_does_not_keep_a_measurement_fresh() -> None:
    ahead = vector(sample("n1", "1", NOW + 9999))
    assert read(ahead, ahead)["n1"]["metricsTime"] == NOW


def test_a_node_of_which_one_half_is_missing_is_not_measured() -> None:
    assert list(read(GOOD, vector(sample("n2", "5")))) == ["n2"]


def test_of_two_samples_of_a_node_the_first_counts() -> None:
    twice = vector(sample("n1", "NaN"), sample("n1", "1"), sample("n1", "2"))
    assert read(twice, twice)["n1"]["cpu"] == 1.0


BAD = [
    sample("n2", "NaN"), sample("n2", "+Inf"), sample("n2", "-Inf"), sample("n2", "-1"),
    sample("n2", "x"), sample("n2", ""), sample("n2", "1_0"), sample("n2", "\u0661"),
    sample("n2", "1e9999"), sample("n2", "1e6"), sample("n2", 5), sample("n2", None),
    sample("n2", "5", "now"), sample("n2", "5", when=True), sample("n2", "5", None),
    sample("n2", "5", float("nan")), sample("n2", "5", 10**400), sample("n2", "5", -1),
    {"metric": {"instance": "n2"}}, {"metric": {"instance": "n2"}, "value": []},
    {"metric": {"instance": "n2"}, "value": "12"}, {"metric": {}, "value": [NOW, "5"]},
    {"metric": {"instance": 2}, "value": [NOW, "5"]}, {"metric": [], "value": [NOW, "5"]},
    {"value": [NOW, "5"]}, "junk", None, [], 5,
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=[str(i) for i in range(len(BAD))])
def test_a_bad_sample_hurts_only_its_node_and_is_reported_in_one_line(
    bad: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The one line names the service and counts, whichever half was bad."""
    cpu = vector(sample("n1", "1"), bad, sample("n3", "3"))
    memory = vector(bad, sample("n1", "1"), sample("n3", "3"))
    assert sorted(read(cpu, memory)) == ["n1", "n3"]
    (record,) = caplog.records
    assert "left out 2 samples that cannot be used, the first of" in record.getMessage()
    assert record.levelno == logging.WARNING


def test_samples_of_other_machines_are_passed_over_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    more = vector(sample("db-1", "NaN"), sample("n1", "1"))
    assert list(read(more, more)) == ["n1"]
    assert caplog.records == []


def test_labels_that_are_no_node_names_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    strange = vector(sample("10.0.0.1:9100", "1"))
    assert read(strange, strange) == {}
    assert "the label instance must be the name of the node" in caplog.text
    assert "10.0.0.1:9100" in caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"status": "success"}, {"status": "error", "error": "x"},
        {"status": "success", "data": []},
        {"status": "success", "data": {"resultType": "matrix", "result": []}},
        {"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}},
        {"status": "success", "data": {"resultType": "vector", "result": {}}},
        {"status": [[[[[[[[[1]]]]]]]]]},
    ],
)  # fmt: skip
def test_an_answer_without_a_vector_is_an_error(answer: Any) -> None:
    with pytest.raises(HttpError, match=r"wanted a vector of samples, found \{"):
        read(answer, answer)


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


def test_nobody_there_is_an_error() -> None:
    with pytest.raises(HttpError, match="connection refused"):
        ask(f"http://127.0.0.1:{unused_port()}")


@pytest.mark.parametrize(
    ("status", "content", "match"),
    [
        (422, b'{"status": "error", "error": "too many samples"}', "422, 'too many samples'"),
        (403, b'{"kind": "Status", "message": "forbidden"}', "403, 'forbidden'"),
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
        answer = answering(GOOD, GOOD)

        def check(path: Any, headers: Any) -> Any:
            if headers["Authorization"] != f"Bearer {server.token}":
                return 401, b'{"error": "who are you"}'
            return answer(path, headers)

        with servers.serving(check, tls=tls) as server:
            server.token = "first"  # noqa: S105  of a test
            yield server

    def test_a_token_is_sent(self) -> None:
        with self.guarded() as server:
            assert len(ask(server.url, 5.0, token="first")) == 3  # noqa: S106  of a test

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
        with pytest.raises(HttpError, match=r"secret: wanted one token, in ASCII$"):
            ask("http://127.0.0.1:1", token_file=file)

    def test_a_given_token_that_is_none_is_not_shown_either(self) -> None:
        with pytest.raises(HttpError, match=r"^http://x: token: wanted one token, in ASCII$"):
            ask("http://x", token="a\r\nb")  # noqa: S106  of a test

    def test_it_goes_over_tls_to_a_server_that_is_known(self) -> None:
        with self.guarded(tls=True) as server:
            tls = tls_context(CA_FILE)
            assert len(ask(server.url, 5.0, token="first", tls=tls)) == 3  # noqa: S106  of a test

    def test_it_is_not_sent_to_one_that_is_not(self) -> None:
        with self.guarded(tls=True) as server:
            with pytest.raises(HttpError, match="CERTIFICATE_VERIFY_FAILED"):
                ask(server.url, 5.0, token="first")  # noqa: S106  of a test
            assert server.asked == []
