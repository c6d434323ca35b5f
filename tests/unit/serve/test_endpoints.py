"""Health and figures are served on the addresses asked for."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.errors import ServiceError
from pumice.metrics import Metrics
from pumice.serve.endpoints import add_metrics, health_app
from pumice.serve.http_server import HttpServer, Site
from pumice.serve.ports import tls_context


def get(port: Any, path: Any) -> Any:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode(), answer.headers["Content-Type"]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers["Content-Type"]


@pytest.fixture
def state() -> Any:
    return {"why": "waits for Pod, Node", "problem": "", "details": ["[+]Queue", "[-]Pod: no"]}


@pytest.fixture
def port(state: Any) -> Iterator[Any]:
    metrics = Metrics()
    app = health_app(lambda: state["why"], lambda: state["problem"], lambda: state["details"])
    add_metrics(app, metrics.text)
    with HttpServer([Site(app, "127.0.0.1")]) as endpoints:
        yield endpoints.ports[0]


def test_healthz_is_ok_while_nothing_is_broken(port: Any, state: Any) -> None:
    assert get(port, "/healthz")[:2] == (200, "ok")
    state["problem"] = "scheduler ended"
    assert get(port, "/healthz")[:2] == (500, "scheduler ended\n")


def test_readyz_waits_until_nothing_is_missing(port: Any, state: Any) -> None:
    assert get(port, "/readyz")[:2] == (503, "not ready: waits for Pod, Node\n")
    state["why"] = ""
    assert get(port, "/readyz")[:2] == (200, "ok")


def test_readyz_tells_more_if_asked(port: Any, state: Any) -> None:
    reported = "[+]Queue\n[-]Pod: no\n"
    waits = "not ready: waits for Pod, Node\n"
    assert get(port, "/readyz?verbose")[:2] == (503, reported + waits)
    state["why"] = ""
    assert get(port, "/readyz?verbose")[:2] == (200, f"{reported}ok\n")


def test_metrics_are_served_as_prometheus_wants_them(port: Any) -> None:
    status, text, kind = get(port, "/metrics")
    assert status == 200
    assert "volcano_e2e_scheduling_latency_milliseconds_count 0" in text
    assert kind == "text/plain; version=0.0.4; charset=utf-8"


def test_nothing_else_is_served(port: Any) -> None:
    assert get(port, "/debug/pprof/")[0] == 404


def test_an_address_in_use_is_reported(port: Any) -> None:
    site = Site(health_app(str, str), "127.0.0.1", port)
    with pytest.raises(ServiceError, match=f"127.0.0.1:{port}: cannot be listened on"):
        HttpServer([site]).start()


def test_tls_needs_certificate_key_and_authority() -> None:
    assert tls_context("", "a", "b") is None
