"""Health and metrics over HTTP.

/healthz shows that the process is alive, /readyz that its caches are complete and its cycles work.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from pumice.cluster.base import LiveCluster
from pumice.metrics import CONTENT_TYPE
from pumice.serve.http_server import HttpServer, Site
from pumice.serve.options import ProcessOptions, WebhookOptions
from pumice.serve.ports import Listening
from pumice.serve.process import Process


def server(
    listening: Listening,
    options: ProcessOptions,
    process: Process,
    cluster: LiveCluster | None,
    kinds: Sequence[str],
) -> HttpServer:
    """Return a server of health and metrics on ports that are bound."""
    state = _ProcessState(process, cluster, kinds, options.webhooks)
    found: list[Site] = []
    for port, sockets in listening:
        site = Site(state.health_app(), port.host, port.port, port.tls, sockets)
        if port.metrics:
            add_metrics(site.app, state.metrics)
        found.append(site)
    return HttpServer(found)


@dataclass
class _ProcessState:
    """The state of a process."""

    process: Process
    cluster: LiveCluster | None
    kinds: Sequence[str]
    webhooks: WebhookOptions | None

    def health_app(self) -> web.Application:
        return health_app(self.not_ready, self.process.health_problem, self.details)

    def not_ready(self) -> str:
        """Return why the process is not ready, nothing if it is."""
        missing = self.missing()
        if missing:
            return f"waits for {', '.join(missing)}"
        return "; ".join(filter(None, (why() for why in self.process.readiness)))

    def missing(self) -> list[str]:
        """Return what the process still waits for before it is ready."""
        missing = [] if self.cluster is None else self.cluster.wait_synced(0)
        self.process.metrics.ready(is_ready=not missing)
        if self.webhooks is not None and not _answers(self.webhooks):
            missing = [*missing, "webhooks"]
        return missing

    def details(self) -> list[str]:
        """Return for each kind whether it is being watched, and if not, why."""
        if self.cluster is None:
            return []
        troubles, absent = self.cluster.troubles(), {*self.cluster.absent()}
        lines = {kind: f"[-]{kind}: waits to be listed" for kind in self.cluster.wait_current(0)}
        lines |= {kind: f"[-]{kind}: {trouble}" for kind, trouble in troubles.items()}
        lines |= {kind: f"[ ]{kind}: the server does not have it" for kind in absent}
        return [lines.get(kind, f"[+]{kind} ok") for kind in self.kinds]

    def metrics(self) -> str:
        metrics = self.process.metrics
        if self.cluster is not None:
            outdated = {*self.cluster.wait_current(0), *self.cluster.troubles()}
            for kind in self.kinds:
                metrics.watching(kind, is_well=kind not in outdated)
        return metrics.text()


def _answers(options: WebhookOptions) -> bool:
    try:
        with socket.create_connection((options.listen_address or "127.0.0.1", options.port), 1.0):
            return True
    except OSError:
        return False


def health_app(
    not_ready: Callable[[], str],
    problem: Callable[[], str],
    details: Callable[[], Sequence[str]] = tuple,
) -> web.Application:
    """Serve health.

    ``not_ready`` returns why the process is not ready, ``problem`` why it should be restarted, both
    nothing if it should not; ``details`` are the lines of the verbose answer.
    """

    async def healthz(request: web.Request) -> web.Response:
        del request
        found = problem()
        return web.Response(status=500 if found else 200, text=f"{found}\n" if found else "ok")

    async def readyz(request: web.Request) -> web.Response:
        why = await asyncio.to_thread(not_ready)
        text = f"not ready: {why}\n" if why else "ok"
        if "verbose" in request.query:
            lines = await asyncio.to_thread(details)
            text = "".join(f"{line}\n" for line in (*lines, text.rstrip()))
        return web.Response(status=503 if why else 200, text=text)

    app = web.Application(client_max_size=1024)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/livez", healthz)
    app.router.add_get("/readyz", readyz)
    return app


def add_metrics(app: web.Application, text: Callable[[], str]) -> None:
    """Serve metrics, next to the existing routes of an application."""

    async def metrics(request: web.Request) -> web.Response:
        del request
        body = (await asyncio.to_thread(text)).encode()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    app.router.add_get("/metrics", metrics)
