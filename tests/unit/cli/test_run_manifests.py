"""`pumice run` and `pumice test` on plain manifests, files and standard input."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.main import main

NODES = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
- apiVersion: v1
  kind: Service
  metadata: {name: web}
"""
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: default}
spec: {weight: 1}
"""
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "minAvailable": 2,
        "schedulerName": "volcano",
        "tasks": [
            {
                "replicas": 2,
                "name": "w",
                "template": {
                    "spec": {
                        "containers": [
                            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
                        ]
                    }
                },
            }
        ],
    },
}
BINDS = {"default/train-w-0": "n1", "default/train-w-1": "n1"}


def pumice(*words: Any, given: str | None = None) -> Any:
    return CliRunner().invoke(main, [str(word) for word in words], input=given)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    nodes, job = tmp_path / "nodes.yaml", tmp_path / "job.json"
    nodes.write_text(NODES)
    job.write_text(json.dumps(JOB))
    return nodes, job


def test_files_and_standard_input_are_one_cluster(files: tuple[Path, Path]) -> None:
    nodes, job = files
    result = pumice("run", nodes, "-f", job, "-f", "-", "-o", "json", given=QUEUE)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["binds"] == BINDS
    assert set(found) >= {"binds", "bindOrder", "evictions", "pipelined", "podGroups", "queues"}
    assert "note: scheduler configuration: the built-in configuration" in result.stderr
    assert "note: not used by scheduling: 1 Service" in result.stderr


def test_the_configuration_that_is_named_counts(files: tuple[Path, Path], tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text('actions: "enqueue"\ntiers: [{plugins: [{name: gang}]}]\n')
    result = pumice("run", *files, "--conf", conf, "-o", "json")
    assert json.loads(result.stdout)["binds"] == {}
    assert f"note: scheduler configuration: {conf}" in result.stderr


def test_a_scenario_may_come_from_standard_input_with_another_configuration(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text('actions: "enqueue"\ntiers: [{plugins: [{name: gang}]}]\n')
    played = pumice("run", *files, "-", "-o", "json", given=QUEUE)
    scenario = json.dumps({"objects": [], "expect": {"binds": {}}})
    assert pumice("run", "-", given=scenario).exit_code == 0
    assert pumice("test", "-", given=scenario).exit_code == 0
    assert json.loads(played.stdout)["binds"] == BINDS
    snapshot = tmp_path / "scenario.json"
    snapshot.write_text(
        json.dumps(
            {
                "objects": [
                    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
                ],
                "conf": "actions: allocate\nbad: [",
            }
        )
    )
    assert pumice("run", snapshot).exit_code == 2
    assert pumice("run", snapshot, "--conf", conf).exit_code == 0


def test_manifests_are_tested_against_what_run_prints(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    expect = tmp_path / "expect.yaml"
    expect.write_text(pumice("run", *files, "-", "-o", "yaml", given=QUEUE).stdout)
    passed = pumice("test", *files, "-f", "-", "--expect", expect, given=QUEUE)
    assert (passed.exit_code, "1 passed, 0 failed" in passed.stdout) == (0, True)
    expect.write_text("binds: {default/train-w-0: n2}\n")
    failed = pumice("test", *files, "-f", "-", "--expect", expect, given=QUEUE)
    assert failed.exit_code == 1
    assert "default/train-w-0: bound to n1, expected n2" in failed.stdout


def test_manifests_without_expectations_are_reported_what_is_missing(
    files: tuple[Path, Path],
) -> None:
    result = pumice("test", files[0])
    assert result.exit_code == 2
    assert "expected expectations, got nothing" in result.stdout
    assert "--expect" in result.stdout


def test_expectations_are_not_written_into_manifests(files: tuple[Path, Path]) -> None:
    before = files[0].read_text()
    for words in ((files[0],), files, ("-",)):
        result = pumice("run", "--write", *words, given=QUEUE)
        assert "--write needs one file with a scenario" in result.output
    assert files[0].read_text() == before


@pytest.mark.parametrize("verb", ["run", "test"])
def test_a_verb_without_files_says_what_it_takes(verb: str) -> None:
    assert "or - for the input" in pumice(verb).output


@pytest.mark.parametrize("word", ["n", "y", "on", "no", "Off"])
def test_a_name_that_is_a_truth_value_in_kubectl_needs_quotes(word: str, tmp_path: Path) -> None:
    file = tmp_path / "queue.yaml"
    text = (
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: NAME}\nspec: {}\n"
    )
    for verb in ("run", "explain", "lint"):
        words = ["-f", file] if verb == "explain" else [file]
        file.write_text(text.replace("NAME", word))
        assert pumice(verb, *words).exit_code != 0
        file.write_text(text.replace("NAME", f'"{word.lower()}"'))
        assert pumice(verb, *words).exit_code == 0


HUGE = """\
- apiVersion: v1
  kind: Pod
  metadata: {name: p}
  spec:
    containers:
    - name: c
      resources:
        requests:
          cpu: 1e300
"""
LISTED = f"apiVersion: v1\nkind: List\nitems:\n{HUGE}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{QUEUE}---\n{LISTED}", 17),
        (LISTED, 12),
        (f"objects:\n{HUGE}", 10),
        (json.dumps(yaml.safe_load(LISTED), indent=1), 17),
    ],
)
@pytest.mark.parametrize("verb", [["run"], ["explain", "-f"], ["queue", "order", "-f"]])
def test_a_fault_in_the_input_is_found_as_in_a_file(
    verb: list[str], text: str, line: int, tmp_path: Path
) -> None:
    file = tmp_path / "given"
    file.write_text(text)
    for name, given in (("<stdin>", "-"), (str(file), str(file))):
        ran = CliRunner().invoke(main, [*verb, given], input=text)
        place = "Pod default/p: spec.containers[0].resources.requests.cpu: expected an amount of at"
        assert (ran.exit_code, ran.stderr.partition(" most")[0]) == (
            2, f"Error: {name}:{line}: {place}",
        )  # fmt: skip
