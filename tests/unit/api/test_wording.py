"""Parts of messages."""

import pytest

from pumice.api.wording import name_hint, ordinal


@pytest.mark.parametrize(
    ("n", "text"),
    [(1, "first"), (3, "third"), (6, "6th"), (11, "11th"), (22, "22nd"), (112, "112th")],
)
def test_a_place_is_written_as_an_ordinal(n: int, text: str) -> None:
    assert ordinal(n) == text


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["worker", "master"], "did you mean 'worker'?"),
        (["a", "b"], "there are a, b"),
        (["a"], "the only one is a"),
        ([], ""),
    ],
)
def test_an_unknown_name_gets_the_nearest_one_or_all(names: list[str], hint: str) -> None:
    assert name_hint("workers", names) == hint
