"""Cells of CSV files, which spreadsheets open: no text of a trace is taken for a formula there."""

import csv
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

_FORMULA: Final = ("=", "+", "-", "@", "\t")
_GUARD: Final = "'"
"""A spreadsheet reads what follows as text."""


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; a text that a spreadsheet would compute gets a mark before it."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_guarded(name) for name in columns])
    writer.writerows(map(_guarded, row) for row in rows)


def unguarded(text: str) -> str:
    """Return a text as it was before ``write_csv``."""
    return text[1:] if text.startswith(_GUARD) and _is_formula(text[1:]) else text


def _guarded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.replace("\r", "\\r")  # would end a row: lines of ours end in another way
    return f"{_GUARD}{text}" if _is_formula(text) else text


def _is_formula(text: str) -> bool:
    if not text.startswith(_FORMULA):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False
