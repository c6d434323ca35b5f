"""Calls to an extender over HTTP: one kept connection, a deadline for each call, a cap on answers.

Handed to the extender plugin by the scheduler.  What comes back is not trusted: a length that does
not hold, garbage, a flood or silence all end in an ExtenderError, never in a hang.
"""

import io
import json
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, BinaryIO, Final, cast
from urllib.parse import urlsplit

import msgspec

from pumice.errors import ExtenderError

MAX_ANSWER: Final = 10 << 20
"""Bytes of an answer that are read at most."""

_PIECE = 1 << 16


class HttpExtender:
    """One extender; keeps its connection between calls."""

    def __init__(
        self,
        url_prefix: str,
        timeout_s: float,
        *,
        max_answer: int = MAX_ANSWER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = url_prefix.rstrip("/")
        self._timeout_s = timeout_s
        self._max_answer = max_answer
        self._clock = clock
        self._connection: HTTPConnection | None = None

    def post(self, verb: str, payload: Any, *, answer: bool = True) -> Mapping[str, Any]:
        """Send a payload as JSON and read the answer, an empty mapping if none is wanted.

        Raises:
            ExtenderError: no answer in time, or not one that can be used.
        """
        url = f"{self._prefix}/{verb}"
        deadline = self._clock() + self._timeout_s
        try:
            body = self._exchange(url, msgspec.json.encode(payload), deadline)
        except (OSError, HTTPException, ValueError) as error:
            self.close()
            raise ExtenderError(url, _describe(error)) from error
        except ExtenderError:
            self.close()
            raise
        return _read_answer(url, body) if answer else {}

    def close(self) -> None:
        """Give the connection up; the next call opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, url: str, body: bytes, deadline: float) -> bytes:
        """Call once; once more if a kept connection turns out to be dead."""
        kept = self._connection is not None and not _has_news(self._connection)
        if not kept:
            self.close()
        try:
            return self._call(url, body, deadline)
        except ConnectionError:
            self.close()
            if not kept:
                raise
        return self._call(url, body, deadline)

    def _call(self, url: str, body: bytes, deadline: float) -> bytes:
        if self._connection is None:
            self._connection = self._open(url, deadline)
        connection = self._connection
        timed = cast("_TimedSocket", connection.sock)
        timed.deadline = deadline
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = self._read(url, response)
        if response.status != 200:
            raise ExtenderError(url, f"answered with status {response.status}")
        if response.will_close:
            self.close()
        return content

    def _open(self, url: str, deadline: float) -> HTTPConnection:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ExtenderError(url, "wanted an address that begins with http:// or https://")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        timeout = max(deadline - self._clock(), 0.001)
        connection = kind(parts.hostname, parts.port, timeout=timeout)
        connection.connect()
        connection.sock = _TimedSocket(connection.sock, self._clock, deadline)
        return connection

    def _read(self, url: str, response: HTTPResponse) -> bytes:
        """Read a body piece by piece; its length must be as announced and within the cap."""
        announced = response.length
        if announced is not None and announced > self._max_answer:
            raise ExtenderError(url, f"announced an answer of {announced} bytes")
        pieces, size = [], 0
        while piece := response.read(_PIECE):
            size += len(piece)
            if size > self._max_answer:
                raise ExtenderError(url, f"answered with more than {self._max_answer} bytes")
            pieces.append(piece)
        if announced is not None and size != announced:
            raise ExtenderError(url, f"announced {announced} bytes and sent {size}")
        return b"".join(pieces)


class _TimedSocket:
    """A socket whose every wait ends at one deadline, however slowly bytes drip in."""

    def __init__(self, sock: socket.socket, clock: Callable[[], float], deadline: float) -> None:
        self._sock = sock
        self._clock = clock
        self._readers = 0
        self._closing = False
        self.deadline = deadline

    def set_timeout(self) -> socket.socket:
        """Give the socket the time that is left."""
        left = self.deadline - self._clock()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._sock

    def sendall(self, data: bytes) -> None:
        """Send everything."""
        self.set_timeout().sendall(data)

    def makefile(self, _mode: str) -> BinaryIO:
        """Give what a response is read from."""
        self._readers += 1
        return cast("BinaryIO", io.BufferedReader(_TimedReader(self)))

    def fileno(self) -> int:
        """Give the descriptor, to look whether there is something to read."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close the socket, once nothing reads from it any more."""
        self._closing = True
        self.drop_reader(0)

    def drop_reader(self, n: int = 1) -> None:
        """Note that a response was read."""
        self._readers -= n
        if self._closing and self._readers <= 0:
            self._sock.close()


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


def _has_news(connection: HTTPConnection) -> bool:
    """Tell a kept connection that has bytes nobody asked for, or was closed by the other side."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _read_answer(url: str, body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ExtenderError(url, "answered with something that is not JSON") from error
    if not isinstance(answer, dict):
        raise ExtenderError(url, f"wanted a JSON object, found {type(answer).__name__}")
    return answer


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
