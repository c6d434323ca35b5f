"""`pumice snapshot`: save, show, diff."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.testing import node, pod, pod_group, queue

SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
OBJECTS = [
    queue("default", weight=2),
    node("n1", cpu=4),
    pod_group("j"),
    pod("j-0", group="j", cpu=2),
]


@pytest.fixture
def cluster(tmp_path: Path) -> Any:
    path = tmp_path / "cluster.json"
    items = [*OBJECTS, SERVICE]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize("name", ["s.yaml", "s.json"])
def test_a_snapshot_is_a_scenario_that_runs(cluster: Any, tmp_path: Path, name: str) -> None:
    target = str(tmp_path / name)
    saved = run("snapshot", "save", cluster, "-o", target)
    assert saved.exit_code == 0
    assert f"wrote 4 objects to {target}; left out" in saved.output
    assert "1 Service" in saved.output
    assert "default/j-0" in run("run", target).output
    assert run("run", "--write", target).exit_code == 0
    assert run("test", target).exit_code == 0


def test_show_sums_up(cluster: Any) -> None:
    result = run("snapshot", "show", cluster)
    assert result.exit_code == 0
    for text in ("1 Node, 1 Pod, 1 PodGroup, 1 Queue", "1 node", "left out: 1 Service"):
        assert text in result.output
    assert "jobs: Pending 1" in result.output
    found = json.loads(run("snapshot", "show", cluster, "-o", "json").output)
    assert found["queues"][0]["name"] == "default"


def test_diff_tells_objects_and_decisions_and_fails(cluster: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    items = [queue("default"), *OBJECTS[1:3], pod("j-0", group="j", cpu=9), node("n2")]
    other.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    result = run("snapshot", "diff", cluster, str(other))
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert "+ Node n2" in lines
    assert "~ Queue default" in lines
    assert "    spec.weight: 2 → 1" in lines
    assert "The next cycle binds" in lines


def test_diff_of_equals_succeeds(cluster: Any) -> None:
    result = run("snapshot", "diff", cluster, cluster)
    assert (result.exit_code, result.output) == (0, "no differences\n")


def test_diff_is_there_for_programs(cluster: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"objects": OBJECTS[:2]}))
    found = json.loads(run("snapshot", "diff", cluster, str(other), "-o", "json").output)
    assert found["removed"] == {"Pod": ["default/j-0"], "PodGroup": ["default/j"]}


def test_it_says_that_jobs_are_left_out_and_their_pods_written(tmp_path: Path) -> None:
    target = tmp_path / "s.yaml"
    saved = run("snapshot", "save", "examples/train-job.yaml", "-o", str(target))
    said = "left out what scheduling does not read: 1 Job, whose pod groups and pods are written"
    assert said in saved.stderr
    assert "name: finetune-worker-2" in target.read_text()
