"""Time single pods and gangs on a real API server: ``python -m bench.latency [--rate N] …``.

How long pods wait from created to bound, as one watch sees both, with several schedulers in turn:
cycles by event and by period, a configuration that evicts, plain pods, kube-scheduler.  In the same
run the API server's own time is measured: how long it takes to answer a create and a bind, and how
long pods wait that a client binds the moment it sees them.  With ``--waiting`` gangs wait in vain
beside them.  KWOK runs the pods.  Every pod is bound before anything is printed.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.bound_times import CONNECTIONS, BoundTimes
from bench.control_plane import NODE_CPUS, Cluster, Installation, calls, plain_pods, pods_path, run
from tests.e2e_kube.controlplane.build import Programs
from tests.e2e_kube.controlplane.processes import Process, free_ports

_EVICTING: Final = Path(__file__).parent.parent / "examples" / "volcano-scheduler.conf"
_AGENT: Final = "agent-scheduler"


@dataclass(frozen=True)
class Contender:
    """One scheduler that is measured: Pumice by its flags, else kube-scheduler."""

    flags: Mapping[str, str] | None
    plain: str = ""
    """The scheduler that plain pods name; without one all pods are in gangs."""


CONTENDERS: Final[Mapping[str, Contender]] = {
    "event": Contender({"cycle": "event"}),
    "period": Contender({"cycle": "period"}),
    "evicting": Contender({"cycle": "event", "scheduler-conf": str(_EVICTING)}),
    "agents": Contender({"cycle": "event", "agent-scheduler-name": _AGENT}, _AGENT),
    "kube-scheduler": Contender(None, "default-scheduler"),
}
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
    admin: Cluster, namespace: str, given: argparse.Namespace, size: int, plain: str = ""
) -> int:
    """Create gangs or plain pods at a steady rate of pods; return how many pods there are."""
    count = int(given.rate * given.seconds / size)
    started = time.perf_counter()
    making = []
    for number in range(count):
        await asyncio.sleep(max(0.0, started + number * size / given.rate - time.perf_counter()))
        name = f"s{size}-{number}"
        one = (
            admin.create(pods_path(namespace), plain_pods(namespace, name, plain))
            if plain
            else admin.create_gang(namespace, name, size)
        )
        making.append(asyncio.create_task(one))
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


async def settled(installation: Installation) -> None:
    """Wait until a scheduler has written what it has to say about those that wait."""
    called = -1
    while called != (called := calls(installation.plane)):  # noqa: ASYNC110  # an audit log
        await asyncio.sleep(1.5)


async def new_namespace(admin: Cluster, name: str) -> str:
    """Create a namespace."""
    await admin.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@contextmanager
def running(installation: Installation, contender: Contender) -> Iterator[Process]:
    """Run a scheduler."""
    if contender.flags is not None:
        server = installation.start_ready_scheduler(contender.flags)
        yield server.process
        installation.servers.stop(server)
        return
    program = Programs.from_environment().provide(("kube-scheduler",))["kube-scheduler"]
    (port,) = free_ports(1)
    flags = {
        "kubeconfig": installation.servers.kubeconfig("all"),
        "leader-elect": "false",
        "secure-port": port,
        "kube-api-qps": 2000,
        "kube-api-burst": 2000,
    }
    shown = [f"--{name}={value}" for name, value in flags.items()]
    process = Process(
        program.name, [str(program), *shown], installation.plane.directory / "kube.log"
    )
    yield process
    process.stop()


async def measure_contender(
    installation: Installation, admin: Cluster, given: argparse.Namespace, name: str, turn: int
) -> Measured:
    """Measure one scheduler, after it has had time to write about those that wait."""
    with running(installation, CONTENDERS[name]) as process:
        await settled(installation)
        plain = CONTENDERS[name].plain
        measured = Measured(name)
        await measure_rates(installation, admin, given, measured, (process, plain, turn))
        if not plain:
            await measure_gangs(installation, admin, given, measured, turn)
    return measured


async def measure_rates(
    installation: Installation,
    admin: Cluster,
    given: argparse.Namespace,
    measured: Measured,
    of: tuple[Process, str, int],
) -> None:
    """Measure gangs of several sizes at a steady rate, or plain pods."""
    process, plain, turn = of
    name = measured.name
    for size in [1] if plain else given.sizes:
        namespace = await new_namespace(admin, f"{name}-{size}-{turn}")
        with BoundTimes.followed(installation, namespace, _GATHER_S) as times:
            cpu_s, called = process.usage().cpu_s, calls(installation.plane)
            count = await create_steadily(admin, namespace, given, size, plain)
            await times.wait_bound(count, WAIT_S)
            await asyncio.sleep(1.5)  # the statuses and events that follow
            cpu_s = process.usage().cpu_s - cpu_s
            called = calls(installation.plane) - called
        measured.waits[size] = times.waited_s
        measured.cpu_ms[size] = 1000 * cpu_s / count
        measured.calls[size] = called / count
        await admin.clear(namespace)
        await asyncio.sleep(2)


async def measure_gangs(
    installation: Installation,
    admin: Cluster,
    given: argparse.Namespace,
    measured: Measured,
    turn: int,
) -> None:
    """Measure large gangs one after the other."""
    for number in range(given.gangs):
        namespace = await new_namespace(admin, f"{measured.name}-gang-{turn}-{number}")
        with BoundTimes.followed(installation, namespace, _GATHER_S) as times:
            await admin.create_gang(namespace, "g", given.gang)
            await times.wait_bound(given.gang, WAIT_S)
        measured.gangs_s.append(times.last_bound_at - times.last_created_at)
        await admin.clear(namespace)
        await asyncio.sleep(0.7)


async def fill(installation: Installation, admin: Cluster, given: argparse.Namespace) -> None:
    """Create gangs that wait in vain: half of each node is taken, and their pods need more."""
    namespace, half = await new_namespace(admin, "full"), NODE_CPUS // 2
    server = installation.start_ready_scheduler()  # makes the bytecode, too
    if given.waiting:
        with BoundTimes.followed(installation, namespace, _GATHER_S) as times:
            for number in range(given.nodes):
                await admin.create_gang(namespace, f"half-{number}", 1, half)
            await times.wait_bound(given.nodes, WAIT_S)
    installation.servers.stop(server)
    for number in range(given.waiting):
        await admin.create_gang(namespace, f"waiting-{number}", 2, half + 1)


async def measure(given: argparse.Namespace, installation: Installation) -> None:
    """Measure on a control plane on which Pumice is installed, and print."""
    async with installation.connect(CONNECTIONS) as admin:
        await admin.create_nodes(given.nodes)
        await fill(installation, admin, given)
        for turn in range(given.turns):
            print(*await measure_server(installation, admin, given), sep="\n", flush=True)
            for name in given.schedulers:
                measured = await measure_contender(installation, admin, given, name, turn)
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
    parser.add_argument("--schedulers", nargs="+", choices=CONTENDERS, default=["event", "period"])
    parser.add_argument("--waiting", type=int, default=0, help="gangs that wait in vain")
    parser.add_argument("--turns", type=int, default=1, help="how often all is measured")
    run(partial(measure, parser.parse_args()), name="latency", audited=True)


if __name__ == "__main__":
    main()
