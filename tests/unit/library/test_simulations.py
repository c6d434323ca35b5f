"""Simulations for programs: the same figures as the command, and workloads made of rows."""

import csv
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from click.testing import CliRunner

import pumice
from pumice.cli.main import main
from pumice.errors import InputError
from pumice.plugin import Column, Jobs, Plugin

EXAMPLES = Path(__file__).parents[3] / "examples" / "sim"
FIFO = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
"""
SHORTEST = FIFO.replace("name: gang", "name: shortest\n  - name: gang")

mpl.use("agg")


class Shortest(Plugin, name="shortest"):
    """The job that asks for the least time goes first."""

    def order_jobs(self, jobs: Jobs) -> Column:
        return jobs.annotation("pumice.dev/run-seconds", "inf").astype(float)


def jobs(n: int = 12, **more: Any) -> list[dict[str, Any]]:
    return [{"arrival": 0, "run": 10 * (n - i), "cpu": 1, **more} for i in range(n)]


class Favourite(Plugin, name="favourite"):
    """Jobs of one user go first."""

    def order_jobs(self, jobs: Jobs) -> Column:
        return (jobs.annotation("pumice.dev/user") != "ada").astype(float)


def test_policies_see_the_user_of_a_job() -> None:
    rows = [{"arrival": 0, "run": 10, "user": user} for user in ("bob", "cy", "ada")]
    conf = FIFO.replace("name: gang", "name: favourite\n  - name: gang")
    result = pumice.simulate(
        pumice.workload(rows), pumice.nodes(1, cpu=1), conf, plugins=[Favourite]
    )
    assert dict(zip(result.jobs["user"], result.jobs["start"], strict=True))["ada"] == 0


def test_the_table_of_jobs_has_users_and_requested_times() -> None:
    named = {"arrival": 0, "run": 10, "user": "ada", "walltime": 30}
    rows: list[dict[str, Any]] = [named, {"arrival": 0, "run": 5}]
    result = pumice.simulate(pumice.workload(rows), pumice.nodes(1, cpu=2), FIFO)
    assert result.jobs["user"] == ["ada", None]
    assert result.jobs["walltime"] == [30, None]


@pytest.fixture(scope="module")
def both() -> pumice.Results:
    confs = [EXAMPLES / "default.conf", EXAMPLES / "reclaiming.conf"]
    return pumice.compare(EXAMPLES / "small-cluster.yaml", confs, limit=20)


def test_figures_and_files_are_those_of_the_command(both: pumice.Results, tmp_path: Path) -> None:
    confs = [word for name in both for word in ("--conf", str(EXAMPLES / f"{name}.conf"))]
    trace = str(EXAMPLES / "small-cluster.yaml")
    words = ["sim", "--trace", trace, "--limit", "20", *confs, "--dir", str(tmp_path / "cli")]
    assert CliRunner().invoke(main, words).exit_code == 0
    report = both.save(tmp_path / "library")
    assert report.name == "report.html"
    for path in (tmp_path / "cli").iterdir():
        if path.name != "timing.json":
            assert path.read_bytes() == (tmp_path / "library" / path.name).read_bytes(), path.name


def test_a_table_compares_configurations(both: pumice.Results) -> None:
    assert both.table["configuration"] == ["default", "reclaiming"]
    assert both.table["finished"] == [20, 20]
    assert both["default"].bounded_slowdowns.min() >= 1
    assert "reclaiming" in both._repr_html_()
    assert repr(both).startswith("<Results of ")


def test_tables_of_a_result_are_those_of_its_files(both: pumice.Results, tmp_path: Path) -> None:
    result = both["default"]
    result.save(tmp_path)
    with (tmp_path / "jobs.csv").open(newline="") as file:
        written = [row["job"] for row in csv.DictReader(file)]
    assert result.jobs["job"] == written
    assert (
        len(result.decisions)
        == json.loads((tmp_path / "summary.json").read_text())["configurations"][0]["decisions"]
    )
    assert {type(value) for value in result.jobs["start"]} == {float}


def test_a_plugin_of_the_program_decides() -> None:
    """Twelve jobs on one CPU: shortest first has the least mean wait, first come the most."""
    one = pumice.nodes(1, cpu=1, memory="1Gi")
    rows = [{**row, "walltime": row["run"]} for row in jobs()]
    found = pumice.compare(
        pumice.workload(rows), {"fifo": FIFO, "shortest": SHORTEST}, one, plugins=[Shortest]
    )
    runs = sorted(row["run"] for row in rows)
    waits = [sum(runs[:i]) for i in range(len(runs))]
    mean = found["shortest"].summary["wait"]["mean"]
    assert mean == pytest.approx(sum(waits) / len(waits), abs=1)
    assert found["fifo"].summary["wait"]["mean"] > 1.5 * mean
    assert found["shortest"].failures == ()


def test_bounded_slowdown_takes_short_runs_for_ten_seconds() -> None:
    rows = [{"arrival": 0, "run": 5}, {"arrival": 0, "run": 5}]
    found = pumice.simulate(pumice.workload(rows), pumice.nodes(1, cpu=1), FIFO)
    assert sorted(found.bounded_slowdowns.tolist()) == [1.0, 1.0]


def test_mean_slowdown_is_one_figure_everywhere() -> None:
    """Two runs of twenty seconds on one CPU: slowdowns of 1 and 2."""
    rows = [{"arrival": 0, "run": 20}, {"arrival": 0, "run": 20}]
    found = pumice.simulate(pumice.workload(rows), pumice.nodes(1, cpu=1), FIFO)
    assert found.bounded_slowdowns.tolist() == [1.0, 2.0]
    assert found.summary["bounded_slowdown"]["mean"] == 1.5
    assert found.figures["mean_bounded_slowdown"] == 1.5
    assert "bounded slowdown, mean</th><td>1.50</td>" in found._repr_html_()
    assert "bounded slowdown, mean   1.50" in str(found)


def test_waits_are_drawn_up_to_the_part_of_the_jobs_that_started() -> None:
    rows = [{"arrival": 0, "run": 20}, {"arrival": 0, "run": 20, "cpu": 2}]
    found = pumice.simulate(pumice.workload(rows), pumice.nodes(1, cpu=1), FIFO)
    ax = found.plot.waits()
    assert max(ax.lines[0].get_ydata()) == 0.5
    mpl.pyplot.close(ax.figure)
    assert "<td>1 of 2</td>" in found._repr_html_()


@pytest.mark.parametrize("what", ["waits", "utilisation", "queue_lengths", "shares", "gantt"])
def test_plots_are_drawn(both: pumice.Results, what: str) -> None:
    ax = getattr(both.plot, what)()
    assert ax.get_title()
    assert ax.has_data()
    ax.figure.canvas.draw()
    mpl.pyplot.close(ax.figure)


def test_the_lines_of_jobs_are_named_while_there_is_room(both: pumice.Results) -> None:
    ax = both.plot.gantt(most=3)
    assert ax.get_title().startswith("The first 3 of ")
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert len(names) == 3
    assert all("/" in name for name in names)
    mpl.pyplot.close(ax.figure)
    ax = pumice.simulate(EXAMPLES / "synthetic.yaml").plot.gantt()
    assert all(float(tick).is_integer() for tick in ax.get_yticks())
    assert ax.get_ylabel() == "job, in order of arrival"
    mpl.pyplot.close(ax.figure)


def test_a_plot_names_a_unit_that_suits_the_time(both: pumice.Results) -> None:
    ax = both.plot.gantt()
    assert ax.get_xlabel() == "time (minutes)"
    mpl.pyplot.close(ax.figure)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"run": 1}, r"jobs\[0\]: arrival: expected a number from 0, got nothing"),
        ({"arrival": 0, "run": -1}, r"jobs\[0\]: run: expected a number from 0, got -1"),
        ({"arrival": 0, "run": 1, "cpus": 2}, r"jobs\[0\]: unknown column 'cpus'"),
        ({"arrival": 0, "run": 1, "pods": 0}, r"jobs\[0\]: pods"),
        ({"arrival": "soon", "run": 1}, r"jobs\[0\]: arrival"),
        (
            {"arrival": 0, "run": 1, "pods": 2, "needed": 3},
            r"jobs\[0\]: needed: expected at most its 2 pods, got 3",
        ),
    ],
)
def test_a_bad_row_is_named(row: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        pumice.workload([row])


def test_no_jobs_are_refused() -> None:
    with pytest.raises(InputError, match="at least one job"):
        pumice.workload([])


def test_a_single_result_shows_its_figures() -> None:
    found = pumice.simulate(pumice.workload(jobs(3)), pumice.nodes(2, cpu=1), FIFO)
    assert repr(found) == "<Result given: 3 of 3 jobs finished>"
    assert "makespan" in found._repr_html_()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_is_a_workload(library: str) -> None:
    made = pytest.importorskip(library).DataFrame(
        {"arrival": [0, 5], "run": [10.0, 20.0], "pods": [2, None], "queue": ["a", None]}
    )
    rows: list[dict[str, Any]]
    rows = [{"arrival": 0, "run": 10, "pods": 2, "queue": "a"}, {"arrival": 5, "run": 20}]
    assert pumice.workload(made).jobs == pumice.workload(rows).jobs


def test_rows_without_nodes_run_on_generated_ones_like_a_file() -> None:
    found = pumice.simulate(pumice.workload(jobs(3)), conf=FIFO)
    assert found.figures["finished"] == 3


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"period": -1}, "period: expected a number from 0, got -1"),
        ({"speed": -1}, "speed: expected a number above 0, got -1"),
        ({"limit": 0}, "limit: expected a whole number from 1, got 0"),
        ({"limit": 1.5}, "limit: expected a whole number from 1, got 1.5"),
        ({"evicted": "x"}, "evicted: expected one of requeue, restart, lose, got 'x'"),
        ({"start": "soon"}, "start: expected an RFC 3339 time such as .*, got 'soon'"),
        ({"start": "2024-01-32T00:00:00Z"}, "start: expected an RFC 3339 time such as .*"),
        ({"start": [1]}, r"start: expected a time such as .*, got \[1\]"),
        ({"start": 1e300}, r"start: expected a time such as .*, got 1e\+300"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(option: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        pumice.simulate(pumice.workload(jobs(1)), pumice.nodes(1, cpu=1), FIFO, **option)


def test_an_unknown_option_is_refused() -> None:
    run: Any = pumice.simulate
    with pytest.raises(TypeError, match="pause"):
        run(pumice.workload(jobs(1)), pumice.nodes(1, cpu=1), FIFO, pause=3)


def test_workloads_and_nodes_show_themselves_in_one_line() -> None:
    rows = pumice.workload(jobs(2000), name="mine")
    assert repr(rows).startswith("<Workload mine: 2,000 jobs, 2,000 pods, over ")
    nodes = pumice.nodes(8, cpu=32, memory="128Gi")
    assert repr(nodes) == "<8 nodes, each with pods 110, cpu 32, memory 128Gi>"
    assert repr(pumice.nodes(1, cpu=4)) == "<1 node with pods 110, cpu 4>"


def test_a_time_that_no_job_has_is_not_a_number_in_data_frames() -> None:
    found = pumice.simulate(pumice.workload(jobs(2)), pumice.nodes(1, cpu=1), FIFO)
    assert found.jobs["walltime"] == [None, None]
    frame = found.jobs.to_pandas()
    assert frame["walltime"].dtype == "float64"
    assert frame["walltime"].isna().all()
    assert str(found.jobs.to_polars()["walltime"].dtype) == "Float64"
    assert str(found.jobs.to_arrow()["walltime"].type) == "double"


def test_a_pod_that_makes_every_node_huge_is_named(caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"arrival": i, "run": 10, "cpu": 1, "memory": "1Gi"} for i in range(200)]
    rows[50] |= {"name": "odd", "memory": "35Ti"}
    found = pumice.simulate(pumice.workload(rows), conf=FIFO)
    notes = found._alone.summary["trace"]["notes"]
    (note,) = [one for one in notes if "default/odd" in one]
    assert note.startswith("each node offers 35840Gi memory because a pod of default/odd asks for")
    assert caplog.messages == [f"workload: {note}"]
    plain = pumice.simulate(pumice.workload(rows[:50]), conf=FIFO)
    assert not [one for one in plain._alone.summary["trace"]["notes"] if "because" in one]


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_a_number_of_nodes_that_cannot_be_is_refused(count: Any) -> None:
    with pytest.raises(InputError, match=f"count: expected a whole number from 1, got {count}"):
        pumice.nodes(count, cpu=1)


def test_nodes_without_amounts_are_refused() -> None:
    with pytest.raises(InputError, match="nodes: expected amounts"):
        pumice.nodes(2)


def test_what_is_no_workload_is_refused() -> None:
    nothing: Any = []
    with pytest.raises(
        InputError, match=r"workload: expected a file, or the result of pumice.work"
    ):
        pumice.simulate(nothing)


def test_settings_without_effect_are_logged_once_by_name(caplog: pytest.LogCaptureFixture) -> None:
    odd = FIFO.replace("- name: gang", "- {name: gang, arguments: {x: 1}}")
    pumice.compare(pumice.workload(jobs(3)), {"plain": FIFO, "odd": odd})
    (line,) = caplog.messages
    assert line.startswith("odd: line 5: ")


@pytest.mark.parametrize("name", ["../x", "a/b", "a\nb"])
def test_a_configuration_has_a_name_that_a_file_can_have(name: str) -> None:
    with pytest.raises(InputError, match="expected a name without '/'"):
        pumice.compare(EXAMPLES / "small-cluster.yaml", {name: None, "b": None}, limit=1)


def test_files_of_one_name_need_names() -> None:
    conf = EXAMPLES / "default.conf"
    with pytest.raises(InputError, match="files of different names"):
        pumice.compare(EXAMPLES / "small-cluster.yaml", [conf, conf], limit=1)


def test_a_result_names_why_a_job_did_not_finish() -> None:
    jobs = pumice.workload([{"arrival": 0, "run": 10, "pods": 2, "cpu": 4}])
    found = repr(pumice.simulate(jobs, pumice.nodes(1, cpu=4)))
    assert "0 of 1 jobs finished; default/job-0: not enqueued: jobs may reserve" in found
