"""HTTP connections: whole answers come through, anything else ends the connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import pytest

from pumice.cluster.http.connection import HttpConnection
from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.credentials import StaticCredentials
from pumice.cluster.kube.retry import Transport
from pumice.errors import RejectedError, UnavailableError

OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = OK + b"Content-Length: 2\r\n\r\nhi"


class Requests(list[bytes]):
    """The requests, and whether there were any."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = asyncio.Event()


@asynccontextmanager
async def wired(
    *answers: Any, cap: Any = 1000, timeout_s: Any = 5.0, credentials: Any = None
) -> AsyncIterator[Any]:
    """Return a transport to a server that sends these bytes in turn; counts connections."""
    left, connections, requests = list(answers), [], Requests()

    async def serve(reader: Any, writer: Any) -> None:
        connections.append(writer)
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = next(line for line in head.split(b"\r\n") if b"Content-Length" in line)
            requests.append(head + await reader.readexactly(int(length.split(b":")[1])))
            requests.arrived.set()
            pieces = left.pop(0) if left else [WHOLE]
            for piece in [pieces] if isinstance(pieces, bytes) else pieces:
                if piece is None:
                    writer.close()
                    break
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = Connection(
        f"http://127.0.0.1:{port}/base", credentials=credentials or StaticCredentials()
    )
    transport = Transport(connection, timeout_s, cap)
    try:
        yield transport, connections, requests
    finally:
        transport.close()
        server.close()
        await server.wait_closed()
        for writer in connections:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def post(transport: Any) -> Any:
    return await transport.send("POST", "/x?y=1", b"{}", "application/json")


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (WHOLE, b"hi"),
        ([WHOLE[:9], WHOLE[9:30], WHOLE[30:]], b"hi"),
        (
            [OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1;x=y\r\nh\r\n", b"1\r\ni\r\n0\r\n\r\n"],
            b"hi",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
async def test_an_answer_comes_whole_in_whatever_pieces_and_the_connection_is_kept(
    answer: Any, content: bytes
) -> None:
    async with wired(answer) as (transport, connections, requests):
        assert (await post(transport)).content == content
        assert (await post(transport)).content == b"hi"
        assert len(connections) == 1
        assert requests[0].startswith(b"POST /base/x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:")
        assert requests[0].endswith(b"\r\n\r\n{}")


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        [OK + b"\r\n", b"hi", None],
    ],
)
async def test_an_answer_that_ends_with_its_connection_is_taken_and_the_connection_is_not(
    answer: Any,
) -> None:
    async with wired(answer) as (transport, connections, _):
        assert (await post(transport)).content == b"hi"
        assert (await post(transport)).content == b"hi"
        assert len(connections) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"hello\r\n\r\n",
        OK + b"Content-Length: 1\r\n\r\nhi",
        [None],
        [OK + b"Content-Length: 9\r\n\r\nhi", None],
        [OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi", None],
    ],
)
async def test_anything_else_is_no_answer_and_ends_the_connection(answer: Any) -> None:
    async with wired(answer) as (transport, connections, _):
        with pytest.raises(UnavailableError) as caught:
            await post(transport)
        assert caught.value.sent
        assert (await post(transport)).content == b"hi"
        assert len(connections) == 2


def test_what_nobody_asked_for_ends_the_connection() -> None:
    transport, wire = Mock(**{"is_closing.return_value": False}), HttpConnection()
    wire.connection_made(transport)
    assert wire.is_open
    wire.data_received(b"HTTP/1.1 500 no\r\n")
    transport.abort.assert_called_once_with()


@pytest.mark.parametrize(
    "answer", [OK + b"Content-Length: 2000\r\n\r\n" + b"x" * 2000, OK + b"X: y" * 20_000]
)
async def test_an_answer_beyond_all_bounds_is_refused(answer: Any) -> None:
    cap = 1000 if b"Length" in answer else 1 << 20
    async with wired(answer, cap=cap) as (transport, _, _):
        with pytest.raises((RejectedError, UnavailableError)):
            await post(transport)


async def test_an_answer_that_does_not_come_in_time_ends_the_connection() -> None:
    async with wired([b"HTTP"], timeout_s=0.02) as (transport, connections, _):
        with pytest.raises(UnavailableError, match="no answer in time"):
            await post(transport)
        transport._timeout_s = 5.0
        assert (await post(transport)).content == b"hi"
        assert len(connections) == 2


async def test_a_request_that_is_broken_off_leaves_no_answer_to_the_next() -> None:
    async with wired([b"HTTP"]) as (transport, connections, requests):
        task = asyncio.create_task(post(transport))
        await requests.arrived.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await post(transport)).content == b"hi"
        assert len(connections) == 2
