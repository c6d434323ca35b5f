"""Nodes by number, nodes by value, and sums that are written when they are read, change nothing."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.kinds import Manifest
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework.queue_limits.weighted import WeightedLimits, queues_with_jobs
from pumice.sim.bounds import Bounds
from pumice.sim.engine import Engine
from pumice.sim.job_run import Outcome
from pumice.sim.kept_fits import KeptPlacing
from pumice.sim.node_states import NodeStates, RankedNodes
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, in_order
from pumice.testing import node, pod, queue
from pumice.testing.samples import snapshot_of
from tests.unit.sim.made import kube_objects

Generator = np.random.Generator
Ranked = Callable[[KeptPlacing, Hashable, Task], RankedNodes | None]
MACHINES = [node(f"n{i}", cpu=(4, 8)[i % 2], memory="32Gi") for i in range(9)]
QUEUES = [queue("q1", weight=1), queue("q2", weight=3), queue("q3", weight=1)]


def workload(rng: Generator, *, memory: str = "1Gi") -> Workload:
    """Gangs of two sizes of pods, in bursts; the last ones wait for room."""
    made, at, jobs = PodSpecs(), 0.0, []
    specs = [made.spec({"cpu": cpu, "memory": "1Gi"}) for cpu in ("500m", "2")]
    specs += [made.spec({"cpu": "1"}, node_selector={"kubernetes.io/hostname": "n1"})]
    if memory != "1Gi":
        specs.append(made.spec({"cpu": "1", "memory": memory}))
    for number in range(80):
        at += float(rng.choice([0.0, 0.4, 1.0, 3.0]))
        size = int(rng.choice([1, 1, 2, 5]))
        part = TaskSpec(specs[int(rng.integers(len(specs)))], size, float(rng.choice([3.0, 20.0])))
        queue_name = str(rng.choice(["q1", "q2", "q3"]))
        jobs.append(JobSpec(f"job-{number}", at, (part,), size, queue=queue_name))
    return Workload(name="drawn", format="test", jobs=in_order(jobs))


def engine(seed: int, *, memory: str = "1Gi", machines: list[Manifest] = MACHINES) -> Engine:
    jobs = workload(np.random.default_rng(seed), memory=memory)
    return Engine(jobs, kube_objects(*machines, *QUEUES), parse_conf(DEFAULT_CONF), seed=seed)


def reported(outcome: Outcome) -> list[tuple[Any, ...]]:
    log = outcome.log
    columns = (log.time, log.kind, log.job, log.task, log.node)
    events = list(zip(*(column.tolist() for column in columns), strict=True))
    return [*events, *((run.spec.name, run.reason) for run in outcome.runs)]


def noted_ranks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note for each pick whether it was one of ranked nodes."""
    noted: list[bool] = []
    ranked: Ranked = KeptPlacing.ranked

    def noting(placing: KeptPlacing, key: Hashable, task: Task) -> RankedNodes | None:
        found = ranked(placing, key, task)
        noted.append(found is not None)
        return found

    monkeypatch.setattr(KeptPlacing, "ranked", noting)
    return noted


@pytest.mark.parametrize("seed", range(3))
def test_ranked_nodes_are_picked_as_by_asking_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = noted_ranks(monkeypatch)
    found = reported(engine(seed).run())
    assert sum(noted) > 50
    assert all(noted)
    monkeypatch.setattr(KeptPlacing, "ranked", lambda *_: None)
    assert reported(engine(seed).run()) == found


@pytest.mark.parametrize(
    ("memory", "machines"),
    [
        ("70Ti", [*MACHINES, node("large", cpu=8, memory="900Ti")]),
        ("1Gi", [*MACHINES, node("large", cpu=8, memory="900Ti")]),
    ],
)
def test_amounts_whose_sums_are_rounded_are_written_at_once(
    memory: str, machines: list[Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = noted_ranks(monkeypatch)
    found = engine(1, memory=memory, machines=machines)
    while found.step():
        assert not found.sim_cluster.node_states._due
    assert not any(noted)


@pytest.mark.parametrize("seed", range(2))
def test_tables_are_complete_once_all_that_is_due_is_written(seed: int) -> None:
    found = engine(seed)
    while found.step():
        found.sim_cluster.write_due()
        check(found.sim_cluster.ingest.settle())


def test_what_is_due_at_different_times_makes_no_difference() -> None:
    often = engine(0)
    while often.step():
        often.sim_cluster.write_due()
    assert reported(often.run()) == reported(engine(0).run())


def test_a_job_that_a_session_started_goes_on_without_rows() -> None:
    """Only the first cycle takes a session: there plugins prepare."""
    spec = PodSpecs().spec({"cpu": "1", "memory": "1Gi"})
    parts = (TaskSpec(spec, 2, 1000.0),), (TaskSpec(spec, 1, 10.0),)
    jobs = [JobSpec(f"j{i}", 20.0 * i, parts[min(i, 1)], 2 - min(i, 1)) for i in range(5)]
    load = Workload(name="drawn", format="test", jobs=in_order(jobs))
    found = Engine(load, kube_objects(*MACHINES), parse_conf(DEFAULT_CONF))
    had_rows = []
    while found.step():
        had_rows.append((found.now, found.sim_cluster.has_rows))
    assert any(rows for now, rows in had_rows if now == 0.0)
    assert not any(rows for now, rows in had_rows if now > 20.0)
    ended = [run.ended for run in found.runs]
    assert ended == [1000.0, 30.0, 50.0, 70.0, 90.0]


def test_demand_is_met_by_kept_sums_as_by_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[bool] = []
    plain = Bounds.meets_demand

    def both(bounds: Bounds, limits: WeightedLimits, row: int) -> bool:
        found = plain(bounds, limits, row)
        bounds._cluster.write_due()
        queues, busy = bounds.snapshot.queues, queues_with_jobs(bounds.snapshot).tolist()
        asked = queues.allocated_or_pipelined[:, row] + queues.pending[:, row]
        assert found is limits.meets_demand(row, asked.tolist(), busy)
        answers.append(found)
        return found

    monkeypatch.setattr(Bounds, "meets_demand", both)
    engine(2).run()
    assert {True, False} == {*answers}


def snapshot_with_shape() -> Snapshot:
    return snapshot_of([*MACHINES, queue("q"), pod("a", cpu="1", memory="1Gi")])


def test_nodes_of_the_same_amounts_have_the_same_number() -> None:
    snapshot = snapshot_with_shape()
    states, shape = NodeStates(snapshot), snapshot.shapes[0]
    assert states.follow()
    empty = [*states.numbers()]
    assert empty == [0, 1, 0, 1, 0, 1, 0, 1, 0]
    loaded = states.add(shape, 0)
    assert loaded not in empty
    assert not snapshot.nodes.view_pods[2]
    assert states.add(shape, 2) == loaded
    assert not snapshot.nodes.view_pods[2]  # the tables learn of it only when they are read
    states.count(shape, [0, 2], -1)
    assert states.numbers() == empty
    assert states.moved == [0, 2, 0, 2]


def test_a_node_is_numbered_again_if_the_tables_change() -> None:
    snapshot = snapshot_with_shape()
    states = NodeStates(snapshot)
    states.follow()
    states.numbers()
    states.touch(1)
    snapshot.hold(snapshot.shapes[0], [1], 1)
    assert states.numbers_of([1, 3]) == {1: 2, 3: 1}


def test_numbers_are_made_again_for_other_nodes() -> None:
    snapshot = snapshot_with_shape()
    states = NodeStates(snapshot)
    states.follow()
    era = states.era
    states.count(snapshot.shapes[0], [0], 1)
    states.follow()
    assert states.era == era
    snapshot.nodes.generation += 1
    states.follow()
    assert states.era == era + 1
    assert states.moved == []
    assert snapshot.nodes.view_pods[0] == 1
