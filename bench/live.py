"""Time the scheduler on a real API server: ``python -m bench.live [--nodes N] [--gangs N] …``.

KWOK runs the pods.  In the same run, on equal pods, the ceiling is measured: bindings sent as fast
as the API server takes them.  Every result is verified before it is timed: all pods bound, gangs
whole, no node over-committed.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from bench.bound_times import BoundTimes, Steady, measure_steady
from bench.control_plane import (
    NODE_CPUS,
    NODE_PODS,
    Cluster,
    Installation,
    Manifest,
    gang_pods,
    groups_path,
    plain,
    pods_path,
    run,
)
from pumice.api.output_files import write_file
from pumice.testing.builders import pod_group
from tests.e2e_kube.controlplane.plane import ControlPlane

LIMIT_S: Final = 600
POLL_S: Final = 0.1
RATES: Final = (100, 300)
"""Pods a second at which the time from created to bound is measured."""


@dataclass(frozen=True)
class Sizes:
    """The workload, the number of connections for the ceiling, and how long it is measured."""

    nodes: int = 1000
    gangs: int = 50
    size: int = 100
    connections: int = 64
    rounds: int = 5
    steady: int = 20
    """Seconds for which pods are created at each of the steady rates."""

    @property
    def pods(self) -> int:
        """How many pods there are."""
        return self.gangs * self.size


@dataclass(frozen=True)
class Run:
    """One run of the scheduler."""

    seconds: float
    """From the start of its process until every pod was bound."""
    cpu_s: float
    """Its processor time until then."""
    settled_cpu_s: float
    """The same once events and the phases of groups were written too."""
    peak_mb: float


@dataclass(frozen=True)
class Result:
    """The measurements; a busy machine only makes things slower, so the best of each counts."""

    sizes: Sizes
    ceilings: list[float]
    """Bindings a second, before the first run of the scheduler and after each."""
    runs: list[Run]
    steady: list[Steady] = field(default_factory=list)
    """How long pods wait that arrive at a steady rate."""

    @property
    def best(self) -> Run:
        """The fastest run."""
        return min(self.runs, key=lambda run: run.seconds)

    @property
    def rate(self) -> float:
        """Pods a second."""
        return self.sizes.pods / self.best.seconds

    @property
    def ratio(self) -> float:
        """The part of the ceiling that the best run reached; the larger of those around it counts.

        The other load of the machine changes within minutes, so only neighbours are compared.
        """
        around = zip(self.runs, pairwise(self.ceilings), strict=True)
        return max(self.sizes.pods / run.seconds / max(ceilings) for run, ceilings in around)

    def table(self) -> str:
        """Format it."""
        best = self.best
        ceilings = ", ".join(f"{each:.0f}" for each in self.ceilings)
        seconds = ", ".join(f"{each.seconds:.1f}" for each in self.runs)
        cpu_ms = 1000 * best.cpu_s / self.sizes.pods
        return "\n".join(
            (
                f"{self.sizes.pods} pods in {self.sizes.gangs} gangs on {self.sizes.nodes} nodes",
                f"ceiling of the API server   {max(self.ceilings):8.0f} binds/s (of {ceilings})",
                f"pumice, start to all bound  {self.rate:8.0f} pods/s (in {seconds} s)",
                f"part of the ceiling         {self.ratio:8.0%}",
                f"CPU of the scheduler        {best.cpu_s:8.1f} s, {cpu_ms:.2f} ms a pod",
                f"  with all other writes     {best.settled_cpu_s:8.1f} s",
                f"peak memory                 {best.peak_mb:8.0f} MB",
                *(["created to bound"] if self.steady else []),
                *(f"  {each.line()}" for each in self.steady),
            )
        )


def all_pods(namespace: str, sizes: Sizes) -> list[Manifest]:
    """Build the pods of all gangs."""
    gangs = (gang_pods(namespace, f"g{gang}", sizes.size) for gang in range(sizes.gangs))
    return [each for gang in gangs for each in gang]


@asynccontextmanager
async def own_namespace(admin: Cluster, name: str) -> AsyncIterator[str]:
    """Create a namespace, and empty it in the end.

    Every measurement has its own: KWOK may delete a pod that has the name of an earlier one.
    """
    await admin.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    await admin.clear(name)


async def make_pods(cluster: Cluster, namespace: str, sizes: Sizes) -> None:
    """Create the groups and their pods."""
    groups = [
        plain(pod_group(f"g{gang}", namespace=namespace, min_member=sizes.size))
        for gang in range(sizes.gangs)
    ]
    await cluster.create(groups_path(namespace), groups)
    await cluster.create(pods_path(namespace), all_pods(namespace, sizes))


async def quiet(plane: ControlPlane) -> None:
    """Wait until the control plane has processed the last writes."""
    for _ in range(30):
        before = sum(each.usage().cpu_s for each in plane.processes)
        await asyncio.sleep(1)
        if sum(each.usage().cpu_s for each in plane.processes) - before < 0.3:
            return


async def measure_ceiling(
    plane: ControlPlane, admin: Cluster, binder: Cluster, namespace: str, sizes: Sizes
) -> float:
    """Bind equal pods as fast as the API server accepts; return bindings a second."""
    await make_pods(admin, namespace, sizes)
    await quiet(plane)
    names = [manifest["metadata"]["name"] for manifest in all_pods(namespace, sizes)]
    jobs = asyncio.Queue[tuple[int, str]]()
    for item in enumerate(names):
        jobs.put_nowait(item)

    async def work() -> None:
        while not jobs.empty():
            number, name = jobs.get_nowait()
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "namespace": namespace},
                "target": {"kind": "Node", "name": f"node-{number % sizes.nodes}"},
            }
            path = f"{pods_path(namespace)}/{name}/binding"
            await binder.send("POST", path, binding)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(sizes.connections)))
    seconds = time.perf_counter() - started
    return sizes.pods / seconds


async def wait_settled(admin: Cluster, namespace: str) -> None:
    """Wait until the scheduler has reported every group as running."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        groups = (await admin.send("GET", groups_path(namespace)))["items"]
        if all(each.get("status", {}).get("phase") == "Running" for each in groups):
            return
        assert time.monotonic() < deadline, f"groups are not all running after {LIMIT_S} s"
        await asyncio.sleep(POLL_S)


async def prove(admin: Cluster, namespace: str, sizes: Sizes) -> None:
    """Verify the scheduler's result."""
    pods = (await admin.send("GET", pods_path(namespace)))["items"]
    used = Counter(each["spec"]["nodeName"] for each in pods)
    assert sum(used.values()) == sizes.pods, "a pod is missing"
    assert max(used.values()) <= min(NODE_CPUS, NODE_PODS), "a node is over-committed"


async def measure_pumice(
    installation: Installation, admin: Cluster, namespace: str, sizes: Sizes
) -> Run:
    """Make the pods, start a scheduler, wait until all are bound."""
    with BoundTimes.followed(installation, namespace) as times:
        await make_pods(admin, namespace, sizes)
        await quiet(installation.plane)
        started = time.perf_counter()
        server = installation.start_scheduler()
        seconds = await times.wait_bound(sizes.pods, LIMIT_S) - started
        bound = server.process.usage()
    await prove(admin, namespace, sizes)
    await wait_settled(admin, namespace)
    settled = server.process.usage()
    installation.servers.stop(server)
    return Run(seconds, bound.cpu_s, settled.cpu_s, settled.peak_mb)


async def measure(sizes: Sizes, installation: Installation) -> Result:
    """Measure on a control plane on which Pumice is installed."""
    plane = installation.plane
    async with (
        installation.connect(sizes.connections) as admin,
        installation.connect(sizes.connections, "scheduler") as binder,
    ):
        await admin.create_nodes(sizes.nodes)
        installation.servers.stop(installation.start_ready_scheduler())  # makes the bytecode
        result = Result(sizes, [], [])
        for number in range(sizes.rounds + 1):
            if number:
                async with own_namespace(admin, f"pumice-{number}") as namespace:
                    measured = await measure_pumice(installation, admin, namespace, sizes)
                    result.runs.append(measured)
            async with own_namespace(admin, f"ceiling-{number}") as namespace:
                ceiling = await measure_ceiling(plane, admin, binder, namespace, sizes)
                result.ceilings.append(ceiling)
        for rate in RATES if sizes.steady else ():
            await quiet(plane)
            async with own_namespace(admin, f"steady-{rate}") as namespace:
                steady = await measure_steady(installation, namespace, rate, sizes.steady)
                result.steady.append(steady)
        return result


def main() -> None:
    """Start a control plane, measure, print, stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in asdict(Sizes()).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json", type=Path, help="write the result there too")
    given = vars(parser.parse_args())
    written = given.pop("json")
    result = run(partial(measure, Sizes(**given)), name="live", audited=False)
    print(result.table())
    if written:
        shown = {**asdict(result), "rate": result.rate, "ratio": result.ratio}
        write_file(written, json.dumps(shown, indent=1) + "\n")


if __name__ == "__main__":
    main()
