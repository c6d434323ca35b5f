"""`pumice sim` and `pumice sweep`: options they share, where results go, and how they end."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli import progress as progress_module
from pumice.cli.main import main
from pumice.cli.sim import sim
from pumice.cli.sweep import sweep
from pumice.errors import InputError
from pumice.sim.measure import NOTHING
from pumice.sim.sweep import GridPoint

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "sim"
TRACE = EXAMPLES / "manifests.yaml"
DEFAULT = EXAMPLES / "default.conf"
MISSPELT = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: binpack, arguments: {binpack.wieght: 3}}]
"""


def pumice(*arguments: Any) -> Any:
    return CliRunner().invoke(main, [*map(str, arguments)])


def summary_of(folder: Path) -> Any:
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


# Options


def test_a_sweep_takes_every_option_of_a_simulation() -> None:
    of_sim, of_sweep = (
        {name for option in command.params for name in option.opts} for command in (sim, sweep)
    )
    assert of_sim - of_sweep == set()
    assert of_sweep - of_sim == {"--seeds", "--jobs", "-j", "--dask"}


@pytest.mark.parametrize(
    "options",
    [
        ("--period", 7),
        ("--speed", 0.5),
        ("--late-pods",),
        ("--limit", 2),
        ("--evicted", "lose"),
        ("--start", "2020-02-29T12:00:00Z"),
    ],
)
def test_an_option_means_the_same_to_both(tmp_path: Path, options: Any) -> None:
    assert pumice("sim", "--trace", TRACE, *options, "-d", tmp_path / "sim").exit_code == 0
    done = pumice("sweep", "--trace", TRACE, *options, "-d", tmp_path / "sweep", "-j", 1)
    assert done.exit_code == 0, done.output
    [found] = summary_of(tmp_path / "sim")["configurations"]
    [row] = summary_of(tmp_path / "sweep")
    assert (row["jobs"], row["finished"]) == (found["jobs"], found["finished"])
    assert row["makespan"] == pytest.approx(found["makespan"], abs=1e-6)
    assert row["wait_p90"] == pytest.approx(found["wait"]["p90"], abs=1e-6)
    assert row["fairness"] == found["fairness"]["mean"] or row["fairness"] == pytest.approx(
        found["fairness"]["mean"], abs=1e-6
    )


@pytest.mark.parametrize("command", ["sim", "sweep"])
def test_a_time_that_is_none_is_refused(command: str) -> None:
    done = pumice(command, "--trace", TRACE, "--start", "yesterday")
    assert done.exit_code == 2
    assert "RFC 3339" in done.output


@pytest.mark.parametrize(
    ("options", "start"), [((), "2005-11-20T00:00:35Z"), (None, "2020-01-01T00:00:00Z")]
)
def test_a_log_begins_when_it_says_unless_another_time_is_given(
    tmp_path: Path, options: Any, start: str
) -> None:
    job = "{} {} -1 10 1 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n"
    log = tmp_path / "log.swf"
    log.write_text(f"; UnixStartTime: 1132444805\n{job.format(1, 30)}{job.format(2, 40)}")
    more = ("--start", start) if options is None else options
    assert pumice("sim", "--trace", log, *more, "-d", tmp_path).exit_code == 0
    assert summary_of(tmp_path)["options"]["start"] == start


@pytest.mark.parametrize("command", ["sim", "sweep"])
def test_a_misspelt_argument_of_a_plugin_is_a_warning(tmp_path: Path, command: str) -> None:
    conf = tmp_path / "x.conf"
    conf.write_text(MISSPELT, encoding="utf-8")
    done = pumice(command, "--trace", TRACE, "--conf", conf)
    assert done.exit_code == 0
    assert f"warning: {conf}: line 3: binpack.wieght" in done.stderr
    assert "did you mean 'binpack.weight'?" in done.stderr


# Results


@pytest.mark.parametrize("option", ["-o", "--output", "-d", "--dir"])
@pytest.mark.parametrize("command", ["sim", "sweep"])
def test_a_folder_is_named_in_the_new_way_or_the_old_one(
    tmp_path: Path, command: str, option: str
) -> None:
    done = pumice(command, "--trace", TRACE, option, tmp_path / "new")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "new" / "summary.json").is_file()


@pytest.mark.parametrize("command", ["sim", "sweep"])
def test_a_misspelt_form_is_not_taken_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = pumice(command, "--trace", TRACE, "-o", "jsn")
    assert done.exit_code == 2
    assert "'jsn' is no format; did you mean 'json'?" in done.stderr
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "jsn").mkdir()
    assert pumice(command, "--trace", TRACE, "-o", "jsn").exit_code == 0
    assert (tmp_path / "jsn" / "summary.json").is_file()


@pytest.mark.parametrize(("form", "parse"), [("json", json.loads), ("yaml", yaml.safe_load)])
@pytest.mark.parametrize("command", ["sim", "sweep"])
def test_the_summary_is_printed_in_the_form_asked_for(
    tmp_path: Path, command: str, form: str, parse: Any
) -> None:
    done = pumice(command, "--trace", TRACE, "-o", form, "-d", tmp_path)
    assert done.exit_code == 0, done.output
    printed, written = parse(done.stdout), summary_of(tmp_path)
    if command == "sweep":
        printed, written = printed[0]["makespan"], written[0]["makespan"]
    assert printed == written


def test_without_a_folder_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = pumice("sim", "--trace", TRACE)
    assert done.exit_code == 0
    assert "makespan" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_nodes_that_a_trace_runs_on_are_noted_below_the_table() -> None:
    done = pumice("sim", "--trace", ROOT / "tests" / "data" / "traces" / "small.swf")
    assert "nodes as the trace states" in done.stderr
    assert "would be in use while jobs arrive" in done.stderr


def test_each_configuration_of_a_sweep_is_compared_with_the_first(tmp_path: Path) -> None:
    other = tmp_path / "slow.conf"
    other.write_text(DEFAULT.read_text(encoding="utf-8"), encoding="utf-8")
    arguments = ("--trace", TRACE, "--conf", DEFAULT, "--conf", other, "--seeds", "0-1", "-j", 1)
    assert pumice("sweep", *arguments, "-d", tmp_path).exit_code == 0
    rows = summary_of(tmp_path)
    assert [row["differences"] is None for row in rows] == [True, True, False, False]
    assert rows[2]["differences"]["makespan"] == 0
    assert "difference_makespan" in (tmp_path / "summary.csv").read_text(encoding="utf-8")


STARVED = """\
apiVersion: pumice.dev/v1
kind: SyntheticWorkload
jobs: 4
pod: {cpu: CPUS}
queues:
- {name: a, share: 0.5}
- {name: b, share: 0.5}
arrivals: {process: uniform, meanSeconds: 10}
durations: {distribution: constant, median: 60}
nodes: {count: 1, allocatable: {cpu: 4, memory: 16Gi}}
"""


@pytest.mark.parametrize("command", [("sim",), ("sweep", "-j", 1)])
def test_a_table_says_what_its_figures_leave_out(tmp_path: Path, command: Any) -> None:
    trace = tmp_path / "w.yaml"
    trace.write_text(STARVED.replace("CPUS", "40"), encoding="utf-8")
    done = pumice(*command, "--trace", trace)
    assert done.exit_code == 0, done.output
    assert "1.000" not in done.stdout  # nothing ran, and nothing was divided fairly
    assert NOTHING in done.stdout
    assert ("no figure of waits counts them" if len(command) == 1 else "waits count only") in (
        done.stdout
    )
    if len(command) == 1:
        assert re.search(rf"(?m)^makespan +{NOTHING}$", done.stdout)
        assert re.search(rf"(?m)^events a second +{NOTHING}$", done.stdout)


@pytest.mark.parametrize(
    "words",
    [("sim", "--trace"), ("trace", "describe"), ("run",), ("explain", "-f"), ("snapshot", "show")],
)
def test_an_empty_file_is_refused_as_such(tmp_path: Path, words: Any) -> None:
    empty = tmp_path / "empty.yaml"
    empty.write_text("\n", encoding="utf-8")
    done = pumice(*words, empty)
    assert done.exit_code == 2, done.output
    assert str(empty) in done.output
    assert "got an empty file" in done.output or "objects of a cluster, got none" in (done.output)


def test_a_run_elsewhere_keeps_the_names_its_files_were_given() -> None:
    point = GridPoint("a.conf", "t.swf", 0, folder="/shared")
    assert (point.conf, point.path(point.trace)) == ("a.conf", Path("/shared/t.swf"))
    assert GridPoint("", "/x/t.swf", 0, folder="/shared").path("/x/t.swf") == Path("/x/t.swf")


# What goes wrong


@pytest.mark.parametrize("command", ["sim", "sweep"])
def test_a_folder_that_cannot_be_written_to_is_found_before_anything_runs(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("it ran")

    monkeypatch.setattr("pumice.sim.engine.Engine.run", never)
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = pumice(command, "--trace", TRACE, "-d", tmp_path / "file" / "x", "-o", "json")
    assert done.exit_code == 2
    assert "expected a folder that can be written to, got Not a directory" in done.output


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(("command", "file"), [("sim", "report.html"), ("sweep", "summary.csv")])
def test_a_full_disk_is_one_sentence(tmp_path: Path, command: str, file: str) -> None:
    (tmp_path / file).symlink_to("/dev/full")
    done = pumice(command, "--trace", TRACE, "-d", tmp_path)
    assert done.exit_code == 2
    wanted = "expected a file that can be written, got No space left on device (free some space"
    assert f"Error: {tmp_path / file}: {wanted}" in done.output


def test_a_configuration_that_is_no_text_is_one_sentence(tmp_path: Path) -> None:
    bad = tmp_path / "bad.conf"
    bad.write_bytes(b"\xff\xfe\x00")
    done = pumice("sim", "--trace", TRACE, "--conf", bad)
    assert done.exit_code == 2
    assert "bad.conf:1: expected UTF-8 text, got UTF-16 text" in done.output


@pytest.mark.parametrize("command", [("sim",), ("sweep", "-j", "2", "--seeds", "0-3")])
def test_ctrl_c_ends_it_at_once_with_a_sentence(tmp_path: Path, command: Any) -> None:
    trace = tmp_path / "long.yaml"
    trace.write_text(
        (EXAMPLES / "synthetic.yaml")
        .read_text(encoding="utf-8")
        .replace("jobs: 80", "jobs: 20000"),
        encoding="utf-8",
    )
    code = (
        "import os, signal, threading\n"
        "import pumice.cli.progress as p\n"
        "from pumice.cli.entry import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it\n"
        "start = lambda: threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "old = p._lines\n"
        "def lines(*a):\n    start()\n    return old(*a)\n"
        "if __name__ == '__main__':\n    p._lines = lines\n    main()\n"
    )
    script = tmp_path / "go.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(script), *command, "--trace", str(trace)],
        capture_output=True, text=True, timeout=100, check=False, env={**os.environ},
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGINT, done.stderr
    assert "stopped: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_storm_of_evictions_is_the_first_thing_one_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.sim.measure.TIMES", 0.5)
    conf = EXAMPLES / "reclaiming.conf"
    done = pumice("sim", "--trace", EXAMPLES / "synthetic.yaml", "--conf", conf, "-d", tmp_path)
    assert "warning: reclaiming: storm of evictions: pods of " in done.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<p class="alarm" role="alert"><b>reclaiming:</b> storm of evictions' in page


def test_the_examples_settle(tmp_path: Path) -> None:
    conf = EXAMPLES / "reclaiming.conf"
    done = pumice("sim", "--trace", EXAMPLES / "synthetic.yaml", "--conf", conf, "-d", tmp_path)
    [found] = summary_of(tmp_path)["configurations"]
    assert found["storm"] is None
    assert found["evictions"] < 100
    assert "storm" not in done.stderr


def test_pods_that_ask_for_nothing_can_be_simulated(tmp_path: Path) -> None:
    trace = tmp_path / "w.yaml"
    trace.write_text(
        "apiVersion: pumice.dev/v1\nkind: SyntheticWorkload\njobs: 3\npod: {}\n"
        "nodes: {count: 1, allocatable: {cpu: 1}}\n",
        encoding="utf-8",
    )
    done = pumice("sim", "--trace", trace, "-d", tmp_path)
    assert done.exit_code == 0, done.output
    assert list(summary_of(tmp_path)["configurations"][0]["utilisation"]) == ["pods"]


# Progress


def test_without_a_terminal_a_line_comes_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 10.0, 31.0, 40.0, 62.0])
    report = progress_module._lines("default", 1000, "jobs", lambda: next(times))
    for done in (50, 310, 400, 930):
        report(done)
    assert capsys.readouterr().err.splitlines() == [
        "default: 310 of 1,000 jobs, 10 jobs/s, about 69 s left",
        "default: 930 of 1,000 jobs, 15 jobs/s, about 5 s left",
    ]


def test_slow_work_is_counted_by_the_minute() -> None:
    assert progress_module.rate_text(0.05, "runs") == "3.0 runs/min"


def test_errors_of_a_limit_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("timestamp,duration,num_gpus\n0,1,2000000000\n", encoding="utf-8")
    done = pumice("sim", "--trace", path)
    assert done.exit_code == 2
    assert f"{path}:2: num_gpus: expected at most 100,000 GPUs of a job" in done.output
    assert not isinstance(done.exception, InputError)
