"""How long pods wait from created to bound, seen by one watch of the API server."""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from bench.control_plane import Cluster, Installation, pods_path
from pumice.cluster.http.loop_thread import LoopThread

GANG: Final = 10
CONNECTIONS: Final = 32
_LAST_S: Final = 60.0
"""How long the last pods may take to be bound."""
_POLL_S: Final = 0.01
_CLOSE_S: Final = 0.3
"""How long a loop goes on for its connections to be closed, which takes several of its steps."""
_GATHER_S: Final = 0.02
"""How long changes of pods are left to gather."""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


class _Step(msgspec.Struct):
    type: str
    object: _Pod


_decode: Final = msgspec.json.Decoder(_Step).decode


@dataclass
class BoundTimes:
    """Seconds that pods waited, and the moments at which those that wait were created."""

    waited_s: list[float] = field(default_factory=list)
    created_at: dict[str, float] = field(default_factory=dict)
    version: str = ""
    """The last version of the watch that was seen."""
    last_created_at: float = 0.0
    """The moment at which a pod was last seen to be created."""
    last_bound_at: float = 0.0
    """The moment at which a pod was last seen to be bound."""
    _watch: "Future[None] | None" = None

    @classmethod
    @contextmanager
    def followed(
        cls, installation: Installation, namespace: str, gather_s: float = _GATHER_S
    ) -> Iterator["BoundTimes"]:
        """Follow the pods of a namespace that are created from now on.

        In a thread of its own that reads what has gathered, so that it takes little of the machine
        that is measured; what happens within ``gather_s`` counts as having happened at once.
        """
        times, begun, thread = cls(), threading.Event(), LoopThread("bound-times", gather_s)
        following = asyncio.run_coroutine_threadsafe(
            times._follow(installation, namespace, begun), thread.start()
        )
        times._watch = following
        following.add_done_callback(lambda _: begun.set())
        try:
            assert begun.wait(_LAST_S), "the watch of pods does not begin"
            times._raise_failure()
            yield times
        finally:
            following.cancel()
            thread.run(asyncio.sleep(_CLOSE_S))
            thread.stop()

    async def _follow(
        self, installation: Installation, namespace: str, begun: threading.Event
    ) -> None:
        async with installation.connect(CONNECTIONS) as cluster:
            first = await cluster.send("GET", f"{pods_path(namespace)}?limit=1")
            self.version = first["metadata"]["resourceVersion"]
            begun.set()
            while True:  # an API server ends each watch after half an hour or more
                watched = f"{pods_path(namespace)}?watch=true&resourceVersion={self.version}"
                async for line in cluster.lines(watched):
                    self.see(line, time.perf_counter())

    def see(self, line: bytes, now: float) -> None:
        """Record a step of the watch: a pod that appears, is bound, or is gone."""
        step = _decode(line)
        name, self.version = step.object.metadata.name, step.object.metadata.resource_version
        if step.type == "ADDED":
            self.created_at.setdefault(name, now)
            self.last_created_at = now
        elif step.type == "DELETED":
            self.created_at.pop(name, None)
        if step.object.spec.node_name and name in self.created_at:
            self.waited_s.append(now - self.created_at.pop(name))
            self.last_bound_at = now

    async def wait_bound(self, count: int, limit_s: float) -> float:
        """Wait until that many pods were bound; return the moment of the last.

        The watch tells it at once and costs the API server next to nothing, since the scheduler
        follows the same changes.  To ask for pods without a node reads all of them from etcd.
        """
        deadline = time.perf_counter() + limit_s
        while len(self.waited_s) < count:
            self._raise_failure()
            assert time.perf_counter() < deadline, f"not all bound after {limit_s:.0f} s"
            await asyncio.sleep(_POLL_S)
        return self.last_bound_at

    def _raise_failure(self) -> None:
        """Raise what ended the watch, if something did: nothing is seen after it."""
        if self._watch is not None and self._watch.done():
            self._watch.result()

    def percentiles(self) -> str:
        """Format how long pods waited."""
        waited = np.array(self.waited_s or [np.nan])
        half, most, nearly, worst = (np.percentile(waited, q) for q in (50, 90, 99, 100))
        return f"50 % {half:.2f} s, 90 % {most:.2f} s, 99 % {nearly:.2f} s, worst {worst:.2f} s"


@dataclass(frozen=True)
class Steady:
    """Pods created at a steady rate, and how long each waited."""

    rate: int
    reached: float
    """Pods created a second; fewer than wanted if the API server takes no more."""
    times: BoundTimes
    cpu_ms: float
    """Of the scheduler, a pod."""

    def line(self) -> str:
        """Format it."""
        return (
            f"at {self.rate} pods/s ({self.reached:.0f} reached): "
            f"{self.times.percentiles()}, {self.cpu_ms:.2f} ms CPU a pod"
        )


async def measure_steady(
    installation: Installation, namespace: str, rate: int, seconds: float
) -> Steady:
    """Create gangs at a steady rate while a scheduler runs, until all are bound."""
    server = installation.start_ready_scheduler()
    with BoundTimes.followed(installation, namespace) as times:
        before = server.process.usage().cpu_s
        count = int(rate * seconds / GANG)
        async with installation.connect(CONNECTIONS) as admin:
            reached = await _create_steadily(admin, namespace, rate, count)
        await times.wait_bound(count * GANG, _LAST_S)
        cpu_s = server.process.usage().cpu_s - before
    installation.servers.stop(server)
    return Steady(rate, reached, times, 1000 * cpu_s / (count * GANG))


async def _create_steadily(admin: Cluster, namespace: str, rate: int, count: int) -> float:
    """Create gangs at a steady rate of pods; return the rate that was reached."""
    started = time.perf_counter()
    making = []
    for number in range(count):
        await asyncio.sleep(max(0.0, started + number * GANG / rate - time.perf_counter()))
        made = admin.create_gang(namespace, f"r{rate}-{number}", GANG)
        making.append(asyncio.create_task(made))
    await asyncio.gather(*making)
    return count * GANG / (time.perf_counter() - started)
