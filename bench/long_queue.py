"""Time simulations with a long queue: ``python -m bench.long_queue [--jobs N] [--only TEXT]``.

Jobs of one to four pods arrive at once on a cluster that runs a few hundred of them, under plugins
and actions for which the simulator leaves few cycles and jobs out.  Printed are the CPU seconds,
events a second (arrivals, starts and ends), and the growth: how many times as long twice the jobs
take.
"""

import argparse
import time
from typing import Any, Final

import pumice
from bench.full_cluster import CONFIGURATIONS
from bench.in_vain import TDM
from pumice.plugin import Plugin

NODES: Final = 100
_UNDECLARED: Final = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: small-pods}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


class SmallPods(Plugin, name="small-pods"):
    """Takes pods up to 64 CPUs, and declares nothing."""

    def allocatable(self, queue: Any, task: Any) -> bool:
        """Return whether a pod is small."""
        del queue
        return bool(task.request[0, 0] <= 64000)


CASES: Final = {
    "plain": CONFIGURATIONS["default"],
    "tdm": TDM,
    "an undeclared plugin": _UNDECLARED,
    "preempt and reclaim": CONFIGURATIONS["evicting"],
}


def run_s(conf: str, jobs: int) -> float:
    """Simulate, check that all jobs ran, return CPU seconds."""
    rows = [
        {
            "name": f"j{each}",
            "arrival": each // 100,
            "run": 60 + each * 37 % 600,
            "pods": 1 + each % 4,
            "queue": f"q{each % 3}",
        }
        for each in range(jobs)
    ]
    workload, nodes = pumice.workload(rows), pumice.nodes(NODES, cpu=4)
    begun = time.process_time()
    result = pumice.simulate(workload, nodes, conf, plugins=[SmallPods])
    spent = time.process_time() - begun
    ends = [row["end"] for row in result.jobs]
    assert len(ends) == jobs
    assert None not in ends
    return spent


def main() -> None:
    """Measure each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=800)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    args = parser.parse_args()
    for name, conf in CASES.items():
        if args.only in name:
            half, whole = (run_s(conf, jobs) for jobs in (args.jobs // 2, args.jobs))
            print(
                f"{name:22} {whole:8.1f} s {3 * args.jobs / whole:8.0f} events/s, "
                f"twice the jobs: {whole / half:.1f} times",
                flush=True,
            )


if __name__ == "__main__":
    main()
