"""Cells of CSV files: no text is taken for a formula, and numbers stay numbers."""

import csv
import io
from typing import Any

import pytest

from pumice.sim.readers.table_files import unguarded, write_csv


def written(value: Any) -> str:
    out = io.StringIO(newline="")
    write_csv(out, ["column"], [[value]])
    return list(csv.reader(io.StringIO(out.getvalue(), newline="")))[1][0]


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1"])
def test_a_formula_becomes_a_text(text: str) -> None:
    assert written(text) == f"'{text}"
    assert unguarded(written(text)) == text


@pytest.mark.parametrize("value", ["-3.5", "+4", -3.5, 7, "a=b", "", "'quoted'", "job-1", "-1e5"])
def test_anything_else_stays(value: Any) -> None:
    assert written(value) == str(value)
    assert unguarded(str(value)) == str(value)


def test_no_cell_ends_its_row() -> None:
    assert written("a\r=1\nb,c") == "a\\r=1\nb,c"


def test_names_of_columns_are_guarded_too() -> None:
    out = io.StringIO()
    write_csv(out, ["=1+1"], [])
    assert out.getvalue() == "'=1+1\n"
