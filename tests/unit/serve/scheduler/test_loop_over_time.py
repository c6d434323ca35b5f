"""The loop over many cycles: leadership lost and won again, figures of deleted jobs."""

from typing import Any

import pytest

from pumice.cluster.embedded.node_operations import add_node
from pumice.metrics import Metrics
from pumice.serve.scheduler import cycle_metrics
from tests.unit.serve.scheduler.test_loop import Cluster, job, looping, node_of


@pytest.fixture
def cluster() -> Any:
    cluster = Cluster()
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    return cluster


def test_the_lead_can_be_lost_and_won_more_than_once(cluster: Any) -> None:
    """Each time it is logged, and a new leader reads the cluster again."""
    leads = True
    metrics = Metrics()
    loop = looping(cluster, is_leader=lambda: leads, metrics=metrics)

    def reported(number: int) -> bool:
        return f"pumice_leader {number}" in metrics.text().splitlines()

    for turn in range(3):
        leads = True
        job(cluster, f"g{turn}")
        for _ in range(3):
            loop._turn()
        assert node_of(cluster, f"g{turn}-0") == "n"
        assert reported(1)
        assert not loop._live.stale
        leads = False
        loop._turn()
        assert reported(0)
        assert loop._live.stale


def test_a_job_that_is_deleted_takes_its_figures_along(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycle_metrics, "_PRUNED_EACH", 4)
    metrics = Metrics()
    loop = looping(cluster, metrics=metrics)
    job(cluster, "goes")
    job(cluster, "stays")
    for _ in range(3):
        loop._turn()
    duration = 'volcano_e2e_job_scheduling_duration{job_name="%s"'
    assert duration % "goes" in metrics.text()
    cluster.delete("Pod", "default", "goes-0", grace_s=0)
    cluster.delete("PodGroup.scheduling.volcano.sh", "default", "goes")
    for _ in range(5):
        loop._turn()
    assert '"goes"' not in metrics.text()
    assert duration % "stays" in metrics.text()


def test_a_lead_lost_during_a_cycle_is_given_up_at_once(cluster: Any) -> None:
    job(cluster)
    answers, metrics = [True, False], Metrics()
    loop = looping(cluster, is_leader=lambda: answers.pop(0), metrics=metrics)
    loop._turn()
    assert node_of(cluster) is None
    assert "pumice_leader 0" in metrics.text().splitlines()
