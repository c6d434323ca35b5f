"""Health and metrics over HTTP, on a thread of their own, so that they answer whatever else does.

/healthz says that the process lives, /readyz that what it works with is complete, /metrics tells
the figures.
"""

import asyncio
import ssl
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from aiohttp import web

from pumice import logs
from pumice.errors import ServiceError
from pumice.metrics import CONTENT_TYPE

Missing = Callable[[], Sequence[str]]
"""Names what is still missing for a process to be ready; nothing if it is."""
Details = Callable[[], Sequence[str]]
"""Gives lines for whoever wants to know more."""
Figures = Callable[[], str]

_SLOWEST_S: Final = 10.0
_log = logs.get("endpoints")


def health_app(
    missing: Missing, problem: Callable[[], str], details: Details = tuple
) -> web.Application:
    """Serve health; ``problem`` says why the process should be started anew, if it should."""

    async def healthz(request: web.Request) -> web.Response:
        del request
        found = problem()
        return web.Response(status=500 if found else 200, text=f"{found}\n" if found else "ok")

    async def readyz(request: web.Request) -> web.Response:
        loop = asyncio.get_running_loop()
        absent = await loop.run_in_executor(None, missing)
        told = f"not ready: waits for {', '.join(absent)}\n" if absent else "ok"
        if "verbose" in request.query:
            lines = await loop.run_in_executor(None, details)
            told = "".join(f"{line}\n" for line in (*lines, told.rstrip()))
        return web.Response(status=503 if absent else 200, text=told)

    app = web.Application(client_max_size=1024)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/livez", healthz)
    app.router.add_get("/readyz", readyz)
    return app


def metrics_app(figures: Figures, base: web.Application | None = None) -> web.Application:
    """Serve figures, next to whatever an application has already."""

    async def metrics(request: web.Request) -> web.Response:
        del request
        text = await asyncio.get_running_loop().run_in_executor(None, figures)
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    app = base or web.Application(client_max_size=1024)
    app.router.add_get("/metrics", metrics)
    return app


def tls_context(ca_file: str, cert_file: str, key_file: str) -> ssl.SSLContext | None:
    """Serve over TLS if certificate, key and authority are all given, as Volcano does."""
    if not (ca_file and cert_file and key_file):
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(cert_file, key_file)
    return context


@dataclass
class Site:
    """One address and what is served there."""

    host: str
    port: int
    app: web.Application
    tls: ssl.SSLContext | None = field(default=None)


class Endpoints:
    """Sites served from one thread; a context manager."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self._sites = sites
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="endpoints")
        self._runners: list[web.AppRunner] = []
        self.ports: list[int] = []
        """Where each site is served; of interest where port 0 was asked for."""

    def __enter__(self) -> Self:
        """Start to serve.

        Raises:
            ServiceError: an address that cannot be had.
        """
        self._thread.start()
        try:
            for site in self._sites:
                self._wait(self._serve(site))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for runner in self._runners:
            self._wait(runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def _wait(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_SLOWEST_S)

    async def _serve(self, site: Site) -> None:
        runner = web.AppRunner(
            site.app, access_log=None, handle_signals=False, shutdown_timeout=1.0
        )
        await runner.setup()
        self._runners.append(runner)
        place = f"{site.host or '*'}:{site.port}"
        tcp = web.TCPSite(runner, site.host or None, site.port, ssl_context=site.tls)
        try:
            await tcp.start()
        except OSError as error:
            raise ServiceError(place, f"cannot be listened on: {error.strerror}") from error
        self.ports += [address[1] for address in runner.addresses[:1]]
        _log.v(1).info("serves", address=place)
