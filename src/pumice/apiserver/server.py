"""The API on a socket: HTTP/1.1 on loopback, served from a thread of its own.

There is no token, since kubectl sends none without TLS: any local user may connect,
but web pages are refused; a browser reveals them by Origin or by a foreign Host.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from typing import Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec
from aiohttp import web

from pumice.apiserver.failures import RequestError, failure, status
from pumice.apiserver.rest import JSON, Answer, Request, RestApi
from pumice.apiserver.watches import Watch
from pumice.cluster.embedded.patches import LONGEST
from pumice.serve.http_server import (
    LOOPBACK_NAMES,
    HttpServer,
    Site,
    foreign_request,
    read_body,
    sending,
    write_in_parts,
    write_in_time,
)

LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 128
_LONGEST_BODY: Final = LONGEST
_MOST_WATCHES: Final = 400
"""Fewer than the connections that are served: other requests find room."""
_MOST_WARNINGS: Final = 20
_LONGEST_WARNING: Final = 200
_COPIES: Final = 3
"""How often a WebSocket holds a message until it is read."""
_REMEMBERED: Final = 32 << 20
"""Bytes of written objects after which those written before as many are forgotten."""
_GATHER_S: Final = 0.02
"""How long news is gathered while watches have just been sent some, as reflectors do it."""
_LONGEST_MESSAGE: Final = 4096
"""Bytes of what a client may say over a WebSocket; nothing needs saying."""
_FAREWELL_S: Final = 1.0
_NOT_KEPT: Final = {"Cache-Control": "no-cache, private"}
"""Else kubectl takes discovery from its disk as long as the clock of the cluster is ahead."""
_T = TypeVar("_T")


class ApiServer:
    """Serves one API; it holds its port once created, and port 0 takes a free one."""

    def __init__(self, api: RestApi, *, port: int = 0) -> None:
        self.api = api
        self._socket = socket.create_server((LOOPBACK, port), backlog=_BACKLOG)
        self.port: int = self._socket.getsockname()[1]
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.on_shutdown.append(self._end_watches)
        self._http = HttpServer([Site(app, sockets=[self._socket])])
        self._stopping = False
        self._changed: set[asyncio.Event] = set()
        """One for each watch that waits for news."""
        self._written = self._compacted_next = 0
        """Bytes of the objects written since a version, up to which changes are forgotten next."""
        self._has_news = False
        self._is_waking = False
        api.cluster.listeners.append(self._notice)

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def watching(self) -> int:
        """The number of open watches."""
        return len(self._changed)

    def start(self) -> None:
        """Begin to serve."""
        self._http.start()

    def stop(self) -> None:
        """End watches, accept no more requests, release the port."""
        self._http.stop()
        self._socket.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if foreign_request(request, LOOPBACK_NAMES) or _has_foreign_origin(request):
            return _response(Answer(403, status(403, "Forbidden", "web pages are not served")))
        try:
            body = await read_body(request, _LONGEST_BODY)
        except web.HTTPException as error:
            problem = RequestError(error.status, (error.text or "").strip())
            response = _response(Answer(error.status, failure(problem, self.api.cluster.kinds)))
            response.force_close()
            return response
        url = urlsplit(request.raw_path)
        asked = Request(
            request.method,
            url.path,
            dict(parse_qsl(url.query, keep_blank_values=True)),
            request.headers.get("Accept") or JSON,
            request.headers.get("Content-Type") or JSON,
            body,
        )
        answer = await self._unlocked(lambda: self._answer(asked))
        if answer.watch is not None and len(self._changed) >= _MOST_WATCHES:
            problem = RequestError(429, "too many watches are open; close some, or try again later")
            answer = Answer(429, failure(problem, self.api.cluster.kinds))
        if answer.watch is None:
            response = _response(answer)
            if request.method not in ("GET", "HEAD") and isinstance(response.body, bytes):
                await self._unlocked(partial(self._forget, len(response.body)))
            response.headers["Date"] = formatdate(self.api.cluster.now(), usegmt=True)
            return response
        if web.WebSocketResponse().can_prepare(request):
            return await self._converse(request, answer.watch)
        return await self._stream(request, answer.watch)

    def _forget(self, written: int) -> None:
        """Forget the changes before the latest large ones: each may hold an object of its own."""
        self._written += written
        if self._written > _REMEMBERED:
            cluster = self.api.cluster
            cluster.compact(self._compacted_next)
            self._written, self._compacted_next = 0, cluster.version

    async def _unlocked(self, ask: Callable[[], _T]) -> _T:
        """Ask the cluster: at once if its lock is free, else in a thread that waits for it."""
        lock = self.api.cluster.lock
        if not lock.acquire(blocking=False):
            return await asyncio.to_thread(ask)
        try:
            return ask()
        finally:
            lock.release()

    def _answer(self, request: Request) -> Answer:
        try:
            return self.api.answer(request)
        except Exception as error:  # noqa: BLE001  # a fault must not cut the connection
            problem = f"{type(error).__name__}: {error}"
            return Answer(500, status(500, "InternalError", problem))

    async def _stream(self, request: web.Request, watch: Watch) -> web.StreamResponse:
        """Send the lines of a watch as one long answer."""
        response = web.StreamResponse(headers={"Content-Type": JSON})
        response.enable_chunked_encoding()
        await response.prepare(request)

        async def send(lines: bytes) -> None:
            with sending(request, len(lines)):
                await write_in_parts(request, response, lines)

        await self._follow(watch, send)
        await response.write_eof()
        return response

    async def _converse(self, request: web.Request, watch: Watch) -> web.StreamResponse:
        """Send the lines of a watch as messages of a WebSocket, as clients in Java ask for them."""
        response = web.WebSocketResponse(
            compress=False, max_msg_size=_LONGEST_MESSAGE, timeout=_FAREWELL_S
        )
        await response.prepare(request)

        async def send(lines: bytes) -> None:
            with sending(request, _COPIES * len(lines)):
                for line in lines.splitlines():
                    await write_in_time(request, response.send_str(line.decode()))

        async def tell() -> None:
            with suppress(ConnectionError):
                await self._follow(watch, send)
            await response.close()

        telling = asyncio.create_task(tell())
        try:
            async for _ in response:
                pass  # a client has nothing to say but that it leaves
        finally:
            telling.cancel()
        return response

    async def _follow(self, watch: Watch, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the lines of a watch as things happen, until it is over or the client leaves."""
        changed = asyncio.Event()
        self._changed.add(changed)
        try:
            while not self._stopping:
                changed.clear()
                lines = await self._unlocked(watch.poll)
                if lines:
                    await send(lines)
                lines = b""  # it may be large, and the next one far away
                if watch.over:
                    break
                if watch.has_more:
                    await asyncio.sleep(0)  # others may be served in between
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(watch.wait_s()):
                        await changed.wait()
        finally:
            self._changed.remove(changed)

    def _notice(self, *_: object) -> None:
        """Wake the watches soon; called on any thread, with the lock of the cluster held."""
        self._has_news = True
        if self._changed and not self._is_waking:
            self._is_waking = True
            self._http.call_soon(self._wake)

    def _wake(self) -> None:
        """Wake the watches if there is news, and a moment later again for all since then."""
        self._is_waking = False  # before the look: whoever has news from now on calls again
        if self._has_news:
            self._has_news = False
            self._is_waking = True
            for changed in self._changed:
                changed.set()
            asyncio.get_running_loop().call_later(_GATHER_S, self._wake)

    async def _end_watches(self, _: web.Application) -> None:
        self._stopping = True
        for changed in self._changed:
            changed.set()


def _has_foreign_origin(request: web.Request) -> bool:
    """Return whether a request names another site as its origin; clients may name this server."""
    own = f"http://{request.headers.get('Host', '')}".lower()
    return any(origin.lower() != own for origin in request.headers.getall("Origin", ()))


def _response(answer: Answer) -> web.Response:
    content = answer.content
    body = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
    headers = {"Content-Type": answer.content_type, **_NOT_KEPT}
    response = web.Response(status=answer.code, body=body, headers=headers)
    for warning in answer.warnings[:_MOST_WARNINGS]:
        shown = repr(warning[:_LONGEST_WARNING])[1:-1]  # no line breaks: this is a header
        quoted = shown.encode("ascii", "backslashreplace").decode().replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')
    return response
