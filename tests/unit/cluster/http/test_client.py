"""HttpClient: streams, what goes out, and the words for a connection that cannot be made."""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.cluster.http import client as client_module
from pumice.cluster.http.client import HttpClient, Request, _Address, _dial_problem
from pumice.errors import RejectedError, UnavailableError
from tests.unit.cluster.servers import unused_port

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GET = Request("GET", "/x", {})


@asynccontextmanager
async def talking(say: Any) -> AsyncIterator[Any]:
    """Yield a client and the connections of a server; ``say`` answers on a writer."""
    connections = []

    async def serve(reader: Any, writer: Any) -> None:
        connections.append(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await say(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = HttpClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield client, connections
    finally:
        client.close()
        server.close()
        await server.wait_closed()
        for writer in connections:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def chunk(data: Any) -> Any:
    return b"%x\r\n%b\r\n" % (len(data), data)


def saying(*pieces: Any) -> Any:
    async def say(writer: Any) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    return say


async def read_all(
    client: Any, silence_s: float = 5.0, longest_s: float = 5.0, request: Any = GET
) -> Any:
    async with client.stream(request, longest_s=longest_s, silence_s=silence_s) as answer:
        pieces = []
        while piece := await answer.read():
            pieces.append(piece)
        return b"".join(pieces)


@pytest.mark.parametrize(("silence_s", "longest_s"), [(0.05, 5.0), (5.0, 0.05)])
async def test_a_stream_that_falls_silent_or_lasts_too_long_is_given_up(
    silence_s: Any, longest_s: Any
) -> None:
    async with talking(saying(CHUNKED, chunk(b"one"))) as (client, _):
        with pytest.raises(UnavailableError, match="no answer in time"):
            await read_all(client, silence_s, longest_s)


async def test_a_stream_that_drips_is_given_up_at_its_end() -> None:
    async def drip(writer: Any) -> None:
        await saying(CHUNKED, b"fff\r\n")(writer)
        for _ in range(200):
            await saying(b"x")(writer)
            await asyncio.sleep(0.02)

    async with talking(drip) as (client, _):
        started = asyncio.get_running_loop().time()
        with pytest.raises(UnavailableError, match="no answer in time"):
            await read_all(client, silence_s=0.2, longest_s=0.3)
        assert asyncio.get_running_loop().time() - started < 2


async def test_a_stream_whose_end_is_lost_is_an_error_after_what_came() -> None:
    async def cut(writer: Any) -> None:
        await saying(CHUNKED, chunk(b"one"))(writer)
        writer.close()

    async with (
        talking(cut) as (client, _),
        client.stream(GET, longest_s=5.0, silence_s=5.0) as answer,
    ):
        assert await answer.read() == b"one"
        with pytest.raises(UnavailableError, match="in the middle"):
            await answer.read()


async def test_a_stream_that_is_read_slowly_holds_its_server_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "_STREAM_CAP", 1 << 20)
    sent = []

    async def flood(writer: Any) -> None:
        writer.write(CHUNKED)
        for _ in range(400):
            writer.write(chunk(b"x" * 65536))
            await writer.drain()
            sent.append(65536)
        writer.write(b"0\r\n\r\n")

    async with (
        talking(flood) as (client, _),
        client.stream(GET, longest_s=5.0, silence_s=5.0) as answer,
    ):
        await asyncio.sleep(0.1)
        assert len(sent) < 400
        size = 0
        while piece := await answer.read():
            size += len(piece)
        assert size == 400 * 65536


async def test_a_chunk_without_end_is_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_STREAM_CAP", 1 << 16)

    said = saying(CHUNKED, b"fffffff\r\n", *[b"x" * 65536] * 4)
    async with talking(said) as (client, _):
        with pytest.raises(RejectedError, match="more than 65536 bytes"):
            await read_all(client)


_REFUSED = r"^dial tcp (127\.0\.0\.1|\[::1\]):\d+: connect: connection refused$"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (f"http://127.0.0.1:{unused_port()}", r"^dial tcp .*: connect: connection refused$"),
        (f"http://localhost:{unused_port()}", _REFUSED),
        ("http://nobody.invalid", r"^dial tcp: lookup nobody\.invalid: "),
        ("http://a..b", "dial tcp"),
    ],
    ids=["nobody", "nobody at two addresses", "no name", "no host name"],
)
async def test_a_connection_that_cannot_be_made_is_reported_in_the_words_of_go(
    url: Any, problem: Any
) -> None:
    with pytest.raises(UnavailableError) as caught:
        await HttpClient(url).send(GET, timeout_s=5.0, cap=10)
    assert not caught.value.sent
    assert re.search(problem, caught.value.problem)


@pytest.mark.parametrize(
    "url",
    ["", "h", "ftp://h", "http://", "http://h:port", "http://h:99999", "http://a b", "http://ä"],
)
def test_an_address_that_cannot_be_asked(url: str) -> None:
    client = HttpClient(url)
    with pytest.raises(UnavailableError, match="expected an address that begins with") as caught:
        client._text(Request("GET", "/x", {}))
    assert not caught.value.sent


@pytest.mark.parametrize(
    ("target", "headers", "problem"),
    [
        ("/a b", {}, "expected a path in ASCII without blanks"),
        ("/a\r\nB: c", {}, "expected a path in ASCII without blanks"),
        ("/ä", {}, "expected a path in ASCII without blanks"),
        ("/", {"A": "b\r\nC: d"}, "expected headers in ASCII"),
        ("/", {"A": "ä"}, "expected headers in ASCII"),
        ("/", {"A": "b", "C": "\n"}, "expected headers in ASCII"),
    ],
)
def test_nothing_in_a_request_can_end_a_line_early(target: str, headers: Any, problem: str) -> None:
    with pytest.raises(UnavailableError, match=problem) as caught:
        HttpClient("http://h")._text(Request("GET", target, headers))
    assert not caught.value.sent


ADDRESS = _Address("h", 80, "h", "")


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (TimeoutError(), "no answer in time"),
        (ssl.SSLError("bad"), "tls: ('bad',)"),
        (socket.gaierror(-2, "Name Not Known"), "dial tcp: lookup h: name not known"),
        (ConnectionRefusedError(111, "x"), "dial tcp h:80: connect: connection refused"),
        (
            OSError("[Errno 111] Connect call failed ('10.0.0.1', 80)"),
            "dial tcp 10.0.0.1:80: connect: connection refused",
        ),
        (
            OSError("[Errno 113] Connect call failed ('fd00::1', 80, 0, 0)"),
            "dial tcp [fd00::1]:80: connect: no route to host",
        ),
        (ValueError("odd"), "dial tcp h:80: connect: odd"),
    ],
)
def test_why_there_is_no_connection(error: Exception, problem: str) -> None:
    assert _dial_problem(error, ADDRESS) == problem
