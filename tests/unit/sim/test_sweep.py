"""A grid of simulations: what runs, in which order rows come out, and what a failure costs."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.api.conf import parse_conf
from pumice.api.objects import from_manifest
from pumice.cli import sweep as command
from pumice.cli.sweep import sweep
from pumice.errors import InputError, ServiceError
from pumice.sim.engine import Engine
from pumice.sim.shortcuts import Shortcuts
from pumice.sim.sweep import (
    DIED,
    Figures,
    GridPoint,
    Simulation,
    SweepRow,
    gather,
    grid,
    measure,
    records,
    run_point,
    sweep_dask,
    sweep_local,
    write_summary,
)
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, in_order
from tests.present import present

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "one"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


def figures(**changes: Any) -> Any:
    plain = Figures(
        jobs=1,
        finished=1,
        makespan=10.0,
        wait_mean=0.0,
        wait_p50=0.0,
        wait_p90=0.0,
        wait_p99=0.0,
        bounded_slowdown=1.0,
        utilisation={"cpu": 0.5},
        evictions=0,
        fairness=1.0,
    )
    return replace(plain, **changes)


def by_seed(point: Any) -> Any:
    return figures(makespan=float(point.seed))


def picky(point: Any) -> Any:
    if point.trace == "bad":
        raise InputError(wanted="a trace", found="bad")
    if point.trace == "broken":
        raise ZeroDivisionError("by nought")
    return figures()


def deadly(point: Any) -> Any:
    if point.trace == "deadly":
        os._exit(3)
    return figures(makespan=float(point.seed))


# The grid


def test_the_grid_goes_by_configuration_then_trace_then_seed() -> None:
    points = grid(["b", "a"], ["t", "s"], [2, 1])
    assert [(p.conf, p.trace, p.seed) for p in points] == [
        *(("b", "t", 2), ("b", "t", 1), ("b", "s", 2), ("b", "s", 1)),
        *(("a", "t", 2), ("a", "t", 1), ("a", "s", 2), ("a", "s", 1)),
    ]


def test_what_is_named_twice_runs_once() -> None:
    assert len(grid(["a", "a"], ["t", "t"], [1, 1])) == 1


def test_without_configuration_and_seed_the_built_in_one_runs_with_seed_0() -> None:
    assert grid([], ["t"], []) == [GridPoint("", "t", 0)]


# Running


@pytest.mark.parametrize(
    ("trace", "said"),
    [("bad", "expected a trace, got 'bad'"), ("broken", "ZeroDivisionError: by nought (test_")],
)
def test_a_run_that_fails_is_a_row_with_its_error_and_its_time(trace: str, said: str) -> None:
    row = run_point(GridPoint("", trace, 0), picky)
    assert row.figures is None
    assert row.error.startswith(said)
    assert present(row.wall_seconds) >= 0
    assert present(row.cpu_seconds) >= 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_stops_no_other_run(jobs: int) -> None:
    points = grid([], ["good", "bad", "fine"], [1, 2])
    rows = gather(sweep_local(points, picky, jobs=jobs))
    assert [row.point for row in rows] == points
    assert [bool(row.error) for row in rows] == [False, False, True, True, False, False]


def test_a_process_that_dies_costs_its_own_row_alone() -> None:
    points = grid([], ["good", "deadly"], [1, 2])
    rows = gather(sweep_local(points, deadly, jobs=2))
    assert [row.error for row in rows] == ["", "", DIED, DIED]
    assert [present(row.figures).makespan for row in rows[:2]] == [1.0, 2.0]


def test_rows_are_in_the_order_of_the_grid_whoever_comes_first() -> None:
    points = grid([], ["t"], [3, 1, 2])
    done = [(n, run_point(point, by_seed)) for n, point in enumerate(points)]
    heard: list[Any] = []
    rows = gather(reversed(done), heard.append)
    assert [present(row.figures).makespan for row in rows] == [3.0, 1.0, 2.0]
    assert [present(row.figures).makespan for row in heard] == [2.0, 1.0, 3.0]


def test_a_dask_address_where_nobody_listens_is_an_error_that_names_it() -> None:
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with pytest.raises(ServiceError, match=r"127\.0\.0\.1:9: no Dask scheduler answers"):
        list(sweep_dask([GridPoint("", "t", 0)], by_seed, "tcp://127.0.0.1:9", patience=0.2))


# Figures


def outcome(*jobs: Any) -> Any:
    workload = Workload(name="tiny", format="test", jobs=in_order(jobs))
    conf = parse_conf(CONF)
    every_job = Shortcuts(
        leave_jobs_out=False, await_events=True, refusals_last=True, settles=True, evicts=False
    )
    return Engine(workload, [from_manifest(NODE)], conf, shortcuts=every_job).run()


def job(name: Any, arrival: Any, seconds: Any, cpu: str = "4", queue: str = "default") -> Any:
    spec = PodSpecs().spec({"cpu": cpu, "memory": "2Gi"})
    return JobSpec(name, arrival, (TaskSpec(spec, 1, seconds),), 1, queue=queue)


def test_a_job_alone_uses_what_it_asks_for_and_waits_for_nothing() -> None:
    found = measure(outcome(job("a", 0.0, 100.0, cpu="2")))
    assert (found.jobs, found.finished, found.evictions) == (1, 1, 0)
    assert found.makespan == pytest.approx(100.0, abs=2.0)
    assert found.wait_p99 == pytest.approx(0.0, abs=2.0)
    assert found.utilisation["cpu"] == pytest.approx(0.5, abs=0.02)
    assert found.utilisation["memory"] == pytest.approx(0.25, abs=0.02)
    assert found.fairness is None  # no other queue to share with


def test_a_queue_that_waits_while_another_runs_is_less_fair() -> None:
    found = measure(outcome(job("a", 0.0, 100.0, queue="x"), job("b", 0.0, 100.0, queue="y")))
    assert found.makespan == pytest.approx(200.0, abs=4.0)
    assert found.wait_p99 == pytest.approx(100.0, abs=4.0)
    assert found.fairness == 0.5  # while both ask, one has everything


def test_runs_that_finished_other_jobs_are_not_compared() -> None:
    rows = [
        SweepRow(point=GridPoint(conf, "t", 0), figures=figures(jobs=2, finished=n, makespan=n))
        for conf, n in (("a", 2), ("b", 1))
    ]
    found = records(rows)[1]["differences"]
    assert (found["finished"], found["wait_p50"], found["makespan"]) == (-1, None, None)


def test_a_job_that_never_fits_leaves_nothing_to_measure() -> None:
    found = measure(outcome(job("huge", 0.0, 10.0, cpu="64")))
    assert (found.jobs, found.finished) == (1, 0)
    assert (found.makespan, found.wait_p50, found.fairness) == (None, None, None)
    assert found.utilisation == {}


# From files to figures


def two_jobs(point: Any) -> Any:
    jobs = in_order((job("a", 0.0, 100.0), job("b", 0.0, 50.0)))
    workload = Workload(name=point.trace, format="test", jobs=jobs)
    return workload, [from_manifest(NODE)]


def test_a_point_runs_under_its_configuration_and_the_same_seed_gives_the_same_figures(
    tmp_path: Path,
) -> None:
    conf = tmp_path / "a.conf"
    conf.write_text(CONF, encoding="utf-8")
    points = grid([str(conf)], ["t"], [5])
    first, second = (gather(sweep_local(points, Simulation(two_jobs), jobs=1)) for _ in range(2))
    assert first[0].error == ""
    assert present(first[0].figures).finished == 2
    assert present(first[0].figures).makespan == pytest.approx(150.0, abs=4.0)
    assert first[0].figures == second[0].figures


def test_a_configuration_that_cannot_be_read_or_used_is_the_error_of_its_rows(
    tmp_path: Path,
) -> None:
    bad = tmp_path / "bad.conf"
    bad.write_text("actions: [", encoding="utf-8")
    points = grid([str(tmp_path / "absent.conf"), str(bad), ""], ["t"], [0])
    absent, broken, fine = gather(sweep_local(points, Simulation(two_jobs), jobs=1))
    assert "absent.conf: expected a readable file" in absent.error
    assert "bad.conf" in broken.error
    assert (fine.error, present(fine.figures).jobs) == ("", 2)


# Files


def test_both_files_hold_every_row_failed_ones_too(tmp_path: Path) -> None:
    rows = [
        SweepRow(
            point=GridPoint("a.conf", "t", 1), figures=figures(), wall_seconds=1.0, cpu_seconds=0.5
        ),
        SweepRow(
            point=GridPoint("", "t", 1), error="no such file", wall_seconds=0.1, cpu_seconds=0.1
        ),
    ]
    as_csv, as_json = write_summary(rows, tmp_path / "new")
    assert json.loads(as_json.read_text(encoding="utf-8")) == records(rows)
    with as_csv.open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["configuration"], first["utilisation_cpu"], first["error"]) == (
        *("a.conf", "0.5", ""),
    )
    assert (second["configuration"], second["makespan"], second["error"]) == (
        *("built-in", "", "no such file"),
    )


# The command


@pytest.fixture
def pumice_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call the command in a folder with a trace; a trace named `bad` cannot be read."""

    def load(point: Any) -> Any:
        if point.trace == "bad":
            raise InputError(wanted="a trace", file="bad")
        return two_jobs(point)

    monkeypatch.setattr(command, "load_point", load)
    monkeypatch.chdir(tmp_path)
    for name in ("good", "bad"):
        (tmp_path / name).write_text("", encoding="utf-8")
    return lambda *arguments: CliRunner().invoke(sweep, arguments)


def test_the_command_prints_one_table_and_writes_both_files(
    pumice_sweep: Any, tmp_path: Path
) -> None:
    result = pumice_sweep("--trace", "good", "--seeds", "1,3-4", "-j", "1", "--output", "out")
    assert result.exit_code == 0, result.output
    assert "3 runs done, 0 failed" in result.output
    assert "makespan" in result.output
    rows = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert [row["seed"] for row in rows] == [1, 3, 4]
    assert (tmp_path / "out" / "summary.csv").is_file()


def test_the_command_shows_a_failed_run_beside_the_others_and_fails(pumice_sweep: Any) -> None:
    result = pumice_sweep("--trace", "bad", "--trace", "good", "-j", "1")
    assert result.exit_code == 1
    assert "1 run done, 1 failed" in result.output
    assert "expected a trace" in result.output


@pytest.mark.parametrize("seeds", ["", "x", "1-", "5-2"])
def test_seeds_that_are_no_numbers_are_refused(pumice_sweep: Any, seeds: str) -> None:
    result = pumice_sweep("--trace", "good", "--seeds", seeds)
    assert result.exit_code == 2
    assert "got" in result.output


def test_processes_and_a_dask_cluster_exclude_each_other(pumice_sweep: Any) -> None:
    assert pumice_sweep("--trace", "good", "-j", "2", "--dask", "tcp://x:1").exit_code == 2
