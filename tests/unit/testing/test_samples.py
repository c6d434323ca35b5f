"""Sample clusters: the same for the same seed, with a bit of everything."""

from typing import Any

import pytest

from pumice.core.consistency import check
from pumice.core.resources import CPU
from pumice.core.status import Status
from pumice.plugins.gang import Gang
from pumice.testing.samples import open_session, sample_cluster, snapshot_of


def test_the_same_seed_gives_the_same_cluster() -> None:
    assert sample_cluster(3) == sample_cluster(3)
    assert sample_cluster(3) != sample_cluster(4)


@pytest.mark.parametrize("seed", range(6))
def test_a_sample_has_work_that_runs_and_work_that_waits(seed: Any) -> None:
    snapshot = snapshot_of(sample_cluster(seed))
    check(snapshot)
    status = snapshot.tasks.status.tolist()
    assert status.count(Status.RUNNING) >= 5
    assert status.count(Status.PENDING) >= 5
    assert (snapshot.nodes.n, len(snapshot.tasks.row_of)) == (12, 40)
    assert (snapshot.nodes.idle[CPU] >= 0).all()


def test_samples_come_in_any_size() -> None:
    snapshot = snapshot_of(sample_cluster(0, nodes=2, pods=3))
    assert (snapshot.nodes.n, len(snapshot.tasks.row_of)) == (2, 3)


def test_a_session_is_opened_with_plugins_and_options() -> None:
    ssn = open_session(sample_cluster(0), [Gang()], now=5.0)
    assert (ssn.now, ssn.has_plugin("gang"), ssn.failures.errors) == (5.0, True, {})
