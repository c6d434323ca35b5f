"""`pumice sweep` from files to its table, in processes of this machine."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.cli.sweep import load_point
from pumice.sim.sweep import GridPoint

ROOT = Path(__file__).parents[3]
TRACES = ROOT / "tests" / "data" / "traces"
EXAMPLES = ROOT / "examples" / "sim"


def sweep(*arguments: Any) -> Any:
    return CliRunner().invoke(main, ["sweep", *map(str, arguments)])


def rows_of(folder: Any) -> Any:
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def without_times(row: Any) -> Any:
    return {name: row[name] for name in row if name not in ("wall_seconds", "cpu_seconds")}


def test_a_grid_in_two_processes_gives_the_rows_of_one_process(tmp_path: Path) -> None:
    grid = (
        *("--conf", EXAMPLES / "default.conf", "--seeds", "0-1"),
        *("--trace", TRACES / "philly.csv", "--trace", TRACES / "small.swf"),
    )
    for jobs in (1, 2):
        result = sweep(*grid, "-j", jobs, "--output", tmp_path / str(jobs))
        assert result.exit_code == 0, result.output
        assert "4 runs done, 0 failed" in result.output
    one, two = (rows_of(tmp_path / name) for name in ("1", "2"))
    assert [without_times(row) for row in one] == [without_times(row) for row in two]
    assert [(Path(row["trace"]).name, row["seed"]) for row in one] == [
        *(("philly.csv", 0), ("philly.csv", 1), ("small.swf", 0), ("small.swf", 1))
    ]
    assert [row["finished"] for row in one] == [3, 3, 5, 5]


def test_a_sweep_and_a_simulation_tell_the_same_of_one_point(tmp_path: Path) -> None:
    trace = EXAMPLES / "manifests.yaml"
    assert sweep("--trace", trace, "-j", "1", "--output", tmp_path / "sweep").exit_code == 0
    simulated = CliRunner().invoke(main, ["sim", "--trace", str(trace), "-o", str(tmp_path)])
    assert simulated.exit_code == 0, simulated.output
    (row,), (found,) = rows_of(tmp_path / "sweep"), rows_of(tmp_path)["configurations"]
    for mine, theirs in (
        (row["makespan"], found["makespan"]),
        (row["wait_mean"], found["wait"]["mean"]),
        (row["bounded_slowdown"], found["bounded_slowdown"]["mean"]),
        (row["wait_p50"], found["wait"]["p50"]),
        (row["wait_p99"], found["wait"]["p99"]),
        (row["utilisation"]["cpu"], found["utilisation"]["cpu"]),
    ):
        assert mine == pytest.approx(theirs, abs=1e-5)


def test_a_trace_that_cannot_be_read_is_a_row_with_its_place(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("timestamp,duration,num_gpus\n1,x,1\n", encoding="utf-8")
    result = sweep("--trace", bad, "--trace", TRACES / "philly.csv", "-j", 1, "--output", tmp_path)
    assert result.exit_code == 1
    assert "1 run done, 1 failed" in result.output
    with (tmp_path / "summary.csv").open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert "bad.csv:2: duration: expected a number" in first["error"]
    assert (second["error"], second["finished"]) == ("", "3")


def test_the_seed_of_a_point_draws_its_workload() -> None:
    trace = str(EXAMPLES / "synthetic.yaml")
    first, again, other = (load_point(GridPoint("", trace, seed))[0] for seed in (1, 1, 2))
    assert first.jobs == again.jobs
    assert first.jobs != other.jobs


def test_nodes_and_the_kind_of_trace_hold_for_every_point() -> None:
    nodes, trace = str(TRACES / "openb_nodes.csv"), str(TRACES / "openb_pods.csv")
    workload, cluster = load_point(GridPoint("", trace, 0, nodes, "openb"))
    assert (workload.format, len(list(cluster))) == ("openb", 3)


def test_a_kind_of_trace_that_is_not_known_is_refused() -> None:
    result = sweep("--trace", TRACES / "philly.csv", "--format", "tarot")
    assert result.exit_code == 2
    assert "tarot" in result.output


def test_figures_have_units_and_differences_from_the_first_configuration(tmp_path: Path) -> None:
    text = (
        'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'
    )
    first, second = tmp_path / "a.conf", tmp_path / "b.conf"
    first.write_text(text)
    second.write_text(f"{text}  - name: proportion\n")
    grid = ("--conf", first, "--conf", second, "--trace", EXAMPLES / "synthetic.yaml", "-j", 1)
    printed = sweep(*grid).stdout.splitlines()
    (heading, before, after) = (printed[n].split("   ") for n in (0, 2, 3))
    names = [cell.strip() for cell in heading if cell.strip()]
    assert {"makespan (s)", "mean wait (s)", "p99 (s)", "wall (s)", "cpu (s)"} < set(names)
    found = json.loads(sweep(*grid, "-o", "json").stdout)[1]["differences"]
    assert f" ({found['bounded_slowdown']:+.2f})" in printed[3]
    assert f" ({found['fairness']:+.3f})" in printed[3]
    assert ("(" in "".join(before), "(" in "".join(after)) == (False, True)
    assert printed[4] == f"in brackets: the difference from {first}"
