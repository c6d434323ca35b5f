"""Connections that do nothing are closed, and malformed HTTP leaves no traceback."""

import asyncio
import gzip
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
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
from pumice.serve.webhooks import watch_certificate

TLS = Path(__file__).parents[2] / "data" / "tls"
IDLE_S = 0.5
SOON_S = 15.0


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=await read_body(request, 1000))


@pytest.fixture(params=["health", "webhook", "api"])
def port(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Ports of the three kinds of server, with little patience."""
    monkeypatch.setattr(http_server, "_IDLE_S", IDLE_S)
    monkeypatch.setattr(http_server, "_HANDSHAKE_S", IDLE_S)
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


@contextmanager
def served(tls: Any = None) -> Iterator[int]:
    app = health_app(str, str)
    app.router.add_post("/echo", echo)
    with HttpServer([Site(app, "127.0.0.1", 0, tls)]) as server:
        yield server.ports[0]


HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


HALF_BODY = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{"


@pytest.mark.parametrize("half", [HALF, HALF_BODY])
def test_connections_without_a_whole_request_make_room_for_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, half: bytes
) -> None:
    monkeypatch.setattr(http_server, "_MOST_CONNECTIONS", 10)
    with served() as port, ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(50)
        ]
        for each in idle:
            with suppress(OSError):
                each.sendall(half)
        time.sleep(0.5)  # until the server has read that
        assert b" 200 " in answers(port, HEALTHZ)
        open_ = [each for each in idle if not is_closed(each)]
        assert len(open_) <= 10
        assert idle[-1] in open_  # the oldest were closed
    assert not caplog.records


def is_closed(client: socket.socket) -> bool:
    client.settimeout(0.2)
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_a_connection_whose_request_is_answered_is_not_closed_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "_MOST_CONNECTIONS", 5)
    asked, ready = threading.Semaphore(0), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        asked.release()
        await ready.wait()
        return web.Response(text="done")

    app = web.Application()
    app.router.add_get("/healthz", slow)
    with HttpServer([Site(app, "127.0.0.1", 0)]) as server, ExitStack() as stack:
        place = ("127.0.0.1", server.ports[0])
        busy = [stack.enter_context(socket.create_connection(place, SOON_S)) for _ in range(5)]
        for each in busy:
            each.sendall(HEALTHZ)
        for _ in busy:
            assert asked.acquire(timeout=SOON_S)
        with socket.create_connection(place, SOON_S) as other:
            assert other.recv(1) == b""
        server.call_soon(ready.set)
        for each in busy:
            assert b" 200 " in each.recv(4096)


def test_unfinished_handshakes_do_not_use_up_all_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "_MOST_HANDSHAKES", 5)
    tls = watch_certificate(str(TLS / "cert.pem"), str(TLS / "key.pem")).current
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    with served(tls) as port, ExitStack() as stack:
        mute = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(30)
        ]
        assert sum(map(is_closed, mute)) >= 25  # the oldest make room
        assert not is_closed(mute[-1])
        plain = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        with client.wrap_socket(plain) as secure:
            secure.sendall(HEALTHZ)
            assert b" 200 " in secure.recv(4096)


def test_compressed_bodies_are_not_unpacked() -> None:
    body = gzip.compress(b" " * 1_000_000)
    for encoding in (b"gzip", b"deflate", b"br", b"zstd", b"GZIP", b"identity, gzip"):
        head = b"Host: localhost\r\nConnection: close\r\nContent-Encoding: " + encoding
        sent = b"POST /echo HTTP/1.1\r\n%s\r\nContent-Length: %d\r\n\r\n" % (head, len(body))
        with served() as port:
            assert b" 415 " in answers(port, sent + body)


def test_headers_are_utf8() -> None:
    with served() as port:
        sent = HEALTHZ.replace(b"\r\n\r\n", b"\r\nX-Name: \xff\r\n\r\n")
        assert b" 400 " in answers(port, sent)
        sent = HEALTHZ.replace(b"\r\n\r\n", "\r\nX-Name: é\r\n\r\n".encode())
        assert b" 200 " in answers(port, sent)


def test_a_client_that_does_not_read_is_left_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_server, "BODY_TIMEOUT_S", 0.5)
    ended = threading.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await http_server.write_in_time(request, response.write(b"x" * 1_000_000))
        finally:
            ended.set()

    app = web.Application()
    app.router.add_get("/", endless)
    with (
        HttpServer([Site(app, "127.0.0.1", 0)]) as server,
        socket.create_connection(("127.0.0.1", server.ports[0])) as client,
    ):
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert ended.wait(SOON_S)
    assert [record for record in caplog.records if record.exc_info] == []


async def weigh(request: web.Request) -> web.Response:
    return web.Response(text=str(len(await read_body(request, 1 << 20))))


def post(client: socket.socket, sent: int, length: int) -> None:
    head = f"POST /weigh HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    client.sendall(head.encode() + b"x" * sent)


def test_bodies_that_do_not_end_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_MOST_HELD", 1 << 20)
    large, small = 1 << 19, 1000
    app = web.Application()
    app.router.add_post("/weigh", weigh)
    with HttpServer([Site(app, "127.0.0.1")]) as server, ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.ports[0]), SOON_S))
            for _ in range(4)
        ]
        for client in clients[:2]:
            post(client, large - 10, large)
        time.sleep(0.5)  # both are being read
        post(clients[2], large, large)
        assert b" 503 " in clients[2].recv(4096)
        post(clients[3], small - 1, small)
        time.sleep(0.1)
        clients[3].sendall(b"x")
        assert clients[3].recv(4096).endswith(b"1000")
        clients[0].sendall(b"x" * 10)
        assert clients[0].recv(4096).endswith(str(large).encode())
        post(clients[3], large, large)  # the room of the one that ended
        assert clients[3].recv(4096).endswith(str(large).encode())


def test_answers_that_nobody_reads_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    large = 24 << 20  # more than sockets hold
    monkeypatch.setattr(http_server, "_MOST_HELD", 2 * large)
    monkeypatch.setattr(http_server, "_SLOW_S", 1.0)

    async def give(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * large, headers={"X-Kept": "yes"})

    app = web.Application()
    app.router.add_get("/", give)
    ask = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with HttpServer([Site(app, "127.0.0.1")]) as server, ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.ports[0]), SOON_S))
            for _ in range(4)
        ]
        for client in clients[:3]:
            client.sendall(ask)
            time.sleep(0.2)  # they are answered in turn
        assert b" 429 " in clients[2].recv(4096)
        time.sleep(1.0)  # the first two do not read
        clients[3].sendall(ask)
        head, _, body = clients[3].recv(4096).partition(b"\r\n\r\n")
        assert b" 200 " in head
        assert b"X-Kept: yes" in head
        missing = large - len(body)
        while missing:
            missing -= len(clients[3].recv(1 << 20))
        with suppress(ConnectionResetError):
            while clients[0].recv(1 << 20):
                pass  # the oldest made room


def test_requests_that_wait_do_not_hold_up_others() -> None:
    gate = threading.Event()

    async def wait(_: web.Request) -> web.Response:
        return web.Response(text=str(await asyncio.to_thread(gate.wait, SOON_S)))

    async def quick(_: web.Request) -> web.Response:
        return web.Response(text=await asyncio.to_thread(str, "quick"))

    app = web.Application()
    app.router.add_get("/wait", wait)
    app.router.add_get("/quick", quick)
    with HttpServer([Site(app, "127.0.0.1")]) as server, ExitStack() as stack:
        place = ("127.0.0.1", server.ports[0])
        clients = [stack.enter_context(socket.create_connection(place, SOON_S)) for _ in range(21)]
        for client in clients[:20]:
            client.sendall(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.3)  # all of them wait
        clients[20].sendall(b"GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\n")
        clients[20].settimeout(5.0)
        try:
            assert clients[20].recv(4096).endswith(b"quick")
        finally:
            gate.set()
