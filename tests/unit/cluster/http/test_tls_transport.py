"""TLS on a socket of the event loop: what is sent arrives whole, and every end is noticed."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from pumice.cluster.http.tls_transport import open_tls
from tests.unit.cluster.servers import CA_FILE, TLS

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MUCH = b"0123456789abcdef" * (1 << 18)
"""More than all buffers between the two sides hold."""


class Received(asyncio.Protocol):
    """Gathers what arrives, and how it ended."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.steps = 0
        self.ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.more = asyncio.Event()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.steps += 1
        self.more.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(exc)


@asynccontextmanager
async def connected(serve: Serve) -> AsyncIterator[Received]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CA_FILE, TLS / "key.pem")

    writers: list[asyncio.StreamWriter] = []

    async def serve_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve_and_close, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    trusted = ssl.create_default_context(cafile=CA_FILE)
    received = await open_tls(Received, "127.0.0.1", port, trusted, "127.0.0.1")
    try:
        yield received
    finally:
        received.transport.abort()
        server.close()
        for writer in writers:
            writer.transport.abort()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        await asyncio.sleep(0.01)


def test_more_than_the_system_takes_at_once_arrives_whole_and_in_order() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)  # the sender finds all buffers full
        writer.write(await reader.readexactly(len(MUCH) + 5))
        await writer.drain()

    async def main() -> None:
        async with connected(echo) as received:
            received.transport.write(MUCH)
            received.transport.write(b"at la")  # while the rest still waits
            assert await asyncio.wait_for(received.ended, 20) is None
            assert received.data == MUCH + b"at la"

    asyncio.run(main())


def test_a_pause_leaves_bytes_with_the_sender() -> None:
    sent = []

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(64):
            writer.write(MUCH[: 1 << 18])
            await writer.drain()
            sent.append(number)

    async def main() -> None:
        async with connected(flood) as received:
            await received.more.wait()
            received.transport.pause_reading()
            assert not received.transport.is_reading()
            seen = len(received.data)
            await asyncio.sleep(0.1)
            assert len(received.data) == seen
            assert len(sent) < 64
            received.transport.resume_reading()
            assert received.transport.is_reading()
            received.transport.resume_reading()
            assert await asyncio.wait_for(received.ended, 20) is None
            assert len(received.data) == 64 << 18

    asyncio.run(main())


def test_a_long_answer_is_read_in_few_steps() -> None:
    """A thread that looks at its connections every 2 ms would read it a record at a time."""
    sent = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        for number in range(128):  # each a record of its own
            writer.write(bytes([number]) * 64)
        await writer.drain()
        sent.set()

    async def main() -> None:
        async with connected(answer) as received:
            received.transport.write(b"x")
            await sent.wait()  # all of it is here
            assert await asyncio.wait_for(received.ended, 5) is None
            assert received.data == b"".join(bytes([number]) * 64 for number in range(128))
            assert received.steps <= 4

    asyncio.run(main())


def test_a_reset_is_reported_and_later_writes_go_nowhere() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.transport.abort()

    async def main() -> None:
        async with connected(reset) as received:
            received.transport.write(b"x")
            await asyncio.wait_for(received.ended, 5)
            assert received.transport.is_closing()
            received.transport.write(b"y")
            assert not received.transport.is_reading()

    asyncio.run(main())


def test_an_abort_ends_it_once() -> None:
    async def wait(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        async with connected(wait) as received:
            received.transport.close()
            received.transport.abort()
            assert await asyncio.wait_for(received.ended, 5) is None

    asyncio.run(main())


def test_a_certificate_for_another_name_is_refused() -> None:
    async def wait(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        async with connected(wait) as received:
            port = received.transport.get_extra_info("socket").getpeername()[1]
            trusted = ssl.create_default_context(cafile=CA_FILE)
            with pytest.raises(ssl.SSLCertVerificationError):
                await open_tls(Received, "127.0.0.1", port, trusted, "elsewhere.example")

    asyncio.run(main())


def test_a_handshake_without_an_answer_can_be_given_up() -> None:
    async def main() -> None:
        trusted = ssl.create_default_context(cafile=CA_FILE)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            opened = open_tls(Received, "127.0.0.1", port, trusted, "127.0.0.1")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(opened, 0.05)

    asyncio.run(main())


def test_a_port_that_nobody_listens_on_is_refused() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        trusted = ssl.create_default_context(cafile=CA_FILE)
        with pytest.raises(ConnectionRefusedError):
            await open_tls(Received, "localhost", port, trusted, "localhost")

    asyncio.run(main())
