"""Dividing a cluster by weight on plain numbers and on columns gives the same, to the last bit."""

import numpy as np
import pytest

from pumice.api.kinds import Manifest
from pumice.core.snapshot import Snapshot
from pumice.framework.queue_limits import weighted
from pumice.framework.queue_limits.weighted import WeightedLimits, divide
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of

Generator = np.random.Generator


def drawn_queues(rng: Generator) -> Snapshot:
    """Queues of all weights, some with guarantees, each with a job that asks for something."""
    objects: list[Manifest] = [node("n", cpu=97, memory="1000Gi", pods=500)]
    for number in range(rng.integers(1, 40)):
        name = f"q{rng.integers(1000)}-{number}"
        guarantee = {"cpu": int(rng.integers(1, 4))} if rng.random() < 0.3 else {}
        capability = {"cpu": int(rng.integers(1, 20))} if rng.random() < 0.3 else {}
        weight = int(rng.integers(0 if rng.random() < 0.3 else 1, 8))
        objects += [
            queue(name, weight=weight, guarantee=guarantee, capability=capability),
            pod_group(f"of-{name}", queue=name, phase="Inqueue"),
            pod("p-" + name, group=f"of-{name}", cpu=int(rng.integers(1, 40)), memory="3Gi"),
        ]
    return snapshot_of(objects)


@pytest.mark.parametrize("seed", range(40))
def test_plain_numbers_and_columns_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = drawn_queues(np.random.default_rng(seed))
    queues, total = cluster.queues, cluster.total()
    limits = WeightedLimits.of(cluster, total)
    request = queues.allocated_or_pipelined + queues.pending
    rows = np.flatnonzero(request.any(axis=0))
    by_numbers = divide(cluster, rows, request, total, limits.real_capability)
    parts = limits.parts({row: request[:, row].tolist() for row in rows.tolist()})
    monkeypatch.setattr(weighted, "FEW", 0)
    by_columns = divide(cluster, rows, request, total, limits.real_capability)
    assert by_numbers.any()
    assert by_numbers.tobytes() == by_columns.tobytes()
    assert parts is not None
    assert all(parts[row] == by_columns[:, row].tolist() for row in rows.tolist())


def test_a_cluster_without_jobs_is_divided_among_nobody() -> None:
    cluster = snapshot_of([node("n", cpu=4), queue("q")])
    shape = cluster.queues.pending
    nobody = np.zeros(0, dtype=np.intp)
    assert not divide(cluster, nobody, shape, cluster.total(), shape).any()
