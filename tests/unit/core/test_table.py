"""A table: columns of equal length whose last axis is the row."""

from typing import Any

import numpy as np
import pytest

from pumice.core.table import Table


@pytest.fixture
def table() -> Any:
    table = Table(n_resources=2)
    table.column("flag", np.bool_, fill=True)
    table.column("code", np.int32, fill=-1)
    table.column("amounts", lead=(3, "R"))
    table.listing("names")
    return table


def fill(table: Any, n: Any) -> None:
    for _ in range(n):
        row = table.new_row()
        table.code[row] = row
        table.amounts[..., row] = row
        table.names[row] = f"row {row}"


def test_rows_are_added_with_fill_values(table: Any) -> None:
    row = table.new_row()
    assert (row, table.n) == (0, 1)
    assert (bool(table.flag[row]), int(table.code[row]), table.names[row]) == (True, -1, None)
    assert table.amounts.shape[:2] == (3, 2)


def test_a_growing_table_keeps_its_cells(table: Any) -> None:
    fill(table, 100)
    assert table.code[:100].tolist() == list(range(100))
    assert table.amounts[2, 1, :100].tolist() == list(range(100))
    assert table.names[99] == "row 99"
    assert table.capacity >= 100


def test_a_cleared_row_is_used_again_with_fill_values(table: Any) -> None:
    fill(table, 3)
    table.clear_row(1)
    assert table.names[1] is None
    assert table.new_row() == 1
    assert (int(table.code[1]), float(table.amounts[0, 0, 1])) == (-1, 0.0)
    assert table.n == 3


def test_a_row_can_be_reset_but_for_some_columns(table: Any) -> None:
    fill(table, 2)
    table.reset_row(1, keep=("amounts",))
    assert (int(table.code[1]), float(table.amounts[0, 0, 1])) == (-1, 1.0)
    assert table.free == []


def test_trim_cuts_spare_rows(table: Any) -> None:
    fill(table, 3)
    table.trim()
    assert table.code.tolist() == [0, 1, 2]
    assert table.amounts.shape == (3, 2, 3)
    assert table.names == ["row 0", "row 1", "row 2"]
    fill(table, 1)
    assert table.code[:4].tolist() == [0, 1, 2, 3]


def test_a_deleted_row_leaves_no_gap(table: Any) -> None:
    fill(table, 4)
    table.trim()
    table.delete_row(1)
    assert (table.n, table.capacity) == (3, 3)
    assert table.code.tolist() == [0, 2, 3]
    assert table.names == ["row 0", "row 2", "row 3"]


def test_a_wider_resource_axis_gets_fill_values(table: Any) -> None:
    fill(table, 2)
    table.widen(4)
    assert table.amounts.shape[:2] == (3, 4)
    assert table.amounts[:, :2, 1].tolist() == [[1, 1]] * 3
    assert table.amounts[:, 2:, 1].tolist() == [[0, 0]] * 3
    table.clear_row(0)
    assert table.amounts[:, :, table.new_row()].tolist() == [[0] * 4] * 3


def test_a_reserved_table_has_that_much_room(table: Any) -> None:
    table.reserve(50)
    table.reserve(10)
    assert table.capacity == 50
    assert len(table.names) == 50


@pytest.mark.parametrize("room", [1, 7, 16])
def test_a_table_exactly_at_capacity_grows_by_the_next_row_and_not_before(
    table: Any, room: int
) -> None:
    table.reserve(room)
    fill(table, room)
    assert (table.n, table.capacity) == (room, room)
    fill(table, 1)
    assert table.n == room + 1 <= table.capacity
    assert table.code[: room + 1].tolist() == list(range(room + 1))
    assert table.names[room] == f"row {room}"
    table.trim()
    assert (table.n, table.capacity, len(table.names)) == (room + 1,) * 3


def test_a_new_table_has_no_room_and_no_rows() -> None:
    table = Table(2)
    table.column("amount", lead=("R",))
    table.listing("names")
    assert (table.n, table.capacity, table.free) == (0, 0, [])
    found: Any = table
    assert (found.amount.shape, found.names) == ((2, 0), [])


def test_several_rows_are_added_at_once() -> None:
    table: Any = Table(2)
    table.column("amount", lead=("R",), fill=7)
    table.listing("names")
    assert list(table.add_rows(3)) == [0, 1, 2]
    assert table.capacity == 3
    assert table.amount.tolist() == [[7, 7, 7], [7, 7, 7]]
    assert table.names == [None, None, None]


def test_rows_added_to_a_table_with_room_leave_its_columns_alone() -> None:
    table: Any = Table(1)
    table.column("amount")
    table.reserve(10)
    column = table.amount
    table.add_rows(4)
    table.add_rows(6)
    assert table.amount is column
    table.add_rows(1)
    assert (table.n, table.amount is column) == (11, False)
    assert table.capacity >= 11


def test_widening_by_nothing_changes_no_column() -> None:
    table: Any = Table(2)
    table.column("amount", lead=("R",))
    column = table.amount
    table.widen(2)
    assert table.amount is column
    assert table.n_resources == 2
