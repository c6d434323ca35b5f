"""How often rows occur, and additions to the rows of a column."""

from collections.abc import Iterable
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column

RowCounts = tuple[int, int] | tuple[NDArray[np.intp], NDArray[Any]]
"""A row, or distinct rows, and how often each was there."""


def count_rows(rows: list[int], weights: Iterable[int] | None = None) -> RowCounts:
    """Count equal rows, each as often as its weight, or once."""
    if rows.count(rows[0]) == len(rows):
        return rows[0], len(rows) if weights is None else sum(weights)
    found: dict[int, int] = {}
    for row, n in zip(rows, weights or repeat(1), strict=False):
        found[row] = found.get(row, 0) + n
    return np.array([*found], np.intp), np.array([*found.values()], np.intp)


def add_cells(column: Column, row: int, amounts: Column) -> None:
    """Add amounts (…) to one row of a column (…, n), in place: an index would write them twice."""
    cells = column[..., row]
    cells += amounts


def add_each(column: Column, rows: NDArray[Any], amounts: Column) -> None:
    """Add amounts (…, k) to rows (k,) of a column (…, n), of which one may occur several times."""
    order = np.argsort(rows, kind="stable")
    in_order = rows[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=-1))
    column[..., in_order[starts]] += np.add.reduceat(amounts[..., order], starts, axis=-1)


def add_counted(column: Column, counts: RowCounts, amounts: Column) -> None:
    """Add amounts (…) to rows of a column (…, n), to each as often as it counts."""
    rows, n = counts
    if isinstance(rows, int):
        add_cells(column, rows, amounts * n)
    else:  # taking rows is several times faster than an index
        column[..., rows] = column.take(rows, axis=-1) + amounts[..., None] * n
