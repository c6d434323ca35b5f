"""HTTP from a thread of its own, so that it answers whatever the rest of the process is doing."""

import asyncio
import logging
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Container, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Self, TypeGuard

from aiohttp import http_exceptions, web

from pumice import logs
from pumice.serve.ports import Port

_START_S: Final = 10.0
"""How long starting and stopping may take, beside the time that open requests get."""
_IDLE_S: Final = 75.0
"""How long a connection is kept on which no whole request arrives."""
BODY_TIMEOUT_S: Final = 30.0
"""How long the body of a request may take."""
_HANDSHAKE_S: Final = 10.0
"""How long a TLS handshake may take."""
_MOST_CONNECTIONS: Final = 512
"""Open connections of a site; beyond, the oldest one without a whole request makes room."""
_MOST_HANDSHAKES: Final = 128
_NO_DESCRIPTOR_S: Final = 0.1
_THREADS: Final = 32
"""Requests that may wait for something else at once, such as a cluster that is slow to answer."""
_CHUNK: Final = 64 * 1024
_MOST_HELD: Final = 128 << 20
"""Bytes of the bodies that a site holds at once; beyond, only those of a chunk find room.

As many for answers.
"""
_SLOW_S: Final = 5.0
"""After how long a large answer that is not read makes room for others."""
_log = logs.get("endpoints")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


_OF_CLIENTS: Final = (
    http_exceptions.HttpProcessingError,
    web.RequestPayloadError,
    ConnectionError,  # the client left while it was answered
)


class _FaultsOfClients(logging.Filter):
    """Keeps what any client can do from filling the log: malformed requests, and leaving early."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record of the HTTP library reports a fault of ours."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, _OF_CLIENTS):
            return True
        first = str(error).partition("\n")[0]
        _log.v(2).info("request not answered", error=type(error).__name__, problem=first)
        return False


_http_log = logging.getLogger("pumice.endpoints.http")
_http_log.addFilter(_FaultsOfClients())


@dataclass
class Site:
    """An application with its address, or with bound sockets."""

    app: web.Application
    host: str = ""
    port: int = 0
    tls: ssl.SSLContext | None = None
    sockets: Sequence[socket.socket] = ()


@dataclass
class _Bodies:
    """Bytes of the bodies of a site whose requests are not answered yet."""

    held: int = 0

    def take(self, request: web.Request, size: int) -> None:
        """Count a part of a body.

        Raises:
            HTTPServiceUnavailable: there is no room for it.
        """
        own = request.get(_HELD, 0) + size
        if own > _CHUNK and self.held + size > _MOST_HELD:
            raise web.HTTPServiceUnavailable(text="too many large requests at once\n")
        request[_HELD] = own
        self.held += size

    def release(self, request: web.Request) -> None:
        """Forget the body of a request that was answered."""
        self.held -= request.get(_HELD, 0)


_HELD: Final = web.RequestKey("held", int)


class _Answers:
    """Large answers of a site that clients have not read yet."""

    def __init__(self) -> None:
        self._unread: dict[web.RequestHandler, tuple[int, float]] = {}
        """Connection to the bytes of the answer, and since when it is sent; the oldest first."""

    async def send(self, request: web.Request, answer: web.Response) -> web.StreamResponse:
        """Send an answer piece by piece, as fast as the client reads.

        Raises:
            ConnectionResetError: the client has left, or does not read.
        """
        body = memoryview(answer.body if isinstance(answer.body, bytes) else b"")
        with self.holding(request, len(body)) as has_room:
            if not has_room:
                later, text = {"Retry-After": "1"}, "too many large answers at once\n"
                return web.Response(status=429, headers=later, text=text)
            sent = web.StreamResponse(status=answer.status, headers=answer.headers)
            sent.content_length = len(body)
            await sent.prepare(request)
            await write_in_parts(request, sent, body)
            await sent.write_eof()
            return sent

    @contextmanager
    def holding(self, request: web.Request, size: int) -> Iterator[bool]:
        """Count an answer or a part of one while it is sent; yield whether there is room for it."""
        has_room = self._has_room(size)
        if has_room:
            self._unread[request.protocol] = size, time.monotonic()
        try:
            yield has_room
        finally:
            if has_room:
                del self._unread[request.protocol]

    def _has_room(self, size: int) -> bool:
        """Make room for one more if need be: clients that read slowly are left."""
        now, held = time.monotonic(), sum(each for each, _ in self._unread.values())
        for connection, (own, since) in self._unread.items():
            if held + size <= _MOST_HELD or now - since < _SLOW_S:
                break
            held -= own
            if connection.transport is not None:
                connection.transport.abort()
        return not held or held + size <= _MOST_HELD


class _Entrance:
    """Accepts the connections of one site: any client can open many, and none must end us."""

    def __init__(self, sockets: Sequence[socket.socket], tls: ssl.SSLContext | None) -> None:
        self._sockets = sockets
        self._tls = tls
        self._asked: set[object] = set()
        """Connections whose requests have arrived and are being answered."""
        self._greeted: dict[asyncio.Task[None], web.RequestHandler] = {}
        """New connections, until the handshake is done."""
        self._accepting: list[asyncio.Task[None]] = []
        self.bodies = _Bodies()
        self.answers = _Answers()

    def open(self, server: web.Server) -> None:
        """Begin to accept."""
        self._accepting = [
            asyncio.create_task(self._accept(sock, server)) for sock in self._sockets
        ]

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note which connections do something, and refuse requests that are no text."""
        if not _is_text(request):
            raise web.HTTPBadRequest(text="expected headers in UTF-8\n")
        protocol = request.protocol
        self._asked.add(protocol)
        request[_ENTRANCE] = self
        try:
            answer = await handler(request)
            if _is_large(answer) and request.method != "HEAD":
                answer = await self.answers.send(request, answer)
            return answer
        finally:
            self._asked.discard(protocol)
            self.bodies.release(request)

    @contextmanager
    def arriving(self, request: web.Request) -> Iterator[None]:
        """Count a connection as one without a request while the body arrives."""
        self._asked.discard(request.protocol)
        try:
            yield
        finally:
            self._asked.add(request.protocol)

    def close(self) -> None:
        """Accept no more."""
        for task in (*self._accepting, *self._greeted):
            task.cancel()
        for sock in self._sockets:
            sock.close()

    async def _accept(self, sock: socket.socket, server: web.Server) -> None:
        loop = asyncio.get_running_loop()
        sock.settimeout(0)
        while True:
            try:
                connection, _ = await loop.sock_accept(sock)
            except OSError as error:  # no free descriptor, or the client has left
                _log.v(2).info("cannot accept a connection", error=error)
                await asyncio.sleep(_NO_DESCRIPTOR_S)
                continue
            if not self._has_room(server):
                connection.close()
                continue
            handler = server()
            task = loop.create_task(self._greet(connection, handler))
            self._greeted[task] = handler
            task.add_done_callback(lambda done: self._greeted.pop(done, None))
            await asyncio.sleep(0)  # it is greeted before the next one is accepted

    async def _greet(self, connection: socket.socket, handler: web.RequestHandler) -> None:
        """Begin to serve a connection, after the handshake if there is one."""
        timeout_s = None if self._tls is None else _HANDSHAKE_S
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: handler, connection, ssl=self._tls, ssl_handshake_timeout=timeout_s
            )
        except OSError as error:
            _log.v(2).info("connection not served", error=error)
            connection.close()

    def _has_room(self, server: web.Server) -> bool:
        """Make room for one more connection if need be; return whether there is some."""
        greeted = [task for task, one in self._greeted.items() if one.transport is None]
        new = len(greeted)
        if new >= _MOST_HANDSHAKES:  # a client that means it takes a moment
            greeted[0].cancel()
            del self._greeted[greeted[0]]
            new -= 1
        known = [one for one in server.connections if one.transport is not None]
        if len(known) + new < _MOST_CONNECTIONS:
            return True
        idle = next((one for one in known if one not in self._asked), None)
        if idle is not None:
            idle.force_close()
        return idle is not None


_ENTRANCE: Final = web.RequestKey("entrance", _Entrance)


class HttpServer:
    """Sites served from one thread; a context manager."""

    def __init__(self, sites: Sequence[Site], *, grace_s: float = 1.0) -> None:
        """Serve sites; open requests get ``grace_s`` seconds at shutdown."""
        self._sites = sites
        self._grace_s = grace_s
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(_THREADS, "http"))
        self._thread = threading.Thread(target=self._loop.run_forever, name="http", daemon=True)
        self._runners: list[web.AppRunner] = []
        self._entrances: list[_Entrance] = []
        self.ports: list[int] = []
        """The address of each site; useful with port 0."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to serve.

        Raises:
            ServiceError: an address that cannot be used.
        """
        self._thread.start()
        try:
            for site in self._sites:
                self._wait(self._serve(site))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End requests and release the addresses; harmless if nothing was started."""
        if self._thread.is_alive():
            self._wait(self._end())
            self._wait(self._loop.shutdown_default_executor())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call a function on the serving thread, if it still runs."""
        if threading.get_ident() == self._thread.ident:  # it need not be woken
            self._loop.call_soon(callback)
            return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def _wait(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_START_S + self._grace_s)

    async def _serve(self, site: Site) -> None:
        sockets = site.sockets or Port(site.host, site.port).listen()
        runner = web.AppRunner(
            site.app,
            access_log=None,
            logger=_http_log,
            handle_signals=False,
            handler_cancellation=True,
            keepalive_timeout=_IDLE_S,
            shutdown_timeout=self._grace_s,
            auto_decompress=False,  # a small body could become a large one
        )
        entrance = _Entrance(sockets, site.tls)
        site.app.middlewares.insert(0, entrance.middleware)
        await runner.setup()
        self._runners.append(runner)
        self._entrances.append(entrance)
        if runner.server is not None:
            entrance.open(runner.server)
        host, port = sockets[0].getsockname()[:2]
        self.ports.append(port)
        _log.v(1).info("serves", address=f"{host}:{port}")

    async def _end(self) -> None:
        for entrance in self._entrances:
            entrance.close()
        for runner in self._runners:
            await runner.cleanup()


def _is_large(answer: web.StreamResponse) -> TypeGuard[web.Response]:
    """Return whether an answer is sent piece by piece, so that no copy waits for its client."""
    body = answer.body if isinstance(answer, web.Response) else None
    return isinstance(body, bytes) and len(body) > _CHUNK and not answer.prepared


def _is_text(request: web.Request) -> bool:
    """Return whether all headers are UTF-8: what is not can neither be shown nor compared."""
    try:
        for _, value in request.raw_headers:
            value.decode()
    except UnicodeDecodeError:
        return False
    return True


LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Names by which a client may call this machine."""


def foreign_request(request: web.Request, hosts: Container[str]) -> str:
    """Return what shows that a request was made by a page of another site, empty if nothing.

    A browser sends the host of the address, which reveals a foreign name that leads here, and the
    site that the request comes from.
    """
    sent = request.headers.getall("Host", [])
    name, _, port = sent[0].rpartition(":") if sent else ("", "", "")
    if len(sent) != 1 or (name if name and port.isdecimal() else sent[0]) not in hosts:
        return "this host is not served here"
    site = request.headers.get("Sec-Fetch-Site", "none")
    is_visit = request.headers.get("Sec-Fetch-Mode") == "navigate" and request.method == "GET"
    if site not in ("same-origin", "none") and not is_visit:
        return "requests of other sites are not answered"
    return ""


@contextmanager
def sending(request: web.Request, size: int) -> Iterator[None]:
    """Count a part of an answer that goes on while it is sent.

    Raises:
        ConnectionResetError: it is large, and so many are unread that the client has to ask again.
    """
    entrance = request.get(_ENTRANCE)
    if entrance is None or size <= _CHUNK:
        yield
        return
    with entrance.answers.holding(request, size) as has_room:
        if not has_room:
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("too many large answers at once")
        yield


async def write_in_parts(
    request: web.Request, response: web.StreamResponse, content: bytes | memoryview
) -> None:
    """Send part of an answer as fast as the client reads: what is written is copied.

    Raises:
        ConnectionResetError: the client has left, or does not read.
    """
    whole = memoryview(content)
    for start in range(0, len(whole), _CHUNK):
        await write_in_time(request, response.write(bytes(whole[start : start + _CHUNK])))


async def write_in_time(request: web.Request, writing: Awaitable[None]) -> None:
    """Send a part of an answer that goes on, by ``writing`` it.

    Raises:
        ConnectionResetError: the client has left, or does not read.
    """
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            await writing
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client does not read") from None


async def read_body(request: web.Request, longest: int) -> bytes:
    """Read the body of a request; of one that is too long nothing is kept.

    Raises:
        HTTPBadRequest: it is malformed.
        HTTPRequestEntityTooLarge: it has more than ``longest`` bytes.
        HTTPRequestTimeout: it takes too long to arrive.
        HTTPServiceUnavailable: too much is being read for others.
        HTTPUnsupportedMediaType: it is compressed.
    """
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise web.HTTPUnsupportedMediaType(text="compressed request bodies are not read\n")
    if (request.content_length or 0) > longest:
        raise _too_long(longest)
    content = request.content
    try:
        if content.is_eof():  # all of it has arrived
            body = content.read_nowait()
        else:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                body = await _read_chunks(request, longest)
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="request body too slow\n") from None
    except RuntimeError:  # the connection made room for another
        if request.transport is not None:
            raise
        raise ConnectionResetError("closed before the request had arrived") from None
    except web.RequestPayloadError:
        raise web.HTTPBadRequest(text="request body cannot be decoded\n") from None
    if len(body) > longest:
        raise _too_long(longest)
    return body


async def _read_chunks(request: web.Request, longest: int) -> bytes:
    """Read until the end, or until it is too long."""
    body, entrance = bytearray(), request.get(_ENTRANCE) or _Entrance((), None)
    with entrance.arriving(request):
        async for chunk in request.content.iter_chunked(_CHUNK):
            entrance.bodies.take(request, len(chunk))
            body += chunk
            if len(body) > longest:
                break
    return bytes(body)


def _too_long(longest: int) -> web.HTTPRequestEntityTooLarge:
    return web.HTTPRequestEntityTooLarge(longest, 0, text="request body too large\n")
