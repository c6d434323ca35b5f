"""HTTP with bounds: requests to one server, each sent once, in limited time, with a limited answer.

Used by everything that calls another program.  Repeats only requests that met a connection
that had died meanwhile; the caller decides whether other requests may be repeated.
"""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import urlsplit

import msgspec

from pumice import __version__
from pumice.api.shown_text import without_secrets
from pumice.cluster.http.connection import ConnectionPool, HttpConnection, Reply
from pumice.cluster.http.response import ResponseHead
from pumice.cluster.http.tls import RenewableTls, tls_context
from pumice.errors import UnavailableError

_CONNECT_S: Final = 10.0
_IDLE_S: Final = 30.0  # servers close what is idle for longer
_STREAM_CAP: Final = 1 << 27
_PRINTABLE: Final = re.compile(r"[!-~]*")
_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")
_TRIED: Final = re.compile(r"Connect call failed \('([^']+)'")
_HEADERS: Final = (
    "Accept: application/json\r\n"
    "Accept-Encoding: identity\r\n"  # packing costs both sides more than it saves
    f"User-Agent: pumice/{__version__}\r\n"
)


class Request(msgspec.Struct, frozen=True):
    """What is sent; ``repeatable`` if sending it twice does no more than sending it once."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None = None
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class _Address:
    host: str
    port: int
    netloc: str
    path: str


class Stream:
    """An answer that arrives in pieces; ``silence_s`` bounds the wait for more."""

    def __init__(
        self, connection: HttpConnection, head: ResponseHead, silence_s: float, until: float
    ) -> None:
        self._connection = connection
        self._silence_s = silence_s
        self._until = until
        self.status = head.status
        self.retry_after_s = head.retry_after_s

    async def read(self) -> bytes:
        """Return the bytes received, waiting if needed; nothing at the end.

        Raises:
            UnavailableError: the end was lost, or nothing arrived for too long.
        """
        return await self._connection.read(self._silence_s, self._until)


class HttpClient:
    """Connections to one server; to be used on one event loop only.

    Certificates are verified unless a ``tls`` context says otherwise; they must carry ``tls_name``,
    without one the host of the address.  Once the settings change, connections opened with
    older ones are not used for further requests.  Redirects are not followed.
    """

    def __init__(
        self, url: str, *, tls: ssl.SSLContext | RenewableTls | None = None, tls_name: str = ""
    ) -> None:
        self.url = without_secrets(url).rstrip("/")
        """The address for messages."""
        self._url = url.rstrip("/")
        self._given_tls = tls
        self._tls_name = tls_name
        self._pool = ConnectionPool(_IDLE_S)
        self._last_headers: Mapping[str, str] | None = None
        self._last_lines = ""
        """The headers of the last request as they go out: most requests have the same."""

    async def send(
        self,
        request: Request,
        *,
        timeout_s: float,
        cap: int,
        guard: Callable[[], None] | None = None,
    ) -> Reply:
        """Send a request and return the whole answer, whatever its status.

        ``guard`` is called at the very last moment, and may raise to hold the request back.

        Raises:
            UnavailableError: no answer; ``sent`` shows whether the request may have arrived.
            RejectedError: an answer of more than ``cap`` bytes.
        """
        text = self._text(request)
        now = asyncio.get_running_loop().time()
        until = now + timeout_s
        kept = self._pool.take(now, self._rules())
        if kept is not None:
            try:
                return await self._exchange(kept, text, until, cap, guard)
            except UnavailableError:
                if not _may_repeat(request, kept, until):
                    raise
        return await self._exchange(await self._dial(until), text, until, cap, guard)

    @asynccontextmanager
    async def stream(
        self, request: Request, *, longest_s: float, silence_s: float
    ) -> AsyncIterator[Stream]:
        """Open an answer that arrives in pieces.

        Raises:
            UnavailableError: no answer, or its end was lost while it was read.
        """
        until = asyncio.get_running_loop().time() + longest_s
        text = self._text(request)

        connection, head = await self._open_stream(request, text, silence_s, until)
        try:
            yield Stream(connection, head, silence_s, until)
        finally:
            if connection.is_idle:
                self._pool.give(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        self._pool.close()

    async def _exchange(
        self,
        connection: HttpConnection,
        text: bytes,
        until: float,
        cap: int,
        guard: Callable[[], None] | None,
    ) -> Reply:
        try:
            if guard is not None:
                guard()
            return await connection.exchange(text, until=until, cap=cap)
        finally:
            self._pool.give(connection)

    async def _open_stream(
        self, request: Request, text: bytes, silence_s: float, until: float
    ) -> tuple[HttpConnection, ResponseHead]:
        now = asyncio.get_running_loop().time()
        kept = self._pool.take(now, self._rules())
        if kept is not None:
            try:
                return kept, await kept.open_stream(text, until=now + silence_s, cap=_STREAM_CAP)
            except UnavailableError:
                if not _may_repeat(request, kept, until):
                    raise
        connection = await self._dial(until)
        latest = asyncio.get_running_loop().time() + silence_s
        return connection, await connection.open_stream(text, until=latest, cap=_STREAM_CAP)

    async def _dial(self, until: float) -> HttpConnection:
        """Open one more connection."""
        address, tls = self._address, self._rules()
        timeout_s = min(until - asyncio.get_running_loop().time(), _CONNECT_S)
        if timeout_s <= 0:
            raise UnavailableError(problem="no answer in time", sent=False)
        try:
            async with asyncio.timeout(timeout_s):
                name = (self._tls_name or address.host) if tls is not None else None
                _, connection = await asyncio.get_running_loop().create_connection(
                    HttpConnection, address.host, address.port, ssl=tls, server_hostname=name
                )
        except (OSError, ValueError) as error:  # an odd host name is a ValueError
            raise UnavailableError(problem=_dial_problem(error, address), sent=False) from error
        connection.rules = tls
        return connection

    def _rules(self) -> ssl.SSLContext | None:
        """Return the current TLS settings; None for plain HTTP."""
        given = self._given_tls
        return given.current() if isinstance(given, RenewableTls) and self._is_tls else self._tls

    def _text(self, request: Request) -> bytes:
        """Write a request as it goes out; nothing in it can end a line early."""
        if not _PRINTABLE.fullmatch(request.target):
            raise UnavailableError(problem="expected a path in ASCII without blanks", sent=False)
        headers, body = request.headers, request.body
        if headers is not self._last_headers and headers != self._last_headers:
            self._last_lines, self._last_headers = self._header_lines(headers), headers
        length = "" if body is None else f"Content-Length: {len(body)}\r\n"
        path = f"{self._address.path}{request.target}"
        head = f"{request.method} {path} HTTP/1.1\r\n{self._last_lines}{length}\r\n"
        return head.encode("ascii") + (body or b"")

    def _header_lines(self, headers: Mapping[str, str]) -> str:
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise UnavailableError(problem="expected headers in ASCII", sent=False)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        return f"Host: {self._address.netloc}\r\n{_HEADERS}{lines}"

    @cached_property
    def _address(self) -> _Address:
        wanted = "expected an address that begins with http:// or https://"
        try:
            parts = urlsplit(self._url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise UnavailableError(problem=wanted, sent=False) from error
        known = parts.scheme in ("http", "https") and _PRINTABLE.fullmatch(self._url)
        if not parts.hostname or not known:
            raise UnavailableError(problem=wanted, sent=False)
        return _Address(parts.hostname, port, parts.netloc.rpartition("@")[2], parts.path)

    @cached_property
    def _is_tls(self) -> bool:
        return self._url.startswith("https:")

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        given = self._given_tls
        fixed = given if isinstance(given, ssl.SSLContext) else None
        return (fixed or tls_context()) if self._is_tls else None


def _may_repeat(request: Request, connection: HttpConnection, until: float) -> bool:
    """Return whether a request may be sent again: what it met was a connection that had died."""
    is_late = asyncio.get_running_loop().time() >= until
    return request.repeatable and not connection.answered and not is_late


def _dial_problem(error: Exception, address: _Address) -> str:
    """Explain in the words of Go's client, which scripts know, why there is no connection."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLError):
        return f"tls: {error}"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {address.host}: {(error.strerror or '').lower()}"
    number = _ERRNO.search(str(error))
    reason = os.strerror(int(number[1])).lower() if number else str(error)
    tried = _TRIED.search(str(error))  # the first of several
    host = tried[1] if tried else address.host
    shown = f"[{host}]" if ":" in host else host
    return f"dial tcp {shown}:{address.port}: connect: {reason}"
