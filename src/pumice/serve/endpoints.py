"""Health and metrics over HTTP.

/healthz says that the process lives, /readyz that what it works with is complete, /metrics tells
the figures.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence

from aiohttp import web

from pumice.metrics import CONTENT_TYPE

Missing = Callable[[], Sequence[str]]
"""Names what is still missing for a process to be ready; nothing if it is."""
Details = Callable[[], Sequence[str]]
"""Gives lines for whoever wants to know more."""
Figures = Callable[[], str]


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
