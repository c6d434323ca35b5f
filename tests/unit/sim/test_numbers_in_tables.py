"""Numbers in the tables of a simulation are rounded as NumPy rounds them."""

import math

import numpy as np
import pytest

from pumice.sim.output import _number


@pytest.mark.parametrize("unit", [1.0, 3.0, 64.0, 2e6, 1e7])
@pytest.mark.parametrize("most", [10, 10**9, 10**16, 10**18])
def test_numbers_are_rounded_to_microseconds(unit: float, most: int) -> None:
    drawn = np.random.default_rng(most).integers(-most, most, 2000) / unit
    for value in drawn.tolist():
        rounded = float(np.round(value, 6))
        assert _number(value) == rounded
        assert isinstance(_number(value), int if rounded.is_integer() else float)


def test_missing_and_endless_times_have_a_form() -> None:
    assert _number(math.nan) == ""
    assert _number(math.inf) == math.inf
    assert str(_number(-0.0)) == "0"
