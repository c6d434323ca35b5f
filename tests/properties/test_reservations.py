"""Plugin reservation starts every job when the textbooks' algorithms do, and keeps its promises."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import pumice
from pumice.api.conf import parse_conf
from pumice.api.meta import KubeObject
from pumice.api.objects import PodSpec, from_manifest
from pumice.api.pods import Toleration
from pumice.framework.future.demands import Demands
from pumice.framework.session import PROMISES, Session
from pumice.framework.session_state import ProcessMemory
from pumice.scheduler import Scheduler
from pumice.sim.engine import Engine
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, expected, in_order
from pumice.testing.builders import node, queue
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
    """Draw jobs of every width whose bounds are up to so many times their run times.

    Below 0: up to so many times, or as little as half of them.
    """
    random = np.random.default_rng(seed)
    arrivals = np.cumsum(random.integers(0, 250, n))
    runs = random.lognormal(5, 1.2, n).clip(1, 5000).astype(int) + 1
    return [
        Job(
            name=f"job-{i:05d}",
            arrival=int(arrivals[i] - arrivals[0]),
            run=int(runs[i]),
            width=int(random.integers(1, PROCESSORS + 1)),
            bound=int(runs[i] * random.uniform(1 if loose > 0 else 0.5, abs(loose))) or 1,
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


def simulated(
    rows: list[dict[str, Any]], nodes: Any, policy: str, **options: Any
) -> Mapping[str, float]:
    result = pumice.simulate(pumice.workload(rows), nodes, policy, **options)
    return {row["job"].rpartition("/")[2]: row["start"] for row in result.jobs}


@pytest.mark.sample(5)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("seed", "loose", "queues", "period"), [(0, 1, 1, 1), (1, 4, 1, 0), (2, 4, 3, 1), (4, -2, 1, 1)]
)
def test_jobs_start_when_the_textbook_says(
    mode: str, seed: int, loose: float, queues: int, period: float
) -> None:
    """Also where runs outlive their bounds."""
    jobs = drawn(seed, 45, loose=loose)
    nodes = pumice.nodes(PROCESSORS, cpu=1)
    found = simulated(rows_of(jobs, queues), nodes, conf(mode), period=period)
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


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_large_nodes_are_shared_as_processors_are(mode: str) -> None:
    jobs = drawn(3, 40, loose=4)
    found = simulated(rows_of(jobs), pumice.nodes(2, cpu=PROCESSORS // 2), conf(mode))
    Machine(PROCESSORS, mode).play(jobs)
    assert found == {job.name: job.start for job in jobs}


@pytest.mark.sample(3)
@pytest.mark.parametrize("mode", ["easy", "conservative"])
@pytest.mark.parametrize("counted", [True, False])
def test_counting_and_playing_decide_alike(
    mode: str, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where pods differ in what is never scarce."""
    if not counted:
        monkeypatch.setattr(Demands, "_is_plain", lambda *_: False)
    jobs = drawn(5, 30, loose=4)
    rows = [{**row, "cpu": 1, "memory": f"{1 + at % 3}Gi"} for at, row in enumerate(rows_of(jobs))]
    found = simulated(rows, pumice.nodes(PROCESSORS, cpu=1, memory="4Gi"), conf(mode))
    Machine(PROCESSORS, mode).play(jobs)
    assert found == {job.name: job.start for job in jobs}


@pytest.mark.parametrize("mode", MODES)
def test_jobs_without_a_turn_start_as_they_would(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where few jobs are promised a start, and runs outlive their bounds."""
    rows = rows_of(drawn(7, 40, loose=-3), queues=2)
    policy = conf(mode).replace("depth: 100000", "depth: 3").replace("depth: 1}", "depth: 2}")
    nodes = pumice.nodes(PROCESSORS, cpu=1)
    found = simulated(rows, nodes, policy)
    monkeypatch.setattr(Session, "refused_ahead", lambda *_: [])
    assert found == simulated(rows, nodes, policy)


# Never later than promised


@dataclass(frozen=True)
class Drawn:
    """What a cluster has besides pods of several sizes, with two resources, in three queues."""

    plugins: str = ""
    queue: dict[str, Any] = field(default_factory=dict)
    """Fields of each queue."""
    roles: int = 1
    widest: int = 6
    """Pods of a job, at most."""
    marked: bool = False
    """Whether nodes differ, have labels and taints, and pods select and tolerate them."""


LIMITS = {"capability": {"cpu": 14, "memory": "30Gi"}}
CLUSTERS = {
    "sizes": Drawn(),
    "capacity": Drawn("  - name: capacity\n"),
    "capacity with limits": Drawn("  - name: capacity\n", LIMITS),
    "proportion with limits": Drawn("  - name: proportion\n", LIMITS, widest=2),
    "roles": Drawn(roles=3),
    "selectors and taints": Drawn(marked=True, roles=2),
}


def pods_of(random: np.random.Generator, like: Drawn) -> PodSpec:
    amounts = {"cpu": str(random.integers(1, 4)), "memory": f"{random.integers(1, 6)}Gi"}
    more: dict[str, Any] = {}
    if like.marked and random.random() < 0.5:
        more["node_selector"] = {"half": str(random.choice(["left", "right"]))}
    if like.marked and random.random() < 0.7:
        more["tolerations"] = (Toleration(key="reserved", operator="Exists"),)
    return PodSpecs().spec(amounts, **more)


def drawn_jobs(seed: int, n: int, like: Drawn) -> Workload:
    random = np.random.default_rng(seed)
    jobs = []
    for at, job in enumerate(drawn(seed, n, loose=3)):
        each = max(1, (1 + job.width % like.widest) // like.roles)
        tasks = [
            TaskSpec(pods_of(random, like), each, job.run, f"role-{role}")
            for role in range(like.roles)
        ]
        marks = expected(job.bound)
        size = each * like.roles
        jobs.append(
            JobSpec(job.name, job.arrival, tuple(tasks), size, f"q{at % 3}", annotations=marks)
        )
    return Workload(name="drawn", format="jobs", jobs=in_order(jobs))


def drawn_nodes(like: Drawn) -> list[KubeObject]:
    sizes = [(6, 12, "left"), (4, 16, "right"), (8, 10, "right")] if like.marked else [(6, 12, "")]
    taints = [{"key": "reserved", "value": "yes", "effect": "NoSchedule"}]
    found = []
    for at in range(3):
        cpu, memory, half = sizes[at % len(sizes)]
        marks = taints if like.marked and at == 2 else []
        labels = {"half": half} if half else {}
        found.append(node(f"node-{at}", cpu=cpu, memory=f"{memory}Gi", labels=labels, taints=marks))
    found += [queue(f"q{at}", **like.queue) for at in range(3)]
    return [*map(from_manifest, found)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("mode", ["easy", "conservative"])
@pytest.mark.parametrize("like", CLUSTERS)
@pytest.mark.parametrize("seed", range(1))
def test_no_job_starts_later_than_it_was_first_promised(mode: str, like: str, seed: int) -> None:
    """Except a first job of `easy` that another one of higher order took the place of."""
    cluster = CLUSTERS[like]
    policy = parse_conf(conf(mode, "  - name: predicates\n" + cluster.plugins))
    scheduler, memory = Scheduler(policy), ProcessMemory()
    scheduler._process = memory
    engine = Engine(
        drawn_jobs(seed, 30, cluster), drawn_nodes(cluster), policy, scheduler=scheduler
    )
    first: dict[str, float] = {}
    late: dict[str, tuple[float, float]] = {}
    while engine.step():
        promised = memory.plugins.get(PROMISES, {}).get("starts", {})
        started = {run.key: run.started for run in engine.runs if math.isfinite(run.started)}
        for key in [*first]:
            if key in started:
                at, since = first.pop(key), engine.sim_cluster.epoch
                late |= {key: (started[key], at - since)} if since + started[key] > at else {}
            elif key not in promised and mode == "easy":
                del first[key]
        first = {key: at for key, at in promised.items() if key not in started} | first
    assert not late
    assert not first
