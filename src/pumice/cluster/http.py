"""HTTP with bounds: one kept connection, a deadline for each call, a cap on answers.

Used by all that asks another program something.  What comes back is not trusted: a length that
does not hold, garbage, a flood or silence all end in an HttpError, never in a hang.
"""

import io
import json
import logging
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, BinaryIO, Final, cast
from urllib.parse import urlsplit

from pumice.errors import HttpError

log = logging.getLogger(__name__)

MAX_ANSWER: Final = 10 << 20
"""Bytes of an answer that are read at most."""

_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service said; ``url`` is the address that was asked, without its query."""

    url: str
    status: int
    content: bytes

    def json_object(self) -> dict[str, Any]:
        """Read the content as one JSON object.

        Raises:
            HttpError: it is something else.
        """
        try:
            found = json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise HttpError(self.url, "answered with something that is not JSON") from error
        if not isinstance(found, dict):
            raise HttpError(self.url, f"wanted a JSON object, found {type(found).__name__}")
        return found


@dataclass(frozen=True, slots=True)
class _Call:
    """One request and its bounds."""

    method: str
    url: str
    body: bytes | None
    headers: Mapping[str, str]
    deadline: float
    cap: int

    @property
    def shown(self) -> str:
        """The address for people: a query may be long."""
        return self.url.partition("?")[0]


class HttpClient:
    """One service; keeps its connection between calls.  Not for several threads at once.

    Deadlines are moments of ``clock``.  They bound all but the lookup of a name, which is left to
    the system.  Certificates are verified unless a ``tls`` context says otherwise; they must carry
    ``tls_name``, without one the host of the address.
    """

    def __init__(
        self,
        base: str,
        *,
        tls: ssl.SSLContext | None = None,
        tls_name: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.base = base.rstrip("/")
        self.clock = clock
        self._tls = tls
        self._tls_name = tls_name
        self._connection: HTTPConnection | None = None

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        deadline: float,
        cap: int = MAX_ANSWER,
    ) -> Answer:
        """Call once and read the whole answer, whatever its status; redirects are not followed.

        Raises:
            HttpError: no answer in time, one beyond the cap, or none that is HTTP.
        """
        call = _Call(method, f"{self.base}{path}", body, headers or {}, deadline, cap)
        try:
            return self._exchange(call)
        except (OSError, HTTPException, ValueError) as error:
            self.close()
            raise HttpError(call.shown, _describe(error)) from error
        except HttpError:
            self.close()
            raise

    def close(self) -> None:
        """Give the connection up; the next call opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, call: _Call) -> Answer:
        """Call once; once more if a kept connection turns out to be dead."""
        kept = self._connection is not None and not _timed(self._connection).has_news()
        if not kept:
            self.close()
        try:
            return self._call(call)
        except (ConnectionError, ssl.SSLEOFError):
            self.close()
            if not kept:
                raise
        return self._call(call)

    def _call(self, call: _Call) -> Answer:
        if self._connection is None:
            self._connection = self._open(call)
        connection = self._connection
        _timed(connection).deadline = call.deadline
        parts = urlsplit(call.url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request(call.method, target, call.body, dict(call.headers))
        response = connection.getresponse()
        content = _read(call, response)
        if response.will_close:
            self.close()
        return Answer(call.shown, response.status, content)

    def _open(self, call: _Call) -> HTTPConnection:
        parts = urlsplit(call.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise HttpError(call.shown, "wanted an address that begins with http:// or https://")
        connection: HTTPConnection
        if parts.scheme == "https":
            self._tls = self._tls or tls_context()
            connection = HTTPSConnection(parts.hostname, parts.port, context=self._tls)
        else:
            connection = HTTPConnection(parts.hostname, parts.port)
        sock = self._dial(parts.hostname, connection.port, call.deadline)
        if parts.scheme == "https" and self._tls:
            name = self._tls_name or parts.hostname
            sock = _encrypt(sock, self._tls, name, self._left(call.deadline))
        connection.sock = _TimedSocket(sock, self._left, call.deadline)
        return connection

    def _dial(self, host: str, port: int, deadline: float) -> socket.socket:
        """Connect to the first address of a host that answers, within one deadline for all."""
        refused: OSError | None = None
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, address in found:
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(self._left(deadline))
                sock.connect(address)
            except OSError as error:
                sock.close()
                refused = error
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock
        raise refused or OSError("the name has no address")

    def _left(self, deadline: float) -> float:
        """Give the seconds left, or end the call."""
        left = deadline - self.clock()
        if left <= 0:
            raise TimeoutError
        return left


def tls_context(ca_file: str | None = None, *, verify: bool = True) -> ssl.SSLContext:
    """Make the rules for TLS: the system's authorities, or only those of a file.

    Raises:
        OSError: the file cannot be read, or holds no certificate.
    """
    context = ssl.create_default_context(cafile=ca_file)
    if not verify:
        log.warning("certificates are NOT verified: anybody on the way can read and change all")
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _encrypt(
    sock: socket.socket, tls: ssl.SSLContext, host: str, timeout_s: float
) -> socket.socket:
    try:
        sock.settimeout(timeout_s)  # of the whole handshake
        return tls.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def _read(call: _Call, response: HTTPResponse) -> bytes:
    """Read a body piece by piece; its length must be as announced and within the cap."""
    announced = response.length
    if announced is not None and announced > call.cap:
        raise HttpError(call.shown, f"announced an answer of {announced} bytes")
    pieces, size = [], 0
    while piece := response.read(_PIECE):
        size += len(piece)
        if size > call.cap:
            raise HttpError(call.shown, f"answered with more than {call.cap} bytes")
        pieces.append(piece)
    if announced is not None and size != announced:
        raise HttpError(call.shown, f"announced {announced} bytes and sent {size}")
    return b"".join(pieces)


class _TimedSocket:
    """A socket whose every wait ends at one deadline, however slowly bytes drip in."""

    def __init__(
        self, sock: socket.socket, left: Callable[[float], float], deadline: float
    ) -> None:
        self._sock = sock
        self._left = left
        self._readers = 0
        self._closing = False
        self.deadline = deadline

    def set_timeout(self) -> socket.socket:
        """Give the socket the time that is left."""
        self._sock.settimeout(self._left(self.deadline))
        return self._sock

    def sendall(self, data: bytes) -> None:
        """Send everything; each piece gets the time that is left, also under TLS."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.set_timeout().send(rest) :]

    def makefile(self, _mode: str) -> BinaryIO:
        """Give what a response is read from."""
        self._readers += 1
        return cast("BinaryIO", io.BufferedReader(_TimedReader(self)))

    def has_news(self) -> bool:
        """Tell bytes nobody asked for, or that the other side has closed."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(self._sock, selectors.EVENT_READ)
            return bool(selector.select(0))

    def close(self) -> None:
        """Close the socket, once nothing reads from it any more."""
        self._closing = True
        self.drop_reader(0)

    def drop_reader(self, n: int = 1) -> None:
        """Note that a response was read."""
        self._readers -= n
        if self._closing and self._readers <= 0:
            self._sock.close()


def _timed(connection: HTTPConnection) -> _TimedSocket:
    """Give the socket of a connection that was opened here."""
    return cast("_TimedSocket", connection.sock)


class _TimedReader(io.RawIOBase):
    """Reads from a timed socket; closing it leaves the socket open for the next call."""

    def __init__(self, timed: _TimedSocket) -> None:
        super().__init__()
        self._timed = timed

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._timed.drop_reader()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._timed.set_timeout().recv_into(buffer)


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
