"""While a command reads its input, nothing is searched for unused objects."""

import gc
from collections.abc import Iterator

import pytest

from pumice.garbage_collection import reading


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_searches_pause_and_pass_over_what_was_read() -> None:
    with reading():
        assert not gc.isenabled()
        read = [[i] for i in range(200_000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= len(read)
    assert gc.get_threshold()[0] >= 2 * len(read)


def test_searches_go_on_after_input_that_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="bad"), reading():
        raise ValueError("bad input")
    assert gc.isenabled()
