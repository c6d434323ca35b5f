"""HTTP from a thread of its own, so that it answers whatever the rest of the process is doing."""

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from aiohttp import StreamReader, http_exceptions, web

from pumice import logs
from pumice.errors import ServiceError

_START_S: Final = 10.0
"""How long starting and stopping may take, beside the time that open requests get."""
_IDLE_S: Final = 75.0
"""How long a connection is kept on which no whole request arrives."""
BODY_TIMEOUT_S: Final = 30.0
"""How long the body of a request may take."""
_CHUNK: Final = 64 * 1024
_log = logs.get("endpoints")


class _Malformed(logging.Filter):
    """Keeps malformed requests from filling the log: any client can send them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record of the HTTP library reports a fault of ours."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, http_exceptions.HttpProcessingError | web.RequestPayloadError):
            return True
        first = str(error).partition("\n")[0]
        _log.v(2).info("malformed request", error=type(error).__name__, problem=first)
        return False


_http_log = logging.getLogger("pumice.endpoints.http")
_http_log.addFilter(_Malformed())


@dataclass
class Site:
    """An application with its address, or with bound sockets."""

    app: web.Application
    host: str = ""
    port: int = 0
    tls: ssl.SSLContext | None = None
    sockets: Sequence[socket.socket] = ()


class HttpServer:
    """Sites served from one thread; a context manager."""

    def __init__(self, sites: Sequence[Site], *, grace_s: float = 1.0) -> None:
        """Serve sites; open requests get ``grace_s`` seconds at shutdown."""
        self._sites = sites
        self._grace_s = grace_s
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="http", daemon=True)
        self._runners: list[web.AppRunner] = []
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
            for runner in self._runners:
                self._wait(runner.cleanup())
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
        runner = web.AppRunner(
            site.app,
            access_log=None,
            logger=_http_log,
            handle_signals=False,
            handler_cancellation=True,
            keepalive_timeout=_IDLE_S,
            shutdown_timeout=self._grace_s,
        )
        await runner.setup()
        self._runners.append(runner)
        place = f"{site.host or '*'}:{site.port}"
        served: list[web.BaseSite] = [
            web.SockSite(runner, sock, ssl_context=site.tls) for sock in site.sockets
        ]
        if not served:
            served = [web.TCPSite(runner, site.host or None, site.port, ssl_context=site.tls)]
        try:
            for each in served:
                await each.start()
        except OSError as error:
            raise ServiceError(place, f"cannot be listened on: {error.strerror}") from error
        self.ports += [address[1] for address in runner.addresses[:1]]
        _log.v(1).info("serves", address=place)


async def read_body(request: web.Request, longest: int) -> bytes:
    """Read the body of a request; of one that is too long nothing is kept.

    Raises:
        HTTPBadRequest: it is not encoded as it says.
        HTTPRequestEntityTooLarge: it has more than ``longest`` bytes.
        HTTPRequestTimeout: it takes too long to arrive.
    """
    if (request.content_length or 0) > longest:
        raise _too_long(longest)
    content = request.content
    try:
        if content.is_eof():  # all of it has arrived
            body = content.read_nowait()
        else:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                body = await _read_chunks(content, longest)
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="request body too slow\n") from None
    except web.RequestPayloadError:
        raise web.HTTPBadRequest(text="request body cannot be decoded\n") from None
    if len(body) > longest:
        raise _too_long(longest)
    return body


async def _read_chunks(content: StreamReader, longest: int) -> bytes:
    """Read until the end, or until it is too long."""
    body = bytearray()
    async for chunk in content.iter_chunked(_CHUNK):
        body += chunk
        if len(body) > longest:
            break
    return bytes(body)


def _too_long(longest: int) -> web.HTTPRequestEntityTooLarge:
    return web.HTTPRequestEntityTooLarge(longest, 0, text="request body too large\n")
