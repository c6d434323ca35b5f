"""HTTP to one API server: one attempt at a time, bounded answers.

Used by the client and the reflectors.  Repeats nothing; that is decided by those who know what a
request does.  Reading goes through aiohttp; writes, many and small, through wires of our own.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from pumice import __version__
from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.write_connection import Reply, WriteConnection, WritePool
from pumice.errors import InputError, RejectedError, ServiceError, UnavailableError

_BIGGEST: Final = 1 << 30  # bytes of an answer: all pods of a large cluster on one page
_CONNECT_S: Final = 10.0
_SILENCE_S: Final = 180.0  # of a watch; servers send a bookmark every minute
_IDLE_S: Final = 30.0  # servers close what is idle for longer
_LINE: Final = "\r\n"
_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # packing costs both sides more than it saves
    "User-Agent": f"pumice/{__version__}",
}
_LOST: Final = (aiohttp.ClientError, OSError, TimeoutError)
_NOT_SENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


class Transport:
    """Connections to one API server; to be used on one event loop only."""

    def __init__(self, connection: Connection, timeout_s: float, cap: int = _BIGGEST) -> None:
        self._connection = connection
        self._base = connection.server
        self._tls_name = connection.tls_name or None
        self._timeout_s = timeout_s
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, connect=_CONNECT_S)
        self._cap = cap
        self._open: aiohttp.ClientSession | None = None
        self._pool = WritePool(_IDLE_S)
        parts = urlsplit(connection.server)
        self._path = parts.path
        self._fixed = "".join(
            f"{name}: {value}{_LINE}" for name, value in {"Host": parts.netloc, **_HEADERS}.items()
        )

    async def read(self, target: str) -> Reply:
        """Read something once, whatever the status of the answer.

        Raises:
            UnavailableError: no answer; says whether the request may have arrived.
            RejectedError: an answer beyond all bounds.
        """
        headers = await self._headers()
        try:
            async with self._session().get(
                URL(self._base + target, encoded=True),
                headers=headers,
                allow_redirects=False,
                timeout=self._timeout,
                server_hostname=self._tls_name,
            ) as answer:
                content = await self._content(answer)
                return Reply(answer.status, content, retry_after_s(answer))
        except _LOST as error:
            raise self._lost(error) from error

    async def write(
        self,
        method: str,
        target: str,
        body: bytes,
        content_type: str,
        guard: Callable[[], None] | None = None,
    ) -> Reply:
        """Write something once, whatever the status of the answer.

        ``guard`` is called at the very last moment, and may raise to hold the write back.

        Raises:
            UnavailableError: no answer; says whether the request may have arrived.
            RejectedError: an answer beyond all bounds.
        """
        headers = await self._headers()
        words = headers.get("Authorization")
        request = (
            f"{method} {self._path}{target} HTTP/1.1\r\n{self._fixed}"
            f"{f'Authorization: {words}{_LINE}' if words else ''}"
            f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        wire = self._pool.take(asyncio.get_running_loop().time()) or await self._dial()
        try:
            if guard is not None:
                guard()
            return await wire.exchange(request.encode("latin-1") + body, self._timeout_s)
        except UnavailableError as error:
            error.problem = f"{self._base}: {error.problem}"
            raise
        finally:
            self._pool.give(wire)

    @asynccontextmanager
    async def stream(self, target: str, longest_s: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open an answer that comes bit by bit; what is lost while it is read is told as well.

        Raises:
            UnavailableError: no answer, or its end was lost.
        """
        timeout = aiohttp.ClientTimeout(
            total=longest_s, connect=_CONNECT_S, sock_read=min(longest_s, _SILENCE_S)
        )
        headers = await self._headers()
        try:
            async with self._session().get(
                URL(self._base + target, encoded=True),
                headers=headers,
                allow_redirects=False,
                timeout=timeout,
                server_hostname=self._tls_name,
            ) as answer:
                _keep_alive(answer)
                yield answer
        except _LOST as error:
            raise self._lost(error) from error

    def refused(self) -> None:
        """Note that the server did not accept who we say we are."""
        self._connection.credentials.refused()

    async def close(self) -> None:
        """Give up all connections."""
        self._pool.close()
        if self._open is not None:
            await self._open.close()
            self._open = None

    def _session(self) -> aiohttp.ClientSession:
        if self._open is None:
            tls = self._connection.tls
            self._open = aiohttp.ClientSession(
                # Writers bound themselves; each watch needs a connection of its own.
                connector=aiohttp.TCPConnector(limit=0, ssl=True if tls is None else tls),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=_HEADERS,
                read_bufsize=1 << 18,
            )
            # It would send again by itself what was lost, past the fence and the limits.
            self._open._retry_connection = False  # noqa: SLF001
        return self._open

    async def _headers(self) -> dict[str, str]:
        credentials = self._connection.credentials
        try:
            if credentials.fresh():
                words = credentials.header()
            else:
                words = await asyncio.to_thread(credentials.header)
        except (InputError, ServiceError) as error:
            raise UnavailableError(problem=str(error), sent=False) from error
        if not words.isprintable():
            raise UnavailableError(problem="a token with characters no token has", sent=False)
        return {"Authorization": words} if words else {}

    async def _dial(self) -> WriteConnection:
        """Open one more connection for writes."""
        tls, parts = self._connection.tls, urlsplit(self._base)
        port = parts.port or (443 if tls else 80)
        name = (self._tls_name or parts.hostname) if tls else None
        try:
            async with asyncio.timeout(_CONNECT_S):
                _, wire = await asyncio.get_running_loop().create_connection(
                    lambda: WriteConnection(self._cap),
                    parts.hostname or "",
                    port,
                    ssl=tls,
                    server_hostname=name,
                )
        except (OSError, TimeoutError) as error:
            raise self._lost(error, sent=False) from error
        return wire

    async def _content(self, answer: aiohttp.ClientResponse) -> bytes:
        announced = answer.content_length
        if announced is not None and announced <= self._cap:
            return await answer.read()
        pieces, size = [], announced or 0
        if size <= self._cap:
            async for piece in answer.content.iter_any():
                pieces.append(piece)
                size += len(piece)
                if size > self._cap:
                    break
        if size > self._cap:
            answer.close()
            raise RejectedError(problem=f"the server answered with more than {self._cap} bytes")
        return b"".join(pieces)

    def _lost(self, error: Exception, *, sent: bool = True) -> UnavailableError:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error)
        problem = f"{self._base}: {reason or type(error).__name__}"
        return UnavailableError(problem=problem, sent=sent and not isinstance(error, _NOT_SENT))


def retry_after_s(answer: aiohttp.ClientResponse) -> float:
    """Give how long a server asks to be left alone."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else 0.0


def _keep_alive(answer: aiohttp.ClientResponse) -> None:
    """Have the system notice a peer that is gone without a word."""
    transport = answer.connection.transport if answer.connection else None
    sock = transport.get_extra_info("socket") if transport else None
    if sock is None:
        return
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):  # not everywhere
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
