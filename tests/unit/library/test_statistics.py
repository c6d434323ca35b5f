"""Classes of jobs, users, fragments and intervals, against sums made by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pumice
from pumice.errors import InputError
from pumice.sim.statistics import interval

FIFO = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
ROWS: list[dict[str, Any]] = [
    {"name": "a", "arrival": 0, "run": 100, "pods": 2, "user": "ann"},
    {"name": "b", "arrival": 0, "run": 100, "pods": 2, "user": "bob"},
    {"name": "c", "arrival": 0, "run": 4000, "pods": 1, "user": "bob"},
]


def run(rows: Any = ROWS, nodes: int = 2) -> Any:
    return pumice.simulate(pumice.workload(rows), pumice.nodes(nodes, cpu=1), FIFO)


def test_jobs_are_classed_by_width_and_length() -> None:
    found = run()
    assert list(found.by_class) == [
        {
            "width": "1",
            "length": "to 8 h",
            "jobs": 1,
            "mean_wait": 200.0,
            "p95_wait": 200.0,
            "mean_bounded_slowdown": 1.05,
        },
        {
            "width": "2-7",
            "length": "to 10 min",
            "jobs": 2,
            "mean_wait": 50.0,
            "p95_wait": 95.0,
            "mean_bounded_slowdown": 1.5,
        },
    ]


def test_users_are_compared_by_jains_index() -> None:
    found = run()
    means = {row["user"]: row["mean_bounded_slowdown"] for row in found.by_user}
    assert means == {"ann": 1.0, "bob": 1.525}
    assert found.user_fairness == pytest.approx(2.525**2 / (2 * (1 + 1.525**2)))
    assert run(ROWS[:1]).user_fairness is None


def test_free_amounts_that_no_usual_pod_fits_are_fragments() -> None:
    rows = [{"name": "wide", "arrival": 0, "run": 100, "pods": 2, "cpu": 3}]
    found = pumice.simulate(pumice.workload(rows), pumice.nodes(2, cpu=4), FIFO)
    assert np.nanmax(found.fragmentation) == 1.0  # one of four processors is left on each node
    found = pumice.simulate(pumice.workload(rows), pumice.nodes(3, cpu=4), FIFO)
    assert found.fragmentation[0] == pytest.approx(2 / 6)


def test_a_paired_comparison_counts_who_gains_and_who_loses() -> None:
    shortest = FIFO.replace("{name: gang}", "{name: priority}, {name: gang}")
    rows = [{**row, "name": f"{row['name']}-{i}"} for i in range(3) for row in ROWS]
    found = pumice.compare(
        pumice.workload(rows), {"one": FIFO, "same": shortest}, pumice.nodes(2, cpu=1)
    )
    same = found.paired("one", "same")
    assert (same.earlier, same.later, same.same) == (0, 0, 9)
    assert (same.wait.mean, same.wait.is_clear) == (0.0, False)


def test_intervals_are_students() -> None:
    found = interval([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5
    assert found.high - found.mean == pytest.approx(3.182 * np.std([1, 2, 3, 4], ddof=1) / 2)
    assert not found.is_clear or found.low > 0
    assert str(interval([7.0])) == "7 [nan, nan], n = 1"
    many = interval([0.0, 1.0] * 500)
    assert many.high - many.mean == pytest.approx(1.9623 * 0.50025 / np.sqrt(1000), rel=1e-3)


def drawn(seed: int) -> Any:
    random = np.random.default_rng(seed)
    return pumice.workload(
        {"arrival": 10 * i, "run": float(run), "pods": 1}
        for i, run in enumerate(random.uniform(10, 60, 20))
    )


def test_seeds_give_every_figure_an_interval() -> None:
    found = pumice.repeat(drawn, {"one": FIFO}, pumice.nodes(2, cpu=1), seeds=range(4))
    waits = found.figure("mean_wait", "one")
    assert len({*waits}) == 4
    assert found.interval("mean_wait", "one").mean == pytest.approx(np.mean(waits))
    assert found.difference("mean_wait", "one", "one").mean == 0.0
    row = next(row for row in found.table if row["figure"] == "mean_wait")
    assert row["low"] < row["mean"] < row["high"]
    assert repr(found) == "<Repeats of one with 4 seeds>"
    with pytest.raises(InputError, match="seeds: expected at least one seed"):
        pumice.repeat(drawn, {"one": FIFO}, seeds=[])


def test_plots_are_saved_as_vectors(tmp_path: Path) -> None:
    saved = run().plot.save(tmp_path / "plots")
    assert [path.name for path in saved][:2] == ["waits.svg", "utilisation.svg"]
    assert all("<svg" in path.read_text() for path in saved)
    with pytest.raises(InputError, match="form: expected one of svg, pdf, png"):
        run().plot.save(tmp_path, "bmp")
