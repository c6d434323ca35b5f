"""The examples of strict first come, first served, and of EASY backfilling start every job when the
algorithms of the textbooks do, on a machine of equal processors.
"""

import heapq
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pumice
from pumice.framework.registry import load_plugins

PLUGINS = Path(__file__).parents[2] / "examples" / "plugins"
PROCESSORS = 16
CONF = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{{name: {}}}, {{name: gang}}]\n'
Row = dict[str, Any]


def drawn(seed: int, n: int = 50) -> list[Row]:
    """Draw jobs of every width in whole seconds, so that cycles run when something happens."""
    random = np.random.default_rng(seed)
    arrivals = np.cumsum(random.integers(0, 200, n)) - 1
    runs = random.lognormal(5, 1.2, n).clip(1, 5000).astype(int) + 1
    return [
        {
            "name": f"job-{i:03d}",
            "arrival": int(arrivals[i]),
            "run": int(runs[i]),
            "pods": int(random.integers(1, PROCESSORS + 1)),
            "walltime": int(runs[i] * random.uniform(1, 4)),
        }
        for i in range(n)
    ]


@dataclass
class Machine:
    """Processors, the jobs that run on them, and the line of those that wait."""

    free: int = PROCESSORS
    now: int = 0
    running: list[tuple[int, int, Row]] = field(default_factory=list)
    line: list[Row] = field(default_factory=list)
    starts: dict[str, int] = field(default_factory=dict)

    def start(self, job: Row) -> None:
        self.line.remove(job)
        self.starts[job["name"]] = self.now
        self.free -= job["pods"]
        heapq.heappush(self.running, (self.now + job["run"], len(self.starts), job))

    def reservation(self) -> tuple[float, int]:
        """Return when the first job of the line can start, and the processors left by then."""
        ends = sorted(
            (max(self.now, self.starts[job["name"]] + job["walltime"]), job["pods"])
            for _, _, job in self.running
        )
        need = self.line[0]["pods"]
        for at in [self.now, *(end for end, _ in ends)]:
            room = self.free + sum(pods for end, pods in ends if end <= at)
            if room >= need:
                return at, room - need
        return math.inf, 0

    def decide(self, *, backfill: bool) -> None:
        while self.line and self.line[0]["pods"] <= self.free:
            self.start(self.line[0])
        for job in self.line[1:] if backfill else []:
            at, left = self.reservation()
            if job["pods"] <= self.free and (
                self.now + job["walltime"] <= at or job["pods"] <= left
            ):
                self.start(job)


def textbook(rows: list[Row], *, backfill: bool) -> dict[str, int]:
    machine, first = Machine(), rows[0]["arrival"]
    coming = [{**row, "arrival": row["arrival"] - first} for row in rows]
    while coming or machine.running:
        moments = [job["arrival"] for job in coming[:1]] + [end for end, _, _ in machine.running]
        machine.now = min(moments)
        while coming and coming[0]["arrival"] == machine.now:
            machine.line.append(coming.pop(0))
        while machine.running and machine.running[0][0] == machine.now:
            machine.free += heapq.heappop(machine.running)[2]["pods"]
        machine.decide(backfill=backfill)
    return machine.starts


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["strict_first_come", "easy_backfilling"])
def test_jobs_start_when_the_textbook_says(name: str, seed: int) -> None:
    (policy,) = load_plugins([str(PLUGINS / f"{name}.py")]).values()
    rows = drawn(seed)
    result = pumice.simulate(
        pumice.workload(rows),
        pumice.nodes(PROCESSORS, cpu=1),
        CONF.format(policy.name),
        plugins=[policy],
    )
    found = {row["job"].rpartition("/")[2]: row["start"] for row in result.jobs}
    assert found == textbook(rows, backfill=name == "easy_backfilling")
    assert found != textbook(rows, backfill=name != "easy_backfilling")


def test_a_gang_that_would_delay_the_first_job_waits() -> None:
    (policy,) = load_plugins([str(PLUGINS / "easy_backfilling.py")]).values()
    jobs = [("a", 0, 100, 3), ("head", 1, 50, 8), ("late", 2, 1000, 4)]
    rows = [
        {"name": name, "arrival": arrival, "run": run, "walltime": run, "pods": pods}
        for name, arrival, run, pods in jobs
    ]
    nodes, conf = pumice.nodes(10, cpu=1), CONF.format(policy.name)
    result = pumice.simulate(pumice.workload(rows), nodes, conf, plugins=[policy])
    found = {row["job"].rpartition("/")[2]: row["start"] for row in result.jobs}
    assert found == {"a": 0, "head": 100, "late": 150}
