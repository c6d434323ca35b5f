"""Plugin reservation starts every job when the textbooks' algorithms do, and keeps its promises."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pumice
from pumice.api.annotations import REVOCABLE_ZONE
from pumice.api.objects import from_manifest
from pumice.framework.future.demands import Demands
from pumice.framework.session import Session
from pumice.sim.engine import Engine
from pumice.testing.builders import node, pod, pod_group, queue
from tests.properties import promised
from tests.properties.textbook import Job, Machine

PROCESSORS = 16
MODES = ("strict", "easy", "conservative")


def conf(mode: str, more: str = "", depth: int = 0) -> str:
    return (
        'actions: "enqueue, allocate"\ntiers:\n- plugins:\n'
        f"  - {{name: reservation, arguments: {{reservation.mode: {mode}, reservation.depth: "
        f"{depth}}}}}\n  - name: gang\n{more}"
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


# Never later than promised, with all that decides placement


@pytest.mark.sample(9)
@pytest.mark.parametrize("mode", ["easy", "conservative"])
@pytest.mark.parametrize("seed", range(2000, 2028))
def test_no_job_starts_later_than_it_was_first_promised(mode: str, seed: int) -> None:
    """Except a first job of `easy` that another one of higher order took the place of."""
    draw = promised.drawn(seed, promised.features(seed))
    assert promised.late_starts(draw, mode) == {}


@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_a_job_without_a_start_holds_nobody_back_and_takes_no_promise(mode: str) -> None:
    """It asks for more nodes than there are, of one kind among several."""
    draw = promised.drawn(2, ["marks"])
    other, rest = draw.jobs[0], draw.jobs[1:]
    roles = [(9, other["roles"][0][1])]
    never = {**other, "name": "a-never", "arrival": rest[0]["arrival"], "roles": roles}
    starts = []
    for jobs in ([never, *rest], rest):
        draw.jobs = jobs
        engine = Engine(
            promised.workload(draw),
            map(from_manifest, (*draw.nodes, *draw.queues)),
            promised.conf_of(draw, mode),
        )
        engine.run()
        starts.append({run.key: run.started for run in engine.runs if run.started >= 0})
    assert starts[0] == starts[1]
    assert starts[0]


@pytest.mark.sample(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("like", ["", "roles", "marks"])
@pytest.mark.parametrize(("depth", "loose"), [(0, 3), (3, -2)])
def test_jobs_without_a_turn_start_as_they_would(
    mode: str, like: str, depth: int, loose: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where few jobs are promised a start, and runs outlive their bounds."""
    draw = promised.drawn(2, [like] if like else [], 12)
    for job in draw.jobs:
        job["bound"] *= 1 if loose > 0 else 0.5
    policy = promised.conf_of(draw, mode, f", reservation.depth: {depth}")

    def starts() -> list[float]:
        cluster = map(from_manifest, (*draw.nodes, *draw.queues))
        engine = Engine(promised.workload(draw), cluster, policy)
        engine.run()
        return [run.started for run in engine.runs]

    found = starts()
    monkeypatch.setattr(Session, "refused_ahead", lambda *_: [])
    np.testing.assert_array_equal(found, starts())


@pytest.mark.parametrize(("closes", "promised_at"), [("10:30", None), ("12:00", 3600.0)])
def test_no_start_is_promised_on_nodes_whose_window_is_over_then(
    closes: str, promised_at: float | None, tmp_path: Path
) -> None:
    """`old` runs until 11:00 on one of two nodes, `wide` needs both."""
    zone = {REVOCABLE_ZONE: "rz1"}
    objects = [queue("default"), *(node(f"n{i}", cpu=1, labels=zone) for i in range(2))]
    for name, size, run_s in (("old", 1, 7200), ("wide", 2, 600)):
        runs = {"pumice.dev/run-seconds": str(run_s)}
        objects.append(pod_group(name, min_member=size, phase="Inqueue", annotations=runs))
        where: Any = {"node": "n0"} if name == "old" else {}
        objects += [
            pod(f"{name}-{i}", group=name, cpu=1, annotations={REVOCABLE_ZONE: "*"}, **where)
            for i in range(size)
        ]
    started = [each for each in objects if each["metadata"]["name"] == "old-0"]
    started[0]["status"]["startTime"] = "2026-01-15T09:00:00Z"
    hours = f"{{tdm.revocable-zone.rz1: '09:00-{closes}'}}"
    tdm = f"  - name: predicates\n  - {{name: tdm, arguments: {hours}}}\n"
    file = tmp_path / "cluster.json"
    content = {"objects": objects, "conf": conf("easy", tdm), "now": "2026-01-15T10:00:00Z"}
    file.write_text(json.dumps(content), encoding="utf-8")
    found = pumice.explain(pumice.load(file), "wide", remedies=False).to_dict()["reservation"]
    assert (found and found["in_s"]) == promised_at
