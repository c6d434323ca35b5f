"""Time single pods and gangs on a real API server: ``python -m bench.latency [--rate N] …``.

How long pods wait from created to bound, as one watch sees both, with cycles by event and by period
in turn.  In the same run the API server's own time is measured: how long it takes to answer a
create and a bind, and how long pods wait that a client binds the moment it sees them.  KWOK runs
the pods.  Every pod is bound before anything is printed.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from bench.bound_times import CONNECTIONS, BoundTimes
from bench.control_plane import Cluster, Installation, calls, pods_path, run

RHYTHMS: Final[Mapping[str, Mapping[str, str]]] = {
    "event": {"cycle": "event"},
    "period": {"cycle": "period"},
}
"""The flags of each scheduler that is measured."""
WAIT_S: Final = 60.0
_GATHER_S: Final = 0.001


@dataclass
class Measured:
    """What one scheduler did at a steady rate, and with gangs."""

    name: str
    waits: dict[int, list[float]] = field(default_factory=dict)
    """How long pods waited in seconds, by the size of their gangs."""
    cpu_ms: dict[int, float] = field(default_factory=dict)
    """CPU of the scheduler a pod."""
    calls: dict[int, float] = field(default_factory=dict)
    """Requests to the API server a pod."""
    gangs_s: list[float] = field(default_factory=list)
    """From the last pod of a large gang to the moment at which all are bound."""

    def lines(self) -> list[str]:
        """Format it."""
        found = [
            f"{self.name:8} gangs of {size:3}: {shown(waits)}; "
            f"{self.cpu_ms[size]:5.2f} ms CPU and {self.calls[size]:.2f} calls a pod"
            for size, waits in self.waits.items()
        ]
        if self.gangs_s:
            found.append(f"{self.name:8} large gangs, after the last pod: {shown(self.gangs_s)}")
        return found


def shown(seconds: list[float]) -> str:
    """Format times."""
    half, most, nearly, worst = (1000 * np.percentile(seconds, q) for q in (50, 90, 99, 100))
    return f"50 % {half:6.1f}, 90 % {most:6.1f}, 99 % {nearly:6.1f}, worst {worst:6.1f} ms"


class Server:
    """The API server's own times, taken while pods are made and bound by this client."""

    def __init__(self) -> None:
        self.creates_s: list[float] = []
        self.binds_s: list[float] = []

    async def timed(self, into: list[float], request: Awaitable[Any]) -> None:
        """Wait for a request, and keep how long that took."""
        started = time.perf_counter()
        await request
        into.append(time.perf_counter() - started)


async def create_steadily(
    admin: Cluster, namespace: str, given: argparse.Namespace, size: int
) -> int:
    """Create gangs at a steady rate of pods; return how many pods there are."""
    count = int(given.rate * given.seconds / size)
    started = time.perf_counter()
    making = []
    for number in range(count):
        await asyncio.sleep(max(0.0, started + number * size / given.rate - time.perf_counter()))
        making.append(asyncio.create_task(admin.create_gang(namespace, f"s{size}-{number}", size)))
    await asyncio.gather(*making)
    return count * size


async def bind_at_once(
    cluster: Cluster, namespace: str, version: str, nodes: int, server: Server
) -> None:
    """Bind each pod of a namespace that appears after a version, the moment it is seen."""
    binding: set[asyncio.Task[None]] = set()
    path, number = pods_path(namespace), 0
    while True:  # an API server ends a watch that is behind
        async for line in cluster.lines(f"{path}?watch=true&resourceVersion={version}"):
            step = json.loads(line)
            metadata = step["object"]["metadata"]
            version = metadata["resourceVersion"]
            if step["type"] != "ADDED":
                continue
            name, number = metadata["name"], number + 1
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "namespace": namespace},
                "target": {"kind": "Node", "name": f"node-{number % nodes}"},
            }
            request = cluster.send("POST", f"{path}/{name}/binding", body)
            task = asyncio.create_task(server.timed(server.binds_s, request))
            binding.add(task)
            task.add_done_callback(binding.discard)


async def measure_server(
    installation: Installation, admin: Cluster, given: argparse.Namespace
) -> list[str]:
    """Measure pods that are bound at once by a client that decides nothing."""
    namespace, server = await new_namespace(admin, "none"), Server()
    send = admin.send

    async def timed_send(method: str, path: str, body: Any = None) -> Any:
        started = time.perf_counter()
        answer = await send(method, path, body)
        if path.endswith("/pods"):
            server.creates_s.append(time.perf_counter() - started)
        return answer

    with BoundTimes.followed(installation, namespace, _GATHER_S) as times:
        async with installation.connect(CONNECTIONS, "scheduler") as binder:
            work = asyncio.create_task(
                bind_at_once(binder, namespace, times.version, given.nodes, server)
            )
            admin.send = timed_send  # type: ignore[method-assign]
            count = await create_steadily(admin, namespace, given, 1)
            admin.send = send  # type: ignore[method-assign]
            await times.wait_bound(count, WAIT_S)
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work
    await admin.clear(namespace)
    return [
        f"API server, a create:  {shown(server.creates_s)}",
        f"API server, a bind:    {shown(server.binds_s)}",
        f"bound when seen:       {shown(times.waited_s)}",
    ]


async def new_namespace(admin: Cluster, name: str) -> str:
    """Create a namespace."""
    await admin.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


async def measure_rhythm(
    installation: Installation, admin: Cluster, given: argparse.Namespace, name: str, turn: int
) -> Measured:
    """Measure one scheduler: gangs of several sizes at a steady rate, then large gangs."""
    measured = Measured(name)
    server = installation.start_ready_scheduler(RHYTHMS[name])
    for size in given.sizes:
        namespace = await new_namespace(admin, f"{name}-{size}-{turn}")
        with BoundTimes.followed(installation, namespace, _GATHER_S) as times:
            cpu_s, called = server.process.usage().cpu_s, calls(installation.plane)
            count = await create_steadily(admin, namespace, given, size)
            await times.wait_bound(count, WAIT_S)
            await asyncio.sleep(1.5)  # the statuses and events that follow
            cpu_s = server.process.usage().cpu_s - cpu_s
            called = calls(installation.plane) - called
        measured.waits[size] = times.waited_s
        measured.cpu_ms[size] = 1000 * cpu_s / count
        measured.calls[size] = called / count
        await admin.clear(namespace)
        await asyncio.sleep(2)
    for number in range(given.gangs):
        namespace = await new_namespace(admin, f"{name}-gang-{turn}-{number}")
        with BoundTimes.followed(installation, namespace, _GATHER_S) as times:
            await admin.create_gang(namespace, "g", given.gang)
            await times.wait_bound(given.gang, WAIT_S)
        measured.gangs_s.append(times.last_bound_at - times.last_created_at)
        await admin.clear(namespace)
        await asyncio.sleep(0.7)
    installation.servers.stop(server)
    return measured


async def measure(given: argparse.Namespace, installation: Installation) -> None:
    """Measure on a control plane on which Pumice is installed, and print."""
    async with installation.connect(CONNECTIONS) as admin:
        await admin.create_nodes(given.nodes)
        installation.servers.stop(installation.start_ready_scheduler())  # makes the bytecode
        for turn in range(given.turns):
            print(*await measure_server(installation, admin, given), sep="\n", flush=True)
            for name in given.cycle:
                measured = await measure_rhythm(installation, admin, given, name, turn)
                print(*measured.lines(), sep="\n", flush=True)


def main() -> None:
    """Start a control plane, measure, print, stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--rate", type=float, default=100.0, help="pods created a second")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 10], help="pods of a gang")
    parser.add_argument("--gang", type=int, default=100, help="pods of a large gang")
    parser.add_argument("--gangs", type=int, default=10, help="how many of them")
    parser.add_argument("--cycle", nargs="+", choices=RHYTHMS, default=[*RHYTHMS])
    parser.add_argument("--turns", type=int, default=1, help="how often all is measured")
    run(partial(measure, parser.parse_args()), name="latency", audited=True)


if __name__ == "__main__":
    main()
