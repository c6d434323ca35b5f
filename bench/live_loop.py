"""Time the whole live loop without an API server: ``python -m bench.live_loop [--waiting N] …``.

The loop of a served scheduler runs on a cluster in memory, on the real clock, while gangs arrive
at a steady rate and end after a while.  For each rhythm: how long pods wait to be bound, the CPU of
the scheduler's thread a pod, and cycles.  Every pod is bound before anything is printed.  With
``--waiting`` so many gangs wait in vain on a full part of the cluster.
"""

import argparse
import threading
import time
from collections import deque
from typing import Any, Final

import numpy as np

from bench.full_cluster import CONFIGURATIONS, FullCluster
from pumice.api.conf import parse_conf
from pumice.api.kinds import Manifest
from pumice.clock import RealClock
from pumice.cluster.base import DirectWriter, Done, Event, Lane, Write
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.metrics import Metrics
from pumice.scheduler import Scheduler
from pumice.serve.options import SchedulerOptions
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.loop import SchedulerLoop
from pumice.testing.builders import node, pod, pod_group

RHYTHMS: Final = ("event", "period")
WAIT_S: Final = 30.0
_RUN_S: Final = 3.0
"""How long gangs exist."""
_KEPT: Final = "bench/kept"
"""A taint that keeps gangs that wait off the nodes of those that arrive."""


class MemoryCluster(EmbeddedCluster):
    """A cluster in memory with what the loop asks of a real one."""

    def __init__(self) -> None:
        super().__init__(RealClock(), record_events=False)
        self._wakes: list[threading.Event] = []
        self._writer = DirectWriter(self)
        self.listeners.append(self._changed)

    def _changed(self, kind: str, event: Event) -> None:
        del kind, event
        for wake in self._wakes:
            wake.set()

    def new_wake(self) -> threading.Event:
        """Return an event that is set with each change."""
        self._wakes.append(threading.Event())
        return self._wakes[-1]

    def wait_synced(self, timeout_s: float) -> list[str]:
        """Return that nothing is missing."""
        del timeout_s
        return []

    def wait_current(self, timeout_s: float) -> list[str]:
        """Return that nothing is missing."""
        del timeout_s
        return []

    def read(self, kind: str, namespace: str, name: str, *, timeout_s: float) -> Manifest:
        """Return an object."""
        del timeout_s
        return self.get(kind, namespace, name)

    def troubles(self) -> dict[str, str]:
        """Return that there are none."""
        return {}

    def absent(self) -> list[str]:
        """Return that none is."""
        return []

    def submit(self, write: Write, *, lane: Lane, done: Done | None = None) -> None:
        """Write at once."""
        self._writer.submit(write, lane=lane, done=done)

    def flush(self, timeout_s: float) -> bool:
        """Return that all is written."""
        del timeout_s
        return True


class Waits:
    """Takes how long pods wait, as a listener of the cluster."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.created: dict[str, float] = {}
        self.waited_s: list[float] = []
        cluster.listeners.append(self._hear)

    def _hear(self, kind: str, event: Event) -> None:
        if kind == "Pod" and event.object["spec"].get("nodeName"):
            at = self.created.pop(event.object["metadata"]["name"], None)
            if at is not None:
                self.waited_s.append(time.perf_counter() - at)


def gang(name: str, size: int) -> list[Manifest]:
    """Build a pod group and its pods."""
    group = pod_group(name, min_member=size, phase=None)
    spec = {"tolerations": [{"key": _KEPT, "operator": "Exists"}]}
    pods = (pod(f"{name}-{each}", group=name, cpu=1, spec=spec) for each in range(size))
    return [group, *pods]


def free_node(name: str) -> Manifest:
    """Build a node for such gangs alone."""
    free = node(name, cpu=32, memory="256Gi")
    return {**free, "spec": {"taints": [{"key": _KEPT, "effect": "NoSchedule"}]}}


def feed(cluster: EmbeddedCluster, waits: Waits, given: argparse.Namespace) -> int:
    """Create gangs at a steady rate and delete old ones; return the number of pods."""
    count, started = int(given.rate * given.seconds / given.size), time.perf_counter()
    old: deque[tuple[float, list[Manifest]]] = deque()
    for number in range(count):
        time.sleep(max(0.0, started + number * given.size / given.rate - time.perf_counter()))
        made = gang(f"g{number}", given.size)
        for each in made:
            if each["kind"] == "Pod":
                waits.created[each["metadata"]["name"]] = time.perf_counter()
            cluster.create(each)
        old.append((time.perf_counter() + _RUN_S, made))
        while old and old[0][0] <= time.perf_counter():
            for each in old.popleft()[1]:
                kind = "Pod" if each["kind"] == "Pod" else "PodGroup.scheduling.volcano.sh"
                cluster.delete(kind, "default", each["metadata"]["name"], grace_s=0)
    return count * given.size


def measure(given: argparse.Namespace, rhythm: str) -> str:
    """Run one loop; return a line about it."""
    cluster = MemoryCluster()
    if given.waiting:
        cluster.restore(FullCluster(given.nodes, given.waiting).objects())
    make_queues(cluster)
    room = max(2, int(given.rate * _RUN_S / 30) + 2)
    for each in range(room if given.waiting else given.nodes):
        cluster.create(free_node(f"free-{each}"))
    scheduler = Scheduler(parse_conf(CONFIGURATIONS[given.conf]))
    stop, cycles, cpu_s = threading.Event(), [0], [0.0]

    def count(_: Any) -> None:
        cycles[0] += 1
        cpu_s[0] = time.thread_time()

    options = SchedulerOptions(cycle=rhythm)
    loop = SchedulerLoop(cluster, options, lambda: scheduler, Metrics(), on_cycle=count)
    thread = threading.Thread(target=loop.run, args=(stop,))
    thread.start()
    waits = Waits(cluster)
    time.sleep(given.settle)
    before = cpu_s[0], cycles[0]
    pods = feed(cluster, waits, given)
    deadline = time.monotonic() + WAIT_S
    while waits.created:
        assert time.monotonic() < deadline, f"{len(waits.created)} pods are not bound"
        time.sleep(0.01)
    time.sleep(1.1)
    used, ran = cpu_s[0] - before[0], cycles[0] - before[1]
    stop.set()
    thread.join()
    half, nearly, worst = (1000 * np.percentile(waits.waited_s, q) for q in (50, 99, 100))
    return (
        f"{rhythm:8} 50 % {half:6.1f}, 99 % {nearly:6.1f}, worst {worst:6.1f} ms; "
        f"{1000 * used / pods:5.2f} ms CPU a pod, {ran} cycles for {pods} pods"
    )


def main() -> None:
    """Measure each rhythm, in turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conf", choices=CONFIGURATIONS, default="default")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=100.0, help="pods created a second")
    parser.add_argument("--size", type=int, default=1, help="pods of a gang")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--settle", type=float, default=3.0, help="seconds before the first pod")
    parser.add_argument("--waiting", type=int, default=0, help="gangs that wait in vain")
    parser.add_argument("--turns", type=int, default=1)
    given = parser.parse_args()
    for _ in range(given.turns):
        for rhythm in RHYTHMS:
            print(measure(given, rhythm), flush=True)


if __name__ == "__main__":
    main()
