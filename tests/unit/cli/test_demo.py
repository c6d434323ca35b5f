"""`pumice demo`: every chapter shows what it promises, from what was really decided."""

import csv
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.demo.player import Player, load_story
from pumice.cli.demo.report import _outcome, clock, narrate
from pumice.cli.main import main
from pumice.sim.measure import Measures


@pytest.fixture(scope="module")
def story() -> Any:
    return load_story()


@pytest.fixture(scope="module")
def played(story: Any) -> Any:
    return Player(story).play()


@pytest.fixture(scope="module")
def chapters(story: Any, played: Any) -> Any:
    reported = narrate(played)
    return {chapter.kind: one for chapter, one in zip(story.chapters, reported, strict=True)}


def job(story: Any, name: Any) -> Any:
    return story.jobs[name][1]


def first_binds(played: Any, name: Any) -> Any:
    binds = played.of("bind", job=name)
    return [one for one in binds if one.at == binds[0].at]


def test_the_story_has_three_queues_and_all_chapters(story: Any) -> None:
    assert len(story.deserved) == 3
    assert [one.kind for one in story.chapters] == [
        "gangs",
        "waiting",
        "preempt",
        "reclaim",
        "shuffle",
    ]


def test_every_gang_starts_whole(story: Any, played: Any) -> None:
    for name, (_, facts) in story.jobs.items():
        assert len(first_binds(played, name)) >= facts["gang"], name


def test_every_job_completes(story: Any, played: Any) -> None:
    assert played.phases == dict.fromkeys(sorted(story.jobs), "Completed")


def test_no_node_and_no_cluster_is_overcommitted(story: Any, played: Any) -> None:
    held: dict[str, int] = {}
    for one in played.pod_events:
        cpus = job(story, one.job)["cpu"]
        held[one.node] = held.get(one.node, 0) + (cpus if one.what == "bind" else -cpus)
        assert 0 <= held[one.node] <= 8


def test_one_queue_borrows_what_another_leaves(played: Any, chapters: Any) -> None:
    at = played.of("bind", job="etl")[0].at
    held = next(held for when, held in played.held if when == at)
    assert (held["analytics"], held["serving"]) == (16, 0)
    assert "analytics 16 CPUs of 8 deserved, 8 of them borrowed" in chapters["gangs"].lines[-1]


def test_a_gang_that_does_not_fit_waits_without_a_single_pod(
    story: Any, played: Any, chapters: Any
) -> None:
    assert len(first_binds(played, "sweep")) == job(story, "sweep")["pods"]
    assert played.of("bind", job="sweep")[0].at > 100
    assert "no node fits" in chapters["waiting"].lines[0]
    assert "the gang of 6 is short by 6" in chapters["waiting"].lines[0]


def test_preempt_evicts_less_important_pods_of_the_same_queue(
    story: Any, played: Any, chapters: Any
) -> None:
    evicted = played.of("evict", whom="hotfix")
    assert {(one.by, one.job) for one in evicted} == {("preempt", "notebooks")}
    assert played.queues["notebooks"] == played.queues["hotfix"]
    assert played.priorities["notebooks"] < played.priorities["hotfix"]
    left = job(story, "notebooks")["pods"] - len(evicted)
    assert left >= job(story, "notebooks")["gang"]
    assert "has priority 0, the second 1000" in chapters["preempt"].lines[1]


def test_reclaim_evicts_pods_of_a_queue_that_holds_more_than_it_deserves(
    story: Any, played: Any, chapters: Any
) -> None:
    evicted = played.of("evict", whom="api")
    assert {(one.by, one.job) for one in evicted} == {("reclaim", "etl")}
    assert played.queues["etl"] != played.queues["api"]
    before = [held for when, held in played.held if when < evicted[0].at][-1]
    after = next(held for when, held in played.held if when == played.of("bind", job="api")[0].at)
    assert before["analytics"] > story.deserved["analytics"] == after["analytics"]
    assert after["serving"] == story.deserved["serving"]
    assert any("reclaim evicts for api" in line for line in chapters["reclaim"].lines)


def test_shuffle_moves_pods_from_the_hot_node_to_an_idle_one(played: Any, chapters: Any) -> None:
    evicted = played.of("evict", job="render")
    assert {(one.by, one.whom) for one in evicted} == {("shuffle", "")}
    hot = {one.node for one in evicted}
    assert len(hot) == 1
    again = [one for one in played.of("bind", job="render") if one.at > evicted[0].at]
    assert not hot & {one.node for one in again}
    before = [load for when, load in played.measured if when <= evicted[0].at][-1]
    after = next(load for when, load in played.measured if when > again[-1].at)
    assert max(before.values()) == 100.0
    assert max(after.values()) <= 80.0
    assert chapters["shuffle"].lines[-1].startswith("afterwards: ")


def test_evicted_pods_run_again(played: Any) -> None:
    for one in played.of("evict"):
        assert any(bind.at > one.at for bind in played.of("bind", pod=one.pod))


def test_the_same_story_is_played_each_time(story: Any, played: Any) -> None:
    assert Player(story).play() == played


def test_times_are_minutes_and_seconds() -> None:
    assert (clock(0), clock(61.9), clock(600)) == ("0:00", "1:01", "10:00")


def test_the_command_tells_the_chapters_and_writes_the_report(tmp_path: Path, story: Any) -> None:
    file = tmp_path / "new" / "demo.html"
    result = CliRunner().invoke(main, ["demo", "--report", str(file)])
    assert result.exit_code == 0
    for number, chapter in enumerate(story.chapters, start=1):
        assert f"{number}. {chapter.title}\n" in result.output
    assert f"report: {file.resolve()}\n" in result.output
    page = file.read_text()
    assert "<h2>The story</h2>" in page
    assert 'id="gantt"' in page
    with (tmp_path / "new" / "demo-decisions.csv").open(newline="") as table:
        kinds = [row["decision"] for row in csv.DictReader(table)]
    assert kinds.count("evict") == 11


def test_the_report_is_the_same_each_time(tmp_path: Path) -> None:
    pages = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        CliRunner().invoke(main, ["demo", "--report", str(folder / "demo.html")])
        pages.append((folder / "demo.html").read_bytes())
    assert pages[0] == pages[1]


def test_a_report_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["demo", "--report", str(tmp_path / "file" / "x.html")])
    assert result.exit_code == 2
    assert "expected a folder that can be written to" in result.output


def test_the_figures_of_the_report_count_every_job_as_finished(played: Any, story: Any) -> None:
    figures = Measures("demo", _outcome(played)).summary()
    assert figures["finished"] == len(story.jobs)
    assert figures["unfinished"] == []
