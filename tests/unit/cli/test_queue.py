"""`pumice queue`: on an embedded cluster."""

import json
from contextlib import nullcontext
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.cluster.embedded.store import EmbeddedCluster

KIND = "Queue.scheduling.volcano.sh"


@pytest.fixture
def cluster() -> Any:
    return EmbeddedCluster()


@pytest.fixture
def pumice_command(cluster: Any) -> Any:
    return lambda *words: CliRunner().invoke(main, list(words), obj=lambda _: nullcontext(cluster))


def group(name: Any, queue: Any, phase: Any) -> Any:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queue": queue},
        "status": {"phase": phase},
    }


def test_queues_are_made_and_their_pod_groups_counted(cluster: Any, pumice_command: Any) -> None:
    assert pumice_command("queue", "create", "-n", "a", "-w", "3").output == ""
    for name, phase in (("g1", "Running"), ("g2", "Running"), ("g3", "Inqueue")):
        cluster.create(group(name, "a", phase))
    cluster.create(group("other", "b", "Running"))
    title, row = pumice_command("queue", "list").output.splitlines()
    cells = dict(zip(title.split(), row.replace("3       ", "3 - - ", 1).split(), strict=True))
    assert (cells["Weight"], cells["Inqueue"], cells["Running"]) == ("3", "1", "2")
    assert pumice_command("queue", "get", "-n", "a").output == f"{title}\n{row}\n"


def test_the_weight_is_changed_and_nothing_else(cluster: Any, pumice_command: Any) -> None:
    pumice_command("queue", "create", "-n", "a")
    before = cluster.get(KIND, "", "a")["spec"]
    assert pumice_command("queue", "operate", "-n", "a", "-a", "update", "-w", "7").output == ""
    assert cluster.get(KIND, "", "a")["spec"] == {**before, "weight": 7}


@pytest.mark.parametrize(("action", "order"), [("open", "OpenQueue"), ("close", "CloseQueue")])
def test_opening_and_closing_are_orders_in_the_default_namespace(
    cluster: Any, pumice_command: Any, action: str, order: str
) -> None:
    pumice_command("queue", "create", "-n", "a")
    assert pumice_command("queue", "operate", "-n", "a", "-a", action).output == ""
    (posted,), _ = cluster.list("Command.bus.volcano.sh", "default")
    assert (posted["action"], posted["target"]["name"]) == (order, "a")


def test_a_queue_is_deleted(cluster: Any, pumice_command: Any) -> None:
    pumice_command("queue", "create", "-n", "a")
    assert pumice_command("queue", "delete", "-n", "a").output == ""
    assert cluster.list(KIND)[0] == []


def test_an_action_is_wanted(pumice_command: Any) -> None:
    result = pumice_command("queue", "operate", "-n", "a")
    assert result.output == "Failed to operate queue: action can not be null\n"
    assert result.exit_code == 255


def test_wide_shows_the_limits(cluster: Any, pumice_command: Any) -> None:
    spec = {
        "weight": 1,
        "guarantee": {"resource": {"cpu": "1"}},
        "capability": {"memory": "8Gi", "cpu": "4"},
    }
    manifest = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    cluster.create({**manifest, "metadata": {"name": "q"}, "spec": spec})
    row = pumice_command("queue", "get", "-n", "q", "-o", "wide").output.splitlines()[1]
    assert row.split()[-3:] == ["cpu=1", "<none>", "cpu=4,memory=8Gi"]
    whole = json.loads(pumice_command("queue", "get", "-n", "q", "-o", "json").output)
    assert whole["spec"]["capability"] == spec["capability"]


def test_a_weight_beyond_32_bits_is_a_usage_error(pumice_command: Any) -> None:
    assert pumice_command("queue", "create", "-w", str(1 << 31)).exit_code == 2


def test_a_queue_is_made_in_a_known_state_only(cluster: Any, pumice_command: Any) -> None:
    result = pumice_command("queue", "create", "-n", "a", "-S", "Ajar")
    assert result.output == (
        "Failed to create queue: --state: expected Open or Closed, got 'Ajar'\n"
    )
    assert cluster.list(KIND)[0] == []
