"""Measure what a scheduler needs: ``python -m bench.sizes [--nodes N …]``.

An embedded API server holds a full cluster; `pumice serve scheduler` follows it as a process of its
own.  Measured are the process's memory and processor time: until it is ready, while nothing
changes, and while pods end and others arrive.
"""

import argparse
import http.client
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pumice.apiserver.rest import RestApi
from pumice.apiserver.server import ApiServer
from pumice.clock import RealClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.testing.builders import pod, pod_group, queue
from tests.e2e_kube.controlplane.processes import free_ports

PODS_PER_NODE: Final = 10
GANG: Final = 10
"""Pods of each job."""
REST_S: Final = 20.0
TURNS: Final = 20
GANGS_A_TURN: Final = 5
_LIMIT_S: Final = 300.0
_START_S: Final = 600.0
_BINDS: Final = "volcano_scheduling_stage_duration_milliseconds_count"
_CPU: Final = "process_cpu_seconds_total"
_HEADINGS: Final = (
    *("nodes", "pods", "CPU time to start", "memory, at most", "CPU at rest"),
    "CPU time for 1,000 pods that end and 1,000 that are bound",
)
_COMMAND: Final = (sys.executable, "-c", "from pumice.cli.main import main; main()")


@dataclass(frozen=True)
class Needs:
    """What one scheduler needed."""

    nodes: int
    pods: int
    start_cpu_s: float
    """Processor time until it had decided once."""
    memory_mib: float
    """The most that it held resident."""
    idle_cpu: float
    """Processors in use while nothing changed, with one cycle a second."""
    binds: int
    """Pods that were bound while others ended."""
    bind_cpu_s: float
    """Processor time for them, cycles and followed changes included."""


class Process:
    """A scheduler that serves metrics."""

    def __init__(self, master: str, log: Path) -> None:
        self._port = free_ports(1)[0]
        flags = [f"--master={master}", "--leader-elect=false", "--enable-metrics"]
        flags += [f"--listen-address=127.0.0.1:{self._port}", "--schedule-period=1s"]
        flags += ["--kube-api-qps=2000", "--kube-api-burst=2000"]
        with log.open("wb") as out:
            words = [*_COMMAND, "serve", "scheduler", *flags]
            self._process = subprocess.Popen(words, stdout=out, stderr=out)  # noqa: S603

    def metrics(self) -> dict[str, float]:
        """Return the sum of each metric over its labels; none while it does not answer."""
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)) as asked:
                asked.request("GET", "/metrics")
                text = asked.getresponse().read().decode()
        except OSError:
            return {}
        found: dict[str, float] = {}
        for name, value in re.findall(r"(?m)^(\w+)(?:\{.*\})? (\S+)$", text):
            found[name] = found.get(name, 0.0) + float(value)
        return found

    def most_memory_mib(self) -> float:
        """Return the most memory that it has held."""
        text = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmHWM:\s+(\d+) kB", text)
        return int(found[1]) / 1024 if found else 0.0

    def wait_ready(self) -> None:
        """Wait for the first cycle."""
        started = time.monotonic()
        while not self.metrics().get("volcano_e2e_scheduling_latency_milliseconds_count"):
            if self._process.poll() is not None or time.monotonic() - started > _START_S:
                raise SystemExit("the scheduler did not get ready")
            time.sleep(0.2)

    def wait_bound(self, binds: int) -> dict[str, float]:
        """Wait until so many pods are bound; gives the metrics of then."""
        started = time.monotonic()
        while (found := self.metrics()).get(_BINDS, 0.0) < binds:
            if time.monotonic() - started > _LIMIT_S:
                raise SystemExit(f"{found.get(_BINDS, 0.0):.0f} of {binds} pods were bound")
            time.sleep(0.5)
        return found

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


def _fill(cluster: EmbeddedCluster, nodes: int) -> None:
    """Make nodes that are nearly full of running gangs."""
    cluster.create(queue("default"))
    opened = {"status": {"state": "Open"}}
    cluster.patch("Queue.scheduling.volcano.sh", "", "default", opened, subresource="status")
    for number in range(nodes):
        room = {"cpu": "12", "memory": "64Gi", "pods": "110"}
        add_node(cluster, f"node-{number:05d}", room)
    for job in range(nodes * PODS_PER_NODE // GANG):
        _gang(cluster, f"job-{job}", nodes, job * GANG)


def _gang(cluster: EmbeddedCluster, name: str, nodes: int, first: int | None = None) -> None:
    """Make a gang whose pods run, one by one on the nodes from ``first`` on, or wait."""
    phase = "Inqueue" if first is None else "Running"
    cluster.create(pod_group(name, min_member=GANG, phase=phase))
    for number in range(GANG):
        made = pod(f"{name}-{number}", group=name, cpu=1, memory="1Gi")
        if first is not None:
            made["spec"]["nodeName"] = f"node-{(first + number) % nodes:05d}"
            made["status"] = {"phase": "Running"}
        cluster.create(made)


def _churn(cluster: EmbeddedCluster, nodes: int) -> int:
    """Each second let some gangs end and as many arrive; gives how many pods arrived."""
    for turn in range(TURNS):
        started = time.monotonic()
        for number in range(GANGS_A_TURN):
            old, new = f"job-{turn * GANGS_A_TURN + number}", f"late-{turn}-{number}"
            for each in range(GANG):
                cluster.delete("Pod", "default", f"{old}-{each}", grace_s=0)
            cluster.delete("PodGroup.scheduling.volcano.sh", "default", old)
            _gang(cluster, new, nodes)
        time.sleep(max(0.0, started + 1.0 - time.monotonic()))
    return TURNS * GANGS_A_TURN * GANG


@contextmanager
def _served(cluster: EmbeddedCluster) -> Iterator[str]:
    server = ApiServer(RestApi(cluster))
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def measure(nodes: int) -> Needs:
    """Measure a scheduler on a cluster of this many nodes."""
    cluster = EmbeddedCluster(RealClock())
    _fill(cluster, nodes)
    with _served(cluster) as url, tempfile.TemporaryDirectory() as folder:
        process = Process(url, Path(folder) / "log")
        try:
            process.wait_ready()
            first = process.metrics()
            time.sleep(REST_S)
            rested = process.metrics()
            binds = _churn(cluster, nodes)
            after = process.wait_bound(binds)
            return Needs(
                nodes=nodes,
                pods=nodes * PODS_PER_NODE,
                start_cpu_s=first[_CPU],
                memory_mib=process.most_memory_mib(),
                idle_cpu=(rested[_CPU] - first[_CPU]) / REST_S,
                binds=binds,
                bind_cpu_s=after[_CPU] - rested[_CPU],
            )
        finally:
            process.stop()


def row(found: Needs) -> str:
    """Write what was measured as a line of a table."""
    cells = (
        f"{found.nodes:,}",
        f"{found.pods:,}",
        f"{found.start_cpu_s:.0f} s",
        f"{found.memory_mib:,.0f} MiB",
        f"{found.idle_cpu:.2f}",
        f"{found.bind_cpu_s * 1000 / found.binds:.1f} s",
    )
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    """Measure the sizes that are asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 1_000, 10_000])
    asked = parser.parse_args().nodes
    sys.stdout.write(f"| {' | '.join(_HEADINGS)} |\n{'|---' * len(_HEADINGS)}|\n")
    for nodes in asked:
        sys.stdout.write(row(measure(nodes)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
