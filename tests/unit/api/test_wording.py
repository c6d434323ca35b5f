"""Parts of messages."""

import pytest

from pumice.api.wording import ordinal


@pytest.mark.parametrize(
    ("n", "text"),
    [(1, "first"), (3, "third"), (6, "6th"), (11, "11th"), (22, "22nd"), (112, "112th")],
)
def test_a_place_is_written_as_an_ordinal(n: int, text: str) -> None:
    assert ordinal(n) == text
