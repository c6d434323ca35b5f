"""Health and figures are served on the addresses asked for."""

import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.errors import ServiceError
from pumice.metrics import Metrics
from pumice.serve.endpoints import add_metrics, health_app
from pumice.serve.http_server import HttpServer, Site
from pumice.serve.ports import FirstConnection, Listening, Port, tls_context


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


def test_the_first_connection_is_answered_and_so_are_later_ones() -> None:
    started = []

    def serve(listening: Listening) -> HttpServer:
        started.append(len(listening))
        return HttpServer([Site(health_app(str, str), sockets=each) for _, each in listening])

    with FirstConnection([Port("127.0.0.1", 0), Port("localhost", 0)], serve) as ports:
        places = [sockets[0].getsockname()[1] for _, sockets in ports.listening]
        assert started == []
        for place in (*places, *places):
            with urllib.request.urlopen(f"http://127.0.0.1:{place}/healthz", timeout=20) as answer:
                assert answer.read() == b"ok"
    assert started == [2]
    for place in places:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", place), timeout=1)


def test_nothing_starts_if_nobody_asks() -> None:
    def serve(_: Listening) -> Any:
        raise AssertionError("nobody asked")

    with FirstConnection([Port("127.0.0.1", 0)], serve) as ports:
        place = ports.listening[0][1][0].getsockname()[1]
        with pytest.raises(ServiceError, match=f"127.0.0.1:{place}: cannot be listened on"):
            Port("127.0.0.1", place).listen()
    for bound in Port("127.0.0.1", place).listen():  # the address is free again
        bound.close()


def test_all_addresses_are_meant_without_a_host() -> None:
    bound = Port("", 0).listen()
    families = {each.family for each in bound}
    for each in bound:
        each.close()
    assert socket.AF_INET in families
    assert len(families) == len(bound)


def test_a_server_that_cannot_start_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    tried = threading.Event()

    def serve(_: Listening) -> Any:
        tried.set()
        raise OSError("no")

    with FirstConnection([Port("127.0.0.1", 0)], serve) as ports:
        place = ports.listening[0][1][0].getsockname()
        socket.create_connection(place, timeout=5).close()
        assert tried.wait(5)
    assert "cannot serve" in caplog.text


def test_what_a_start_has_no_use_for_is_not_loaded_with_the_scheduler() -> None:
    loads = (
        "import pumice.serve.scheduler.loop, pumice.serve.start, sys\n"
        "from pumice.api.conf import DEFAULT_CONF, parse_conf\n"
        "from pumice.scheduler import Scheduler\n"
        "Scheduler(parse_conf(DEFAULT_CONF))\n"
        "assert 'pumice.actions.allocate' in sys.modules\n"
        "sys.exit(any(name in sys.modules for name in "
        "('aiohttp', 'pumice.examine', 'pumice.actions.preempt', "
        "'pumice.framework.eviction.evictor')))"
    )
    done = subprocess.run([sys.executable, "-c", loads], check=False, timeout=60)  # noqa: S603
    assert done.returncode == 0
