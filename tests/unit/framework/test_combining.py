"""Each rule combines answers as declared; sessions test the rules of victims and votes."""

from typing import Any

import numpy as np
import pytest

from pumice.framework import combining
from pumice.framework.combining import Ask
from pumice.framework.hooks import Hook
from pumice.framework.plugin import HOOKS

YES, NO = (lambda *_: True), (lambda *_: False)


def column(*values: float) -> Ask:
    return lambda *_: np.array(values)


def test_nobody_is_asked_further_once_one_says_no() -> None:
    asked: list[Any] = []
    rule = combining.ALL_AGREE.bind([[NO], [lambda *args: asked.append(args)]])
    assert rule("job") is False
    assert asked == []


def test_a_sum_is_added_up_from_left_to_right() -> None:
    parts = [0.1, 0.2, 0.3]
    total = combining.SUM.bind([[column(part) for part in parts]])(1.0)
    assert total.tolist() == [((1.0 + 0.1) + 0.2) + 0.3]


def test_a_sum_leaves_out_who_has_no_opinion() -> None:
    assert combining.SUM.bind([[lambda *_: None]])(0.0) == 0.0


def test_keys_of_all_plugins_are_compared_in_turn() -> None:
    rule = combining.KEYS.bind([[column(1.0, 2.0)], [lambda _: np.array([[3, 4], [5, 6]])]])
    assert rule("rows") == [[1.0, 2.0], [3, 4], [5, 6]]


def test_the_first_difference_decides() -> None:
    rule = combining.FIRST_DIFFERENCE.bind([[lambda *_: 0], [lambda *_: -2, lambda *_: 1]])
    assert rule("left", "right") == -2
    assert combining.FIRST_DIFFERENCE.bind([])("left", "right") == 0


def test_the_first_reason_against_each_row_stands() -> None:
    rule = combining.FIRST_REASON.bind([[column(0, 1, 0)], [lambda *_: None], [column(2, 2, 0)]])
    assert rule("nodes").tolist() == [2, 1, 0]
    assert combining.FIRST_REASON.bind([])("nodes") == 0


def test_the_first_answer_counts_nothing_is_none() -> None:
    rule = combining.FIRST.bind([[lambda *_: None, lambda *_: 0], [lambda *_: 7]])
    assert rule("task") == 0
    assert combining.FIRST.bind([])("task") is None


def test_each_is_reported() -> None:
    reported: list[str] = []
    combining.EACH.bind([[reported.append], [reported.append]])("task")
    assert reported == ["task", "task"]


@pytest.mark.parametrize("hook", HOOKS.values(), ids=lambda hook: hook.name)
def test_every_hook_can_be_asked_where_no_plugin_answers(hook: Hook) -> None:
    answers: dict[str, tuple[Any, ...]] = {
        "sum": (0.0,),
        "intersection within a tier, first tier with victims": ("task", []),
    }
    hook.rule.bind([])(*answers.get(hook.rule.words, ("one",)))
