"""An API server on loopback that answers as configured, and time that does not pass by itself."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from pumice.cluster.kube.client import KubeClient
from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.rate_limit import Timing
from tests.present import present

TestServer.__test__ = False
CLOSING = web.AppKey("closing", asyncio.Event)
PODS = "/api/v1/pods"
LAB = "/api/v1/namespaces/lab/pods"


def pod(name: str = "p", version: Any = 1, node: str = "", uid: str = "", **metadata: Any) -> Any:
    spec = {"nodeName": node} if node else {}
    metadata = {
        "name": name,
        "namespace": "lab",
        "uid": uid or f"u-{name}",
        "resourceVersion": str(version),
        **metadata,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def page(*items: Any, version: Any = 10, more: str = "") -> Any:
    """Return an answer to a list; items of built-in kinds carry no kind of their own."""
    bare = [{k: v for k, v in item.items() if k not in ("apiVersion", "kind")} for item in items]
    metadata = {"resourceVersion": str(version)}
    if more:
        metadata["continue"] = more
    return {"kind": "List", "metadata": metadata, "items": bare}


def line(kind: Any, thing: Any) -> Any:
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


def bookmark(version: Any) -> Any:
    thing = {"apiVersion": "v1", "kind": "Pod", "metadata": {"resourceVersion": str(version)}}
    return line("BOOKMARK", thing)


def initial_end(version: Any) -> Any:
    notes = {"k8s.io/initial-events-end": "true"}
    metadata = {"resourceVersion": str(version), "annotations": notes}
    return line("BOOKMARK", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata})


def gone_line() -> Any:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    return line("ERROR", status)


@dataclass(frozen=True)
class Refuse:
    """An answer with a Status, or with bare words."""

    code: int
    reason: str = ""
    message: str = "no, because"
    headers: Any = None
    bare: bool = False

    async def answer(self, _: Any) -> Any:
        if self.bare:
            return web.Response(status=self.code, text=self.message, headers=self.headers)
        status = {"kind": "Status", "code": self.code, "message": self.message}
        if self.reason:
            status["reason"] = self.reason
        return web.json_response(status, status=self.code, headers=self.headers)


@dataclass(frozen=True)
class Stream:
    """The pieces of a watch, then its end: "clean", "reset", or "hang" until the client leaves."""

    pieces: tuple[bytes, ...] = ()
    end: str = "clean"

    async def answer(self, request: Any) -> Any:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for piece in self.pieces:
            await response.write(piece)
        if self.end == "reset":
            request.transport.abort()
        elif self.end == "hang":
            await request.app[CLOSING].wait()
        return response


def stream(*pieces: Any, end: str = "clean") -> Any:
    return Stream(pieces, end)


class Lost:
    """A connection that ends without an answer."""

    async def answer(self, request: Any) -> Any:
        request.transport.abort()
        return web.Response()


class Silence:
    """No answer at all."""

    async def answer(self, request: Any) -> Any:
        await request.app[CLOSING].wait()
        return web.Response()


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


class FakeServer:
    """Answers by "METHOD path": a list is used up one by one, its last stays."""

    def __init__(self, answers: Any) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.answers = {
            key: list(value) if isinstance(value, list | tuple) else [value]
            for key, value in answers.items()
        }
        self.arrived: Any = defaultdict(asyncio.Event)
        """Set when a "METHOD path" is asked for."""
        self.most_at_once = self._at_once = 0

    async def handle(self, request: Any) -> Any:
        content = await request.read()
        body = json.loads(content) if content else None
        query = dict(request.query)
        verb = "WATCH" if "watch" in query else request.method
        if "sendInitialEvents" in query:
            verb = "STREAM"
        key = f"{verb} {request.path}"
        if verb == "STREAM" and key not in self.answers:  # as servers without WatchList; no news
            return await Refuse(422, "Invalid", "sendInitialEvents is forbidden").answer(request)
        self.asked.append(Asked(request.method, request.path, query, body, dict(request.headers)))
        self.arrived[key].set()
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._answer(key, request)
        finally:
            self._at_once -= 1

    async def _answer(self, key: Any, request: Any) -> Any:
        known = self.answers.get(key)
        if known is None:
            return await Refuse(404, "NotFound", f"nothing for {key}").answer(request)
        said = known.pop(0) if len(known) > 1 else known[0]
        if callable(said):
            said = await said(request)
        if hasattr(said, "answer"):
            return await said.answer(request)
        return said if isinstance(said, web.StreamResponse) else web.json_response(said)

    def calls(self) -> Any:
        return [f"{one.method} {one.path}" for one in self.asked]


@asynccontextmanager
async def serving(answers: Any) -> AsyncIterator[Any]:
    """Run a fake server on the running loop; yield it with its address in ``url``."""
    fake = FakeServer(answers)
    app = web.Application()
    app[CLOSING] = asyncio.Event()
    app.router.add_route("*", "/{tail:.*}", fake.handle)
    server = TestServer(app)
    await server.start_server()
    fake.url = str(server.make_url("")).rstrip("/")
    try:
        yield fake
    finally:
        app[CLOSING].set()
        handlers = present(present(server.runner).server)
        await server.close()
        for _ in range(5):  # connections that were made meanwhile
            for handler in handlers.connections:
                handler.force_close()
            await asyncio.sleep(0)


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self.slept: list[Any] = []
        self.timing = Timing(
            clock=lambda: self.now, wall=lambda: self.now, sleep=self.sleep, jitter=lambda: 1.0
        )

    async def sleep(self, seconds: Any) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds
        await asyncio.sleep(0)


@asynccontextmanager
async def client_of(answers: Any, **options: Any) -> AsyncIterator[Any]:
    """Yield a client, the server it talks to and its time."""
    async with serving(answers) as fake:
        time = FakeTime()
        options.setdefault("qps", 0)
        client = KubeClient(Connection(fake.url), timing=time.timing, **options)
        try:
            yield client, fake, time
        finally:
            await client.close()
