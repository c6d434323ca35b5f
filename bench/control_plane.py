"""The set-up of measurements on a real API server: a control plane, KWOK's nodes, many writes.

Used by ``bench.live`` and ``bench.churn``.
"""

import asyncio
import json
import os
import shutil
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp

from pumice.testing.builders import node, pod, pod_group
from tests.e2e_kube.controlplane.build import Programs
from tests.e2e_kube.controlplane.plane import ControlPlane
from tests.e2e_kube.install import install
from tests.e2e_kube.kubectl import Kubectl
from tests.e2e_kube.servers import Server, Servers
from tests.e2e_kube.space import ready

T = TypeVar("T")
Manifest = dict[str, Any]
NODE_CPUS: Final = 32
NODE_PODS: Final = 110
_FAST: Final = {"kube-api-qps": 2000, "kube-api-burst": 2000, "v": 0}
_START_S: Final = 120


@dataclass(frozen=True)
class Installation:
    """A control plane on which Pumice is installed."""

    plane: ControlPlane
    kubectl: Kubectl
    servers: Servers

    def start_scheduler(self, flags: Mapping[str, str] | None = None) -> Server:
        """Start a scheduler whose rate of requests is not limited; it may not be ready yet."""
        return self.servers.start("scheduler", {**_FAST, **(flags or {})})

    def start_ready_scheduler(self, flags: Mapping[str, str] | None = None) -> Server:
        """Start a scheduler, and wait until it is ready."""
        server = self.start_scheduler(flags)
        server.process.wait_until(server.ready, _START_S)
        return server

    @asynccontextmanager
    async def connect(self, connections: int, part: str = "all") -> AsyncIterator["Cluster"]:
        """Open connections with the rights of a part."""
        kubeconfig = self.servers.kubeconfig(part)
        user = json.loads(kubeconfig.read_text())["users"][0]["user"]
        tls = ssl.create_default_context(cafile=self.plane.authority.own.certificate)
        tls.load_cert_chain(user["client-certificate"], user["client-key"])
        connector = aiohttp.TCPConnector(ssl=tls, limit=connections)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Cluster(session, self.plane.server)


class Cluster:
    """Writes many objects in parallel, with the rights of one client certificate."""

    def __init__(self, session: aiohttp.ClientSession, server: str) -> None:
        self._session = session
        self._server = server

    async def send(self, method: str, path: str, body: Manifest | None = None) -> Manifest:
        """Send one request; it must be accepted."""
        async with self._session.request(method, self._server + path, json=body) as answer:
            text = await answer.read()
            assert answer.status < 300, f"{method} {path}: {answer.status} {text[:500]!r}"
            return json.loads(text)

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """Return the lines of an answer as they arrive, without a limit of time."""
        unlimited = aiohttp.ClientTimeout(total=None)
        async with self._session.get(self._server + path, timeout=unlimited) as answer:
            assert answer.status < 300, f"GET {path}: {answer.status}"
            rest = b""
            async for piece in answer.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield line

    async def create(self, path: str, manifests: Iterable[Manifest]) -> None:
        """Create objects in parallel."""
        await asyncio.gather(*(self.send("POST", path, each) for each in manifests))

    async def create_nodes(self, count: int) -> None:
        """Create equal nodes that are ready."""
        size: dict[str, Any] = {"cpu": NODE_CPUS, "memory": "256Gi", "pods": NODE_PODS}
        nodes = [ready(node(f"node-{number}", **size)) for number in range(count)]
        await self.create("/api/v1/nodes", nodes)

    async def create_gang(self, namespace: str, name: str, size: int, cpu: int = 1) -> None:
        """Create a pod group, then its pods."""
        group = plain(pod_group(name, namespace=namespace, min_member=size))
        await self.send("POST", groups_path(namespace), group)
        await self.create(pods_path(namespace), gang_pods(namespace, name, size, cpu))

    async def clear(self, namespace: str) -> None:
        """Delete all pods and groups of a namespace; one by one, since all at once takes longer."""
        for path in (groups_path(namespace), pods_path(namespace)):
            found = (await self.send("GET", path))["items"]
            names = [each["metadata"]["name"] for each in found]
            deleted = (f"{path}/{name}?gracePeriodSeconds=0" for name in names)
            await asyncio.gather(*(self.send("DELETE", each) for each in deleted))


def pods_path(namespace: str) -> str:
    """Return the path of all pods of a namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"


def groups_path(namespace: str) -> str:
    """Return the path of all pod groups of a namespace."""
    return f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups"


def plain(manifest: Manifest) -> Manifest:
    """Leave out what the API server fills in."""
    manifest["metadata"].pop("uid", None)
    manifest.pop("status", None)
    return manifest


def gang_pods(namespace: str, name: str, size: int, cpu: int = 1) -> list[Manifest]:
    """Build the pods of a gang."""
    return [
        plain(pod(f"{name}-{index}", namespace=namespace, group=name, cpu=cpu, memory="1Gi"))
        for index in range(size)
    ]


def plain_pods(namespace: str, name: str, scheduler: str) -> list[Manifest]:
    """Build one pod without a group."""
    return [plain(pod(name, namespace=namespace, scheduler=scheduler, cpu=1, memory="1Gi"))]


def run(
    measure: Callable[[Installation], Coroutine[Any, Any, T]], *, name: str, audited: bool
) -> T:
    """Start a control plane with Pumice, measure, stop; the logs of a failed run are kept."""
    directory = Path(tempfile.mkdtemp(prefix=f"pumice-{name}-"))
    plane = ControlPlane(directory, Programs.from_environment(), audited=audited)
    plane.start()
    try:
        kubectl = Kubectl(plane.programs["kubectl"], plane.admin_kubeconfig)
        install(kubectl)
        installation = Installation(plane, kubectl, Servers(plane, directory / "logs"))
        with _bytecode(directory / "bytecode"):
            result = asyncio.run(measure(installation))
    except BaseException:
        print(f"logs are in {directory / 'logs'}", file=sys.stderr)
        raise
    finally:
        plane.stop()
    shutil.rmtree(directory)
    return result


def calls(plane: ControlPlane) -> int:
    """Count the requests of the scheduler so far: no other client is in the audit log."""
    with plane.audit_log.open("rb") as lines:
        return sum(1 for _ in lines)


@contextmanager
def _bytecode(directory: Path) -> Iterator[None]:
    """Keep the bytecode of child processes, as an installed package does."""
    before = {**os.environ}
    os.environ["PYTHONPYCACHEPREFIX"] = str(directory)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
