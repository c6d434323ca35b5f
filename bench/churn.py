"""Churn on a real API server: ``python -m bench.churn [--minutes N] [--nodes N] [--pods N]``.

KWOK runs the pods.  Gangs arrive at a steady rate, run for a while and are deleted, so that a
given number of pods exists at any time.  Prints how long pods wait to be bound, and what the
scheduler uses: CPU, memory over time, calls a pod.
"""

import argparse
import asyncio
import time
from collections import deque
from functools import partial
from typing import Final, NamedTuple

from bench.bound_times import CONNECTIONS, GANG, BoundTimes
from bench.control_plane import Cluster, Installation, calls, groups_path, pods_path, run
from tests.e2e_kube.servers import Server

NAMESPACE: Final = "churn"
SAMPLE_S: Final = 15.0


class Sample(NamedTuple):
    """What the scheduler has used and done after some minutes."""

    minutes: float
    cpu_s: float
    memory_mb: float
    bound: int


class Churn:
    """Creates gangs and deletes the oldest, and samples what the scheduler uses."""

    def __init__(
        self, admin: Cluster, server: Server, times: BoundTimes, pods: int, rate: float
    ) -> None:
        self._admin = admin
        self._server = server
        self._times = times
        self._pods = pods
        self._rate = rate
        self._gangs: deque[int] = deque()
        self._number = 0
        self.samples: list[Sample] = []
        self.deleted = 0

    async def run(self, minutes: float) -> None:
        """Churn for the given time."""
        started = time.perf_counter()
        end = started + minutes * 60
        sampling = asyncio.create_task(self._sample(started))
        try:
            while time.perf_counter() < end:
                began = time.perf_counter()
                await self._step()
                pause = GANG / self._rate - (time.perf_counter() - began)
                await asyncio.sleep(max(pause, 0.0))
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)

    async def _step(self) -> None:
        """Add one gang; once there are enough, delete the oldest."""
        self._number += 1
        self._gangs.append(self._number)
        await self._admin.create_gang(NAMESPACE, f"g{self._number}", GANG)
        if len(self._gangs) * GANG > self._pods:
            await self._remove(self._gangs.popleft())

    async def _remove(self, number: int) -> None:
        pods, groups = pods_path(NAMESPACE), groups_path(NAMESPACE)
        paths = [f"{pods}/g{number}-{i}?gracePeriodSeconds=0" for i in range(GANG)]
        paths.append(f"{groups}/g{number}")
        await asyncio.gather(*(self._admin.send("DELETE", path) for path in paths))
        self.deleted += GANG

    async def _sample(self, started: float) -> None:
        while True:
            usage = self._server.process.usage()
            minutes = (time.perf_counter() - started) / 60
            bound = len(self._times.waited_s)
            self.samples.append(Sample(minutes, usage.cpu_s, usage.rss_mb, bound))
            await asyncio.sleep(SAMPLE_S)


def table(churn: Churn, times: BoundTimes, calls: int) -> str:
    """Format the observations."""
    samples, bound = churn.samples, len(times.waited_s)
    first, last = samples[0], samples[-1]
    cpu_ms = 1000 * (last.cpu_s - first.cpu_s) / max(last.bound - first.bound, 1)
    lines = [
        f"pods bound                {bound}, deleted {churn.deleted}",
        f"created to bound          {times.percentiles()}",
        f"CPU of the scheduler      {cpu_ms:.2f} ms a pod",
        f"calls to the API server   {calls / max(bound, 1):.2f} a pod",
        "minutes   memory MB   pods bound",
    ]
    step = max(len(samples) // 12, 1)
    lines += [f"{each[0]:7.1f}   {each[2]:9.0f}   {each[3]:10d}" for each in samples[::step]]
    return "\n".join(lines)


async def measure(given: argparse.Namespace, installation: Installation) -> str:
    """Churn on a control plane on which Pumice is installed."""
    plane = installation.plane
    installation.kubectl("create", "namespace", NAMESPACE)
    async with installation.connect(CONNECTIONS) as admin:
        await admin.create_nodes(given.nodes)
        server = installation.start_ready_scheduler()
        before = calls(plane)
        with BoundTimes.followed(installation, NAMESPACE) as times:
            churn = Churn(admin, server, times, given.pods, given.rate)
            await churn.run(given.minutes)
        called = calls(plane) - before
        installation.servers.stop(server)
        return table(churn, times, called)


def main() -> None:
    """Start a control plane, churn, print, stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20_000, help="pods at any time")
    parser.add_argument("--rate", type=float, default=50.0, help="pods created a second")
    given = parser.parse_args()
    shown = run(partial(measure, given), name="churn", audited=True)
    print(f"{given.minutes:g} minutes, {given.nodes} nodes, {given.pods} pods at any time")
    print(shown)


if __name__ == "__main__":
    main()
