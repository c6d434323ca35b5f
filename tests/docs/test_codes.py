"""The page of codes has a row for every code of the closed lists, and no other."""

import re
from pathlib import Path

import pytest

from pumice.api.codes import SPARED_MEANINGS, Cause, Spared

PAGE = (Path(__file__).parents[2] / "docs" / "codes.md").read_text(encoding="utf-8")
CAUSES, SPARED = PAGE.split("\n## Why nobody was evicted\n")
_ROW = re.compile(r"^\| ([A-Z][A-Za-z]+) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def rows(part: str) -> list[tuple[str, str, str]]:
    return _ROW.findall(part)


@pytest.mark.parametrize(
    ("part", "codes"), [(CAUSES, list(Cause)), (SPARED, list(Spared))], ids=["causes", "spared"]
)
def test_every_code_has_one_row_and_there_is_no_other(
    part: str, codes: list[Cause] | list[Spared]
) -> None:
    assert sorted(row[0] for row in rows(part)) == sorted(code.value for code in codes)


def test_every_code_has_a_meaning() -> None:
    assert set(SPARED_MEANINGS) == set(Spared)


def test_the_page_tells_the_meanings_that_the_code_tells() -> None:
    assert {code for code, meaning, _ in rows(CAUSES) if meaning} == set(Cause)
    assert {code: meaning for code, meaning, _ in rows(SPARED)} == SPARED_MEANINGS
