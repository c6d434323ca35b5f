"""Plugin reservation starts every job when the textbooks' algorithms do, and keeps its promises."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pumice
from pumice.api.conf import parse_conf
from pumice.framework.session_state import ProcessMemory
from pumice.scheduler import Scheduler
from pumice.sim.engine import Engine
from tests.properties.textbook import Job, Machine

PROCESSORS = 16
MODES = ("strict", "easy", "conservative")


def conf(mode: str, more: str = "") -> str:
    return (
        'actions: "enqueue, allocate"\ntiers:\n- plugins:\n'
        f"  - {{name: reservation, arguments: {{reservation.mode: {mode}, reservation.depth: "
        f"{100_000 if mode == 'conservative' else 1}}}}}\n  - name: gang\n{more}"
    )


def drawn(seed: int, n: int, *, loose: float) -> list[Job]:
    """Draw jobs of every width whose bounds are up to so many times their run times."""
    random = np.random.default_rng(seed)
    arrivals = np.cumsum(random.integers(0, 250, n))
    runs = random.lognormal(5, 1.2, n).clip(1, 5000).astype(int) + 1
    return [
        Job(
            name=f"job-{i:05d}",
            arrival=int(arrivals[i] - arrivals[0]),
            run=int(runs[i]),
            width=int(random.integers(1, PROCESSORS + 1)),
            bound=int(runs[i] * random.uniform(1, loose)),
        )
        for i in range(n)
    ]


def rows_of(jobs: list[Job], queues: int = 1) -> list[dict[str, Any]]:
    return [
        {
            "name": job.name,
            "arrival": job.arrival,
            "run": job.run,
            "pods": job.width,
            "walltime": job.bound,
            "queue": f"q{at % queues}",
        }
        for at, job in enumerate(jobs)
    ]


def simulated(rows: list[dict[str, Any]], nodes: Any, policy: str) -> Mapping[str, float]:
    result = pumice.simulate(pumice.workload(rows), nodes, policy)
    return {row["job"].rpartition("/")[2]: row["start"] for row in result.jobs}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("seed", "loose", "queues"), [(0, 1, 1), (1, 4, 1), (2, 4, 3)])
def test_jobs_start_when_the_textbook_says(mode: str, seed: int, loose: float, queues: int) -> None:
    jobs = drawn(seed, 45, loose=loose)
    found = simulated(rows_of(jobs, queues), pumice.nodes(PROCESSORS, cpu=1), conf(mode))
    Machine(PROCESSORS, mode).play(jobs)
    assert found == {job.name: job.start for job in jobs}


def test_the_modes_differ() -> None:
    starts = []
    for mode in MODES:
        jobs = drawn(1, 60, loose=4)
        machine = Machine(PROCESSORS, mode)
        machine.play(jobs)
        starts.append([job.start for job in jobs])
        late = [job for job in jobs if job.start > machine.promised.get(job.name, np.inf)]
        assert not late
    assert starts[0] != starts[1] != starts[2]


@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_large_nodes_are_shared_as_processors_are(mode: str) -> None:
    jobs = drawn(3, 40, loose=4)
    found = simulated(rows_of(jobs), pumice.nodes(2, cpu=PROCESSORS // 2), conf(mode))
    Machine(PROCESSORS, mode).play(jobs)
    assert found == {job.name: job.start for job in jobs}


@pytest.mark.parametrize("mode", ["easy", "conservative"])
@pytest.mark.parametrize("seed", range(2))
def test_no_job_starts_later_than_it_was_first_promised(mode: str, seed: int) -> None:
    """Two resources, three queues, pods of several sizes, large nodes."""
    random = np.random.default_rng(seed)
    rows = [
        {**row, "cpu": int(random.integers(1, 4)), "memory": f"{random.integers(1, 6)}Gi"}
        for row in rows_of([replace(j, width=1 + j.width % 6) for j in drawn(seed, 40, loose=3)], 3)
    ]
    workload = pumice.workload(rows)
    policy = parse_conf(conf(mode, "  - name: predicates\n"))
    scheduler, memory = Scheduler(policy), ProcessMemory()
    scheduler._process = memory
    engine = Engine(workload, [*pumice.nodes(3, cpu=6, memory="12Gi")], policy, scheduler=scheduler)
    first: dict[str, float] = {}
    while engine.step():
        first = {**memory.plugins.get("reservation", {}).get("starts", {}), **first}
    starts = {run.key: engine.sim_cluster.epoch + run.started for run in engine.runs}
    assert first
    assert not {key: (starts[key], at) for key, at in first.items() if starts[key] > at}
