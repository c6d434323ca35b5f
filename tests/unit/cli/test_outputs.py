"""Every verb that answers prints its answer for programs too."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.cluster.embedded.store import EmbeddedCluster

ROOT: Final = Path(__file__).resolve().parents[3]
CONF: Final = "examples/volcano-scheduler.conf"
CLUSTER: Final = "examples/first-cluster.yaml"
SCENARIO: Final = "examples/plugins/gpu_guard.scenario"
WITHOUT: Final = {
    "demo": "tells a story",
    "record": "runs until it is stopped",
    "schema": "prints JSON",
    "serve all": "runs until it is stopped",
    "serve controllers": "runs until it is stopped",
    "serve scheduler": "runs until it is stopped",
    "serve webhooks": "runs until it is stopped",
    "snapshot save": "writes a file, JSON if its name says so",
    "trace convert": "writes a file",
    "trace sample": "writes a file",
    "ui": "runs until it is stopped",
    "up": "runs until it is stopped",
    "vcctl": "prints what Volcano's own vcctl prints, byte for byte",
}
"""Verbs that have no answer to print, and why."""
NAMED: Final = ("json", "yaml")


def verbs(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from verbs(found, (*path, name))


VERBS: Final = dict(verbs(main))


def formats(command: click.Command) -> set[str]:
    """Return what the help of -o offers."""
    for option in command.params:
        if isinstance(option, click.Option) and "-o" in option.opts:
            if isinstance(option.type, click.Choice):
                return {str(choice) for choice in option.type.choices}
            reported = f"{option.metavar} {option.default}"  # [table|json|yaml|DIR], or yaml
            return {word for word in NAMED if word in reported}
    return set()


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_prints_json_and_yaml_or_has_no_answer(name: str) -> None:
    offered = formats(VERBS[name])
    if name in WITHOUT:
        assert not {*NAMED} & offered, f"{name} can, so it needs no excuse"
    elif name.endswith(" describe"):  # prints objects, as YAML unless -o json
        assert "yaml" in offered
    else:
        assert offered >= {*NAMED}, f"'pumice {name}' prints an answer, but not with -o json"


def test_only_verbs_that_there_are_make_excuses() -> None:
    assert WITHOUT.keys() - VERBS.keys() == set()


ANSWERS: Final = {
    "config check": ["config", "check", CONF],
    "explain": ["explain", "-f", CLUSTER],
    "explain a job": ["explain", "ai/sweep", "-f", CLUSTER, "--no-unblock"],
    "lint": ["lint", "examples/train-job.yaml", "--queue", "research"],
    "plugin list": ["plugin", "list"],
    "plugin show": ["plugin", "show", "binpack"],
    "queue order": ["queue", "order", "-f", CLUSTER],
    "run": ["run", "-f", CLUSTER],
    "snapshot show": ["snapshot", "show", CLUSTER],
    "test": ["test", SCENARIO, "--plugin", "examples/plugins/gpu_guard.py"],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_the_same_as_json_and_as_yaml(name: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(ROOT)
    said = {form: CliRunner().invoke(main, [*ANSWERS[name], "-o", form]) for form in NAMED}
    assert {one.exit_code for one in said.values()} == {0}, said["json"].output
    found = json.loads(said["json"].stdout), yaml.safe_load(said["yaml"].stdout)
    assert _timeless(found[0]) == _timeless(found[1])
    assert found[0] or name == "lint"


def _timeless(found: Any) -> Any:
    """Leave out how long a case of a test took."""
    if isinstance(found, dict) and "cases" in found:
        cases = [{**case, "seconds": 0} for case in found["cases"]]
        return {**found, "cases": cases}
    return found


def test_a_check_that_fails_says_where_and_why(tmp_path: Path) -> None:
    file = tmp_path / "bad.conf"
    file.write_text('actions: "allocate"\ntiers:\n- plugins:\n  - name: gangg\n')
    done = CliRunner().invoke(main, ["config", "check", str(file), "-o", "json"])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["usable"], found["hooks"]) == (False, [])
    (problem,) = found["problems"]
    assert (problem["line"], problem["severity"]) == (4, "error")
    assert problem["field"] == "tiers[0].plugins[0]"
    assert "gangg" in problem["message"]


def test_a_case_that_cannot_be_run_is_in_the_data_with_the_reason(monkeypatch: Any) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(main, ["test", SCENARIO, "-o", "json"])  # without its plugin
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert (found["passed"], found["failed"], found["errors"]) == (0, 0, 1)
    (case,) = found["cases"]
    assert (case["path"], case["outcome"]) == (SCENARIO, "error")
    assert "gpu-guard" in case["differences"][0]


QUEUE: Final = ["queue", "create", "-n", "q"]
JOB: Final = ["job", "run", "-N", "j"]
FLOW: Final = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {{name: {}}}\n"


@pytest.mark.parametrize(
    ("before", "words", "kind", "name"),
    [
        ([], JOB, "Job", "j"),
        ([JOB], ["job", "suspend", "-N", "j"], "Command", "j-abortjob-"),
        ([JOB], ["job", "resume", "-N", "j"], "Command", "j-resumejob-"),
        ([JOB], ["job", "delete", "-N", "j"], "Job", "j"),
        ([], QUEUE, "Queue", "q"),
        ([QUEUE], ["queue", "operate", "-n", "q", "-a", "close"], "Command", "q-closequeue-"),
        ([QUEUE], ["queue", "operate", "-n", "q", "-a", "update", "-w", "3"], "Queue", "q"),
        ([QUEUE], ["queue", "delete", "-n", "q"], "Queue", "q"),
    ],
)
def test_a_verb_that_writes_prints_what_it_wrote(
    before: Any, words: Any, kind: str, name: str
) -> None:
    for form in ("json", "yaml", "name"):
        cluster = EmbeddedCluster()
        for each in before:
            assert invoke(cluster, *each).exit_code == 0
        done = invoke(cluster, *words, "-o", form)
        assert done.exit_code == 0, done.output
        if form == "name":
            assert done.stdout.startswith(f"{kind.lower()}.")
            assert f".volcano.sh/{name}" in done.stdout
        else:
            found = json.loads(done.stdout) if form == "json" else yaml.safe_load(done.stdout)
            assert found["kind"] == kind
            assert found["metadata"]["name"].startswith(name)


def invoke(cluster: Any, *words: str) -> Any:
    return CliRunner().invoke(main, list(words), obj=lambda _: nullcontext(cluster))


def test_flows_of_one_file_are_printed_as_a_list_and_refusals_apart(tmp_path: Path) -> None:
    file, cluster = tmp_path / "flows.yaml", EmbeddedCluster()
    file.write_text("---\n".join(FLOW.format(name) for name in "ab"))
    done = invoke(cluster, "jobflow", "create", "-f", str(file), "-o", "json")
    found = json.loads(done.stdout)
    assert [item["metadata"]["name"] for item in found["items"]] == ["a", "b"]
    file.write_text("---\n".join(FLOW.format(name) for name in "bc"))
    done = invoke(cluster, "jobflow", "create", "-f", str(file), "-o", "json")
    assert done.exit_code == 255
    assert json.loads(done.stdout)["metadata"]["name"] == "c"
    assert "already exists" in done.stderr
    gone = invoke(cluster, "jobflow", "delete", "-N", "a", "-o", "name")
    assert gone.stdout == "jobflow.flow.volcano.sh/a\n"


def test_a_failure_is_not_printed_where_a_program_expects_data() -> None:
    done = invoke(EmbeddedCluster(), "job", "view", "-N", "nobody", "-o", "json")
    assert (done.exit_code, done.stdout) == (255, "")
    assert "nobody" in done.stderr
    plain = invoke(EmbeddedCluster(), "job", "view", "-N", "nobody")
    assert "nobody" in plain.stdout


@pytest.mark.parametrize(
    "group", ["config", "snapshot", "trace", "queue", "job", "plugin", "serve"]
)
def test_no_line_of_a_groups_help_is_cut(group: str) -> None:
    done = CliRunner().invoke(main, [group, "--help"], terminal_width=80)
    assert done.exit_code == 0, done.output
    assert "...\n" not in done.output.partition("Commands:")[2]
