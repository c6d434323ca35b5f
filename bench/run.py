"""Time scheduling cycles: ``python -m bench.run [--quick | --huge] [--only TEXT] [--rounds N]``.

Every row first proves its decisions (no node over-committed, gangs whole, and on a small cluster of
the same kind the slow reference decides the same), then times one cycle: CPU and wall seconds, CPU
per pod placed, and the peak memory of the process.
"""

import argparse
import gc
import json
import logging
import math
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.clusters import Case
from bench.policy_clusters import PLUGINS, StillExtender
from bench.report import RESULTS
from pumice.api.conf import parse_conf
from pumice.api.decisions import Decisions
from pumice.api.objects import from_manifest
from pumice.api.output_files import write_file
from pumice.api.pods import Pod
from pumice.cache.ingest import Ingest
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.scenarios.objects import advance
from pumice.scheduler import Scheduler
from pumice.testing.reference import reference_decide

SERVICES = {"extender": lambda *_: StillExtender()}
"""External services, simulated here."""
NOW = 1768478400.0  # 2026-01-15T12:00:00Z
_RUNS = 3
_ENOUGH_S = 0.02
"""Seconds that the runs of a case take together, at least."""
QUICK = [
    Case("default", 100, 1000, 20),
    Case("default", 1000, 1000, 100),
    Case("default", 1000, 5000, 100),
    Case("binpack", 1000, 1000, 100),
]
SPECIAL = [
    Case("default", 5000, 1000, 100),
    Case("default", 10000, 500, 100),
    Case("default", 1000, 1000, 100, 20000),
    Case("shapes", 1000, 1000, 20),
    Case("binpack", 1000, 1000, 100),
    Case("capacity", 1000, 1000, 20),
    Case("binpack", 1000, 1000, 1),
    Case("capacity", 1000, 1000, 1),
    Case("tree", 1000, 1000, 1),
    Case("shapes", 10000, 1000, 1),
    Case("many-shapes", 10000, 1000, 1),
    Case("affinity", 1000, 400, 20),
    Case("spread", 1000, 400, 20),
    Case("task-topology", 1000, 400, 20),
    Case("network", 1000, 640, 20),
    Case("preempt", 1000, 100, 10),
    Case("reclaim", 1000, 100, 10),
    Case("preempt", 5000, 100, 10),
    Case("reclaim", 5000, 100, 10),
    Case("gangpreempt", 1000, 100, 10),
    Case("gangreclaim", 1000, 100, 10),
    Case("topology-preempt", 1000, 100, 10),
    Case("ports", 1000, 400, 20),
    Case("task-topology", 5000, 400, 20),
    Case("volumes", 1000, 400, 20),
    Case("numa", 1000, 400, 20),
    Case("numa-idle", 1000, 0, 1, 10000),
    Case("network", 16000, 640, 20),
    Case("elastic", 1000, 1000, 100),
    Case("elastic", 1000, 10000, 100),
    Case("soft-spread", 1000, 1000, 20),
    Case("soft-spread", 10000, 1000, 20),
    Case("distinct", 1000, 1000, 20),
    Case("distinct", 10000, 1000, 20),
    Case("many-shapes", 1000, 1000, 1),
    Case("hard-affinity", 1000, 400, 1),
    Case("hard-affinity", 5000, 400, 1),
    Case("racks", 1750, 640, 64),
    Case("racks", 17500, 640, 64),
    Case("preempt", 1000, 100, 1),
    Case("reclaim", 1000, 100, 1),
    Case("reclaim-queues", 1000, 100, 10),
    Case("usage", 1000, 1000, 20),
    Case("usage", 10000, 1000, 20),
    *(Case(f"user-{hook}", 1000, 1000, 1) for hook in ("rank", "place", "overused")),
    *(Case(f"user-{hook}", 1000, 1000, 20) for hook in ("rank", "place", "overused")),
    Case("extender", 1000, 40, 20),
    Case("extender-shapes", 1000, 40, 20),
    Case("idle", 1, 0, 1, 0),
    Case("idle", 1000, 0, 1, 10000),
    Case("idle", 10000, 0, 1, 100000),
    Case("changed", 10000, 0, 1, 100000),
]
HUGE = [
    Case("default", 50000, 1000, 1, 500000),
    Case("idle", 100000, 0, 1, 1000000),
]
"""Loaded for minutes, with gigabytes; only on demand."""
GRID = [
    Case("default", nodes, pods, gang)
    for nodes in (100, 1000, 10000)
    for pods in (1000, 5000, 50000)
    for gang in (1, 4, 20, 100)
    if (pods < 50000 or (nodes >= 1000 and gang > 4)) and (gang != 4 or nodes == 1000)
]


@dataclass(frozen=True)
class Row:
    """One timed case."""

    name: str
    case: dict[str, str | int]
    placed: int
    cpu_s: float
    wall_s: float
    cpu_ms_per_pod: float
    load_s: float
    peak_mb: float


class Bench:
    """One case, loaded and proved, ready to be timed."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.scheduler = Scheduler(parse_conf(case.conf), plugins=PLUGINS, services=SERVICES)
        gc.collect()
        started = time.process_time()
        self.ingest = Ingest(Snapshot())
        self.snapshot = self.ingest.load(from_manifest(manifest) for manifest in case.objects())
        self.load_s = time.process_time() - started
        self.usage = case.node_usage
        self.decisions = self.scheduler.decide(self.snapshot, NOW, self.usage)
        prove(case, self.snapshot, self.decisions)
        if case.kind in ("idle", "changed", "numa-idle"):
            self._settle()

    def _settle(self) -> None:
        """Write the first cycle's statuses back, so that nothing is left to write."""
        for manifest in advance(self.case.objects(), self.decisions):
            if manifest["kind"] == "PodGroup":
                self.ingest.upsert(from_manifest(manifest))
        self.ingest.settle()

    def run(self) -> None:
        """Decide one cycle; in the case ``changed`` apply one pod in a hundred before."""
        if self.case.kind == "changed":
            for pod in self._changes():
                self.ingest.upsert(pod)
            self.ingest.settle()
        self.scheduler.decide(self.snapshot, NOW, self.usage, only_changes=True)

    def _changes(self) -> list[Pod]:
        """Make one pod in a hundred start to leave, or undo that."""
        tasks = self.snapshot.tasks
        held: list[Any] = tasks.pods
        pods: list[Pod] = [held[row] for row in range(0, tasks.n, 100)]
        leaving = "" if pods[0].metadata.deletion_timestamp else "2026-01-15T12:00:00Z"
        return [
            replace(pod, metadata=replace(pod.metadata, deletion_timestamp=leaving)) for pod in pods
        ]

    def measure(self) -> Row:
        """Time the fastest of three runs, of more where one is too short to be timed well."""
        gc.collect()
        gc.freeze()
        best, spent, runs = (math.inf, math.inf), 0.0, 0
        while runs < _RUNS or spent < _ENOUGH_S:
            cpu, wall = time.process_time(), time.perf_counter()
            self.run()
            took = time.process_time() - cpu, time.perf_counter() - wall
            best, spent, runs = min(best, took), spent + took[1], runs + 1
        gc.unfreeze()
        placed = len(self.decisions.binds) + len(self.decisions.pipelined)
        return Row(
            name=self.case.name,
            case=asdict(self.case),
            placed=placed,
            cpu_s=best[0],
            wall_s=best[1],
            cpu_ms_per_pod=1000 * best[0] / placed if placed else 0.0,
            load_s=self.load_s,
            peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )


def prove(case: Case, snapshot: Snapshot, decisions: Decisions) -> None:
    """Refuse to time wrong decisions."""
    check(snapshot)
    bound: dict[str, int] = {}
    for pod in (*decisions.binds, *decisions.pipelined):
        job = pod.rpartition("-w-")[0]
        bound[job] = bound.get(job, 0) + 1
    for job, row in snapshot.jobs.row_of.items():
        least = int(snapshot.jobs.min_member[row])
        assert bound.get(job, 0) in (0, *range(least, least + 1000)), f"{job} is not whole"
    small = Case(case.kind, 12, 40, min(case.gang, 10), 0)
    conf, usage = parse_conf(small.conf), small.node_usage
    manifests = small.objects()
    fast = Scheduler(conf, plugins=PLUGINS, services=SERVICES).cycle(manifests, NOW, usage)
    slow = reference_decide(
        Ingest(Snapshot()).load(from_manifest(manifest) for manifest in manifests),
        conf,
        now=NOW,
        plugins=PLUGINS,
        node_usage=usage,
        services=SERVICES,
    )
    assert fast == slow, f"{small.name}: the reference decides otherwise"


def main() -> None:
    """Run the cases, print a table, write JSON."""
    logging.getLogger("pumice").addHandler(logging.NullHandler())  # rows only
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four cases instead of all")
    parser.add_argument("--huge", action="store_true", help="50,000 and 100,000 nodes, too")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=1, help="run all and keep the best of each")
    parser.add_argument(
        "--json", type=Path, help=f"a file for the results (of all cases: {RESULTS})"
    )
    args = parser.parse_args()
    written = args.json or (None if args.quick or args.only else RESULTS)
    known = QUICK if args.quick else [*SPECIAL, *GRID, *(HUGE if args.huge else ())]
    cases = [case for case in known if args.only in case.name]
    print(f"{'case':38} {'placed':>7} {'cpu s':>8} {'wall s':>8} {'ms/pod':>8} {'load s':>7}")
    best: dict[str, Row] = {}
    for case in cases * args.rounds:
        row = Bench(case).measure()
        best[row.name] = min(best.get(row.name, row), row, key=lambda one: one.cpu_s)
        print(
            f"{row.name:38} {row.placed:7d} {row.cpu_s:8.4f} {row.wall_s:8.4f} "
            f"{row.cpu_ms_per_pod:8.4f} {row.load_s:7.2f}",
            flush=True,
        )
    if written:  # a few cases do not replace the results of which the page is made
        write_file(written, json.dumps([asdict(row) for row in best.values()], indent=1) + "\n")


if __name__ == "__main__":
    main()
