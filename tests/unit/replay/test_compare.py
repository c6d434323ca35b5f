"""The jobs of a record under another configuration."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

import pumice
from pumice.api.conf import SchedulerConf, parse_conf
from pumice.cli.main import main
from pumice.records.entries import CycleEntry
from pumice.records.history import History
from pumice.records.recorder import Recorder
from pumice.replay.compare import Comparison, play
from pumice.replay.recorded_workload import recorded_workload
from pumice.testing import pod, pod_group
from tests.unit.replay.test_exact import CONF, START, record_churn

CALM = """
actions: enqueue, allocate, backfill
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""
SLOW = CALM.replace("{name: priority}, ", "")


def compare(history: History, conf: SchedulerConf, since: float | None = None) -> Comparison:
    return play(history, conf, since).compared()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("churn") / "record"
    record_churn(place, 1, 1.0, CALM, disturbed=False)
    return place


def test_the_recorded_configuration_is_reproduced(folder: Path) -> None:
    found = compare(History(folder), parse_conf(CALM))
    assert found.fidelity.jobs > 10
    assert found.fidelity.is_trusted, found.fidelity
    assert found.fidelity.near == found.fidelity.jobs
    assert (found.wait.mean, found.is_clear) == (0.0, False)
    assert (found.earlier, found.later) == (0, 0)


def test_nodes_that_change_and_evictions_are_reproduced(tmp_path: Path) -> None:
    record_churn(tmp_path / "record", 1, 1.5)
    history = History(tmp_path / "record")
    found = compare(history, parse_conf(CONF)).fidelity
    assert found.near == found.jobs > 40
    assert found.bound_s < 10
    assert found.pods == found.like_nodes > found.same_nodes > 0
    assert abs(found.evictions - found.simulated_evictions) <= 2 < found.evictions
    assert found.same_evictions >= found.evictions / 2
    later = compare(history, parse_conf(CONF), since=history.start + 2700).fidelity
    assert later.is_trusted
    assert 0 < later.jobs < found.jobs


def test_jobs_that_never_start_under_a_configuration_are_named(
    folder: Path, tmp_path: Path
) -> None:
    idle = CALM.replace("allocate, backfill", "backfill")
    found = compare(History(folder), parse_conf(idle))
    assert found.fidelity.near == found.fidelity.jobs
    assert len(found.only_old) == found.old["started"] > 10
    assert (found.new["started"], found.only_new, found.losers) == (0, [], {})
    conf = tmp_path / "idle.conf"
    conf.write_text(idle)
    shown = CliRunner().invoke(main, ["replay", str(folder), "--conf", str(conf)]).stdout
    assert f"{len(found.only_old)} never start under the new one: default/j1, " in shown


def test_cycles_are_as_far_apart_as_they_were(folder: Path, tmp_path: Path) -> None:
    assert recorded_workload(History(folder)).options.period == 1.0  # while it is busy
    now = [START]
    recorder = Recorder(tmp_path / "record", lambda: now[0], by="scheduler")
    recorder.put(pod_group("j"))
    recorder.put(pod("j-0", group="j"))
    for _ in range(20):
        recorder.decided(CycleEntry(now=now[0]))
        now[0] += 15.0
    recorder.close()
    assert recorded_workload(History(tmp_path / "record")).options.period == 15.0


def test_run_times_are_those_of_the_record(folder: Path) -> None:
    recorded = recorded_workload(History(folder))
    ran = [task.run_seconds for job in recorded.workload.jobs for task in job.tasks]
    assert min(ran) >= 55
    assert max(ran) <= 910


def test_the_command_reports_fidelity_first(folder: Path, tmp_path: Path) -> None:
    conf = tmp_path / "new.conf"
    conf.write_text(SLOW)
    done = CliRunner().invoke(main, ["replay", str(folder), "--conf", str(conf)])
    assert done.exit_code == 0, done.output
    assert done.stdout.index("of the jobs start about when they did") < done.stdout.index(
        "mean wait"
    )
    data = json.loads(
        CliRunner().invoke(main, ["replay", str(folder), "--conf", str(conf), "-o", "json"]).stdout
    )
    assert data["fidelity"]["jobs"] == data["fidelity"]["near"] or data["fidelity"]["near"] > 0
    assert data["old"]["jobs"] == data["new"]["jobs"]
    assert {each["name"] for each in data["queues"]} == {"a", "b"}
    assert data["trusted"] is True


def test_the_library_opens_moments_and_replays(folder: Path) -> None:
    history = pumice.History(folder)
    assert len(history.at("00:30").objects("Node")) == 4
    assert {"Waiting", "Running"} <= {*history.jobs()["state"]}
    assert history.replay().is_exact
    assert history.replay(CALM).fidelity.is_trusted
    assert history.problems == []
    assert repr(history).endswith("from 2026-01-01T00:00:00Z>")


def test_a_canary_judges_by_conditions(folder: Path, tmp_path: Path) -> None:
    conf = tmp_path / "new.conf"
    conf.write_text(SLOW)
    words = ["canary", "-f", str(folder), "--conf", str(conf), "--since", "7d"]
    files = ["--junit", str(tmp_path / "junit.xml"), "--report", str(tmp_path / "page.html")]
    good = ["--require", "jobs-later <= 1000"]
    done = CliRunner().invoke(main, [*words, *files, *good, "--require", "wait.mean@a < 0"])
    assert done.exit_code == 1, done.output
    assert "wait.mean@a < 0      NO    20 s, before 20 s" in done.stdout
    cases = ET.fromstring((tmp_path / "junit.xml").read_text()).iter("testcase")  # noqa: S314
    assert {each.get("name"): each.find("failure") is not None for each in cases} == {
        "new.conf [fidelity]": False,
        "new.conf [jobs-later <= 1000]": False,
        "new.conf [wait.mean@a < 0]": True,
    }
    page = (tmp_path / "page.html").read_text()
    assert "new.conf: refused" in page
    assert "NOT met: wait.mean@a &lt; 0" in page
    assert CliRunner().invoke(main, [*words, *good]).exit_code == 0
    wrong = CliRunner().invoke(main, [*words, "--require", "wait.p99@c < 1"])
    assert wrong.exit_code == 2
    assert "wait.p99@" in wrong.output
