"""The journal undoes every write, newest first, and logs which node rows moved."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from pumice.core.journal import Journal


def test_saved_cells_come_back() -> None:
    journal, cells = Journal(), np.arange(6.0).reshape(2, 3)
    mark = journal.mark()
    journal.save(cells, (slice(None), 1))
    cells[:, 1] = 9
    journal.save(cells, (0, 1))
    cells[0, 1] = 10
    journal.rollback(mark)
    assert cells.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_only_what_came_after_the_mark_is_taken_back() -> None:
    journal, cells = Journal(), np.zeros(3)
    journal.save(cells, 0)
    cells[0] = 1
    mark = journal.mark()
    journal.save(cells, 1)
    cells[1] = 2
    journal.rollback(mark)
    assert cells.tolist() == [1, 0, 0]
    journal.rollback(0)
    assert cells.tolist() == [0, 0, 0]


def test_a_repeated_row_index_comes_back_with_its_oldest_value() -> None:
    journal, cells = Journal(), np.array([1.0, 2.0])
    for value in (5.0, 6.0):
        journal.save(cells, np.array([1, 0]))
        cells[[1, 0]] = value
    journal.rollback(0)
    assert cells.tolist() == [1.0, 2.0]


def test_entries_of_mappings_come_back_and_new_ones_vanish() -> None:
    journal, mapping = Journal(), {"old": 1}
    journal.put(mapping, "old", 2)
    journal.put(mapping, "new", 3)
    journal.put(mapping, "new", 4)
    assert mapping == {"old": 2, "new": 4}
    journal.rollback(0)
    assert mapping == {"old": 1}


def test_functions_are_called_newest_first() -> None:
    journal = Journal()
    reported: list[Any] = []
    journal.on_rollback(reported.append, "first")
    journal.on_rollback(reported.append, "second")
    journal.rollback(0)
    assert reported == ["second", "first"]


def test_touched_rows_are_logged_and_logged_again_by_a_rollback() -> None:
    journal = Journal()
    journal.touch(4)
    mark = journal.mark()
    journal.touch(7)
    journal.rollback(mark)
    assert journal.moved == [4, 7, 7]


def test_what_is_forgotten_stays() -> None:
    journal, cells = Journal(), np.zeros(1)
    journal.save(cells, 0)
    cells[0] = 1
    journal.touch(0)
    journal.forget()
    journal.rollback(0)
    assert (cells[0], journal.moved, journal.mark()) == (1, [], 0)


def test_undoing_a_session_is_told_apart_from_a_rollback() -> None:
    journal, seen = Journal(), list[bool]()
    for end in (partial(journal.rollback, 0), journal.end_session, partial(journal.rollback, 0)):
        journal.on_rollback(lambda: seen.append(journal.is_ending))
        end()
    assert seen == [False, True, False]
    assert journal.session == 1


WRITES: dict[str, Callable[[Journal], None]] = {
    "save": lambda journal: journal.save(np.zeros(1), 0),
    "put": lambda journal: journal.put({}, "key", 1),
    "on_rollback": lambda journal: journal.on_rollback(print),
    "settle": lambda journal: journal.settle(),
}


@pytest.mark.parametrize("write", WRITES)
def test_deferred_work_runs_once_before_the_first_write_whatever_that_is(write: str) -> None:
    journal, done = Journal(), list[int]()
    journal.defer(lambda: 1 / 0, lambda: done.append(1))
    journal.touch(0)
    assert done == []
    WRITES[write](journal)
    WRITES[write](journal)
    assert done == [1]


def test_deferred_work_of_a_session_that_ends_does_not_run() -> None:
    journal, done = Journal(), list[int]()
    journal.defer(lambda: done.append(1))
    journal.forget()
    journal.settle()
    assert done == []


def test_a_tick_moves_no_row() -> None:
    journal = Journal()
    journal.tick()
    assert [rows.tolist() for rows in journal.moved if not isinstance(rows, int)] == [[]]
