"""The dashboard over HTTP: pages, documents, answers, and news as server-sent events."""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from aiohttp import web

from pumice import __version__
from pumice.dashboard.actions import ActionRoutes, Actions
from pumice.dashboard.answers import UnansweredError
from pumice.dashboard.pages import Made, Moment, Pages
from pumice.dashboard.questions import (
    Ask,
    Configuration,
    Order,
    Saved,
    TryRemedy,
    WhatIf,
    Why,
    read_texts,
)
from pumice.dashboard.security import COOKIE, Guard, refusal
from pumice.dashboard.view import EVERYTHING, Scope, hide
from pumice.errors import InputError, PumiceError, Words
from pumice.serve.http_server import HttpServer, Site, read_body, sending, write_in_parts

_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""Suffixes that are served, with their content types."""
_FOLDERS: Final = (
    ("", "pumice.dashboard", "web"),
    ("report/vendor/", "pumice.sim.report", "vendor"),
)
"""Prefixes of names with the package and the folder whose files have it; the plotting library is
that of the reports."""


@dataclass(frozen=True)
class StaticFile:
    """One file as it is sent."""

    content_type: str
    body: bytes


@cache
def static_files() -> dict[str, StaticFile]:
    """Return all files by the only names under which they are served."""
    return {
        name: StaticFile(_TYPES[name[name.rfind(".") :]], file.read_bytes())
        for prefix, package, folder in _FOLDERS
        for name, file in _walk(resources.files(package).joinpath(folder), prefix)
    }


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _walk(entry, f"{name}/")
        elif name.endswith(tuple(_TYPES)):
            yield name, entry


_PATIENCE_S: Final = 10.0
"""How long a request waits for an answer before it returns that the answer is still in progress."""
_WANTED_S: Final = 2 * _PATIENCE_S
"""By when a page that is still open asks again."""
_MOST_BODY: Final = 1 << 20
_MOST_PAGES: Final = 200
"""Pages that may wait for news at once: fewer than the connections that are served."""
_TICK_S: Final = 0.25
_BEAT_S: Final = 10.0
_LONGEST_NUMBER: Final = 15
_JSON: Final = "application/json"
_SHELLS: Final = (
    "/", "/queues", "/queues/{a}", "/jobs", "/jobs/{a}/{b}", "/nodes", "/nodes/{a}",
    "/cycles", "/cycles/{a}", "/simulations", "/simulations/{a}", "/whatif", "/search",
)  # fmt: skip
"""Addresses of pages; a script of ours shows what each is about."""


class Dashboard:
    """Serves pages about one cluster, once ``site`` is served."""

    def __init__(self, pages: Pages, guard: Guard, actions: Actions | None = None) -> None:
        """Show a cluster; ``actions`` None: pages only show."""
        self._pages = pages
        self._actions = actions
        self._guard = guard
        self._files = static_files()
        self._waiting: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        pages.source.feed.listeners.append(self._notice)

    def app(self) -> web.Application:
        """Return the application."""
        app = web.Application(middlewares=[self._guard.middleware])
        add = app.router.add_get
        for path in _SHELLS:
            add(path, self._shell)
        add("/static/{name:.+}", self._static)
        add("/api/session", self._session)
        app.router.add_get("/api/news", self._news, allow_head=False)
        pages = self._pages
        add("/api/overview", self._made(lambda scope, at, _: pages.overview(scope, at)))
        add("/api/queues", self._made(lambda scope, at, _: pages.queues(scope, at)))
        add("/api/jobs", self._made(lambda scope, at, _: pages.jobs(scope, at)))
        add("/api/nodes", self._made(lambda scope, at, _: pages.nodes(scope, at)))
        add("/api/fit", self._made(lambda scope, at, r: pages.fit(scope, at, _shape(r))))
        add("/api/past", self._made(lambda _, at, __: pages.past(at)))
        add("/api/cycles", self._made(lambda scope, at, _: pages.cycles(scope, at)))
        add("/api/cycles/{n}", self._made(lambda scope, at, r: pages.cycle(scope, at, _number(r))))
        add("/api/nodes/{name}", self._made(lambda scope, at, r: pages.node(scope, at, _of(r))))
        add("/api/jobs/{ns}/{name}", self._made(lambda scope, at, r: pages.job(scope, at, _job(r))))
        add("/api/simulations", self._made(lambda _, __, ___: pages.simulations()))
        add(
            "/api/simulations/{name:.+}",
            self._made(lambda _, __, r: pages.simulation(_of(r))),
        )
        add("/api/jobs/{ns}/{name}/why", self._why)
        add("/api/jobs/{ns}/{name}/life", self._life)
        add("/api/order", self._order)
        add("/api/configuration", self._configuration)
        add("/api/snapshot", self._snapshot)
        app.router.add_post("/api/whatif", self._what_if)
        app.router.add_post("/api/login", self._login)
        app.router.add_post("/api/logout", self._logout)
        ActionRoutes(self._guard, self._actions).add_to(app)
        add("/{page:.*}", self._unknown)
        app.on_startup.append(self._started)
        app.on_shutdown.append(self._stopped)
        return app

    # Pages and files

    async def _shell(self, request: web.Request) -> web.Response:
        del request
        return _sent(self._files["index.html"])

    async def _unknown(self, request: web.Request) -> web.Response:
        """Show people which pages exist; programs get the status alone."""
        if request.path.startswith(("/api/", "/static/")):
            raise web.HTTPNotFound(text="there is nothing at this address")
        found = await self._shell(request)
        found.set_status(404)
        return found

    async def _static(self, request: web.Request) -> web.Response:
        found = self._files.get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound(text="the pages have no file of this name")
        return _sent(found)

    async def _session(self, request: web.Request) -> web.Response:
        person = self._guard.person(request)
        self._pages.answers.warm_up()
        scope = await asyncio.to_thread(self._scope, request)
        about = self._pages.source.about
        return web.json_response(
            {
                "title": about.title,
                "kind": about.kind,
                "decides": about.decides,
                "speed": about.speed,
                "hint": about.hint,
                "past": about.past is not None,
                "version": __version__,
                "person": "" if person.is_anyone else person.name,
                "namespaces": None if scope.namespaces is None else sorted(scope.namespaces),
                "cluster": scope.cluster,
                "csrf": self._guard.csrf(request),
                "actions": self._actions is not None,
            }
        )

    # Documents

    def _made(
        self, make: Callable[[Scope, Moment, web.Request], Made]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Serve a document, or the status that it has not changed."""

        async def handler(request: web.Request) -> web.Response:
            def work() -> Made:
                return make(self._scope(request), self._moment(request), request)

            try:
                made = await asyncio.to_thread(work)
            except PumiceError as error:
                return _unanswered(error)
            tag = f'"{made.tag}"'
            headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
            if request.headers.get("If-None-Match") == tag:
                return web.Response(status=304, headers=headers)
            if made.packed and "gzip" in request.headers.get("Accept-Encoding", ""):
                headers["Content-Encoding"] = "gzip"
                return web.Response(body=made.packed, content_type=_JSON, headers=headers)
            return web.Response(body=made.body, content_type=_JSON, headers=headers)

        return handler

    def _scope(self, request: web.Request) -> Scope:
        return self._guard.scope(self._guard.person(request))

    def _moment(self, request: web.Request) -> Moment:
        return self._pages.moment(request.query.get("at", ""))

    # Answers

    async def _answer(self, request: web.Request, question: Ask) -> web.Response:
        """Wait a little for an answer; 202 if it is still in progress: the page asks again."""
        try:
            moment = await asyncio.to_thread(self._moment, request)
            future = await asyncio.to_thread(self._pages.ask, moment, question, _WANTED_S)
            found = await _waited(future)
        except TimeoutError:
            return web.json_response({"state": "working"}, status=202)
        except PumiceError as error:
            return _unanswered(error)
        if isinstance(found, str):
            return web.Response(text=found, content_type="text/yaml")
        scope = await asyncio.to_thread(self._scope, request)
        namespaces = await asyncio.to_thread(self._pages.namespaces, moment)
        body = msgspec.json.encode(hide(found, scope, namespaces))
        return web.Response(body=body, content_type=_JSON)

    async def _life(self, request: web.Request) -> web.Response:
        """Send what became of a job, over the whole record."""
        try:
            scope = await asyncio.to_thread(self._scope, request)
            future = await asyncio.to_thread(self._pages.life, scope, _job(request))
            found = await _waited(future)
        except TimeoutError:
            return web.json_response({"state": "working"}, status=202)
        except PumiceError as error:
            return _unanswered(error)
        known = {*found["namespaces"], *self._pages.namespaces()}
        shown = {key: value for key, value in found.items() if key != "namespaces"}
        return web.Response(body=msgspec.json.encode(hide(shown, scope, known)), content_type=_JSON)

    async def _why(self, request: web.Request) -> web.Response:
        def group() -> str:
            return self._pages.group_of(self._scope(request), self._moment(request), _job(request))

        try:
            name = await asyncio.to_thread(group)
        except PumiceError as error:
            return _unanswered(error)
        asked = request.query
        return await self._answer(request, Why(name, when="when" in asked, helps="helps" in asked))

    async def _order(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._whole, request)
        return await self._answer(request, Order())

    async def _configuration(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._whole, request)
        return await self._answer(request, Configuration())

    async def _snapshot(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._whole, request)
        at = request.query.get("at", "")
        name = re.sub(
            "[^0-9A-Za-z]+", "-", f"cycle-{at}" if at.isdecimal() else f"snapshot {at}"[:40]
        )
        name = name.strip("-")
        response = await self._answer(request, Saved(name))
        response.headers["Content-Disposition"] = f'attachment; filename="{name}.yaml"'
        return response

    def _whole(self, request: web.Request) -> None:
        """Refuse users who may not see everything."""
        if self._scope(request) != EVERYTHING:
            raise web.HTTPForbidden(text="this shows all namespaces, and you may see only some")

    async def _what_if(self, request: web.Request) -> web.Response:
        """Try a change on a copy; nothing changes."""
        self._guard.check_csrf(request)
        await asyncio.to_thread(self._whole, request)
        try:
            asked = _read_json(await read_body(request, _MOST_BODY))
            remedy = str(asked.get("remedy") or "")
            if remedy:
                place = str(asked.get("job") or "")
                at = await asyncio.to_thread(self._moment, request)
                group = await asyncio.to_thread(self._pages.group_of, EVERYTHING, at, place)
                return await self._answer(request, TryRemedy(group, remedy))
            return await self._answer(request, _question(asked))
        except PumiceError as error:
            return _unanswered(error)

    # Logging in

    async def _login(self, request: web.Request) -> web.Response:
        attempts = self._guard.attempts
        if attempts is None:
            return refusal(404, "no login is needed here")
        if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return refusal(403, "requests of other sites are not answered")
        try:
            asked = _read_json(await read_body(request, _MOST_BODY))
        except PumiceError as error:
            return _unanswered(error)
        person = await attempts.person(str(asked.get("token") or ""), request.remote or "")
        if person is None:
            return refusal(401, "this token is not known here")
        response = web.json_response({"person": person.name})
        response.set_cookie(
            COOKIE,
            self._guard.sessions.start(person),
            httponly=True,
            samesite="Strict",
            secure=self._guard.is_tls,
        )
        return response

    async def _logout(self, request: web.Request) -> web.Response:
        self._guard.check_csrf(request)
        self._guard.sessions.end(request.cookies.get(COOKIE, ""))
        response = web.json_response({})
        response.del_cookie(COOKIE)
        return response

    # News

    async def _news(self, request: web.Request) -> web.StreamResponse:
        """Send events on changes, at most four times a second, and heartbeats."""
        self._guard.person(request)
        if len(self._waiting) >= _MOST_PAGES:
            raise web.HTTPServiceUnavailable(text="too many pages are open; close some")
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        response = web.StreamResponse(headers={**self._guard.headers(), **headers})
        await response.prepare(request)
        changed = asyncio.Event()
        changed.set()
        self._waiting.add(changed)
        try:
            while not self._stopping:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_BEAT_S):
                        await changed.wait()
                changed.clear()
                news = b"data: " + msgspec.json.encode(self._state()) + b"\n\n"
                with sending(request, len(news)):
                    await write_in_parts(request, response, news)
                await asyncio.sleep(_TICK_S)
        except ConnectionResetError:
            pass
        finally:
            self._waiting.discard(changed)
        return response

    def _state(self) -> dict[str, Any]:
        source = self._pages.source
        picture, cycles = source.feed.picture, source.feed.cycles()
        cluster = source.cluster
        return {
            "revision": self._pages.revision,
            "now": cluster.now() if cluster is not None else picture.now if picture else 0.0,
            "speed": source.about.speed,
            "cycle": cycles[-1].number if cycles else 0,
            "problem": source.problem,
        }

    def _notice(self) -> None:
        """Wake the waiting event streams; called on any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for each in self._waiting:
            each.set()

    async def _started(self, _: web.Application) -> None:
        self._loop = asyncio.get_running_loop()

    async def _stopped(self, _: web.Application) -> None:
        self._stopping = True
        self._wake()


def dashboard_server(
    dashboard: Dashboard, host: str, port: int, tls: ssl.SSLContext | None = None
) -> HttpServer:
    """Return a server of one dashboard; port 0 takes a free one."""
    return HttpServer([Site(dashboard.app(), host, port, tls)])


def _sent(file: StaticFile) -> web.Response:
    return web.Response(
        body=file.body,
        content_type=file.content_type,
        charset="utf-8",
        headers={"Cache-Control": "no-cache"},
    )


def _unanswered(error: PumiceError) -> web.Response:
    status = error.status if isinstance(error, UnansweredError) else 422
    return refusal(status, str(error))


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InputError(wanted="JSON", found=Words("something else")) from None
    if not isinstance(found, dict):
        raise InputError(wanted="a JSON object", found=found)
    return found


def _question(asked: dict[str, Any]) -> WhatIf:
    """Read a what-if question."""
    texts = ("job", "manifest", "conf", "default_runtime")
    lists = ("settings", "add_nodes", "drain", "remove")
    for name in asked.keys() - {*texts, *lists}:
        raise InputError(wanted=f"one of {', '.join((*texts, *lists))}", found=name)
    for name in texts:
        if not isinstance(asked.get(name, ""), str):
            raise InputError(wanted="a text", found=asked[name], field=name)
    chosen: dict[str, Any] = {name: asked.get(name, "") for name in texts}
    chosen |= {name: read_texts(asked.get(name, []), name) for name in lists}
    return WhatIf(**chosen)


async def _waited(future: Future[Any]) -> Any:
    """Wait a little for an answer."""
    async with asyncio.timeout(_PATIENCE_S):
        return await asyncio.shield(asyncio.wrap_future(future))


def _number(request: web.Request) -> int:
    return _counted(request.match_info["n"])


def _counted(text: str) -> int:
    """Read the number of a cycle."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER):
        raise web.HTTPBadRequest(text=f"expected the number of a cycle, got '{text:.40}'")
    return int(text)


def _of(request: web.Request) -> str:
    return unquote(request.match_info["name"])


def _job(request: web.Request) -> str:
    return f"{request.match_info['ns']}/{request.match_info['name']}"


def _shape(request: web.Request) -> dict[str, str]:
    return {key: value for key, value in request.query.items() if key != "at" and value}
