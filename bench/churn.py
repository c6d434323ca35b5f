"""Churn on a real API server: ``python -m bench.churn [--minutes N] [--nodes N] [--pods N]``.

KWOK runs the pods.  Gangs arrive at a steady rate, run for a while and are deleted, so that a
given number of pods exists at any time.  Prints how long pods wait to be bound, and what the
scheduler uses: CPU, memory over time, calls a pod.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.live import Cluster, plain
from pumice.testing.builders import node, pod, pod_group
from tests.e2e_kube.controlplane.build import Programs
from tests.e2e_kube.controlplane.plane import ControlPlane
from tests.e2e_kube.install import install
from tests.e2e_kube.kubectl import Kubectl
from tests.e2e_kube.servers import Server, Servers
from tests.e2e_kube.space import ready

NAMESPACE = "churn"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
GROUPS = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{NAMESPACE}/podgroups"
GANG = 10
CONNECTIONS = 32
LOOK_S = 0.5
SAMPLE_S = 15.0


@dataclass
class Seen:
    """Observations of the run."""

    created_at: dict[str, float] = field(default_factory=dict)
    waited_s: list[float] = field(default_factory=list)
    samples: list[tuple[float, float, float, int]] = field(default_factory=list)
    """Minutes, CPU seconds, megabytes and pods bound so far."""
    deleted: int = 0


class Churn:
    """Creates gangs and deletes the oldest, and watches how long each pod waits."""

    def __init__(self, admin: Cluster, server: Server, pods: int, rate: float) -> None:
        self._admin = admin
        self._server = server
        self._pods = pods
        self._rate = rate
        self._gangs: deque[int] = deque()
        self._number = 0
        self.seen = Seen()

    async def run(self, minutes: float) -> None:
        """Churn for the given time."""
        started = time.perf_counter()
        end = started + minutes * 60
        following = asyncio.create_task(self._follow())
        sampling = asyncio.create_task(self._sample(started))
        try:
            while time.perf_counter() < end:
                began = time.perf_counter()
                await self._step()
                pause = GANG / self._rate - (time.perf_counter() - began)
                await asyncio.sleep(max(pause, 0.0))
        finally:
            following.cancel()
            sampling.cancel()
            await asyncio.gather(following, sampling, return_exceptions=True)

    async def _step(self) -> None:
        """Add one gang; once there are enough, delete the oldest."""
        self._number += 1
        name = f"g{self._number}"
        self._gangs.append(self._number)
        group = plain(pod_group(name, namespace=NAMESPACE, min_member=GANG))
        await self._admin.send("POST", GROUPS, group)
        now = time.perf_counter()
        pods = [
            plain(pod(f"{name}-{i}", namespace=NAMESPACE, group=name, cpu=1, memory="1Gi"))
            for i in range(GANG)
        ]
        await self._admin.create(PODS, pods)
        self.seen.created_at |= {each["metadata"]["name"]: now for each in pods}
        if len(self._gangs) * GANG > self._pods:
            await self._remove(self._gangs.popleft())

    async def _remove(self, number: int) -> None:
        paths = [f"{PODS}/g{number}-{i}?gracePeriodSeconds=0" for i in range(GANG)]
        paths.append(f"{GROUPS}/g{number}")
        await asyncio.gather(*(self._admin.send("DELETE", path) for path in paths))
        self.seen.deleted += GANG

    async def _follow(self) -> None:
        """Watch the waiting pods, and record when one no longer waits."""
        while True:
            found = await self._admin.send("GET", f"{PODS}?fieldSelector=spec.nodeName%3D")
            now = time.perf_counter()
            still = {each["metadata"]["name"] for each in found["items"]}
            known = self.seen.created_at
            for name in [name for name in known if name not in still]:
                self.seen.waited_s.append(now - known.pop(name))
            await asyncio.sleep(LOOK_S)

    async def _sample(self, started: float) -> None:
        while True:
            usage = self._server.process.usage()
            minutes = (time.perf_counter() - started) / 60
            bound = len(self.seen.waited_s)
            self.seen.samples.append((minutes, usage.cpu_s, usage.rss_mb, bound))
            await asyncio.sleep(SAMPLE_S)


def table(seen: Seen, calls: int) -> str:
    """Format the observations."""
    waited = np.array(seen.waited_s or [np.nan])
    at = [np.percentile(waited, q) for q in (50, 90, 99, 100)]
    first, last = seen.samples[0], seen.samples[-1]
    bound = max(last[3] - first[3], 1)
    lines = [
        f"pods bound                {len(seen.waited_s)}, deleted {seen.deleted}",
        f"created to bound          median {at[0]:.2f} s, 90 % {at[1]:.2f} s, 99 % {at[2]:.2f} s",
        f"  worst                   {at[3]:.2f} s (looked at each {LOOK_S} s)",
        f"CPU of the scheduler      {1000 * (last[1] - first[1]) / bound:.2f} ms a pod",
        f"calls to the API server   {calls / max(len(seen.waited_s), 1):.2f} a pod",
        "minutes   memory MB   pods bound",
    ]
    step = max(len(seen.samples) // 12, 1)
    lines += [f"{m:7.1f}   {mb:9.0f}   {n:10d}" for m, _, mb, n in seen.samples[::step]]
    return "\n".join(lines)


async def measure(
    plane: ControlPlane, kubectl: Kubectl, servers: Servers, given: argparse.Namespace
) -> str:
    """Churn on a control plane on which Pumice is installed."""
    kubectl("create", "namespace", NAMESPACE)
    async with Cluster.connect(plane, plane.admin_kubeconfig, CONNECTIONS) as admin:
        size: dict[str, Any] = {"cpu": 32, "memory": "256Gi", "pods": 110}
        nodes = [ready(node(f"node-{number}", **size)) for number in range(given.nodes)]
        await admin.create("/api/v1/nodes", nodes)
        server = servers.start("scheduler", {"kube-api-qps": 2000, "kube-api-burst": 2000, "v": 0})
        server.process.wait_until(server.ready, 120)
        before = _calls(plane)
        churn = Churn(admin, server, given.pods, given.rate)
        await churn.run(given.minutes)
        calls = _calls(plane) - before
        servers.stop(server)
        return table(churn.seen, calls)


def _calls(plane: ControlPlane) -> int:
    """Count the requests of the scheduler so far: no other client is in the audit log."""
    with plane.audit_log.open("rb") as lines:
        return sum(1 for _ in lines)


def main() -> None:
    """Start a control plane, churn, print, stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20_000, help="pods at any time")
    parser.add_argument("--rate", type=float, default=50.0, help="pods created a second")
    given = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="pumice-churn-"))
    plane = ControlPlane(directory, Programs.from_environment())
    plane.start()
    try:
        kubectl = Kubectl(plane.programs["kubectl"], plane.admin_kubeconfig)
        install(kubectl)
        servers = Servers(plane, directory / "logs")
        told = asyncio.run(measure(plane, kubectl, servers, given))
    except BaseException:
        print(f"logs are in {directory / 'logs'}", file=sys.stderr)
        raise
    else:
        plane.stop()
        shutil.rmtree(directory)
    finally:
        plane.stop()
    print(f"{given.minutes:g} minutes, {given.nodes} nodes, {given.pods} pods at any time")
    print(told)


if __name__ == "__main__":
    main()
