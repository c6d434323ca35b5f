"""A proxy between Pumice and a real API server that does what bad networks and servers do.

Clients talk to it in plain HTTP; it talks to the server with the certificate of one kubeconfig, so
that the audit log shows whose requests they are.  What happens to a request is drawn from a seed.
"""

import asyncio
import json
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import numpy as np

from tests.e2e_kube.controlplane.plane import ControlPlane

_FAULTS: Final = ("dropped", "unheard", "cut", "delayed", "409", "410", "429", "500")
_REASONS: Final = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}
_PIECE: Final = 1 << 16


class FaultProxy:
    """Listens on loopback; ``rate`` of all requests meet a fault until ``calm``."""

    def __init__(self, plane: ControlPlane, kubeconfig: Path, seed: int, rate: float) -> None:
        user = json.loads(kubeconfig.read_text())["users"][0]["user"]
        self._tls = ssl.create_default_context(cafile=plane.authority.own.certificate)
        self._tls.load_cert_chain(user["client-certificate"], user["client-key"])
        self._upstream = plane.port
        self._random = np.random.default_rng(seed)
        self._rate = rate
        self._connections: set[asyncio.Task[None]] = set()
        self.calm = False
        self.counts: Counter[str] = Counter()
        self.port = 0

    def kubeconfig(self, directory: Path) -> Path:
        """Write a kubeconfig that leads through the proxy."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "p", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "p", "user": {}}],
            "contexts": [{"name": "p", "context": {"cluster": "p", "user": "p"}}],
            "current-context": "p",
        }
        path = directory / "proxy.kubeconfig"
        path.write_text(json.dumps(config))
        return path

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        """Listen until stopped, then end every connection."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()
        await server.wait_closed()
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # asyncio itself keeps only weak references to the tasks of its connections.
        task = asyncio.create_task(self._handle(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    def _fate(self) -> str:
        if self.calm or self._random.random() >= self._rate:
            return ""
        fate = _FAULTS[int(self._random.integers(len(_FAULTS)))]
        self.counts[fate] += 1
        return fate

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._answer(reader, writer)
        finally:
            await _ended(writer)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request and answer it, as its fate is."""
        request = await _request(reader)
        fate = self._fate()
        if fate == "dropped":
            return
        if fate.isdigit():
            writer.write(_refusal(int(fate)))
            await writer.drain()
            return
        if fate == "delayed":
            await asyncio.sleep(float(self._random.uniform(0.2, 4.0)))
        up_reader, up_writer = await asyncio.open_connection(
            "127.0.0.1", self._upstream, ssl=self._tls
        )
        up_writer.write(request)
        pieces = int(self._random.integers(1, 4)) if fate == "cut" else 0
        try:
            while piece := await up_reader.read(_PIECE):
                if fate == "unheard":
                    return
                pieces -= 1
                writer.write(piece[: len(piece) // 2] if pieces == 0 else piece)
                await writer.drain()
                if pieces == 0:
                    return
        finally:
            up_writer.transport.abort()
            await _ended(up_writer)


async def _ended(writer: asyncio.StreamWriter) -> None:
    """Close a connection and wait until its socket is closed."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _request(reader: asyncio.StreamReader) -> bytes:
    """Read one request; each has a connection of its own on the other side."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("ascii").split("\r\n")
    length = next((int(x.split(":")[1]) for x in lines if x.lower().startswith("content-l")), 0)
    body = await reader.readexactly(length)
    return head[:-2] + b"Connection: close\r\n\r\n" + body


def _refusal(code: int) -> bytes:
    reason = _REASONS[code]
    body = json.dumps({"kind": "Status", "code": code, "reason": reason, "message": "injected"})
    more = "Retry-After: 1\r\n" if code == 429 else ""
    head = f"HTTP/1.1 {code} {reason}\r\nContent-Length: {len(body)}\r\n{more}"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


@contextmanager
def fault_proxy(
    plane: ControlPlane, kubeconfig: Path, *, seed: int, rate: float = 0.15
) -> Iterator[FaultProxy]:
    """Run a proxy on a thread of its own."""
    proxy = FaultProxy(plane, kubeconfig, seed, rate)
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    def run() -> None:
        loop.run_until_complete(proxy.serve(ready, stop))
        loop.close()

    thread = threading.Thread(target=run, name="fault-proxy", daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
