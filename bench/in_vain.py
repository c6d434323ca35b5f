"""Time cycles in which pods wait in vain: ``python -m bench.in_vain [OTHER] [--only TEXT]``.

OTHER is the folder of a second checkout.  Each case is a full cluster whose waiting jobs get
nothing, which is checked first, also by what each job is refused for.  Then the CPU milliseconds
of cycles are printed: to decide the first one, and of whole ones after nothing changed, after one
more gang came, after one pod ended, and in which a pod starts on a node that is kept free for it
while the causes of those that wait are examined, one in each cycle.  Each case runs with half of
the jobs, too: the growth.
"""

import argparse
import json
import logging
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench.checkouts import HERE, environment
from bench.full_cluster import CONFIGURATIONS, FullCluster
from bench.live_loop import free_node, gang
from pumice.api.conf import parse_conf
from pumice.api.decisions import Decisions
from pumice.api.kinds import POD
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.framework.session import Session
from pumice.garbage_collection import reading
from pumice.metrics import Metrics
from pumice.scheduler import Observer, Observers, Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.serve.scheduler.waiting_causes import MOST_EACH_SECOND, PATIENCE_S, WaitingCauses
from pumice.testing.builders import node, pdb

NOW: Final = 1768500000.0
ROUNDS: Final = 3
_TIERS: Final = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}, {plugin}]
- plugins: [{{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]
"""
BUDGETS: Final = _TIERS.format(plugin="{name: pdb}")
TDM: Final = _TIERS.format(plugin='{name: tdm, arguments: {tdm.revocable-zone.rz1: "00:00-23:59"}}')
_KEPT: Final = {"app": "kept"}
_TWO_FREE: Final = tuple(node(f"free-{each}", cpu=8, memory="16Gi") for each in range(3))
CASES: Final[dict[str, tuple[str, FullCluster]]] = {
    "gangs wait": (CONFIGURATIONS["default"], FullCluster(1000, 500)),
    "gangs wait, 5,000 nodes": (CONFIGURATIONS["default"], FullCluster(5000, 500)),
    "gangs wait, preempt and reclaim": (CONFIGURATIONS["evicting"], FullCluster(1000, 500)),
    "the same, 5,000 nodes": (CONFIGURATIONS["evicting"], FullCluster(5000, 500)),
    "gangs one pod too big": (
        CONFIGURATIONS["default"],
        FullCluster(1000, 2000, cpu=8, extra=_TWO_FREE),
    ),
    "may preempt nobody: priority": (CONFIGURATIONS["evicting"], FullCluster(1000, 2000, gang=1)),
    "may preempt nobody: budgets": (
        BUDGETS,
        FullCluster(
            1000,
            2000,
            gang=1,
            priority="urgent",
            running={"labels": _KEPT},
            running_groups={"min_member": 1},
            extra=(pdb("kept", namespace="bench", match_labels=_KEPT),),
        ),
    ),
    "tdm with preempt": (TDM, FullCluster(1000, 2000, gang=1, priority="urgent")),
}
"""Configuration and cluster by name."""


class Refused(Observer):
    """Counts the jobs of a cycle by the reason why they wait."""

    def __init__(self) -> None:
        self.why: Counter[str] = Counter()
        self.starts = 0
        """How many pods should start in a cycle."""
        self.synced_s = self.decided_s = 0.0

    def synced(self) -> None:
        """Note when deciding begins."""
        self.synced_s = time.process_time()

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Count."""
        self.decided_s = time.process_time()
        assert len(decisions.binds) == self.starts
        assert not decisions.evictions
        assert not decisions.pipelined
        self.why = Counter(record.why.value for record in ssn.records.by_job.values())


def measure(name: str, part: float) -> dict[str, Any]:
    """Run cycles of this checkout; return why jobs wait, and CPU milliseconds."""
    logging.getLogger("pumice").addHandler(logging.NullHandler())
    conf, full = CASES[name]
    full = replace(full, gangs=int(full.gangs * part))
    clock = VirtualClock(NOW)
    cluster = EmbeddedCluster(clock, record_events=False)
    with reading():  # as a served scheduler does
        cluster.restore(full.objects())
    live = LiveScheduler(cluster, Scheduler(parse_conf(conf)))
    refused = Refused()
    causes = WaitingCauses(Metrics())

    def cycle(observer: Observer = refused) -> float:
        before = time.process_time()
        live.cycle(observer)
        return 1000 * (time.process_time() - before)

    cycle()
    spent = {"first": 1000 * (refused.decided_s - refused.synced_s)}
    cycle()  # its own writes come back
    assert sum(refused.why.values()) == full.gangs
    spent["nothing"] = min(cycle() for _ in range(ROUNDS))
    spent["added"] = spent["ended"] = float("inf")
    for each in range(ROUNDS):
        for manifest in full.waiting(full.gangs + each):
            cluster.create(manifest)
        spent["added"] = min(spent["added"], cycle())
        cycle()
        cluster.delete(POD, "bench", f"run{each:05d}-w-0", grace_s=0)
        spent["ended"] = min(spent["ended"], cycle())
        cycle()
    why, both = refused.why, Observers(causes, refused)
    make_queues(cluster)
    cluster.create(free_node("free"))
    for _ in range(ROUNDS):
        cycle(both)
    clock.advance(PATIENCE_S)
    refused.starts, started = 1, []
    for each in range(2 * ROUNDS):
        clock.advance(1 / MOST_EACH_SECOND)
        for manifest in gang(f"free{each}", 1):
            cluster.create(manifest)
        started.append(cycle(both))
    return {"why": why, **spent, "started": sorted(started)[ROUNDS]}


def _of(checkout: Path, name: str, part: float) -> dict[str, Any]:
    code = "import json; from bench.in_vain import measure; print(json.dumps(measure{}))"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code.format((name, part))],
        check=True,
        stdout=subprocess.PIPE,
        env=environment(checkout),
        cwd=HERE,
    )
    return dict(json.loads(done.stdout))


def main() -> None:
    """Measure the checkouts and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, nargs="?", help="another checkout")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--no-growth", action="store_true", help="not with half of the jobs")
    args = parser.parse_args()
    times = "first", "nothing", "added", "ended", "started"
    print(f"{'case':32} {'jobs':5} {'checkout':8}" + "".join(f"{each:>9}" for each in times))
    for name in filter(lambda name: args.only in name, CASES):
        for part in (1,) if args.no_growth else (0.5, 1):
            checkouts = {"this": HERE} | ({"other": args.other} if args.other else {})
            found = {which: _of(folder, name, part) for which, folder in checkouts.items()}
            assert all(each["why"] == found["this"]["why"] for each in found.values())
            for which, each in found.items():
                jobs = int(CASES[name][1].gangs * part)
                numbers = "".join(f"{each[time]:9.1f}" for time in times)
                print(f"{name:32} {jobs:5} {which:8}{numbers}", flush=True)


if __name__ == "__main__":
    main()
