"""Time cycles with reservations: ``python -m bench.reservations [--waiting N] [--check]``.

A full cluster of 1,000 nodes, 5,000 running jobs that end one after another, 2,000 jobs that wait.
Printed are CPU milliseconds of cycles after one job ended, which left room for few: without
reservations, and with each mode.  With ``--check`` it fails if `easy` takes more than twice as long
as a plain cycle, or `conservative` with 100 reservations more than 50 ms.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from pumice.api.annotations import RUN_SECONDS
from pumice.api.conf import parse_conf
from pumice.api.kinds import POD
from pumice.api.times import rfc3339
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing.builders import node, pod, pod_group, queue

Manifest = dict[str, Any]
NOW: Final = 1768500000.0
ROUNDS: Final = 5
_PER_NODE: Final = 5
_CONF: Final = """
actions: "enqueue, allocate"
tiers:
- plugins: [{}{{name: gang}}, {{name: predicates}}, {{name: nodeorder}}]
"""
_MODE: Final = "{{name: reservation, arguments: {{reservation.mode: {}, reservation.depth: {}}}}}, "
MODES: Final = {
    "plain": "",
    "strict": _MODE.format("strict", 1),
    "easy": _MODE.format("easy", 1),
    "conservative": _MODE.format("conservative", 100),
}
EASY_TIMES: Final = 2.0
CONSERVATIVE_MS: Final = 50.0


def objects(nodes: int, waiting: int, sizes: int) -> Iterator[Manifest]:
    """Draw a full cluster; waiting pods have so many sizes."""
    random = np.random.default_rng(0)
    yield queue("default")
    for each in range(nodes):
        yield node(f"node-{each:05d}", cpu=32, memory="128Gi")
    for each in range(nodes * _PER_NODE):
        name, run_s = f"run{each:05d}", int(random.integers(3600, 90000))
        yield from _job(name, 1, 6, run_s, node=f"node-{each % nodes:05d}")
    for each in range(waiting):
        width = int(2 ** random.integers(0, 7))
        run_s = int(random.lognormal(8, 1.5)) + 60
        yield from _job(f"wait{each:05d}", width, 6 + each % sizes, run_s)


def _job(name: str, width: int, cpu: int, run_s: int, **more: Any) -> Iterator[Manifest]:
    runs = "node" in more
    made = rfc3339(NOW - 3000 + (0 if runs else int(name[4:])))
    common: Manifest = {"namespace": "bench", "created": made}
    phase, marks = "Running" if runs else "Inqueue", {RUN_SECONDS: str(run_s)}
    yield pod_group(name, min_member=width, phase=phase, annotations=marks, **common)
    for each in range(width):
        amounts: Manifest = {"cpu": cpu, "memory": f"{2 * cpu}Gi"}
        made_pod = pod(f"{name}-{each}", group=name, **amounts, **common, **more)
        if runs:  # else it would be expected to end later in each cycle
            made_pod["status"]["startTime"] = made
        yield made_pod


def measure(mode: str, nodes: int, waiting: int, sizes: int) -> tuple[float, float]:
    """Return the CPU milliseconds of the first cycle, and of the median one after an end."""
    clock = VirtualClock(NOW)
    cluster = EmbeddedCluster(clock, record_events=False)
    cluster.restore(list(objects(nodes, waiting, sizes)))
    live = LiveScheduler(cluster, Scheduler(parse_conf(_CONF.format(MODES[mode]))))

    def cycle() -> float:
        before = time.process_time()
        live.cycle()
        return 1000 * (time.process_time() - before)

    first, spent = cycle(), []
    cycle()  # its own writes come back
    for each in range(ROUNDS):
        clock.advance_to(clock.now() + 1)
        cluster.delete(POD, "bench", f"run{each:05d}-0", grace_s=0)
        spent.append(cycle())
        cycle()
    return first, float(np.median(spent))


def main() -> int:
    """Measure each mode and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--waiting", type=int, default=2000)
    parser.add_argument("--sizes", type=int, default=1, help="sizes of waiting pods")
    parser.add_argument("--only", default="", help="modes whose name contains this")
    parser.add_argument("--check", action="store_true", help="fail if it takes too long")
    args = parser.parse_args()
    found = {}
    print(f"{'mode':13} {'first ms':>9} {'cycle ms':>9}")
    for mode in filter(lambda name: args.only in name, MODES):
        first, found[mode] = measure(mode, args.nodes, args.waiting, args.sizes)
        print(f"{mode:13} {first:9.1f} {found[mode]:9.1f}", flush=True)
    if not args.check:
        return 0
    return int(
        found["easy"] > EASY_TIMES * found["plain"] or found["conservative"] > CONSERVATIVE_MS
    )


if __name__ == "__main__":
    sys.exit(main())
