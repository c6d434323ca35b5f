"""explain, whatif, snapshot and queue order without files: on the cluster that runs."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import RejectedError
from pumice.testing import node, pod, pod_group, queue

NOTE = "note: scheduler configuration: the built-in configuration\n"
OPEN = {"status": {"state": "Open"}}


@pytest.fixture
def cluster() -> Any:
    made = EmbeddedCluster()
    for manifest in (node("n1", cpu=4), queue("default"), pod_group("j")):
        made.create(manifest)
    made.update_status({**made.get("Queue.scheduling.volcano.sh", "", "default"), **OPEN})
    made.create(pod("j-0", group="j", cpu=6))
    return made


@pytest.fixture
def ask(cluster: Any) -> Any:
    return lambda *words: CliRunner().invoke(main, list(words), obj=lambda _: nullcontext(cluster))


def test_explain_asks_the_cluster_and_tells_which_configuration_holds(ask: Any) -> None:
    result = ask("explain", "j")
    assert result.exit_code == 0
    assert result.stderr == NOTE
    assert (
        "InsufficientResource: no node is large enough for j-0: it asks for cpu 6, "
        "and the largest node has 4\n" in result.stdout
    )


def test_data_for_programs_is_alone_on_the_output(ask: Any) -> None:
    assert [each["job"] for each in json.loads(ask("explain", "-o", "json").stdout)] == [
        "default/j"
    ]


def test_whatif_asks_the_cluster(ask: Any) -> None:
    result = ask("whatif", "--job", "j", "--set", "node/n1.allocatable.cpu=8")
    assert "default/j starts now: 1 pod on 1 node." in result.stdout


def test_queue_order_asks_the_cluster(ask: Any) -> None:
    assert "default/j" in ask("queue", "order").stdout


def test_a_snapshot_is_taken_shown_and_compared(ask: Any, cluster: Any, tmp_path: Path) -> None:
    file = str(tmp_path / "s.yaml")
    assert ask("snapshot", "save", "-o", file).exit_code == 0
    assert "1 Node" in ask("snapshot", "show").stdout
    same = ask("snapshot", "diff", file)
    assert (same.exit_code, same.stdout) == (0, "no differences\n")
    cluster.create(node("n2", cpu=8))
    changed = ask("snapshot", "diff", file)
    assert changed.exit_code == 1
    assert "Node n2" in changed.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("explain",),
        ("explain", "j"),
        ("whatif", "--job", "j"),
        ("queue", "order"),
        ("snapshot", "show"),
        ("queue", "list"),
        ("job", "list"),
    ],
)
def test_without_a_cluster_one_line_says_what_to_do(
    words: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: no cluster found: start one with 'pumice up', or name one")


def test_a_person_who_may_not_read_the_cluster_is_told_where_the_cause_is_written(
    ask: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise RejectedError(problem="nodes is forbidden: User ann cannot list them")

    monkeypatch.setattr(cluster, "list", refuse)
    result = ask("explain", "j")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.endswith(
        "cannot list them; the whole cluster is read; "
        "why a job waits is also in the annotations of its pod group"
    )


def test_a_cluster_that_does_not_answer_is_reported_in_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["explain", "--master", "127.0.0.1:1"])
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "connection refused" in line
