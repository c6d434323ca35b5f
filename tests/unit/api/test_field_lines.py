"""Errors that name the line of an object come to name the line of its field."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pumice
from pumice.api import manifests as field_lines
from pumice.api.manifests import point_to_field, pointing_to_fields
from pumice.cli.main import main
from pumice.errors import ManifestError

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: one}\nspec:\n  unschedulable: false\n"
JOB = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
spec:
  minAvailable: 1
  tasks:
  - name: a
    replicas: -3
    template: {spec: {containers: [{name: a, image: a}]}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.yaml"
    path.write_text(f"{NODE}---\n{JOB}")
    return path


def pointed(where: str, **more: Any) -> str:
    error = ManifestError(wanted="better", found="bad", file=where, **more)
    point_to_field(error)
    return error.file


def test_a_field_is_found_in_the_document_that_is_named(file: Path) -> None:
    path = ("spec", "tasks", 0, "replicas")
    assert pointed(f"{file}:7", path=path, subject="Job default/train") == f"{file}:15"
    assert pointed(f"{file}:7", path=path, subject="Job default/") == f"{file}:15"
    named = {"subject": "Job default/train", "field": "spec.tasks[0].replicas"}
    assert pointed(f"{file}:7", **named) == f"{file}:15"
    assert pointed(f"{file}:15", **named) == f"{file}:15"


def test_a_missing_field_leads_to_what_is_around_it(file: Path) -> None:
    assert pointed(f"{file}:1", field="spec.taints[3].key", subject="Node one") == f"{file}:5"


@pytest.mark.parametrize("where", ["", "<text>:1", "missing.yaml:3"])
def test_a_place_that_cannot_be_read_stays(where: str) -> None:
    assert pointed(where, field="spec") == where


def test_a_large_file_is_not_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = file.stat().st_size
    monkeypatch.setattr(field_lines, "_MOST_BYTES", size)
    named = {"subject": "Job default/train", "field": "spec.tasks[0].replicas"}
    assert pointed(f"{file}:7", **named) == f"{file}:15"
    monkeypatch.setattr(field_lines, "_MOST_BYTES", size - 1)
    assert pointed(f"{file}:7", **named) == f"{file}:7"


def test_a_text_that_is_no_yaml_and_an_object_that_is_twice_stay(file: Path) -> None:
    file.write_text("a: [")
    assert pointed(f"{file}:1", field="a") == f"{file}:1"
    file.write_text(f"{NODE}---\n{NODE}")
    assert pointed(f"{file}:9", field="spec", subject="Node one") == f"{file}:9"


def test_an_item_of_a_list_in_json_is_found_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    items = [
        {"kind": "Node", "metadata": {"name": name}, "spec": {"unschedulable": 1}} for name in "ab"
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1)
    path.write_text(text)
    line = 1 + text[: text.rindex("unschedulable")].count("\n")
    found = pointed(f"{path}:1", field="spec.unschedulable", subject="Node b")
    assert found == f"{path}:{line}"


def test_errors_on_their_way_are_pointed(file: Path) -> None:
    with pytest.raises(ManifestError, match=":5: "), pointing_to_fields():
        raise ManifestError(wanted="x", file=f"{file}:1", field="spec", subject="Node one")


@pytest.mark.parametrize(
    "words", [("run",), ("whatif", "-f", "examples/first-cluster.yaml", "--job")]
)
def test_commands_name_the_line_of_the_wrong_field(file: Path, words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*words, str(file)])
    assert result.exit_code == 2
    said = "spec.tasks[0].replicas: expected at least 0, got -3"
    assert result.stderr == f"Error: {file}:15: Job default/train: {said}\n"


def test_the_library_names_the_line_of_the_wrong_field(file: Path) -> None:
    with pytest.raises(ManifestError, match=r":15: Job default/train: spec.tasks\[0\].replicas"):
        pumice.load(file)
    cluster = pumice.load("examples/first-cluster.yaml")
    with pytest.raises(ManifestError, match=r":15: Job default/train: spec.tasks\[0\].replicas"):
        pumice.whatif(cluster, file)
    with pytest.raises(ManifestError, match=r":15: Job default/train: spec.tasks\[0\].replicas"):
        pumice.simulate(file)
