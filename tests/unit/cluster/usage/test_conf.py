"""usage_source: the section `metrics` becomes a source, or all its problems are reported."""

import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.objects import Node
from pumice.cluster.usage import conf as usage_conf
from pumice.cluster.usage.conf import refresh_period, usage_source
from pumice.cluster.usage.measured import MetricsServerUsage, PrometheusUsage
from pumice.cluster.usage.source import StaticUsage
from pumice.errors import ConfError
from pumice.testing import node
from tests.present import present, read_as
from tests.unit.cluster.servers import CA_FILE, serving

PROMETHEUS = {"type": "prometheus", "address": "http://prometheus:9090"}


def endpoint_of(metrics: dict[str, Any]) -> Any:
    source: Any = usage_source(metrics)
    return source._service


@pytest.mark.parametrize("metrics", [{}, {"interval": "30s"}, {"type": ""}])
def test_without_a_type_nothing_is_measured(metrics: Any) -> None:
    source = usage_source(metrics)
    assert isinstance(source, StaticUsage)
    assert source.read([read_as(Node, node("n1"))], 0.0) == {}


def test_a_section_as_volcano_has_it_is_read() -> None:
    conf = parse_conf("""
        actions: allocate
        tiers: []
        metrics:
          type: prometheus
          address: https://192.168.0.10:9090/
          interval: 1m30s
          tls.insecureSkipVerify: "false"
          elasticsearch.index: left-over
    """)
    assert isinstance(usage_source(conf.metrics), PrometheusUsage)
    endpoint = endpoint_of(dict(conf.metrics))
    assert endpoint.address == "https://192.168.0.10:9090"
    assert present(endpoint._http._client._given_tls).verify_mode == ssl.CERT_REQUIRED
    assert refresh_period(conf.metrics) == 90.0


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 30.0), ("30s", 30.0), ("1.5m", 90.0), ("1h1m1s500ms", 3661.5)]
)
def test_an_interval_is_a_duration_and_thirty_seconds_by_default(text: str, seconds: float) -> None:
    assert refresh_period({"interval": text}) == seconds


@pytest.mark.parametrize("text", ["30", "s", "-5s", "0s", "25h", "5 s", "5d", "soon", "9" * 99])
def test_a_bad_interval_is_an_error_of_both(text: Any) -> None:
    wanted = "metrics.interval: expected a duration from 0.001s to 24h, got '"
    for make in (usage_source, refresh_period):
        with pytest.raises(ConfError, match=wanted):
            make({**PROMETHEUS, "interval": text})


_TYPES = (
    "metrics.type: expected prometheus, prometheus_adaptor, elasticsearch or metrics-server, got"
)
_ADDRESS = "metrics.address: expected an address such as http://prometheus.monitoring:9090, got"
MISTAKES = {
    f"{_TYPES} 'promtheus' (did you mean prometheus?)": {"type": "promtheus"},
    f"{_TYPES} 'graphite'": {"type": "graphite", "address": "http://x"},
    "metrics.elasticsearch.username: expected either a user or a token, got both": {
        "type": "elasticsearch",
        "address": "http://x",
        "token": "a",
        "elasticsearch.username": "b",
    },
    "metrics.elasticsearch.index: expected a name without blanks, in ASCII, got 'a b'": {
        "type": "elasticsearch",
        "address": "http://x",
        "elasticsearch.index": "a b",
    },
    f"{_TYPES} nothing (without a type the address is not used)": {"address": "http://x"},
    f"{_ADDRESS} nothing": {"type": "prometheus"},
    f"{_ADDRESS} 'prometheus.default' (begin it with http:// or https://)": (
        PROMETHEUS | {"address": "prometheus.default"}
    ),
    "metrics.address: expected an address without a user, got 'one with a user' "
    "(give a token or a tokenFile: addresses are shown in logs)": (
        PROMETHEUS | {"address": "http://admin:secret@x"}
    ),
    "metrics.tls.insecureSkipVerify: expected true or false, got 'yes'": (
        PROMETHEUS | {"tls.insecureSkipVerify": "yes"}
    ),
    "metrics.tls.caFile: expected a file with certificates, got '/no/such/file' "
    "(No such file or directory)": PROMETHEUS | {"tls.caFile": "/no/such/file"},
    "metrics.token: expected either token or tokenFile, got both": (
        PROMETHEUS | {"token": "a", "tokenFile": "b"}
    ),
    "metrics.token: expected one token, in ASCII, got something else (it is not shown here)": (
        PROMETHEUS | {"token": "the secret"}
    ),
    "metrics.timeout: expected a duration from 0.001s to 24h, got 'x' (such as 30s or 1m30s)": (
        PROMETHEUS | {"timeout": "x"}
    ),
    "metrics.period: expected a duration from 30s to 24h, got '10s' (such as 30s or 1m30s)": (
        PROMETHEUS | {"period": "10s"}
    ),
    "metrics: unknown key 'tokenfile'; did you mean tokenFile?": (PROMETHEUS | {"tokenfile": "x"}),
}


@pytest.mark.parametrize("said", MISTAKES)
def test_a_mistake_is_reported_with_what_was_wanted_and_found(said: Any) -> None:
    with pytest.raises(ConfError) as caught:
        usage_source(MISTAKES[said])
    assert said == str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "ftp://x", "http://", "http://[", "http://x:port", "http://x:0", "http://x:99999", "//x",
        "http://x?query", "http://x#part", "http://a b", "http://ü", "http://x\r\ny",
    ],
)  # fmt: skip
def test_a_bad_address_is_an_error(address: str) -> None:
    with pytest.raises(ConfError, match=r"metrics\.address: expected an address such as"):
        usage_source({"type": "prometheus", "address": address})


@pytest.mark.parametrize("address", ["http://u:secret@x:port", "u:secret@x", "http://u:secret@["])
def test_a_password_in_an_address_is_not_shown_whatever_else_is_wrong(address: str) -> None:
    with pytest.raises(ConfError, match="without a user") as caught:
        usage_source({"type": "prometheus", "address": address})
    assert "secret" not in str(caught.value)


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(ConfError) as caught:
        usage_source({"type": "prometheus", "address": "x", "interval": "y", "timeout": "z"})
    assert {problem.field for problem in caught.value.problems} == {
        "metrics.address", "metrics.interval", "metrics.timeout",
    }  # fmt: skip


def test_certificates_of_a_file_that_has_none_are_an_error(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("junk")
    with pytest.raises(ConfError, match=r"metrics\.tls\.caFile: expected a file with"):
        usage_source({**PROMETHEUS, "tls.caFile": str(file)})


def test_certificates_go_unverified_only_if_asked_and_then_loudly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    usage_source(PROMETHEUS)
    assert caplog.text == ""
    endpoint = endpoint_of({**PROMETHEUS, "tls.insecureSkipVerify": "true"})
    assert endpoint._http._client._given_tls.verify_mode == ssl.CERT_NONE
    assert "certificates are NOT verified" in caplog.text


def metrics_answer(_path: Any, headers: Any) -> Any:
    usage = {"cpu": "1", "memory": "1Gi"}
    item = {"metadata": {"name": "n1"}, "timestamp": "2026-01-15T10:00:00Z", "usage": usage}
    known = headers["Authorization"] == "Bearer from-file"
    return (200, json.dumps({"items": [item]}).encode()) if known else (401, b"")


def test_all_settings_reach_the_connection(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file")
    with serving(metrics_answer, tls=True) as server:
        source = usage_source(
            {
                "type": "metrics-server",
                "address": server.url,
                "tls.caFile": CA_FILE,
                "tokenFile": str(tmp_path / "token"),
                "timeout": "5s",
            }
        )
        assert isinstance(source, MetricsServerUsage)
        assert list(source.read([read_as(Node, node("n1", cpu=4))], 2e9)) == ["n1"]
        endpoint: Any = source._service
        endpoint.close()
    assert endpoint._timeout_s == 5.0


class TestInAPod:
    @pytest.fixture
    def account(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Lay out the files of a service account."""
        (tmp_path / "token").write_text("from-pod")
        (tmp_path / "ca.crt").write_text(Path(CA_FILE).read_text())
        places = {
            "address": "https://kubernetes.default.svc",
            "tokenFile": str(tmp_path / "token"),
            "tls.caFile": str(tmp_path / "ca.crt"),
        }
        monkeypatch.setattr(usage_conf, "_API_SERVER", places)
        return tmp_path

    def test_the_api_server_is_found_by_itself(self, account: Any) -> None:
        endpoint = endpoint_of({"type": "metrics-server"})
        assert endpoint.address == "https://kubernetes.default.svc"
        assert endpoint._authorization() == {"Authorization": "Bearer from-pod"}

    def test_a_token_of_the_section_comes_first(self, account: Any) -> None:
        endpoint = endpoint_of({"type": "metrics-server", "token": "mine"})
        assert endpoint._authorization() == {"Authorization": "Bearer mine"}

    def test_an_address_of_the_section_is_not_given_the_token_of_the_pod(
        self, account: Any
    ) -> None:
        endpoint = endpoint_of({"type": "metrics-server", "address": "http://x"})
        assert endpoint._authorization() == {}

    def test_outside_of_a_pod_an_address_is_asked_for(self, account: Any) -> None:
        (account / "ca.crt").unlink()
        with pytest.raises(ConfError, match="outside a pod, give an address"):
            usage_source({"type": "metrics-server"})
