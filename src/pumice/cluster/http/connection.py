"""One HTTP/1.1 connection on an event loop: one request at a time, whole answers or streams.

Used by the client; costs less than half of what a full HTTP library does.  Answers are not
trusted: anything but a plain answer within its bounds ends the connection.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Final, cast

import msgspec

from pumice.cluster.http.response import ResponseHead, ResponseParser
from pumice.errors import ClusterError, RejectedError, UnavailableError

_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


class Reply(msgspec.Struct, frozen=True):
    """The answer of a server."""

    status: int
    content: bytes
    retry_after_s: float = 0.0
    """How long the server asks for no further requests."""
    date: bytes = b""
    """The server's time."""


class HttpConnection(asyncio.Protocol):
    """One connection to a server."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser: ResponseParser | None = None
        self._waiter: asyncio.Future[None] | None = None
        """Waits for a whole answer, or for more of a stream."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = self._until = 0.0
        self._error: ClusterError | None = None
        self._cap = 0
        self._streams = False
        self.idle_since = 0.0
        self.rules: ssl.SSLContext | None = None
        """The TLS settings it was opened with."""

    @property
    def is_open(self) -> bool:
        """Whether another request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_idle(self) -> bool:
        """Whether no answer is under way."""
        return self._parser is None

    @property
    def answered(self) -> bool:
        """Whether anything arrived in answer to the latest request."""
        return self._parser is not None and self._parser.started

    async def exchange(self, request: bytes, *, until: float, cap: int) -> Reply:
        """Send a request and return the whole answer, whatever its status.

        ``until`` is a time of the event loop.

        Raises:
            UnavailableError: the connection was lost, or the answer was late or
                unreadable; the request may have arrived.
            RejectedError: an answer of more than ``cap`` bytes.
        """
        parser = self._send(request, cap, streams=False)
        await self._news(until)
        head = self._done(parser)
        return Reply(head.status, parser.take(), head.retry_after_s, head.date)

    async def open_stream(self, request: bytes, *, until: float, cap: int) -> ResponseHead:
        """Send a request and return the head of its answer; ``read`` returns the content.

        ``cap`` bounds the unread bytes.

        Raises:
            UnavailableError: as for ``exchange``.
        """
        parser = self._send(request, cap, streams=True)
        await self._news(until)
        return cast("ResponseHead", parser.head)

    async def read(self, silence_s: float, until: float) -> bytes:
        """Return the received bytes of a stream, waiting if needed; nothing at its end.

        Pieces too small to be content end a silence, but do not move ``until``, a time of the
        event loop.

        Raises:
            UnavailableError: the end was lost, or nothing arrived in time.
            RejectedError: more arrived at once than allowed.
        """
        parser = self._parser
        while parser is not None and not parser.complete and not parser.ready:
            self._resume()
            await self._news(min(asyncio.get_running_loop().time() + silence_s, until))
        if parser is None:
            return b""
        content = parser.take()
        if parser.complete:
            self._done(parser)
        return content

    def close(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over, and let the system detect a peer that is silently gone."""
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        with suppress(OSError, AttributeError):  # not every system has all of them
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEP_ALIVE:
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def data_received(self, data: bytes) -> None:
        """Process a part of an answer."""
        parser = self._parser
        if parser is None:  # no request is open
            self.close()
            return
        try:
            parser.feed(data)
        except ValueError as error:
            self._fail(UnavailableError(problem=f"an unreadable answer: {error}"))
            return
        if parser.head is None:
            return
        announced = 0 if self._streams else parser.head.length or 0
        if max(parser.held, announced) > self._cap:
            self._fail(RejectedError(problem=f"answered with more than {self._cap} bytes"))
        elif self._streams or parser.complete:
            self._wake()
            if self._streams and parser.ready and self._transport is not None:
                self._transport.pause_reading()  # more stays with the system until it is wanted

    def connection_lost(self, exc: Exception | None) -> None:
        """Record the end; an answer without a length ends with its connection."""
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        parser = self._parser
        if parser is None or parser.complete:
            return
        problem = parser.end() if exc is None else str(exc) or type(exc).__name__
        if problem:
            self._fail(UnavailableError(problem=problem))
        else:
            self._wake()

    def _send(self, request: bytes, cap: int, *, streams: bool) -> ResponseParser:
        if self._transport is None:
            raise UnavailableError(problem="the connection is closed", sent=False)
        self._parser, self._error = ResponseParser(), None
        self._cap, self._streams = cap, streams
        self._transport.write(request)
        return self._parser

    async def _news(self, until: float) -> None:
        """Wait for a whole answer, or until there is more of a stream to read."""
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        self._expect(until)
        try:
            await self._waiter
        except BaseException:  # also aborted: late bytes answer no other request
            self.close()
            raise
        finally:
            self._waiter = None

    def _expect(self, until: float) -> None:
        self._until = until
        if self._timer is None or self._timer_at > until:
            self._set_timer(asyncio.get_running_loop())

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at the time when the wait is over; an earlier timer looks again then."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self._until
        self._timer = loop.call_at(self._until, self._look_at_time, loop)

    def _look_at_time(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._waiter is None:
            return
        if self._until > self._timer_at:  # of a later request
            self._set_timer(loop)
        else:
            self._fail(UnavailableError(problem="no answer in time"))

    def _done(self, parser: ResponseParser) -> ResponseHead:
        head = cast("ResponseHead", parser.head)
        self._parser = None
        self._resume()
        if head.close or (head.length is None and not head.chunked):
            self.close()
        self.idle_since = asyncio.get_running_loop().time()
        return head

    def _resume(self) -> None:
        if self._streams and self._transport is not None and not self._transport.is_reading():
            self._transport.resume_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: ClusterError) -> None:
        self._error = self._error or error
        self.close()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)


class ConnectionPool:
    """Connections to one server that wait for work, the latest used first."""

    def __init__(self, longest_idle_s: float) -> None:
        self._longest_idle_s = longest_idle_s
        self._idle: list[HttpConnection] = []

    def take(self, now: float, rules: ssl.SSLContext | None = None) -> HttpConnection | None:
        """Return a connection that was opened with these TLS settings.

        One that waited long may be about to be closed.
        """
        while self._idle:
            connection = self._idle.pop()
            fresh = now - connection.idle_since < self._longest_idle_s
            if connection.is_open and fresh and connection.rules is rules:
                return connection
            connection.close()
        return None

    def give(self, connection: HttpConnection) -> None:
        """Return a connection to the pool."""
        if connection.is_open:
            self._idle.append(connection)

    def close(self) -> None:
        """Close all idle connections."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
