"""Queues that are made sure of."""

from typing import Any

import pytest

from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import UnavailableError
from pumice.serve.scheduler.default_queues import make_queues

QUEUE = "Queue.scheduling.volcano.sh"


def test_root_and_the_default_queue_are_made_once_and_are_open() -> None:
    cluster = EmbeddedCluster()
    for _ in range(2):
        make_queues(cluster, "mine")
    queues = {m["metadata"]["name"]: m for m in cluster.list(QUEUE)[0]}
    assert sorted(queues) == ["mine", "root"]
    assert {m["status"]["state"] for m in queues.values()} == {"Open"}
    assert queues["mine"]["spec"]["parent"] == "root"


def test_queues_that_are_there_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = EmbeddedCluster()
    make_queues(cluster)

    def refuses(*_: Any, **__: Any) -> None:
        raise UnavailableError(problem="no endpoints for webhook")

    monkeypatch.setattr(cluster, "create", refuses)
    monkeypatch.setattr(cluster, "patch", refuses)
    make_queues(cluster)
    with pytest.raises(UnavailableError):
        make_queues(cluster, "another")
