"""A sweep on a Dask cluster of two worker processes, on loopback."""

import os

import pytest

from pumice.sim.sweep import Figures, gather, grid, sweep_dask

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")

pytestmark = [
    pytest.mark.timeout(40),
    # Dask's own threads and sockets end when its processes do; what it deprecates is not ours
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:tornado"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        processes=True,
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
    ) as two:
        yield two


def simulation():
    """Make a run that tells its process; a function of a function travels whole to the workers."""
    figures = Figures

    def simulate(point):
        if point.trace == "bad":
            raise ValueError("no such trace")
        return figures(
            jobs=1,
            finished=1,
            makespan=float(os.getpid()),
            wait_p50=float(point.seed),
            wait_p90=None,
            wait_p99=None,
            utilisation={},
            evictions=0,
            fairness=None,
        )

    return simulate


def test_runs_happen_in_the_workers_and_rows_come_in_the_order_of_the_grid(cluster):
    points = grid(["a", "b"], ["t"], range(4))
    heard = []
    rows = gather(sweep_dask(points, simulation(), cluster.scheduler_address), heard.append)
    assert [row.point for row in rows] == points
    assert [row.figures.wait_p50 for row in rows] == [0.0, 1.0, 2.0, 3.0] * 2
    pids = {int(row.figures.makespan) for row in rows}
    workers = {worker.pid for worker in cluster.workers.values()}
    assert pids == workers
    assert os.getpid() not in pids
    assert len(heard) == len(points)


def test_a_run_that_fails_on_a_worker_is_a_row_and_stops_no_other(cluster):
    points = grid([], ["bad", "good"], [1, 2])
    rows = gather(sweep_dask(points, simulation(), cluster.scheduler_address))
    assert [row.point for row in rows] == points
    assert all(row.error.startswith("ValueError: no such trace (") for row in rows[:2])
    assert [row.error for row in rows[2:]] == ["", ""]
