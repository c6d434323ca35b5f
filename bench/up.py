"""Time a cluster of `pumice up`: ``python -m bench.up [OTHER]``.

Clients create pods, then jobs of 20 pods, over HTTP while others watch.  The figures are objects
created a second and what the creation of one costs, in CPU milliseconds of the server (cycles in
between included) and of the clients; pods running a second, and the CPU milliseconds of the server
for each pod from the first request until it runs.  OTHER is a second checkout that is timed in
turns with this one.
"""

import argparse
import http.client
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.checkouts import COMMAND, HERE, environment

CLIENTS = 8
WATCHERS = 4
PODS = 1000
JOBS = 50
GANG = 20
_HOST = "127.0.0.1"
_POD_PATH = "/api/v1/namespaces/default/pods"
_JOB_PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


@dataclass(frozen=True)
class Rates:
    """Rates of one cluster."""

    created_s: float
    """Objects created a second."""
    server_ms: float
    """CPU of the server for each object, until all are created."""
    client_ms: float
    """CPU of clients and watches, likewise."""
    running_s: float
    """Pods that run, a second from the first request on."""
    pod_ms: float
    """CPU of the server for each pod, until all run."""


def _spec() -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "64Mi"}
    return {
        "schedulerName": "volcano",
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
    }


def _pod(number: int) -> bytes:
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{number}"}}
    return json.dumps({**head, "spec": _spec()}).encode()


def _job(number: int) -> bytes:
    task = {"name": "w", "replicas": GANG, "template": {"spec": _spec()}}
    manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": f"j-{number}"},
        "spec": {"minAvailable": GANG, "schedulerName": "volcano", "tasks": [task]},
    }
    return json.dumps(manifest).encode()


@contextmanager
def _served(checkout: Path) -> Iterator[tuple[int, int]]:
    """Serve a cluster of 100 nodes; yield port and process."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(  # noqa: S603
            [*COMMAND, "up", "--nodes", "100", "--node-cpu", "64", "--kubeconfig", f"{folder}/k"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment(checkout),
        )
        assert server.stdout is not None
        port = int(server.stdout.readline().rpartition(":")[2])
        try:
            yield port, server.pid
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _post(port: int, path: str, bodies: list[bytes]) -> None:
    """Create objects over one connection, each by one packet, as clients in Go send it."""
    head = f"POST {path} HTTP/1.1\r\nHost: {_HOST}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((_HOST, port)) as to_server:
        to_server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with to_server.makefile("rb") as answers:
            for body in bodies:
                to_server.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                first, *fields = iter(answers.readline, b"\r\n")
                (length,) = (line[15:] for line in fields if line.startswith(b"Content-Length:"))
                text = answers.read(int(length))
                assert b" 201 " in first, text


def _watch(port: int) -> None:
    connection = http.client.HTTPConnection(_HOST, port)
    connection.request("GET", f"{_POD_PATH}?watch=true")
    answer = connection.getresponse()
    try:
        while answer.read1():
            pass
    except OSError:  # the server ended
        return


def _running(port: int) -> int:
    connection = http.client.HTTPConnection(_HOST, port)
    connection.request("GET", f"{_POD_PATH}?fieldSelector=status.phase%3DRunning")
    return len(json.loads(connection.getresponse().read())["items"])


def measure(checkout: Path, path: str, make: Callable[[int], bytes], number: int) -> Rates:
    """Create objects in a new cluster and wait until all their pods run."""
    pods = number * (GANG if make is _job else 1)
    with _served(checkout) as (port, process):
        for _ in range(WATCHERS):
            threading.Thread(target=_watch, args=(port,), daemon=True).start()
        bodies = [make(each) for each in range(number)]
        clients = [
            threading.Thread(target=_post, args=(port, path, bodies[first::CLIENTS]))
            for first in range(CLIENTS)
        ]
        cpu, own, start = _cpu_s(process), time.process_time(), time.perf_counter()
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        created = time.perf_counter() - start
        created_cpu, own = _cpu_s(process) - cpu, time.process_time() - own
        while _running(port) < pods:
            time.sleep(0.2)
        running = time.perf_counter() - start
        used = _cpu_s(process) - cpu
    return Rates(
        number / created,
        1000 * created_cpu / number,
        1000 * own / number,
        pods / running,
        1000 * used / pods,
    )


def _line(name: str, rates: list[Rates]) -> str:
    """Write the best figures of some runs."""
    most = [max(each.created_s for each in rates), max(each.running_s for each in rates)]
    least = [
        min(each.server_ms for each in rates),
        min(each.client_ms for each in rates),
        min(each.pod_ms for each in rates),
    ]
    created = f"{most[0]:10.0f} {least[0]:10.2f} {least[1]:10.2f}"
    return f"{name:24} {created} {most[1]:15.0f} {least[2]:13.2f}"


def main() -> None:
    """Print the best of three runs of each checkout."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, nargs="?", help="another checkout")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    created = f"{'created/s':>10} {'server ms':>10} {'clients ms':>10}"
    print(f"{'':24} {created} {'pods running/s':>15} {'server ms/pod':>13}")
    for name, path, make, number in (
        ("pods", _POD_PATH, _pod, PODS),
        (f"jobs of {GANG} pods", _JOB_PATH, _job, JOBS),
    ):
        found: dict[Path, list[Rates]] = {}
        checkouts = [HERE] if args.other is None else [args.other, HERE]
        for _ in range(args.turns):
            for checkout in checkouts:
                found.setdefault(checkout, []).append(measure(checkout, path, make, number))
        for checkout, rates in found.items():
            whose = "this" if checkout == HERE else "other"
            print(_line(f"{name}, {whose}", rates), flush=True)


if __name__ == "__main__":
    main()
