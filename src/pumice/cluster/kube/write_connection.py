"""HTTP/1.1 for many small writes: one connection, one request at a time, whole answers.

Used by the transport for everything but reading; costs less than half of what a full client does.
What comes back is not trusted: whatever is not a plain answer ends the connection.
"""

import asyncio
from dataclasses import dataclass
from typing import Final, cast

from pumice.errors import RejectedError, UnavailableError

_LONGEST_HEAD: Final = 1 << 16
_END: Final = b"\r\n\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server said."""

    status: int
    content: bytes
    retry_after_s: float = 0.0
    """How long it asks to be left alone."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The first lines of an answer; a length of None is one that is found out on the way."""

    status: int
    size: int
    length: int | None
    chunked: bool
    close: bool
    retry_after_s: float


class WriteConnection(asyncio.Protocol):
    """One connection to a server; ``cap`` bounds the bytes of an answer."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Reply] | None = None
        self._buffer = bytearray()
        self._head: _Head | None = None
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def exchange(self, request: bytes, timeout_s: float) -> Reply:
        """Send a request and give the whole answer, whatever its status.

        Raises:
            UnavailableError: the connection was lost, or the answer did not come in time or was
                none; the request may have arrived.
            RejectedError: an answer beyond all bounds.
        """
        if self._transport is None:
            raise UnavailableError(problem="the connection is closed", sent=False)
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = loop.call_later(timeout_s, self._fail, "no answer in time")
        try:
            self._transport.write(request)
            return await waiter
        finally:
            timer.cancel()
            if self._waiter is not None:  # broken off: what still comes is no answer to others
                self._waiter = None
                self.close()
            self.idle_since = loop.time()

    def close(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take in a part of an answer."""
        if self._waiter is None:  # nobody asked
            self.close()
            return
        self._buffer += data
        if len(self._buffer) > self._cap:
            problem = f"the server answered with more than {self._cap} bytes"
            self._settle(RejectedError(problem=problem))
            return
        try:
            self._read()
        except ValueError as error:
            self._fail(f"an answer that makes no sense: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end; an answer without a length ends with its connection."""
        self._transport = None
        head = self._head
        if exc is None and head and head.length is None and not head.chunked:
            self._finish(head, bytes(self._buffer[head.size :]))
        elif self._waiter is not None:
            self._fail(str(exc) if exc else "the connection was closed without an answer")

    def _read(self) -> None:
        """Give the answer if it is complete.

        Raises:
            ValueError: it cannot become one.
        """
        if self._head is None:
            self._head = _read_head(self._buffer)
        head, buffer = self._head, self._buffer
        if head is None:
            return
        if head.chunked:
            content = _joined(buffer, head.size) if buffer.endswith(_LAST_CHUNK) else None
            if content is not None:
                self._finish(head, content)
        elif head.length is not None:
            missing = head.size + head.length - len(buffer)
            if missing < 0:
                raise ValueError("more came than was announced")
            if missing == 0:
                self._finish(head, bytes(buffer[head.size :]))

    def _finish(self, head: _Head, content: bytes) -> None:
        self._settle(Reply(head.status, content, head.retry_after_s))
        if head.close:
            self.close()

    def _fail(self, problem: str) -> None:
        self._settle(UnavailableError(problem=problem))

    def _settle(self, outcome: Reply | Exception) -> None:
        waiter, self._waiter, self._head = self._waiter, None, None
        self._buffer.clear()
        if isinstance(outcome, Exception):
            self.close()
        if waiter is None or waiter.done():
            return
        if isinstance(outcome, Exception):
            waiter.set_exception(outcome)
        else:
            waiter.set_result(outcome)


class WritePool:
    """Connections to one server, the latest used first."""

    def __init__(self, longest_idle_s: float) -> None:
        self._longest_idle_s = longest_idle_s
        self._idle: list[WriteConnection] = []

    def take(self, now: float) -> WriteConnection | None:
        """Give a connection that waits for work; one that waited long may be about to be closed."""
        while self._idle:
            wire = self._idle.pop()
            if wire.is_open and now - wire.idle_since < self._longest_idle_s:
                return wire
            wire.close()
        return None

    def give(self, wire: WriteConnection) -> None:
        """Take a connection back."""
        if wire.is_open:
            self._idle.append(wire)

    def close(self) -> None:
        """End all that wait for work."""
        for wire in self._idle:
            wire.close()
        self._idle.clear()


def _read_head(buffer: bytearray) -> _Head | None:
    """Read the first lines of an answer, None if they are not complete."""
    end = buffer.find(_END)
    if end < 0:
        if len(buffer) > _LONGEST_HEAD:
            raise ValueError("its head has no end")
        return None
    first, *lines = bytes(buffer[:end]).split(b"\r\n")
    if not first.startswith(b"HTTP/1.") or not first[9:12].isdigit():
        raise ValueError("it is not HTTP")
    status = int(first[9:12])
    if status < 200:
        raise ValueError("it is only the first of several")
    fields = dict(map(_field, lines))
    coding = fields.get(b"transfer-encoding")
    if coding not in (None, b"chunked"):
        raise ValueError("it is coded in an unknown way")
    length = 0 if status in (204, 304) else _number(fields.get(b"content-length"))
    return _Head(
        status,
        end + 4,
        length,
        coding is not None,
        fields.get(b"connection", b"").lower() == b"close" or first.startswith(b"HTTP/1.0"),
        float(_number(fields.get(b"retry-after"), strict=False) or 0),
    )


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.lower(), value.strip()


def _number(text: bytes | None, *, strict: bool = True) -> int | None:
    if text is None or (not strict and not text.isdigit()):
        return None
    if not text.isdigit():
        raise ValueError("its length is no number")
    return int(text)


def _joined(buffer: bytearray, start: int) -> bytes | None:
    """Join the parts of a content that came in parts, None if some are missing."""
    parts: list[bytes] = []
    while True:
        end = buffer.find(b"\r\n", start)
        if end < 0:
            return None
        length = int(buffer[start:end].split(b";")[0], 16)
        start = end + 2 + length + 2
        if length < 0 or start > len(buffer):
            return None
        if not length:
            return b"".join(parts) if start == len(buffer) else None
        parts.append(bytes(buffer[end + 2 : start - 2]))
