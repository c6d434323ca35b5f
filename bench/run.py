"""Time scheduling cycles: ``python bench/run.py [--quick] [--only KIND] [--json FILE]``.

Every row first proves its decisions (no node over-committed, gangs whole, and on a small cluster of
the same kind the slow reference decides the same), then times one cycle: CPU and wall seconds, CPU
per pod placed, and the peak memory of the process.
"""

import argparse
import gc
import json
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from clusters import Case

from pumice.api.conf import parse_conf
from pumice.api.decisions import Decisions
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.checks import check
from pumice.core.snapshot import Snapshot
from pumice.scheduler import Scheduler
from pumice.testing.reference import reference_decide

NOW = 1768478400.0  # 2026-01-15T12:00:00Z
HEADLINE = Case("default", 1000, 5000, 100)
QUICK = [
    Case("default", 100, 1000, 20),
    Case("default", 1000, 1000, 100),
    HEADLINE,
    Case("binpack", 1000, 1000, 100),
]
GRID = [
    *[
        Case("default", nodes, pods, gang)
        for nodes in (100, 1000, 10000)
        for pods in (1000, 5000)
        for gang in (1, 20, 100)
    ],
    Case("default", 5000, 1000, 100),
    Case("default", 1000, 1000, 100, 20000),
    Case("shapes", 1000, 1000, 20),
    Case("binpack", 1000, 1000, 100),
    Case("capacity", 1000, 1000, 20),
    Case("affinity", 1000, 400, 20),
    Case("spread", 1000, 400, 20),
    Case("preempt", 1000, 100, 10),
    Case("reclaim", 1000, 100, 10),
    Case("idle", 1000, 0, 1, 10000),
    Case("idle", 10000, 0, 1, 100000),
]


@dataclass(frozen=True)
class Row:
    """One timed case."""

    name: str
    placed: int
    cpu_s: float
    wall_s: float
    cpu_ms_per_pod: float
    load_s: float
    peak_mb: float


def load(case: Case) -> Snapshot:
    """Build the tables of a case."""
    return Ingest(Snapshot()).load(from_manifest(manifest) for manifest in case.objects())


def prove(case: Case, snapshot: Snapshot, decisions: Decisions) -> None:
    """Refuse to time wrong decisions."""
    check(snapshot)
    bound: dict[str, int] = {}
    for pod in decisions.binds:
        bound[pod.rpartition("-w-")[0]] = bound.get(pod.rpartition("-w-")[0], 0) + 1
    for job, row in snapshot.jobs.row_of.items():
        whole = bound.get(job, 0) == 0 or bound[job] >= snapshot.jobs.min_member[row]
        assert whole, f"{job}: {bound[job]} of {snapshot.jobs.min_member[row]} bound"
    small = Case(case.kind, 12, 40, min(case.gang, 10), 0)
    conf = parse_conf(small.conf)
    fast = Scheduler(conf).decide(load(small), NOW)
    slow = reference_decide(load(small), conf, now=NOW)
    assert fast == slow, f"{small.name}: the reference decides otherwise"


def measure(case: Case) -> Row:
    """Load, prove, then time one cycle: the fastest of three, on a warm interpreter."""
    gc.collect()
    started = time.perf_counter()
    snapshot = load(case)
    load_s = time.perf_counter() - started
    scheduler = Scheduler(parse_conf(case.conf))
    decisions = scheduler.decide(snapshot, NOW)
    prove(case, snapshot, decisions)
    gc.collect()
    gc.freeze()
    best = (float("inf"), float("inf"))
    for _ in range(3):
        cpu, wall = time.process_time(), time.perf_counter()
        scheduler.decide(snapshot, NOW)
        best = min(best, (time.process_time() - cpu, time.perf_counter() - wall))
    placed = len(decisions.binds) + len(decisions.pipelined)
    return Row(
        name=case.name,
        placed=placed,
        cpu_s=best[0],
        wall_s=best[1],
        cpu_ms_per_pod=1000 * best[0] / placed if placed else 0.0,
        load_s=load_s,
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def main() -> None:
    """Run the grid, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="four cases instead of the grid")
    parser.add_argument("--only", help="kinds whose name contains this")
    parser.add_argument("--json", type=Path, default=Path("bench/results.json"))
    args = parser.parse_args()
    cases = [c for c in (QUICK if args.quick else GRID) if not args.only or args.only in c.kind]
    print(f"{'case':38} {'placed':>7} {'cpu s':>8} {'wall s':>8} {'ms/pod':>8} {'load s':>7}")
    rows = []
    for case in cases:
        row = measure(case)
        rows.append(row)
        print(
            f"{row.name:38} {row.placed:7d} {row.cpu_s:8.4f} {row.wall_s:8.4f} "
            f"{row.cpu_ms_per_pod:8.4f} {row.load_s:7.2f}",
            flush=True,
        )
    args.json.write_text(json.dumps([row.__dict__ for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
