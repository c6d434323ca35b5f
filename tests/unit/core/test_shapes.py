"""Shapes: what a move adds, and that it follows a longer resource axis."""

from typing import Any

import numpy as np
import pytest

from pumice.core.shapes import Shape
from pumice.core.tables import ALLOCATED, BOOKED, IDLE, PENDING, PIPELINED, RELEASING, USED, VIEW


@pytest.fixture
def shape() -> Any:
    return Shape(
        id=0,
        request=np.array([[2.0], [3.0]]),
        nonzero=np.array([[2.0], [3.0]]),
        waiting_nonzero=np.array([[2.0], [3.0]]),
        namespace="default",
        spec=None,
        annotations={},
    )


STEPS = {
    "place": ({IDLE: -1, USED: 1, VIEW: 1}, {ALLOCATED: 1, BOOKED: 1, PENDING: -1}),
    "pipeline": ({PIPELINED: 1, VIEW: 1}, {BOOKED: 1, PENDING: -1}),
    "unpipeline": ({PIPELINED: -1, VIEW: -1}, {BOOKED: -1, PENDING: 1}),
    "evict": ({RELEASING: 1, VIEW: -1}, {ALLOCATED: -1, BOOKED: -1}),
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("name", "wanted"), list(STEPS.items()))
def test_a_move_adds_the_request_to_some_layers_and_takes_it_from_others(
    shape: Any, name: Any, wanted: Any, sign: int
) -> None:
    books, sums = shape.step(name, sign, live=True)
    for layers, signs in zip((books, sums), wanted, strict=True):
        for layer, amounts in enumerate(layers.tolist()):
            factor = signs.get(layer, 0) * sign
            assert amounts == [2.0 * factor, 3.0 * factor]


def test_a_view_that_is_not_live_stays(shape: Any) -> None:
    books, _ = shape.step("place", 1, live=False)
    assert books[VIEW].tolist() == [0, 0]
    assert books[USED].tolist() == [2, 3]


def test_a_scalar_that_is_not_asked_for_fits_any_room(shape: Any) -> None:
    shape.widen(4)
    assert shape.need[:, 0].tolist() == [2, 3, -np.inf, -np.inf]
    shape.widen(5)
    assert shape.need.shape == (5, 1)


def test_cpu_and_memory_are_needed_even_for_nothing(shape: Any) -> None:
    shape.request[:2] = 0
    assert shape.need[:, 0].tolist() == [0, 0]


def test_a_wider_shape_asks_for_nothing_of_the_new_resource(shape: Any) -> None:
    shape.step("place", 1, live=True)
    shape.widen(3)
    shape.widen(3)
    assert shape.request[:, 0].tolist() == [2, 3, 0]
    assert shape.step("place", 1, live=True)[0].shape == (5, 3)
