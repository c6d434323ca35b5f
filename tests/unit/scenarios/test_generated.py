"""Many cases from one file: a matrix, drawn workloads, changed configurations, watched files."""

import json
import signal
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.scenarios.mutants import mutants_of
from pumice.scenarios.runner import find_scenarios, junit_xml, run_files
from pumice.scenarios.scenario import load_scenario
from tests.present import present

CONF = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
    enableJobOrder: false
  - name: predicates
- plugins:
  - name: binpack
    arguments:
      binpack.weight: 10
"""
GANG = {"name": "wide", "queue": "a", "pods": 4, "gang": True}


def write(folder: Path, **keys: Any) -> Path:
    path = folder / "case.yaml"
    path.write_text(json.dumps({"conf": CONF, "nodes": {"count": 2, "cpu": 4}, **keys}))
    return path


def run(*words: Any) -> Any:
    return CliRunner().invoke(main, [str(word) for word in words])


def results(path: Path) -> list[Any]:
    return list(run_files(find_scenarios([path])))


def test_a_matrix_is_every_combination(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        name="fits",
        matrix={"seed": "1..2", "pods": [8, 9]},
        workloads=[{"name": "all", "pods": "${pods}"}],
        expect={"bindsNum": 8, "boundPerPodGroup": {"default/all": "${pods}"}},
    )
    found = results(path)
    assert [each.outcome for each in found] == ["passed", "failed", "passed", "failed"]
    assert found[3].name == "fits [seed=2, pods=9]"
    assert "2 passed, 2 failed" in run("test", path).stdout
    data = json.loads(run("test", path, "-o", "json").stdout)["cases"]
    assert [each["case"] for each in data[:2]] == ["seed=1, pods=8", "seed=1, pods=9"]
    assert 'name="case.yaml [seed=2, pods=8]"' in junit_xml(found)
    assert load_scenario(path).seed == 1


def test_a_matrix_over_configurations(tmp_path: Path) -> None:
    (tmp_path / "with.conf").write_text(CONF)
    (tmp_path / "without.conf").write_text(
        CONF.replace("- name: gang\n    enableJobOrder: false\n  ", "")
    )
    path = write(
        tmp_path,
        matrix={"confFrom": ["with.conf", "without.conf"]},
        nodes={"count": 1, "cpu": 3},
        workloads=[GANG],
        always={"gangsWhole": True},
    )
    assert [each.outcome for each in results(path)] == ["passed", "failed"]


MISTAKES = {
    "an unused parameter": ({"matrix": {"gpus": [1]}}, "expected a use of ${gpus} in the scenario"),
    "no values": ({"matrix": {"seed": []}}, "matrix.seed: expected at least one value"),
    "a drawn field": ({"draw": {"pod": [1]}, "always": ["gangsWhole"]}, "did you mean 'pods'?"),
    "nothing to hold": ({"draw": {"pods": "1..2"}}, "expected invariants for what is drawn"),
}


@pytest.mark.parametrize(("keys", "text"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_says_what_is_wanted(keys: Any, text: str, tmp_path: Path) -> None:
    (result,) = results(write(tmp_path, expect={"binds": 0}, **keys))
    assert result.outcome == "error"
    assert text in result.differences[0]


def test_a_drawn_counterexample_is_made_small_and_saved(tmp_path: Path) -> None:
    draw = {
        "cases": 30,
        "workloads": "1..5",
        "queue": ["a", "b"],
        "pods": "1..6",
        "gang": [True, False],
    }
    path = write(
        tmp_path,
        conf=CONF.replace("- name: gang\n    enableJobOrder: false\n  ", ""),
        nodes={"cpu": 4},
        draw={**draw, "running": [True, False], "priority": ["low", None]},
        always={"gangsWhole": True, "noNodeOvercommitted": True},
    )
    (result,) = results(path)
    saved = tmp_path / "case-found.yaml"
    assert result.outcome == "failed"
    assert f"saved as {saved}" in result.differences[0]
    jobs = load_scenario(saved).objects
    assert sum(one["kind"] == "PodGroup" for one in jobs) <= 2
    (again,) = results(saved)
    assert again.differences == result.differences[1:]


def test_what_is_drawn_holds_with_gang(tmp_path: Path) -> None:
    draw = {"cases": 10, "workloads": "1..3", "queue": ["a"], "pods": "1..6", "gang": True}
    path = write(
        tmp_path, draw=draw, always={"gangsWhole": True, "settles": {"within": "4 cycles"}}
    )
    assert [each.outcome for each in results(path)] == ["passed"]
    assert not (tmp_path / "case-found.yaml").exists()


def test_mutants_change_one_thing_each() -> None:
    found = {(each.line, each.change) for each in mutants_of(CONF)}
    assert found == {
        (1, "without the action enqueue"),
        (1, "allocate before enqueue"),
        (1, "without the action allocate"),
        (4, "without the plugin gang"),
        (5, "enableJobOrder: true of gang"),
        (6, "without the plugin predicates"),
        (7, "tiers 1 and 2 as one"),
        (8, "without the plugin binpack"),
        (10, "without binpack.weight of binpack"),
    }


def test_changes_that_no_test_notices_are_named(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        nodes={"count": 2, "cpu": 3},
        workloads=[{**GANG, "cpu": 2}, {"name": "one", "cpu": 1}],
        expect={"boundPerPodGroup": {"default/one": 1}},
    )
    answer = run("test", path, "--mutate", "-o", "json")
    changes = {each["change"]: each["noticedBy"] for each in json.loads(answer.stdout)["changes"]}
    assert changes["without the plugin gang"] == str(path)
    assert changes["without the action allocate"] == str(path)
    assert changes["without the plugin binpack"] is None
    assert answer.exit_code == 1
    text = run("test", path, "--mutate").stdout
    assert f"{path}: conf: line 8: without the plugin binpack: no test notices" in text


def test_tests_must_pass_before_anything_is_changed(tmp_path: Path) -> None:
    path = write(tmp_path, workloads=[GANG], expect={"binds": 0})
    answer = run("test", path, "--mutate")
    assert answer.exit_code == 2
    assert "expected tests that pass before the configuration is changed" in answer.stderr


def test_tests_run_again_when_a_file_or_its_configuration_changes(tmp_path: Path) -> None:
    """The command itself, until Ctrl-C: the configuration is outside the folder that it watches."""
    folder, conf = tmp_path / "tests", tmp_path / "scheduler.conf"
    folder.mkdir()
    conf.write_text(CONF)
    file = folder / "case.yaml"
    text = "{{nodes: {{cpu: 4}}, workloads: [{{pods: 4}}], confFrom: ../{}, expect: {{binds: {}}}}}"
    file.write_text(text.format(conf.name, 3))
    # A shell starts what runs in the background with Ctrl-C ignored, and this test with it.
    main = "from pumice.cli.entry import main; main()"
    listen = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {main}"
    command = [sys.executable, "-c", listen, "test", "--watch", str(folder)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, **pipes) as running:  # noqa: S603  (our own command)
        lines = iter(present(running.stdout).readline, "")

        def next_run() -> str:
            return "".join(takewhile(lambda line: "waiting for changes" not in line, lines))

        assert "0 passed, 1 failed" in next_run()
        file.write_text(text.format(conf.name, 4))
        assert "1 passed, 0 failed" in next_run()
        conf.write_text(CONF.replace("allocate", "alocate"))
        assert "1 error" in next_run()
        running.send_signal(signal.SIGINT)
        assert running.wait(10) == 130
