"""The runner: finding files, playing cycles, keeping one file's trouble to itself."""

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from pumice.api.decisions import Decisions, PodGroupState
from pumice.errors import ConfError, ScenarioError
from pumice.scenarios.compare import CompareOptions
from pumice.scenarios.runner import ScenarioFile, check, find_scenarios, play, run_files
from pumice.scenarios.scenario import scenario_from
from pumice.testing.builders import node, pod, pod_group

OBJECTS = [node("n1"), pod_group("pg", namespace="ns"), pod("a", namespace="ns", group="pg")]
BINDS = {"ns/a": "n1"}


def refuse(conf: Any, seed: Any) -> Any:
    raise ConfError(file="")


class Fake:
    """Binds every pending pod to the first node, and remembers how it was called."""

    def __init__(self, conf: Any, seed: Any) -> None:
        self.conf, self.seed = conf, seed
        self.calls: list[Any] = []

    def cycle(self, objects: Any, now: Any, node_usage: Any) -> Any:
        self.calls.append((objects, now, node_usage))
        marks = {one["metadata"]["name"] for one in objects}
        if "crash" in marks:
            raise KeyError("lost")
        if "die" in marks:
            os._exit(3)
        pods = [one for one in objects if one["kind"] == "Pod"]
        pending = [one for one in pods if one["status"]["phase"] == "Pending"]
        phase = "Inqueue" if pending else "Running"
        return Decisions(
            binds={f"ns/{one['metadata']['name']}": "n1" for one in pending},
            pod_groups={"ns/pg": PodGroupState(phase)},
        )


def make_fake(conf: Any, seed: Any) -> Any:
    return Fake(conf, seed)


def scenario(**changes: Any) -> Any:
    return scenario_from({"objects": OBJECTS, **changes}, Path("case.json"))


def save(folder: Any, name: Any, document: Any) -> Any:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def test_one_scheduler_plays_all_cycles_and_the_clock_advances_by_a_second() -> None:
    made = []

    def make(conf: Any, seed: Any) -> Any:
        made.append(Fake(conf, seed))
        return made[-1]

    usage = {"n1": {"cpu": 10}, "n2": {"cpu": 20, "metricsTime": "1970-01-01T00:00:09Z"}}
    world = scenario(now="1970-01-01T00:01:00Z", cycles=2, seed=7, nodeUsage=usage)
    played = play(world, make)
    assert len(made) == 1
    assert made[0].seed == 7
    assert [call[1] for call in made[0].calls] == [60.0, 61.0]
    assert made[0].calls[1][2] == {
        "n1": {"cpu": 10.0, "metricsTime": 61.0},
        "n2": {"cpu": 20.0, "metricsTime": 9.0},
    }
    assert [cycle.decisions.binds for cycle in played] == [BINDS, {}]
    assert played[0].objects == OBJECTS
    assert played[1].objects[2]["spec"]["nodeName"] == "n1"


def test_differences_of_several_cycles_name_the_cycle() -> None:
    world = scenario(expect={"cycles": [{"binds": BINDS}, {"binds": BINDS}]})
    assert check(world, make_fake, CompareOptions()) == [
        "cycle 2: ns/a: not bound, expected bound to n1"
    ]


def test_a_scenario_without_expectations_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="expected expectations"):
        check(scenario(), make_fake, CompareOptions())


def test_a_bad_configuration_names_the_scenario() -> None:
    with pytest.raises(ConfError, match=r"case\.json: conf"):
        play(scenario(conf="acions: allocate\n"), make_fake)


def test_folders_are_walked_in_order_and_a_file_runs_once(tmp_path: Path) -> None:
    late = save(tmp_path, "b/2.json", {})
    early = save(tmp_path, "a/1.yaml", {})
    save(tmp_path, "a/readme.md", {})
    assert find_scenarios([tmp_path, late]) == [ScenarioFile(early), ScenarioFile(late)]
    assert find_scenarios([late]) == [ScenarioFile(late, named=True)]
    assert find_scenarios([tmp_path], "1.yaml") == [ScenarioFile(early)]


def test_trouble_with_one_file_stays_with_it(tmp_path: Path) -> None:
    save(tmp_path, "1.json", {"objects": OBJECTS, "expect": {"binds": BINDS}})
    save(tmp_path, "2.json", {"objects": OBJECTS, "expect": {"binds": {}}})
    save(tmp_path, "3.json", {"objects": [node("crash")], "expect": {"binds": {}}})
    (tmp_path / "4.json").write_text("{")
    save(tmp_path, "5.json", ["not a scenario"])
    save(tmp_path, "6.yaml", {"objects": OBJECTS, "expect": {"bindsNum": 1}})
    results = list(run_files(find_scenarios([tmp_path]), make_scheduler=make_fake))
    assert [(result.path.name, result.outcome) for result in results] == [
        ("1.json", "passed"),
        ("2.json", "failed"),
        ("3.json", "error"),
        ("4.json", "error"),
        ("6.yaml", "passed"),
    ]
    assert results[1].differences == ("ns/a: bound to n1, expected not bound",)
    assert results[2].differences[0].startswith("KeyError: 'lost' (test_runner.py, line ")
    assert "line 1" in results[3].differences[0]
    assert results[0].seconds > 0


def test_a_named_file_that_is_no_scenario_is_an_error(tmp_path: Path) -> None:
    path = save(tmp_path, "5.json", ["not a scenario"])
    (result,) = run_files(find_scenarios([path]), make_scheduler=make_fake)
    assert result.outcome == "error"


def test_stopping_early_ends_with_the_first_failure(tmp_path: Path) -> None:
    for name, binds in (("1", BINDS), ("2", {}), ("3", BINDS)):
        save(tmp_path, f"{name}.json", {"objects": OBJECTS, "expect": {"binds": binds}})
    results = list(run_files(find_scenarios([tmp_path]), make_scheduler=make_fake, stop_early=True))
    assert [result.outcome for result in results] == ["passed", "failed"]


needs_fork = pytest.mark.skipif(
    multiprocessing.get_start_method() != "fork", reason="the fake cannot be imported by workers"
)


def many(folder: Any, number: Any) -> None:
    for i in range(number):
        save(folder, f"{i:03}.json", {"objects": OBJECTS, "expect": {"bindsNum": i % 2}})


@needs_fork
def test_processes_give_the_same_results_in_the_same_order(tmp_path: Path) -> None:
    many(tmp_path, 60)
    files = find_scenarios([tmp_path])
    here = run_files(files, make_scheduler=make_fake, jobs=1)
    there = run_files(files, make_scheduler=make_fake, jobs=2)
    facts = [(result.path, result.outcome, result.differences) for result in here]
    assert facts == [(result.path, result.outcome, result.differences) for result in there]
    assert [outcome for _, outcome, _ in facts] == ["failed", "passed"] * 30


@needs_fork
def test_a_process_that_dies_is_an_error_on_one_file(tmp_path: Path) -> None:
    many(tmp_path, 48)
    save(tmp_path, "020.json", {"objects": [node("die")], "expect": {"bindsNum": 0}})
    results = list(run_files(find_scenarios([tmp_path]), make_scheduler=make_fake, jobs=2))
    assert [result.path.name for result in results if result.outcome == "error"] == ["020.json"]
    assert results[20].differences == ("the process died while running this file",)
    assert len(results) == 48


def test_a_configuration_that_the_scheduler_refuses_is_named_with_its_place() -> None:
    with pytest.raises(ConfError) as raised:
        play(scenario(), refuse)
    assert raised.value.file == "case.json: conf"
