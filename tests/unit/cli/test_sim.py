"""`pumice sim`: which files it writes, their content, and what it refuses."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from tests.present import present

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "sim"
TRACES = ROOT / "tests" / "data" / "traces"
WORKLOAD = """\
apiVersion: pumice.dev/v1
kind: SyntheticWorkload
jobs: 24
pod: {cpu: 2, memory: 1Gi}
sizes: {1: 0.6, 3: 0.4}
arrivals: {meanSeconds: 10}
durations: {median: 60, sigma: 0.5}
queues: [{name: a, share: 2}, {name: b}]
nodes: {count: 2, allocatable: {cpu: 8, memory: 16Gi}}
"""
FILES = [
    *("charts.json", "decisions.csv", "jobs.csv", "report.html"),
    *("summary.json", "timing.json"),
]
SECTIONS = {
    "Utilisation": "utilisation",
    "Queues": "queues",
    "Waiting jobs": "lengths",
    "Wait times": "waits",
    "Fairness": "fairness",
    "Nodes": "heat",
    "Gangs": "gantt",
}


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, ["sim", *map(str, arguments)])


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("trace") / "w.yaml"
    path.write_text(WORKLOAD, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def once(trace: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Simulate under the built-in configuration."""
    folder = tmp_path_factory.mktemp("once")
    result = run("--trace", trace, "-o", folder)
    assert result.exit_code == 0, result.output
    return folder, result.output


@pytest.fixture(scope="module")
def both(trace: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Simulate under two configurations whose files have one name."""
    folder = tmp_path_factory.mktemp("both")
    other = folder / "default.conf"
    other.write_text(
        'actions: "enqueue, allocate"\n'
        "tiers:\n- plugins: [{name: gang}, {name: predicates}, {name: binpack}]\n",
        encoding="utf-8",
    )
    confs = ("--conf", EXAMPLES / "default.conf", "--conf", other)
    result = run("--trace", trace, *confs, "-o", folder / "out")
    assert result.exit_code == 0, result.output
    return folder / "out", result.output


def rows_of(path: Any) -> Any:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def summary_of(folder: Any) -> Any:
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


# What is written


def test_all_files_are_written_and_the_report_is_named(once: Any) -> None:
    folder, output = once
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert f"wrote {folder / 'report.html'}" in output


def test_one_seed_writes_the_same_bytes_but_for_the_times_it_took(
    once: Any, trace: Any, tmp_path: Path
) -> None:
    assert run("--trace", trace, "-o", tmp_path).exit_code == 0
    for name in FILES:
        if name != "timing.json":
            assert (tmp_path / name).read_bytes() == (once[0] / name).read_bytes(), name


def test_another_seed_is_another_workload(once: Any, trace: Any, tmp_path: Path) -> None:
    assert run("--trace", trace, "--seed", 1, "-o", tmp_path).exit_code == 0
    assert (tmp_path / "jobs.csv").read_bytes() != (once[0] / "jobs.csv").read_bytes()


def test_the_summary_is_what_the_table_of_jobs_comes_to(once: Any) -> None:
    rows = rows_of(once[0] / "jobs.csv")
    (found,) = summary_of(once[0])["configurations"]
    waits = [float(row["wait"]) for row in rows if row["wait"]]
    ends = [float(row["end"]) for row in rows if row["end"]]
    assert (found["jobs"], found["finished"]) == (24, len(ends)) == (24, 24)
    assert found["makespan"] == pytest.approx(max(ends))
    assert found["wait"]["mean"] == pytest.approx(np.mean(waits), abs=1e-5)
    assert found["wait"]["p95"] == pytest.approx(np.percentile(waits, 95), abs=1e-5)
    assert found["wait"]["max"] == pytest.approx(max(waits))
    assert max(waits) > 1  # the cluster is small enough for someone to wait
    used = sum(2 * int(row["pods"]) * float(row["run"]) for row in rows)  # none is evicted
    assert found["evictions"] == 0
    assert found["utilisation"]["cpu"] == pytest.approx(used / (16 * max(ends)), abs=1e-5)
    for queue, facts in found["queues"].items():
        mine = [float(row["wait"]) for row in rows if row["queue"] == queue]
        assert (facts["jobs"], facts["wait"]["p50"]) == (len(mine), pytest.approx(np.median(mine)))


def test_every_pod_of_every_job_is_bound_once_and_no_job_starts_before_it_comes(once: Any) -> None:
    jobs = {row["job"]: row for row in rows_of(once[0] / "jobs.csv")}
    binds = [row for row in rows_of(once[0] / "decisions.csv") if row["decision"] == "bind"]
    assert len(binds) == len({row["pod"] for row in binds})
    assert len(binds) == sum(int(row["pods"]) for row in jobs.values())
    assert all(float(row["start"]) >= float(row["arrival"]) for row in jobs.values())
    last = {row["job"]: row["seconds"] for row in binds}
    assert last == {name: row["start"] for name, row in jobs.items()}


def test_the_report_fetches_nothing_and_has_a_section_for_each_chart(once: Any) -> None:
    page = (once[0] / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?\s*(?:https?:)?//""", page)
    assert not re.search(r"<(?:link|img|iframe)\b|@import|<script[^>]+src", page)
    for title, chart in SECTIONS.items():
        section = re.search(rf"<section><h2>{title}</h2>(.*?)</section>", page, re.DOTALL)
        assert section, title
        assert f'<div id="{chart}">' in section[1]


def test_what_the_charts_draw_agrees_with_the_summary(once: Any) -> None:
    page = (once[0] / "report.html").read_text(encoding="utf-8")
    data = json.loads(present(re.search(r'id="data">(.*?)</script>', page, re.DOTALL))[1])
    (drawn,), (found,) = data["configurations"], summary_of(once[0])["configurations"]
    cpu = [each["name"] for each in data["resources"]].index("cpu")
    assert np.mean(drawn["utilisation"][cpu]) == pytest.approx(
        found["utilisation"]["cpu"], abs=0.001
    )
    [part], seconds = data["waits"]["parts"], data["waits"]["seconds"]
    assert seconds[part.index(1.0)] == pytest.approx(found["wait"]["max"], abs=0.01)
    assert seconds[np.searchsorted(part, 0.5)] == pytest.approx(found["wait"]["p50"], rel=0.5)
    assert len(drawn["gantt"]["bars"]) == 24


# Several configurations


def test_configurations_stand_side_by_side_and_have_their_own_tables(both: Any) -> None:
    folder, output = both
    names = [each["configuration"] for each in summary_of(folder)["configurations"]]
    assert names == ["default", "default-2"]
    assert re.search(r"default\s+default-2", output)
    tables = {f"{stem}-{name}.csv" for stem in ("jobs", "decisions") for name in names}
    assert tables <= {path.name for path in folder.iterdir()}


def test_differences_are_those_between_the_summaries(both: Any) -> None:
    summary = summary_of(both[0])
    first, second = summary["configurations"]
    found = summary["differences"]["default-2"]
    assert found["makespan"] == pytest.approx(second["makespan"] - first["makespan"])
    mean = second["wait"]["mean"] - first["wait"]["mean"]
    assert found["wait"]["mean"] == pytest.approx(mean, abs=1e-5)
    assert list(summary["differences"]) == ["default-2"]


# Traces


@pytest.mark.parametrize("name", ["philly.csv", "small.swf", "openb_pods.csv"])
def test_a_trace_runs_to_its_end(tmp_path: Path, name: str) -> None:
    nodes = ("--nodes", TRACES / "openb_nodes.csv") if name.startswith("openb") else ()
    result = run("--trace", TRACES / name, *nodes, "-o", tmp_path)
    assert result.exit_code == 0, result.output
    (found,) = summary_of(tmp_path)["configurations"]
    assert found["finished"] == found["jobs"] > 0
    assert found["unfinished"] == []


def test_a_job_that_never_fits_is_reported_with_its_reason(tmp_path: Path) -> None:
    text = WORKLOAD.replace("sizes: {1: 0.6, 3: 0.4}", "sizes: {1: 0.8, 50: 0.2}")
    (tmp_path / "w.yaml").write_text(text, encoding="utf-8")
    result = run("--trace", tmp_path / "w.yaml", "-o", tmp_path)
    assert result.exit_code == 0, result.output
    (found,) = summary_of(tmp_path)["configurations"]
    large = {row["job"] for row in rows_of(tmp_path / "jobs.csv") if row["pods"] == "50"}
    assert large
    assert {each["job"] for each in found["unfinished"]} == large
    assert all(each["reason"] for each in found["unfinished"])
    assert "never ran: " in result.output


# What is refused


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.txt", "hello\n", "expected a trace of a known format"),
        ("t.csv", "timestamp,duration,num_gpus\n1,x,1\n", "t.csv:2: duration: expected a number"),
        ("t.yaml", "kind: SyntheticWorkload\n", "SyntheticWorkload: apiVersion: expected a string"),
    ],
)
def test_a_trace_that_cannot_be_read_is_one_message(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    result = run("--trace", tmp_path / name, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_configuration_that_cannot_be_used_is_named(trace: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.conf"
    bad.write_text("actions: [", encoding="utf-8")
    result = run("--trace", trace, "--conf", bad, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "bad.conf" in result.output


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("--format", "tarot"), "tarot"),
        (("--period", "-1"), "--period"),
        (("--limit", "0"), "--limit"),
        (("--evicted", "eaten"), "eaten"),
        (("--nodes", "absent.yaml"), "absent.yaml"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(
    trace: Any, tmp_path: Path, more: Any, word: str
) -> None:
    result = run("--trace", trace, *more, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert word in result.output


def test_a_plugin_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, shape: Any, facts: Any) -> None:
        raise AttributeError("no such column")

    monkeypatch.setattr("pumice.plugins.nodeorder.plugin.NodeOrder.score_shape", broken)
    result = CliRunner().invoke(
        main, ["sim", "--trace", str(TRACES / "small.swf"), "-o", str(tmp_path)]
    )
    assert result.exit_code == 1
    assert "error: built-in: plugin nodeorder failed in score_shape" in result.output
    [found] = summary_of(tmp_path)["configurations"]
    assert found["failures"]
