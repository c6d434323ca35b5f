"""Time the scheduler on a real API server: ``python -m bench.live [--nodes N] [--gangs N] …``.

KWOK runs the pods.  In the same run, on equal pods, the ceiling is measured: bindings sent as fast
as the API server takes them.  Every result is verified before it is timed: all pods bound, gangs
whole, no node over-committed.
"""

import argparse
import asyncio
import json
import shutil
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp

from pumice.testing.builders import node, pod, pod_group
from tests.e2e_kube.controlplane.build import Programs
from tests.e2e_kube.controlplane.plane import ControlPlane
from tests.e2e_kube.install import install
from tests.e2e_kube.kubectl import Kubectl
from tests.e2e_kube.servers import Servers
from tests.e2e_kube.space import ready

Manifest = dict[str, Any]
NODE_CPUS = 32
NODE_PODS = 110
LIMIT_S = 600
POLL_S = 0.25


@dataclass(frozen=True)
class Sizes:
    """The workload, and the number of connections for the ceiling."""

    nodes: int = 1000
    gangs: int = 50
    size: int = 100
    connections: int = 64
    rounds: int = 5

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
            )
        )


class Cluster:
    """Writes many objects in parallel, with the rights of one client certificate."""

    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session = session
        self._server = server

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, plane: ControlPlane, kubeconfig: Path, connections: int
    ) -> AsyncIterator["Cluster"]:
        """Open connections as the user of a kubeconfig."""
        connector = aiohttp.TCPConnector(ssl=tls_of(plane, kubeconfig), limit=connections)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield cls(session, plane.server)

    async def send(self, method: str, path: str, body: Manifest | None = None) -> Manifest:
        """Send one request; it must be accepted."""
        async with self._session.request(method, self._server + path, json=body) as answer:
            text = await answer.read()
            assert answer.status < 300, f"{method} {path}: {answer.status} {text[:500]!r}"
            return json.loads(text)

    async def create(self, path: str, manifests: Iterable[Manifest]) -> None:
        """Create objects in parallel."""
        await asyncio.gather(*(self.send("POST", path, each) for each in manifests))

    async def clear(self, namespace: str) -> None:
        """Delete all pods and groups of a namespace; one by one, since all at once takes longer."""
        groups = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups"
        for path in (groups, f"/api/v1/namespaces/{namespace}/pods"):
            found = (await self.send("GET", path))["items"]
            names = [each["metadata"]["name"] for each in found]
            deleted = (f"{path}/{name}?gracePeriodSeconds=0" for name in names)
            await asyncio.gather(*(self.send("DELETE", each) for each in deleted))


def tls_of(plane: ControlPlane, kubeconfig: Path) -> ssl.SSLContext:
    """Read the client certificate of a kubeconfig."""
    user = json.loads(kubeconfig.read_text())["users"][0]["user"]
    tls = ssl.create_default_context(cafile=plane.authority.own.certificate)
    tls.load_cert_chain(user["client-certificate"], user["client-key"])
    return tls


def plain(manifest: Manifest) -> Manifest:
    """Leave out what the API server fills in."""
    manifest["metadata"].pop("uid", None)
    manifest.pop("status", None)
    return manifest


def gang_pods(namespace: str, sizes: Sizes) -> list[Manifest]:
    """Build the pods: one CPU each, in gangs."""
    return [
        plain(pod(f"g{gang}-{index}", namespace=namespace, group=f"g{gang}", cpu=1, memory="1Gi"))
        for gang in range(sizes.gangs)
        for index in range(sizes.size)
    ]


async def make_pods(cluster: Cluster, namespace: str, sizes: Sizes) -> None:
    """Create the groups and their pods."""
    groups = [
        plain(pod_group(f"g{gang}", namespace=namespace, min_member=sizes.size))
        for gang in range(sizes.gangs)
    ]
    path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups"
    await cluster.create(path, groups)
    await cluster.create(f"/api/v1/namespaces/{namespace}/pods", gang_pods(namespace, sizes))


async def quiet(plane: ControlPlane) -> None:
    """Wait until the control plane has processed the last writes."""
    for _ in range(30):
        before = sum(each.usage().cpu_s for each in plane.processes)
        await asyncio.sleep(1)
        if sum(each.usage().cpu_s for each in plane.processes) - before < 0.3:
            return


async def measure_ceiling(
    plane: ControlPlane, admin: Cluster, binder: Cluster, sizes: Sizes
) -> float:
    """Bind equal pods as fast as the API server accepts; return bindings a second."""
    namespace = "ceiling"
    await make_pods(admin, namespace, sizes)
    await quiet(plane)
    names = [manifest["metadata"]["name"] for manifest in gang_pods(namespace, sizes)]
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
            path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
            await binder.send("POST", path, binding)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(sizes.connections)))
    seconds = time.perf_counter() - started
    await admin.clear(namespace)
    return sizes.pods / seconds


async def wait_all_bound(admin: Cluster, namespace: str) -> None:
    """Wait until no pod of a namespace is without a node."""
    path = f"/api/v1/namespaces/{namespace}/pods?fieldSelector=spec.nodeName%3D&limit=1"
    deadline = time.monotonic() + LIMIT_S
    while (await admin.send("GET", path))["items"]:
        assert time.monotonic() < deadline, f"not all bound after {LIMIT_S} s"
        await asyncio.sleep(POLL_S)


async def wait_settled(admin: Cluster, namespace: str) -> None:
    """Wait until the scheduler has reported every group as running."""
    path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups"
    deadline = time.monotonic() + LIMIT_S
    while True:
        groups = (await admin.send("GET", path))["items"]
        if all(each.get("status", {}).get("phase") == "Running" for each in groups):
            return
        assert time.monotonic() < deadline, f"groups are not all running after {LIMIT_S} s"
        await asyncio.sleep(POLL_S)


async def prove(admin: Cluster, namespace: str, sizes: Sizes) -> None:
    """Verify the scheduler's result."""
    pods = (await admin.send("GET", f"/api/v1/namespaces/{namespace}/pods"))["items"]
    used = Counter(each["spec"]["nodeName"] for each in pods)
    assert sum(used.values()) == sizes.pods, "a pod is missing"
    assert max(used.values()) <= min(NODE_CPUS, NODE_PODS), "a node is over-committed"


async def measure_pumice(
    plane: ControlPlane, admin: Cluster, servers: Servers, sizes: Sizes
) -> Run:
    """Make the pods, start a scheduler, wait until all are bound."""
    await make_pods(admin, "pumice", sizes)
    await quiet(plane)
    started = time.perf_counter()
    server = servers.start("scheduler", {"kube-api-qps": 2000, "kube-api-burst": 2000, "v": 0})
    await wait_all_bound(admin, "pumice")
    seconds = time.perf_counter() - started
    bound = server.process.usage()
    await prove(admin, "pumice", sizes)
    await wait_settled(admin, "pumice")
    settled = server.process.usage()
    servers.stop(server)
    await admin.clear("pumice")
    return Run(seconds, bound.cpu_s, settled.cpu_s, settled.peak_mb)


async def measure(plane: ControlPlane, kubectl: Kubectl, servers: Servers, sizes: Sizes) -> Result:
    """Measure on a control plane on which Pumice is installed."""
    async with (
        Cluster.connect(plane, plane.admin_kubeconfig, sizes.connections) as admin,
        Cluster.connect(plane, servers.kubeconfig("scheduler"), sizes.connections) as binder,
    ):
        for namespace in ("ceiling", "pumice"):
            kubectl("create", "namespace", namespace)
        size: dict[str, Any] = {"cpu": NODE_CPUS, "memory": "256Gi", "pods": NODE_PODS}
        nodes = [ready(node(f"node-{number}", **size)) for number in range(sizes.nodes)]
        await admin.create("/api/v1/nodes", nodes)
        result = Result(sizes, [await measure_ceiling(plane, admin, binder, sizes)], [])
        for _ in range(sizes.rounds):
            result.runs.append(await measure_pumice(plane, admin, servers, sizes))
            result.ceilings.append(await measure_ceiling(plane, admin, binder, sizes))
        return result


def main() -> None:
    """Start a control plane, measure, print, stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in asdict(Sizes()).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json", type=Path, help="write the result there too")
    given = vars(parser.parse_args())
    written = given.pop("json")
    directory = Path(tempfile.mkdtemp(prefix="pumice-live-"))
    plane = ControlPlane(directory, Programs.from_environment(), audited=False)
    plane.start()
    try:
        kubectl = Kubectl(plane.programs["kubectl"], plane.admin_kubeconfig)
        install(kubectl)
        servers = Servers(plane, directory / "logs")
        result = asyncio.run(measure(plane, kubectl, servers, Sizes(**given)))
    except BaseException:
        print(f"logs are in {directory / 'logs'}", file=sys.stderr)
        raise
    else:
        plane.stop()
        shutil.rmtree(directory)
    finally:
        plane.stop()
    print(result.table())
    if written:
        shown = {**asdict(result), "rate": result.rate, "ratio": result.ratio}
        written.write_text(json.dumps(shown, indent=1) + "\n")


if __name__ == "__main__":
    main()
