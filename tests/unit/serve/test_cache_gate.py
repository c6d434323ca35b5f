"""Nothing is decided while caches may be behind the cluster; the log and metrics show the wait."""

import itertools
from typing import Any

import pytest

from pumice.metrics import Metrics
from tests.unit.serve.scheduler.test_loop import (
    QUEUE,
    Cluster,
    add_node,
    job,
    lines,
    looping,
    node_of,
)


@pytest.fixture
def cluster() -> Any:
    cluster = Cluster()
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    return cluster


def test_nothing_is_decided_or_written_while_caches_may_be_behind(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    times, metrics = itertools.count(), Metrics()
    job(cluster)
    loop = looping(cluster, clock=lambda: next(times), metrics=metrics)
    cluster.outdated = ["Pod", "Node"]
    before = cluster.version
    with caplog.at_level("INFO"):
        for _ in range(5):
            assert loop._turn() == 0.0
    assert cluster.version == before
    (line,) = lines(caplog, "waiting for objects to be synced")
    assert line.values["kinds"] == "Pod, Node"
    assert 'pumice_watch_ok{kind="Pod"} 0' in metrics.text()
    cluster.outdated = []
    with caplog.at_level("INFO"):
        assert loop._turn() == 1.0
    assert len(lines(caplog, "objects synced")) == 1
    assert 'pumice_watch_ok{kind="Pod"} 1' in metrics.text()
    assert cluster.list(QUEUE)[0]
    assert node_of(cluster) == "n"
    job(cluster, "later")
    cluster.outdated = ["Pod"]  # a gap later on
    loop._turn()
    assert node_of(cluster, "later-0") is None
