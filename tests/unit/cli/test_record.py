"""`pumice record`, and commands about a moment of the past."""

import csv
import json
import os
import signal
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.api.annotations import RUN_SECONDS
from pumice.api.conf import parse_conf
from pumice.cli.main import main
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import InputError
from pumice.records.entries import Settings
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.recording import Recording
from pumice.testing import node, pod, pod_group

START = 1_767_225_600.0
CONF = "actions: enqueue, allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n"


class SyncedCluster(EmbeddedCluster):
    """An embedded cluster with the questions that only a watched one answers."""

    def wait_synced(self, _: float) -> list[str]:
        return []

    def troubles(self) -> dict[str, str]:
        return {}


def pumice(*words: object, obj: Any = None) -> Any:
    return CliRunner().invoke(main, [str(word) for word in words], obj=obj)


def test_a_cluster_is_recorded_until_it_is_stopped(tmp_path: Path) -> None:
    cluster = SyncedCluster()
    for manifest in (node("n1", cpu=4), pod_group("j")):
        cluster.create(manifest)
    folder = tmp_path / "record"
    timer = threading.Timer(1.2, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    done = pumice("record", folder, obj=lambda _: nullcontext(cluster))
    timer.join()
    assert (done.exit_code, done.stderr) == (0, "stopped\n")
    assert "objects in" in done.stdout
    shown = json.loads(pumice("snapshot", "show", folder, "-o", "json").stdout)
    assert (shown["nodes"], shown["objects"]["PodGroup"]) == (1, 1)
    assert folder.stat().st_mode & 0o77 == 0


def test_a_bad_limit_is_refused(tmp_path: Path) -> None:
    assert "--age: expected more than 0" in pumice("record", tmp_path / "r", "--age", "0s").stderr
    assert "--size: expected a quantity" in pumice("record", tmp_path / "r", "--size", "x").stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that runs for two minutes, and one that waits for its room until then."""
    place = tmp_path_factory.mktemp("recorded") / "record"
    clock = VirtualClock(START)
    cluster = EmbeddedCluster(clock)
    recording = Recording(place, clock.now, conf=lambda: (CONF, "test"), beside=cluster)
    plane = EmbeddedControlPlane(
        parse_conf(CONF),
        [],
        cluster=cluster,
        write_causes=True,
        idle_period_s=10.0,
        observed=recording.observed,
    )
    plane.on_cycle += [recording.finished, lambda _: recording.recorder.flush()]
    recording.recorder.settings(Settings())
    recording.note_conf()
    cluster.create(node("n1", cpu=4))
    for name, seconds in (("old", 120), ("new", 60)):
        cluster.create(pod_group(name))
        cluster.create(pod(f"{name}-0", group=name, cpu=3, annotations={RUN_SECONDS: str(seconds)}))
        plane.run(clock.now() + 30)
    plane.run(START + 400)
    recording.recorder.close()
    return place


@pytest.mark.parametrize(
    ("at", "answer"),
    [("00:01:10", "InsufficientResource"), ("-300s", "InsufficientResource"), ("00:02:40", "runs")],
)
def test_explain_answers_as_of_then(folder: Path, at: str, answer: str) -> None:
    done = pumice("explain", "new", "-f", folder, "--at", at)
    assert done.exit_code == 0, done.stderr
    assert answer in done.stdout


def test_run_and_queue_order_decide_as_of_then(folder: Path) -> None:
    ran = json.loads(pumice("run", folder, "--at", "00:00:20", "-o", "json").stdout)
    assert {job: state["phase"] for job, state in ran["podGroups"].items()} == {
        "default/old": "Running"
    }
    assert "default/new" in pumice("queue", "order", "-f", folder, "--at", "00:01:00").stdout
    assert "no job waits" in pumice("queue", "order", "-f", folder, "--at", "00:03:00").stdout


@pytest.mark.parametrize(("at", "counts"), [("00:00:20", "1"), ("00:05:00", "0")])
def test_queue_list_shows_the_queues_of_then(folder: Path, at: str, counts: str) -> None:
    done = pumice("queue", "list", "-f", folder, "--at", at, "-o", "wide", "--no-headers")
    line = next(one.split() for one in done.stdout.splitlines() if one.startswith("default"))
    assert line[6] == counts, done.stdout


def test_a_moment_can_be_saved_as_a_snapshot(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "then.json"
    done = pumice("snapshot", "save", folder, "--at", "00:01:00", "-o", file)
    assert done.exit_code == 0, done.stderr
    saved = json.loads(file.read_text())
    assert (saved["now"], saved["conf"]) == ("2026-01-01T00:01:00Z", CONF)
    assert any(one["metadata"]["name"] == "new-0" for one in saved["objects"])


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ("now: 00:01:10\nexpect: {causes: {default/new: InsufficientResource}}", "1 passed"),
        ("now: -340s\neventually: {starts: [default/new]}", "0 passed, 1 failed"),
        ("now: 00:03:00\nexpect: {phases: {default/new: Completed}}", "1 passed"),
        ("now: 2020-01-01T00:00:00Z\nexpect: {binds: 0}", "a time from 2026-01-01T00:00:00Z on"),
        ("now: soon\nexpect: {binds: 0}", "test.yaml:2: now: expected a time such as"),
    ],
)
def test_a_record_is_the_cluster_of_a_test(folder: Path, given: str, outcome: str) -> None:
    file = folder.parent / "test.yaml"
    file.write_text(f"objectsFrom: record\n{given}\n")
    assert outcome in pumice("test", file).stdout


def test_a_record_is_read_wherever_a_snapshot_is(folder: Path, tmp_path: Path) -> None:
    conf, scenario = tmp_path / "new.conf", folder.parent / "run.yaml"
    conf.write_text(CONF.replace("gang}", "gang}, {name: binpack}"))
    scenario.write_text("objectsFrom: record\nnow: 00:01:10\n")
    then = ("--at", "00:01:10")
    asked = [
        ("whatif", "-f", folder, *then, "--new-conf", conf),
        ("diff", conf, conf, "-f", folder, *then),
        ("config", "check", conf, "--cluster", folder, *then),
        ("snapshot", "diff", folder, folder),
        ("explain", "new", "-f", scenario),
        ("run", scenario),
    ]
    for words in asked:
        done = pumice(*words)
        assert done.exit_code == 0, (words, done.stderr)


def test_a_time_before_the_record_is_named(folder: Path) -> None:
    done = pumice("explain", "new", "-f", folder, "--at", "2020-01-01T00:00:00Z")
    assert done.exit_code == 2
    assert "expected a time from 2026-01-01T00:00:00Z on, got 2020-01-01T00:00:00Z" in done.stderr


def test_the_history_of_a_job_has_each_state_with_its_cause(folder: Path) -> None:
    found = json.loads(pumice("history", "new", "-f", folder, "-o", "json").stdout)
    told = [(one["state"], one["cause"]) for one in found]
    assert told == [("Waiting", "InsufficientResource"), ("Running", ""), ("Completed", "")]
    assert 85 <= found[0]["seconds"] <= 95  # the old one has run for 120 s when it is 90 s old
    assert 55 <= found[1]["seconds"] <= 65
    text = pumice("history", "new", "-f", folder).stdout
    assert text.startswith("default/new in queue default: ")
    assert ": 1 min 3" in text.splitlines()[0]
    assert text.splitlines()[0].endswith("s Running")


def test_waiting_time_is_summed_by_queue_and_cause(folder: Path) -> None:
    rows = csv.DictReader(pumice("history", "-f", folder, "-o", "csv").stdout.splitlines())
    most = next(rows)
    assert (most["queue"], most["cause"], most["jobs"]) == ("default", "InsufficientResource", "1")
    assert most["longest_job"] == "default/new"
    within = json.loads(
        pumice("history", "-f", folder, "--by", "job", "--from", "00:01", "--to", "00:01:20",
               "-o", "json").stdout
    )  # fmt: skip
    assert [(one["job"], one["seconds"]) for one in within] == [("default/new", 20.0)]
    chart = folder.parent / "chart.html"
    assert "█" in pumice("history", "-f", folder, "--by", "cause", "--report", chart).stdout
    assert chart.read_text().count("<rect ") > 10


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("nothing",),
            "expected a job of this record, got 'nothing' (there are default/new, default/old)",
        ),
        (("--queue", "x"), "--queue: expected a queue with jobs in this record, got 'x'"),
        (("--from", "soon"), '--from: expected a time such as "03:10"'),
    ],
)
def test_a_history_of_nothing_is_an_error(folder: Path, words: Any, problem: str) -> None:
    done = pumice("history", *words, "-f", folder)
    assert done.exit_code == 2
    assert problem in done.stderr


def test_damage_is_noted_beside_the_answer(folder: Path) -> None:
    file = folder / "foreign"
    file.write_text("")
    try:
        done = pumice("explain", "new", "-f", folder)
        assert f"note: {file}: not a part of the record; left out" in done.stderr
    finally:
        file.unlink()


def test_two_moments_of_a_record_are_compared(folder: Path) -> None:
    words = ("snapshot", "diff", folder, "--at", "00:01:00")
    done = pumice(*words, "--at", "00:03:00", "-o", "json")
    assert done.exit_code == 1, done.stderr
    assert json.loads(done.stdout)["seconds"] == 120
    assert "no differences" in pumice(*words, "--at", "00:01:00").stdout
    assert "at most twice" in pumice(*words, *words[-2:], *words[-2:]).stderr


def test_the_library_refuses_what_the_command_refuses(tmp_path: Path) -> None:
    import pumice as library  # noqa: PLC0415  (the name is taken above)

    with pytest.raises(InputError, match="age: expected more than 0"):
        library.record(tmp_path / "r", age="0s")
