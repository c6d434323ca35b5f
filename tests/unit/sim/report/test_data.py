"""What the charts of a report draw."""

from typing import Any

import numpy as np
import pytest

from pumice.sim.report.data import waits


def part_at(drawn: dict[str, Any], number: int, second: float) -> float:
    """Read a curve off as a chart does: the last step not after a time."""
    at = np.searchsorted(drawn["seconds"], second, side="right") - 1
    return float(drawn["parts"][number][at])


def test_the_curve_of_waits_steps_where_a_wait_ends() -> None:
    drawn = waits([np.array([0.0, 0.0, 5.0, 60.0])], 4)
    assert drawn["seconds"] == [0.0, 5.0, 60.0, 72.0]
    assert drawn["parts"] == [[0.5, 0.75, 1.0, 1.0]]


def test_configurations_share_their_times_and_each_keeps_its_own_steps() -> None:
    mine, other = np.array([1.0, 3.0]), np.array([2.0, 2.5])
    drawn = waits([mine, other], 2)
    for second in (0.0, 0.9, 1.0, 2.0, 2.9, 3.0, 3.5):
        assert part_at(drawn, 0, second) == (mine <= second).mean()
        assert part_at(drawn, 1, second) == (other <= second).mean()


def test_of_many_waits_some_steps_are_left_out_and_the_others_are_true() -> None:
    many = np.sort(np.random.default_rng(7).exponential(100.0, 5000))
    drawn = waits([many], len(many))
    assert len(drawn["seconds"]) <= 202
    for second, part in zip(drawn["seconds"][1:-1], drawn["parts"][0][1:-1], strict=True):
        assert part == pytest.approx((many <= second + 5e-4).mean(), abs=3e-4)
    for second in (10.0, 100.0, 300.0):
        assert part_at(drawn, 0, second) == pytest.approx((many <= second).mean(), abs=0.01)


def test_a_configuration_under_which_no_job_starts_has_no_curve() -> None:
    drawn = waits([np.array([1.0]), np.array([])], 1)
    assert drawn["parts"] == [[0.0, 1.0, 1.0], [None, None, None]]
    assert waits([np.array([])], 1)["parts"] == []


def test_the_curve_of_waits_ends_at_the_part_of_the_jobs_that_started() -> None:
    drawn = waits([np.array([0.0, 5.0, 60.0])], 4)
    assert drawn["parts"] == [[0.25, 0.5, 0.75, 0.75]]
