"""The API server of a simulation: HTTP in memory, in front of the embedded cluster.

Each request and each line of a watch takes its time and may meet a fault; which one is drawn from
the seed.  Everything behind the faults is what `pumice up` serves.
"""

import asyncio
import re
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from pumice.api.kinds import LEASE
from pumice.apiserver.failures import failure, status
from pumice.apiserver.rest import Answer, Request, RestApi
from pumice.clock import EPOCH
from pumice.cluster.base import Event
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ClusterError, GoneError
from tests.faults.faults import Fate, Faults
from tests.faults.simulation import SimulatedProcess, Simulation

_LEASES: Final = "/leases/"
_STALE_S: Final = 3.0
"""A server that takes longer over a write notices that its client is gone, and does not do it."""
_CONTENT_TYPE: Final = re.compile(r"^content-type: (.*?)\r?$", re.IGNORECASE | re.MULTILINE)
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Asked:
    """One request as it was sent."""

    process: SimulatedProcess
    at: float
    method: str
    path: str
    request: Request

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def is_lease(self) -> bool:
        return _LEASES in self.path or self.path.endswith("/leases")

    @property
    def is_collection(self) -> bool:
        """Whether it reads all objects of a kind, at once or as a watch."""
        return self.method == "GET" and bool({"watch", "limit"} & self.request.query.keys())

    @property
    def is_watch(self) -> bool:
        return self.request.query.get("watch") == "true"


class Connection(asyncio.Transport):
    """One connection, as its client sees it."""

    def __init__(self, server: "ApiServer", loop: Any, protocol: Any) -> None:
        super().__init__()
        self._server = server
        self._loop = loop
        self._protocol = protocol
        self.process: SimulatedProcess = loop.process
        self.open = True
        self._arrives_at = 0.0
        self.on_close: Callable[[], None] = lambda: None
        self.process.on_kill.append(self._close)

    def write(self, data: Any) -> None:
        """Send a request; it leaves even if the process ends the moment after."""
        self._server.receive(self, bytes(data))

    def deliver(self, data: bytes, delay_s: float = 0.0) -> None:
        """Have the client get some bytes, in the order in which they are sent."""
        self._later(delay_s, lambda: self._protocol.data_received(data) if self.open else None)

    def cut(self, delay_s: float = 0.0) -> None:
        """End the connection from the other side, after what was sent before."""
        self._later(delay_s, self._cut)

    def break_off(self) -> None:
        """End the connection at once, whatever is still in flight."""
        self._loop.call_soon(self._cut)

    def _later(self, delay_s: float, action: Callable[[], object]) -> None:
        clock = self.process.simulation.clock
        self._arrives_at = max(self._arrives_at, clock.now() + delay_s)
        self._loop.call_at(self._arrives_at - EPOCH, action)  # a step of the loop, as in asyncio

    def _cut(self) -> None:
        if self.open:
            self._close()
            self._protocol.connection_lost(ConnectionResetError("Connection reset by peer"))

    def _close(self) -> None:
        self.open = False
        self.on_close()

    def abort(self) -> None:
        if self.open:
            self._close()
            self._loop.call_soon(self._protocol.connection_lost, None)

    close = abort

    def is_closing(self) -> bool:
        return not self.open

    def is_reading(self) -> bool:
        return True

    def resume_reading(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class _WatchStream:
    """One open watch: lines go out as things happen, each after the one before."""

    def __init__(self, server: "ApiServer", connection: Connection, kind: str) -> None:
        self._server = server
        self.connection = connection
        self.kind = kind
        self._sent: deque[bytes] = deque(maxlen=12)

    def send(self, line: bytes) -> None:
        """Send a line, with what may happen to it on its way."""
        connection, faults = self.connection, self._server.faults
        now = connection.process.simulation.clock.now()
        lag_s = faults.lag_s(connection.process.name, self.kind, now)
        fate = faults.line_fate()
        if fate == "twice":
            connection.deliver(_chunk(line + line), lag_s)
        elif fate == "again":  # an older one comes once more
            connection.deliver(_chunk(faults.older(self._sent) + line), lag_s)
        elif fate == "cut":
            connection.deliver(_chunk(line[: len(line) // 2]), lag_s)
            connection.cut(lag_s)
        elif fate == "gone":
            reported = failure(
                GoneError(self.kind, problem="too old resource version"), self._kinds
            )
            connection.deliver(_chunk(_line("ERROR", reported)) + _chunk(b""), lag_s)
            self._server.forget(self)
        elif fate == "ended":
            connection.deliver(_chunk(line) + _chunk(b""), lag_s)
            self._server.forget(self)
        else:
            connection.deliver(_chunk(line), lag_s)
        self._sent.append(line)

    @property
    def _kinds(self) -> Any:
        return self._server.cluster.kinds


class ApiServer:
    """Answers simulated processes."""

    def __init__(self, simulation: Simulation, cluster: EmbeddedCluster, faults: Faults) -> None:
        self._simulation = simulation
        self.cluster = cluster
        self.faults = faults
        self.is_up = True
        self.requests = 0
        self.writes_under_way = 0
        """Writes that were received and are not carried out yet."""
        self.on_request: list[Callable[[Asked], None]] = []
        """Called with each request as it is sent, whatever its result."""
        self.on_done: list[Callable[[Asked, Answer], None]] = []
        """Called with each request that was carried out, whether its answer arrives or not."""
        self.on_step: Callable[[SimulatedProcess], None] = lambda _: None
        """Called with the process whenever it sends something or gets an answer."""
        self._api = RestApi(cluster)
        self._streams: dict[str, list[_WatchStream]] = defaultdict(list)
        self._connections: list[Connection] = []
        cluster.listeners.append(self._notice)

    async def connect(self, loop: Any, protocol_factory: Callable[[], Any]) -> Any:
        """Open a connection, or refuse it."""
        self.on_step(loop.process)
        await asyncio.sleep(self.faults.latency_s())
        if not self.is_up or self.faults.refuses_connection():
            raise ConnectionRefusedError("[Errno 111] Connect call failed ('10.0.0.1', 80)")
        protocol = protocol_factory()
        connection = Connection(self, loop, protocol)
        protocol.connection_made(connection)
        self._connections = [each for each in self._connections if each.open]
        self._connections.append(connection)
        return connection, protocol

    def go_away(self) -> None:
        """Cut all connections and accept none until ``come_back``."""
        self.is_up = False
        for connection in self._connections:
            connection.break_off()

    def come_back(self) -> None:
        """Accept connections again."""
        self.is_up = True

    def receive(self, connection: Connection, data: bytes) -> None:
        """Receive one request; clients send each in one piece."""
        self.on_step(connection.process)
        asked = _parsed(connection.process, self._simulation.clock.now(), data)
        self.requests += 1
        for each in self.on_request:
            each(asked)
        fate = self.faults.fate(asked.method, is_lease=asked.is_lease)
        if not self.is_up or fate.kind == "lost":
            connection.cut(fate.delay_s)
            return
        when = self._simulation.clock.now() + fate.delay_s
        self.writes_under_way += asked.is_write
        self._simulation.clock.call_at(when, lambda: self._handle(connection, asked, fate))

    def _handle(self, connection: Connection, asked: Asked, fate: Fate) -> None:
        """Carry a request out, or not, and answer it, or not."""
        self.writes_under_way -= asked.is_write
        if fate.delay_s > _STALE_S and asked.is_write and not self._is_wanted(asked.process):
            return
        if fate.status:
            self._answer(connection, _refusal(fate), fate)
            return
        if asked.is_watch:
            self._watch(connection, asked)
            return
        answer = self._list_part(asked) or self._api.answer(asked.request)
        for each in self.on_done:
            each(asked, answer)
        if fate.kind == "unheard":
            connection.cut(self.faults.latency_s())
        elif fate.kind == "half":
            text = _response(answer.code, answer.content)
            connection.deliver(text[: len(text) - 5], self.faults.latency_s())
            connection.cut(self.faults.latency_s())
        elif fate.kind == "done and failed":
            self._answer(connection, Answer(500, status(500, "InternalError", "etcd: timeout")))
        else:
            self._answer(connection, answer)

    def _is_wanted(self, process: SimulatedProcess) -> bool:
        """Return whether the sender of a slow write is still alive and leads."""
        lease = self.cluster.peek(LEASE, "volcano-system", "volcano")
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity")
        return process.alive and holder in (None, process.name)

    def _answer(self, connection: Connection, answer: Answer, fate: Fate | None = None) -> None:
        self.on_step(connection.process)
        wait_s = fate.retry_after_s if fate is not None else 0
        text = _response(answer.code, answer.content, wait_s)
        connection.deliver(text, self.faults.latency_s())

    def _list_part(self, asked: Asked) -> Answer | None:
        """Answer a list with fewer objects than asked for, or forget one that was begun."""
        query = asked.request.query
        if "continue" in query and self.faults.rest_of_list_is_gone():
            error = GoneError(problem="The provided continue parameter is too old")
            return Answer(410, failure(error, self.cluster.kinds))
        if "limit" not in query or not self.faults.page:
            return None
        part = {**query, "limit": str(self.faults.page)}
        return self._api.answer(replace(asked.request, query=part))

    # Watches

    def _watch(self, connection: Connection, asked: Asked) -> None:
        if asked.request.says("sendInitialEvents") and not self.faults.streams:
            problem = "sendInitialEvents is forbidden for watch"
            self._answer(connection, Answer(422, status(422, "Invalid", problem)))
            return
        answer = self._api.answer(asked.request)
        if answer.watch is None:
            self._answer(connection, answer)
            return
        kind = _kind_of(self.cluster, asked.path)
        since = asked.request.query.get("resourceVersion", "")
        if self.faults.watch_is_gone():
            error: ClusterError = GoneError(kind, problem="too old resource version")
            self._answer(connection, Answer(410, failure(error, self.cluster.kinds)))
            return
        try:
            initial = asked.request.says("sendInitialEvents")
            backlog = [*self.cluster.watch(kind, since=since, bookmarks=initial)]
        except ClusterError as error:
            self._answer(connection, Answer(error.code, failure(error, self.cluster.kinds)))
            return
        if initial:
            backlog[-1].object["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
        stream = _WatchStream(self, connection, kind)
        connection.on_close = lambda: self.forget(stream)
        connection.deliver(_STREAM_HEAD, self.faults.latency_s())
        self._streams[kind].append(stream)
        for event in backlog:
            if stream in self._streams[kind]:
                stream.send(_line(event.type, event.object))

    def forget(self, stream: _WatchStream) -> None:
        """Send nothing more on a watch."""
        if stream in self._streams[stream.kind]:
            self._streams[stream.kind].remove(stream)

    def _notice(self, kind: str, event: Event) -> None:
        streams = self._streams.get(kind)
        if streams:
            line = _line(event.type, event.object)
            for stream in [*streams]:
                stream.send(line)


def _parsed(process: SimulatedProcess, at: float, data: bytes) -> Asked:
    head, _, body = data.partition(b"\r\n\r\n")
    method, path, query, content_type = _parsed_head(head)
    request = Request(method, path, query, "application/json", content_type, body)
    return Asked(process, at, method, path, request)


def _parsed_head(head: bytes) -> tuple[str, str, dict[str, str], str]:
    first, _, headers = head.decode("ascii").partition("\r\n")
    method, target, _ = first.split(" ")
    path, _, asked = target.partition("?")
    query = _query(asked) if asked else {}
    typed = _CONTENT_TYPE.search(headers)
    return method, path, query, typed[1] if typed else "application/json"


def _query(asked: str) -> dict[str, str]:
    if "%" in asked or "+" in asked:
        return dict(parse_qsl(asked, keep_blank_values=True))
    return dict(each.split("=", 1) for each in asked.split("&"))


def _kind_of(cluster: EmbeddedCluster, path: str) -> str:
    parts = path.strip("/").split("/")
    group = "" if parts[0] == "api" else parts[1]
    kind = cluster.kinds.by_plural(group, parts[-1])
    assert kind is not None
    return kind.name


def _refusal(fate: Fate) -> Answer:
    reasons = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}
    return Answer(fate.status, status(fate.status, reasons[fate.status], "injected"))


_STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def _response(code: int, content: Any, retry_after_s: int = 0) -> bytes:
    body = _encode(content)
    more = f"Retry-After: {retry_after_s}\r\n" if retry_after_s else ""
    return f"HTTP/1.1 {code} X\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _line(type_: str, content: Any) -> bytes:
    return _encode({"type": type_, "object": content}) + b"\n"
