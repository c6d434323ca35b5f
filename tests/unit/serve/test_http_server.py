"""Connections that do nothing are closed, and malformed HTTP leaves no traceback."""

import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pumice.apiserver.rest import RestApi
from pumice.apiserver.server import ApiServer
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.serve import http_server
from pumice.serve.endpoints import health_app
from pumice.serve.http_server import HttpServer, Site, read_body
from pumice.serve.webhooks.server import watch_certificate

TLS = Path(__file__).parents[2] / "data" / "tls"
IDLE_S = 0.5
SOON_S = 15.0


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=await read_body(request, 1000))


@pytest.fixture(params=["health", "webhook", "api"])
def port(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Ports of the three kinds of server, with little patience."""
    monkeypatch.setattr(http_server, "_IDLE_S", IDLE_S)
    monkeypatch.setattr("asyncio.constants.SSL_HANDSHAKE_TIMEOUT", IDLE_S)
    if request.param == "api":
        api = ApiServer(RestApi(EmbeddedCluster()))
        api.start()
        yield api.port
        api.stop()
        return
    app = health_app(str, str)
    app.router.add_post("/echo", echo)
    tls = None
    if request.param == "webhook":
        tls = watch_certificate(str(TLS / "cert.pem"), str(TLS / "key.pem")).current
    with HttpServer([Site(app, "127.0.0.1", 0, tls)]) as server:
        yield server.ports[0]


def answers(port: int, *sent: bytes) -> bytes:
    """Send pieces now and then; return what came back once the server closed the connection."""
    received, pieces, ends = b"", iter(sent), time.monotonic() + SOON_S
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(0.1)
        while time.monotonic() < ends:
            try:
                client.sendall(next(pieces, b""))
                piece = client.recv(4096)
            except TimeoutError:
                continue
            except OSError:
                return received
            if not piece:
                return received
            received += piece
    pytest.fail("the server keeps the connection")


HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: "


UNFINISHED = {
    "nothing": (),
    "half a head": (HALF,),
    "letter by letter": (HALF, *[b"a"] * 1000),
    "half a greeting": (b"\x16\x03\x01\x02\x00",),
}


@pytest.mark.parametrize("sent", UNFINISHED.values(), ids=UNFINISHED)
def test_a_connection_without_a_whole_request_is_closed(port: int, sent: Any) -> None:
    assert b" 200 " not in answers(port, *sent)


MALFORMED = {
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00garbage\r\n\r\n",
    "version": b"GET / HTTP/9.9\r\n\r\n",
    "address": b"GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "bytes": b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "length": b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n",
    "two lengths": b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "chunk": b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "long": b"GET / HTTP/1.1\r\nA: " + b"b" * 100_000 + b"\r\n\r\n",
    "encoding": b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
    b"Content-Encoding: gzip\r\n\r\nabcde",
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_request_is_refused_without_a_traceback(
    port: int, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        received = answers(port, sent)
    assert b" 500 " not in received
    assert [record for record in caplog.records if record.exc_info] == []


def test_a_fault_of_ours_is_still_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_: web.Request) -> web.Response:
        raise KeyError("ours")

    app = web.Application()
    app.router.add_get("/", broken)
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with HttpServer([Site(app, "127.0.0.1", 0)]) as server, caplog.at_level(logging.ERROR):
        assert b" 500 " in answers(server.ports[0], request)
    assert "KeyError: 'ours'" in caplog.text
