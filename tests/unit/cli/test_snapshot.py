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


def test_jobs_are_written_and_what_they_are_to_get_is_made_again(tmp_path: Path) -> None:
    target = tmp_path / "s.yaml"
    saved = run("snapshot", "save", "examples/train-job.yaml", "-o", str(target))
    assert "left out" not in saved.stderr
    assert "name: finetune-worker-2" not in target.read_text()
    shown = run("snapshot", "show", str(target)).output
    assert "1 Job" in shown
    assert "pods: not created yet" in shown


QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "team", "namespace": "default"},
    "spec": {"hard": {"requests.cpu": "3"}},
}
CONTAINER = {"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "1"}}}
REFUSED = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {
        "schedulerName": "volcano",
        "minAvailable": 4,
        "tasks": [
            {"name": "w", "replicas": 4, "template": {"spec": {"containers": [CONTAINER]}}},
        ],
    },
}


@pytest.fixture
def refused(tmp_path: Path) -> Any:
    """Return a snapshot of a cluster whose quota refuses a pod that a gang needs."""
    given, saved = tmp_path / "given.json", tmp_path / "saved.yaml"
    objects = [node("n1", cpu=8), queue("default"), QUOTA, REFUSED]
    given.write_text(json.dumps({"objects": objects}))
    assert run("snapshot", "save", str(given), "-o", str(saved)).exit_code == 0
    return given, saved


def test_a_snapshot_says_of_refused_pods_what_its_cluster_says(refused: Any) -> None:
    answers = [
        json.loads(run("explain", "train", "-f", str(each), "-o", "json").stdout)
        for each in refused
    ]
    assert {**answers[0], "notes": []} == answers[1]  # the configuration is written
    assert answers[1]["refused"] == 1
    assert "raise resource quota team" in answers[1]["remedies"][0]["text"]


def test_a_run_binds_no_pod_that_a_quota_refuses(refused: Any) -> None:
    for file in refused:
        found = run("run", str(file), "-o", "json")
        assert json.loads(found.stdout).get("binds", {}) == {}
        assert "note: pod default/train-w-3 is not there: exceeded quota: team" in found.stderr


def test_without_its_quota_a_snapshot_runs_whole(refused: Any, tmp_path: Path) -> None:
    changes = tmp_path / "changes.yaml"
    changes.write_text("[{op: remove, kind: ResourceQuota, name: default/team}]")
    answer = run("whatif", "-f", str(refused[1]), "--changes", str(changes), "-o", "json")
    assert json.loads(answer.stdout)["jobs"][0]["after"] == "4 of 4 run, Running"


def test_a_summary_tells_refused_pods_from_others(refused: Any) -> None:
    shown = run("snapshot", "show", str(refused[1])).output
    assert "pods: not created yet 3, refused by quotas 1" in shown
