"""Every kind of answer: what each of its checks wants, and what a failed question yields."""

from typing import Any

import numpy as np
import pytest

from pumice.core.views import ALL
from pumice.framework import hook_answers as kinds
from pumice.framework.hook_answers import ask_by_halves
from pumice.framework.refusals import Reason, Refusal, Why

TWO = (Reason("full"), Reason("far"))
NAN, INF = float("nan"), float("inf")
REFUSAL = Refusal(Why.PLUGIN_FAILED, {"problem": "x"})


class View:
    """Rows as a hook sees them."""

    def __init__(self, index: Any, rows: Any = ALL) -> None:
        self.index, self.rows = np.asarray(index), rows

    def __len__(self) -> int:
        return len(self.index)

    def part(self, half: slice) -> "View":
        return View(self.index[half], self.index[half])


ASKED = ("asker", View([4, 5, 6]))
SOME = ("asker", View([4, 5, 6], rows=np.array([4, 5, 6])))
CODES = "codes from 0 to 2, the number of its reasons"
WRONG_CODES = "an array of true or false, or of codes"


def row(*values: Any) -> Any:
    return np.array(values)


CHECKS: list[tuple[Any, str, Any, str]] = [
    (kinds.CODES, "check", None, ""),
    (kinds.CODES, "check", row(0, 1, 2), ""),
    (kinds.CODES, "check", row(True, False, True), ""),
    (kinds.CODES, "check", row(0, 1, 3), CODES),
    (kinds.CODES, "check", row(0, -1, 2), CODES),
    (kinds.CODES, "check", row(0.0, 1.0, 2.0), WRONG_CODES),
    (kinds.CODES, "check", row(0, 1), "3 answers"),
    (kinds.CODES, "check", [0, 1, 2], "3 answers"),
    (kinds.CODES, "cheap", None, ""),
    (kinds.CODES, "cheap", row(0, 1, 99), ""),
    (kinds.CODES, "cheap", row(0, 1), "3 answers"),
    (kinds.CODES, "exact", None, ""),
    (kinds.CODES, "exact", row(0, 1, 2), ""),
    (kinds.CODES, "exact", row(0, 1, 3), "numbers of 2 reasons"),
    (kinds.CODES, "exact", row(-1, 1, 2), "numbers of 2 reasons"),
    (kinds.CODES, "exact", row(0.0, 1.0, 2.0), "booleans or numbers of reasons"),
    (kinds.CODES, "exact", row(True, False, True), ""),
    (kinds.CODES, "exact", row(0, 1), "an array of 3"),
    (kinds.CODES, "exact", [0, 1, 2], "an array of 3"),
    (kinds.SCORES, "check", None, ""),
    (kinds.SCORES, "check", row(1.0, 2.0, 3.0), ""),
    (kinds.SCORES, "check", row(1, 2, 3), ""),
    (kinds.SCORES, "check", row(1.0, NAN, 3.0), "3 finite numbers"),
    (kinds.SCORES, "check", row(1.0, INF, 3.0), "3 finite numbers"),
    (kinds.SCORES, "check", row("a", "b", "c"), "3 finite numbers"),
    (kinds.SCORES, "check", row(1.0), "3 scores"),
    (kinds.SCORES, "check", 1.0, "3 scores"),
    (kinds.SCORES, "cheap", None, ""),
    (kinds.SCORES, "cheap", row(1.0, 2.0, 3.0), ""),
    (kinds.SCORES, "cheap", row(1.0, NAN, 3.0), "3 finite numbers"),
    (kinds.SCORES, "cheap", row(1.0), "3 scores"),
    (kinds.SCORES, "exact", None, ""),
    (kinds.SCORES, "exact", row(1, 2, 3), ""),
    (kinds.SCORES, "exact", row(1.0, NAN, 3.0), "finite numbers"),
    (kinds.SCORES, "exact", row(True, True, True), "numbers"),
    (kinds.SCORES, "exact", row(1.0), "an array of 3"),
    (kinds.REASON, "check", Reason("no"), ""),
    (kinds.REASON, "check", None, ""),
    (kinds.REASON, "check", "no", "a Reason or None"),
    (kinds.CANDIDATE, "check", None, ""),
    (kinds.CANDIDATE, "check", 5, ""),
    (kinds.CANDIDATE, "check", np.int64(6), ""),
    (kinds.CANDIDATE, "check", 3, "the row of one of the nodes, or None"),
    (kinds.CANDIDATE, "check", 4.0, "the row of one of the nodes, or None"),
    (kinds.CANDIDATE, "check", True, "the row of one of the nodes, or None"),
    (kinds.COMPARISON, "check", -0.5, ""),
    (kinds.COMPARISON, "check", np.int32(1), ""),
    (kinds.COMPARISON, "check", NAN, "a number"),
    (kinds.COMPARISON, "check", "1", "a number"),
    (kinds.YES_NO, "check", True, ""),
    (kinds.YES_NO, "check", 0, ""),
    (kinds.YES_NO, "check", 0.5, "true or false"),
    (kinds.YES_NO, "exact", np.bool_(1), ""),
    (kinds.YES_NO, "exact", 1, "true or false"),
    (kinds.VERDICT, "check", REFUSAL, ""),
    (kinds.VERDICT, "check", False, ""),
    (kinds.VERDICT, "check", None, "true or false"),
    (kinds.VERDICT, "exact", REFUSAL, ""),
    (kinds.VERDICT, "exact", 1, "true or false"),
    (kinds.VOTE, "check", REFUSAL, ""),
    (kinds.VOTE, "check", 7, ""),
    (kinds.VOTE, "check", None, "a number"),
    (kinds.VOTE, "exact", REFUSAL, ""),
    (kinds.VOTE, "exact", -1, ""),
    (kinds.VOTE, "exact", 0, ""),
    (kinds.VOTE, "exact", np.int8(1), ""),
    (kinds.VOTE, "exact", 2, "a vote of -1, 0 or 1"),
    (kinds.VOTE, "exact", -2, "a vote of -1, 0 or 1"),
    (kinds.VOTE, "exact", 1.0, "a vote of -1, 0 or 1"),
    (kinds.PROBLEM, "check", None, ""),
    (kinds.PROBLEM, "check", "late", ""),
    (kinds.PROBLEM, "check", 7, "a text, empty if all is well"),
    (kinds.PROBLEM, "exact", "", ""),
    (kinds.PROBLEM, "exact", None, "a text"),
    (kinds.MASK, "check", None, ""),
    (kinds.MASK, "check", [True, False, True], ""),
    (kinds.MASK, "check", [1, 0, 1], ""),
    (kinds.MASK, "check", [0.5, 0.5, 0.5], "a mask of true and false"),
    (kinds.MASK, "check", [True], "a mask of 3"),
    (kinds.MASK, "cheap", [True], "a mask of 3"),
    (kinds.MASK, "cheap", [0.5, 0.5, 0.5], ""),
    (kinds.MASK, "exact", None, ""),
    (kinds.MASK, "exact", row(True, False, True), ""),
    (kinds.MASK, "exact", row(1, 0, 1), "3 times true or false"),
    (kinds.MASK, "exact", row(True, False), "3 times true or false"),
    (kinds.DOMAIN_SCORES, "check", None, ""),
    (kinds.DOMAIN_SCORES, "check", row(1.0, 2.0, 3.0), ""),
    (kinds.DOMAIN_SCORES, "check", row(1.0, NAN, 3.0), "3 finite numbers, or None"),
    (kinds.DOMAIN_SCORES, "check", row(1.0), "3 finite numbers, or None"),
]


@pytest.mark.parametrize(("kind", "which", "answer", "want"), CHECKS)
def test_a_check_returns_what_was_wanted(kind: Any, which: str, answer: Any, want: str) -> None:
    assert getattr(kind, which)(answer, ASKED, TWO) == want


def test_a_refusal_of_nodes_needs_a_reason_only_if_it_refuses() -> None:
    exact: Any = kinds.CODES.exact
    assert exact(row(True, True, True), ASKED, ()) == ""
    assert exact(row(True, False, True), ASKED, ()) == "a plugin that states a reason"


def test_no_nodes_need_no_codes_and_no_mask() -> None:
    nobody, check = ("asker", View([])), kinds.CODES.check
    assert check is not None
    assert check(np.zeros(0, dtype=np.int8), nobody, ()) == ""
    masks: Any = kinds.MASK.check
    assert masks([], nobody, ()) == ""
    assert masks([True], nobody, ()) == "a mask of 0"


def test_scores_of_some_nodes_are_checked_for_their_number_alone() -> None:
    cheap: Any = kinds.SCORES.cheap
    assert cheap(row(1.0, NAN, 3.0), SOME, ()) == ""
    assert cheap(row(1.0), SOME, ()) == "3 scores"


@pytest.mark.parametrize(
    ("found", "check", "cheap"),
    [
        ([1.0, 2.0, 3.0], "", ""),
        (row(1.0, 2.0, 3.0), "", ""),
        (np.zeros((2, 3)), "", ""),
        (np.full(3, INF), "", ""),
        (np.full(3, NAN), "a list of 3 keys, all of them numbers", ""),
        (["a", "b", "c"], "a list of 3 keys, all of them numbers", ""),
        ([1.0], "a list of 3 keys", "a list of 3 keys"),
        (np.zeros((3, 2)), "a list of 3 keys", "a list of 3 keys"),
        (7, "a list of 3 keys", "a list of 3 keys"),
    ],
)
def test_keys_are_numbers_of_each_row(found: Any, check: str, cheap: str) -> None:
    asked = (View([4, 5, 6]),)
    keys: Any = kinds.KEYS
    assert (keys.check(found, asked, ()), keys.cheap(found, asked, ())) == (check, cheap)


class Domain:
    rows = ()


@pytest.mark.parametrize(
    ("levels", "good"),
    [
        ([], True),
        ([[Domain()], (Domain(), Domain())], True),
        (([Domain()],), True),
        ([Domain()], False),
        ([[3]], False),
        ([[Domain(), 3]], False),
        (None, False),
    ],
)
def test_levels_are_lists_of_domains(levels: Any, good: bool) -> None:
    check: Any = kinds.LEVELS.check
    assert check(levels, (), ()) == ("" if good else "lists of domains, level by level")


@pytest.mark.parametrize(
    ("rows", "good"),
    [
        ([], True),
        ([4, 6], True),
        ({5}, True),
        (row(4, 5), True),
        ([7], False),
        ([4.0], False),
        ("4", False),
    ],
)
def test_tasks_are_some_of_those_asked_about(rows: Any, good: bool) -> None:
    check: Any = kinds.TASKS.check
    assert check(rows, ([4, 5, 6],), ()) == ("" if good else "a list of some of the tasks")


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("bad", [(0,), (1,), (0, 7), (2, 3, 8)])
def test_a_question_is_asked_by_halves_until_bad_rows_are_alone(n: int, bad: Any) -> None:
    wrong = {row for row in bad if row < n}

    def ask(half: slice) -> list[int]:
        rows = list(range(n))[half]
        assert not wrong & set(rows)
        return rows

    found = ask_by_halves(ask, n)
    answered = sorted(row for _, rows in found.answered for row in rows)
    if n == 1:  # it was asked already
        assert (answered, found.failed) == ([], [0])
        return
    assert sorted(found.failed) == sorted(wrong)
    assert answered == sorted(set(range(n)) - wrong)


def test_a_question_that_fails_too_often_is_given_up() -> None:
    asked = []

    def ask(half: slice) -> None:
        asked.append(half)
        raise ValueError

    found = ask_by_halves(ask, 1000)
    assert (found.answered, sorted(found.failed)) == ([], list(range(1000)))
    assert len(asked) == 64
