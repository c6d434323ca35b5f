"""`pumice trace`: what is in a trace, another form of it, part of it."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.sim.inputs import read_workload, recognise

ROOT = Path(__file__).parents[3]
TRACES = ROOT / "tests" / "data" / "traces"
SYNTHETIC = ROOT / "examples" / "sim" / "synthetic.yaml"


def run(*words: Any, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["trace", *map(str, words)])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two jobs of all processors, who ask for an hour and run for a minute."""
    path = tmp_path / "log.swf"
    rows = [f"{n} {10 * n} -1 60 4 -1 -1 4 3600 -1 1 {n} 1 -1 1 -1 -1 -1" for n in (1, 2)]
    path.write_text("; MaxNodes: 1\n; MaxProcs: 4\n; Queue: 1 night\n" + "\n".join(rows))
    return path


def test_a_description_counts_what_is_in_a_trace(log: Path) -> None:
    found = json.loads(run("describe", log, "-o", "json"))
    assert (found["format"], found["jobs"], found["pods"], found["users"]) == ("swf", 2, 8, 2)
    assert (found["span_seconds"], found["queues"]) == (10, {"night": 2})
    assert found["arrivals"] == {
        "per_hour": 360, "busiest_hour": 2, "gap_seconds": 10, "gap_variation": 0,
    }  # fmt: skip
    assert found["pods_per_job"] == {"mean": 4, "min": 4, "median": 4, "p95": 4, "max": 4}
    assert found["walltime"] == {"stated": 2, "used_median": 0.017}
    assert found["work_hours"] == {"cpu": pytest.approx(8 / 60, abs=1e-3)}
    printed = run("describe", log)
    assert re.search(r"(?m)^jobs an hour +360$", printed)  # all in less than an hour
    assert "stated by 2 jobs; in the median 1.7 % of it is used" in printed
    assert "note: 1 node as the trace states, with 4 cpu" in printed


@pytest.mark.parametrize(
    "name", ["philly.csv", "openb_pods.csv", "alibaba2018_tasks.csv", "alibaba2025.csv"]
)
def test_every_trace_can_be_described(name: str) -> None:
    found = json.loads(run("describe", TRACES / name, "-o", "json"))
    assert found["jobs"] == len(read_workload(TRACES / name).jobs)
    printed = run("describe", TRACES / name)
    assert "run time" in printed
    assert ("memory GiB hours" in printed) == ("memory" in found["work_hours"])
    assert "e+" not in printed


def test_a_workload_that_is_drawn_and_manifests_can_be_described() -> None:
    assert "jobs            " in run("describe", SYNTHETIC)
    assert "manifests" in run("describe", ROOT / "examples" / "sim" / "manifests.yaml")


@pytest.mark.parametrize("target", ["t.csv", "t.csv.gz", "t.parquet", "t.swf", "t.swf.gz",
                                    "t.yaml", "t.json", "t.json.gz"])  # fmt: skip
def test_a_trace_stays_the_same_in_another_form(log: Path, tmp_path: Path, target: str) -> None:
    assert f"{target}: 2 jobs" in run("convert", log, tmp_path / target)
    before, after = read_workload(log), read_workload(tmp_path / target)
    seen = [
        [
            (job.arrival, job.run_seconds, job.walltime, job.size, job.min_member, job.queue)
            for job in workload.jobs
        ]
        for workload in (before, after)
    ]
    assert seen[0] == seen[1]
    assert [bool(job.user) for job in after.jobs] == [True, True]
    requests = [job.tasks[0].spec.containers[0].resources.requests for job in after.jobs]
    assert requests == [{"cpu": "1"}, {"cpu": "1"}]


@pytest.mark.parametrize("source", ["philly.csv", "openb_pods.csv", "alibaba2018_instances.csv"])
@pytest.mark.parametrize("target", ["t.csv", "t.swf", "t.yaml"])
def test_any_form_takes_any_trace(tmp_path: Path, source: str, target: str) -> None:
    run("convert", TRACES / source, tmp_path / target)
    before, after = read_workload(TRACES / source), read_workload(tmp_path / target)
    assert [job.arrival for job in after.jobs] == [job.arrival for job in before.jobs]


def test_what_a_form_cannot_hold_is_reported(tmp_path: Path) -> None:
    said = run("convert", TRACES / "alibaba2018_instances.csv", tmp_path / "t.csv")
    assert "warning: not written: 1 job of pods that differ: the mean of them is written" in said
    said = run("convert", TRACES / "openb_pods.csv", tmp_path / "t.csv")
    assert "1 job: all but what pods ask for, such as affinities" in said
    assert "warning" not in run("convert", TRACES / "openb_pods.csv", tmp_path / "t.yaml")


def test_what_the_standard_workload_format_cannot_hold_is_reported(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        "arrival,run,cpu,gpu,pods,needed\n0,9,1,2,1,1\n0,9,500m,,1,1\n0,9,2,,4,3\n",
        encoding="utf-8",
    )
    said = run("convert", table, tmp_path / "t.swf")
    assert "1 job: nvidia.com/gpu, which the format does not know" in said
    assert "1 job: parts of a CPU, rounded up to whole processors" in said
    assert "1 job: that some of the pods are enough to start" in said
    assert "warning" not in run("convert", table, tmp_path / "again.csv")


def test_a_table_that_loses_the_number_of_nodes_says_so(tmp_path: Path) -> None:
    said = run("sample", TRACES / "small.swf", tmp_path / "t.csv", "--jobs", 2)
    assert "warning: not written: the number of nodes, 4; name nodes with --nodes" in said
    assert "number of nodes" not in run("convert", TRACES / "small.swf", tmp_path / "t.swf")


@pytest.mark.parametrize("target", ["t.csv", "t.parquet", "t.yaml"])
def test_a_form_that_loses_the_date_says_so(tmp_path: Path, target: str) -> None:
    said = run("convert", TRACES / "philly.csv", tmp_path / target)
    lost = "the date of the first job; simulate it with --start 2020-03-01T10:00:00Z"
    assert f"warning: not written: {lost}\n" in said
    said = run("convert", TRACES / "philly.csv", tmp_path / "t.swf")
    assert "--start" not in said
    before, after = (read_workload(each) for each in (TRACES / "philly.csv", tmp_path / "t.swf"))
    assert after.start == before.start


def test_images_and_restart_policies_are_no_wishes(tmp_path: Path) -> None:
    said = run("convert", ROOT / "examples" / "sim" / "manifests.yaml", tmp_path / "t.csv")
    assert "affinities" not in said
    assert "what the cluster is made of: " in said


def test_forecasts_go_by_the_time_that_users_requested(log: Path, tmp_path: Path) -> None:
    """Jobs run for a minute; who waits is reported the hour that the one before it asked for."""
    run("convert", log, tmp_path / "t.yaml")
    words = ["whatif", "-f", str(tmp_path / "t.yaml"), "--job", "job-0000002", "-o", "json"]
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.output)["job"]["in_s"] == pytest.approx(3600, abs=60)
    words = ["sim", "--trace", str(tmp_path / "t.yaml"), "-o", "json"]
    [found] = json.loads(CliRunner().invoke(main, words).output)["configurations"]
    assert found["makespan"] == pytest.approx(120, abs=5)


def test_a_packed_file_has_the_same_bytes_each_time(log: Path, tmp_path: Path) -> None:
    for name in ("a.swf.gz", "b.swf.gz"):
        run("convert", log, tmp_path / name)
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.swf.gz").read_bytes()).startswith(b"; Version: 2.2")


def test_the_form_is_named_where_the_name_does_not_tell(log: Path, tmp_path: Path) -> None:
    said = run("convert", log, tmp_path / "t.txt", code=2)
    assert "expected a name that ends in .csv, .parquet, .swf" in said
    assert "choose with --as" in said
    run("convert", log, tmp_path / "t.txt", "--as", "jobs")
    assert recognise(tmp_path / "t.txt") == "jobs"


# Samples


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A thousand jobs: a tenth of them wide, a fifth in another queue, a third of them long."""
    rows = [
        f"{60 * i},{1000 if i % 3 == 0 else 10},{8 if i % 10 == 0 else 1},"
        f"{'small' if i % 5 == 0 else 'large'}"
        for i in range(1000)
    ]
    path = tmp_path / "mixed.csv"
    path.write_text("arrival,run,pods,queue\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("verb", [["trace", "describe"], ["sim", "--trace"]])
def test_a_seed_below_zero_is_refused(mixed: Path, verb: list[str]) -> None:
    result = CliRunner().invoke(main, [*verb, str(mixed), "--seed", "-1"])
    assert result.exit_code == 2
    assert "Invalid value for '--seed': -1" in result.output


@pytest.mark.parametrize("seed", range(5))
def test_a_sample_has_queues_widths_and_run_times_as_often(
    mixed: Path, tmp_path: Path, seed: int
) -> None:
    said = run("sample", mixed, tmp_path / "s.csv", "--jobs", 100, "--seed", seed)
    assert "sim --speed 10 makes up for it" in said
    jobs = read_workload(tmp_path / "s.csv").jobs
    assert len(jobs) == len({job.name for job in jobs}) == 100
    assert abs(sum(job.size == 8 for job in jobs) - 10) <= 1
    assert abs(Counter(job.queue for job in jobs)["small"] - 20) <= 1
    assert abs(sum(job.run_seconds == 1000 for job in jobs) - 33) <= 3


def test_one_seed_draws_one_sample_and_another_seed_another(mixed: Path, tmp_path: Path) -> None:
    for name, seed in (("a.csv", 1), ("b.csv", 1), ("c.csv", 2)):
        run("sample", mixed, tmp_path / name, "--jobs", 50, "--seed", seed)
    first, again, other = (
        (tmp_path / name).read_text(encoding="utf-8") for name in ("a.csv", "b.csv", "c.csv")
    )
    assert first == again != other


def test_a_window_keeps_the_jobs_that_come_in_it(mixed: Path, tmp_path: Path) -> None:
    run("sample", mixed, tmp_path / "s.csv", "--from", "1h", "--until", 7200)
    jobs = read_workload(tmp_path / "s.csv").jobs
    assert len(jobs) == 60
    assert jobs[0].arrival == 0
    run("sample", mixed, tmp_path / "s.csv", "--until", "0.5d", "--jobs", 7)
    assert len(read_workload(tmp_path / "s.csv").jobs) == 7


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ((), "nothing is chosen; give --jobs, --from or --until"),
        (("--jobs", 1001), "--jobs: expected at most 1,000 jobs, as the trace has, got 1001"),
        (("--from", "9d"), "from 0 to 59940 seconds, got 777600 and later"),
        (("--from", "soon"), "expected a duration"),
        (("--from", "3x"), "days such as \"2d\", or seconds, got '3x'"),
        (("--jobs", 0), "Invalid value for '--jobs'"),
    ],
)
def test_a_sample_that_cannot_be_drawn_is_reported(
    mixed: Path, tmp_path: Path, words: tuple[Any, ...], reported: str
) -> None:
    assert reported in run("sample", mixed, tmp_path / "s.csv", *words, code=2)
    assert not (tmp_path / "s.csv").exists()
