"""A sweep on a Dask cluster of two worker processes, on loopback."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.api.objects import from_manifest
from pumice.sim.sweep import Simulation, gather, grid, sweep_dask, sweep_local
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload
from tests import checking
from tests.present import present

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")

pytestmark = [
    pytest.mark.timeout(40),
    pytest.mark.filterwarnings("ignore:::(dask|distributed|tornado)"),  # of their code, not ours
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        processes=True,
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
    ) as two:
        yield two


def simulation(*, tell_process: bool = False) -> Any:
    """Make a simulation; functions made in a function travel whole, the workers need no tests."""
    workload, job, task, book, node = Workload, JobSpec, TaskSpec, PodSpecs, from_manifest

    def load(point: Any) -> Any:
        if point.trace == "bad":
            raise ValueError("no such trace")
        length = float(os.getpid()) if tell_process else 60.0
        gang = (task(book().spec({"cpu": "1", "memory": "1Gi"}), 2, length),)
        jobs = tuple(job(f"job-{n}", 7.0 * n, gang, 2) for n in range(2 + point.seed))
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
        one = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}, "status": status}
        return workload(name=point.trace, format="test", jobs=jobs), [node(one)]

    return Simulation(load)


def test_a_cluster_gives_the_figures_that_one_process_gives_in_the_order_of_the_grid(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # in this process tables are checked, and a stand-in for jobs set aside has sums without tasks
    monkeypatch.setattr(checking, "enabled", False)
    points = grid([""], ["s", "t"], range(4))
    heard: list[Any] = []
    rows = gather(sweep_dask(points, simulation(), cluster.scheduler_address), heard.append)
    assert [row.point for row in rows] == points
    assert [row.error for row in rows] == [""] * len(points)
    assert [present(row.figures).finished for row in rows] == [2, 3, 4, 5] * 2
    here = gather(sweep_local(points, simulation(), jobs=1))
    assert [row.error for row in here] == [""] * len(points)
    assert [row.figures for row in rows] == [row.figures for row in here]
    assert len(heard) == len(points)


def test_the_runs_happen_in_the_worker_processes(cluster: Any) -> None:
    points = grid([""], ["t"], [-1])
    rows = gather(sweep_dask(points, simulation(tell_process=True), cluster.scheduler_address))
    lengths = {
        round(present(present(row.figures).makespan)) for row in rows
    }  # of one job: its process
    assert lengths <= {worker.pid for worker in cluster.workers.values()}
    assert os.getpid() not in lengths


@pytest.mark.slow
def test_a_run_that_fails_on_a_worker_is_a_row_and_stops_no_other(cluster: Any) -> None:
    points = grid([], ["bad", "good"], [1, 2])
    rows = gather(sweep_dask(points, simulation(), cluster.scheduler_address))
    assert [row.point for row in rows] == points
    assert all(row.error.startswith("ValueError: no such trace (") for row in rows[:2])
    assert [row.error for row in rows[2:]] == ["", ""]


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_own_row_alone(cluster: Any) -> None:
    def deadly(point: Any) -> Any:
        if point.trace == "deadly":
            os._exit(3)
        raise ValueError("alive")

    points = grid([], ["deadly", "fine"], [0])
    rows = gather(sweep_dask(points, deadly, cluster.scheduler_address))
    assert rows[0].error.startswith("KilledWorker: ")
    assert rows[1].error.startswith("ValueError: alive")
