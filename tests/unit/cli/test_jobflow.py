"""`pumice jobflow` and `pumice jobtemplate`: made from files, printed as they are."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.cli.vcctl.command import run_vcctl
from pumice.cluster.embedded.store import EmbeddedCluster

FLOW = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata:\n  name: {}\n"


@pytest.fixture
def cluster() -> Any:
    return EmbeddedCluster()


@pytest.fixture
def pumice_command(cluster: Any) -> Any:
    return lambda *words: CliRunner().invoke(main, list(words), obj=lambda _: nullcontext(cluster))


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: Any) -> Any:
        (tmp_path / "f.yaml").write_text(text)
        return str(tmp_path / "f.yaml")

    return write


def test_flows_are_made_listed_and_deleted_from_one_file(pumice_command: Any, write: Any) -> None:
    file = write(f"---\n{FLOW.format('a')}---\n{FLOW.format('b')}  namespace: lab\n")
    made = "Created JobFlow: default/a\nCreated JobFlow: lab/b\n"
    assert pumice_command("jobflow", "create", "-f", file).output == made
    listed = pumice_command("jobflow", "list", "--all-namespaces").output.splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [["a", "default"], ["b", "lab"]]
    gone = made.replace("Created", "Deleted")
    assert pumice_command("jobflow", "delete", "-f", file).output == gone
    assert pumice_command("jobflow", "list").output == "No resources found\n"


def test_dashes_inside_a_value_end_no_document(
    cluster: Any, pumice_command: Any, write: Any
) -> None:
    file = write(FLOW.format("d") + "  annotations: {note: a---b}\nspec: {jobRetainPolicy: retain}")
    assert pumice_command("jobflow", "create", "-f", file).exit_code == 0
    stored = cluster.get("JobFlow.flow.volcano.sh", "default", "d")
    assert stored["metadata"]["annotations"] == {"note": "a---b"}
    assert stored["spec"]["jobRetainPolicy"] == "retain"


def test_a_file_of_which_a_part_is_refused_fails_but_in_the_original(
    cluster: Any, pumice_command: Any, write: Any
) -> None:
    file = write(f"{FLOW.format('a')}---\n{FLOW.format('a')}---\n{FLOW.format('b')}")
    lines = pumice_command("jobflow", "create", "-f", file)
    refused = 'Failed to create JobFlow: jobflows.flow.volcano.sh "a" already exists'
    assert lines.output.splitlines() == [
        "Created JobFlow: default/a",
        refused,
        "Created JobFlow: default/b",
        f"Failed to create jobflow: 1 of 3 objects in {file} was refused",
    ]
    assert lines.exit_code == 255
    out: list[Any] = []
    words = ["jobflow", "create", "-f", file]
    assert run_vcctl(words, lambda _: nullcontext(cluster), out.append, out.append) == 0
    assert len(out) == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "f.yaml: expected a JobFlow, got an empty file"),
        ("---\n# nothing\n", "f.yaml: expected a JobFlow, got an empty file"),
        ("a: [", "f.yaml:2: expected readable YAML"),
        ("kind: Node\nmetadata: {name: x}\n", "f.yaml:1: Node x: kind: expected 'JobFlow', got"),
        (f"{FLOW.format('a')}---\n{FLOW.format('b')}spec: 5\n", "f.yaml:10: JobFlow default/b: "),
    ],
)
def test_a_file_that_cannot_be_used_makes_nothing(
    cluster: Any, pumice_command: Any, write: Any, text: str, problem: str
) -> None:
    for verb in ("create", "delete"):
        result = pumice_command("jobflow", verb, "-f", write(text))
        assert result.exit_code == 255
        assert result.output.startswith(f"Failed to {verb} jobflow: ")
        assert problem in result.output
    assert cluster.list("JobFlow.flow.volcano.sh", "")[0] == []


def test_a_flow_is_not_made_from_no_file(pumice_command: Any) -> None:
    result = pumice_command("jobflow", "create")
    assert result.output == (
        "Failed to create jobflow: -f: expected a file with a JobFlow, got nothing\n"
    )


def test_describe_prints_what_the_original_types_hold(pumice_command: Any, write: Any) -> None:
    pumice_command(
        "jobflow", "create", "-f", write(FLOW.format("a") + "spec: {flows: [{name: t}]}")
    )
    shown = pumice_command("jobflow", "describe", "-N", "a").output
    assert yaml.safe_load(shown)["status"] == {"state": {}}
    assert '  creationTimestamp: "2026-01-01T00:00:00Z"\n' in shown
    as_json = pumice_command("jobflow", "describe", "-N", "a", "-o", "json").output
    assert list(json.loads(as_json)) == ["kind", "apiVersion", "metadata", "spec", "status"]
    assert json.loads(as_json) == yaml.safe_load(shown)
    assert pumice_command("jobflow", "describe", "-N", "a", "-o", "xml").exit_code == 255


def test_a_template_is_described_with_its_empty_parts(pumice_command: Any, write: Any) -> None:
    text = FLOW.replace("JobFlow", "JobTemplate").format("t")
    text += "spec: {tasks: [{template: {spec: {containers: [{name: c, image: yes}]}}}]}\n"
    assert pumice_command("jobtemplate", "create", "-f", write(text)).exit_code == 0
    shown = yaml.safe_load(pumice_command("jobtemplate", "describe", "-N", "t").output)
    template = shown["spec"]["tasks"][0]["template"]
    assert template["metadata"] == {}
    assert template["spec"]["containers"] == [{"image": "true", "name": "c", "resources": {}}]
    assert shown["status"] == {}
    row = pumice_command("jobtemplate", "get", "-N", "t").output
    assert row == "Name    Namespace    \nt       default      \n"
