"""The answers of nodes to a shape: room, reasons, and parts of them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pumice.framework import fits as module
from pumice.framework.fits import (
    FUTURE,
    IDLE,
    NO_ROOM,
    Answers,
    Fit,
    PluginFilter,
    codes_of,
    filter_reasons,
    room_on,
)
from pumice.framework.job_records import NoNode
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Reason


@pytest.mark.parametrize("many", [0, 256])
def test_room_is_now_soon_or_none_resource_by_resource(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MANY", many)
    cases: list[tuple[list[float], list[float], list[float], int]] = [
        ([4, 4], [0, 0], [0, 0], IDLE),
        ([3.95, 4], [0, 0], [0, 0], IDLE),
        ([3.8, 4], [0, 0], [0, 0], NO_ROOM),
        ([3, 4], [1, 0], [0, 0], FUTURE),
        ([3, 4], [1, 0], [1, 0], NO_ROOM),
        ([4, 4], [0, 0], [1, 0], NO_ROOM),
        ([4, 4], [1, 0], [1, 0], IDLE),
        ([4, 0], [0, 4], [0, 0], FUTURE),
        ([0, 4], [0, 4], [0, 0], NO_ROOM),
    ]
    columns = [np.array([case[i] for case in cases]).T for i in range(3)]
    device = np.full((1, len(cases)), -5.0)  # less than none of what is not asked for
    idle, releasing, pipelined = (
        np.concatenate([column, device if i == 0 else 0 * device])
        for i, column in enumerate(columns)
    )
    nodes: Any = SimpleNamespace(idle=idle, releasing=releasing, pipelined=pipelined)
    need = np.array([[4.0], [4.0], [-np.inf]])
    assert room_on(need, nodes).tolist() == [case[3] for case in cases]


def test_answers_become_numbers_of_reasons() -> None:
    assert codes_of(None) is None
    assert codes_of(np.array([True, True])) is None
    assert codes_of(np.zeros(2, dtype=np.int8)) is None
    found = codes_of(np.array([True, False]))
    assert found is not None
    assert found.tolist() == [0, 1]
    number = np.array([0, 3])
    assert codes_of(number) is number


REASONS = (Reason("a while"), Reason("for good", curable=False))


def ask(static: Any, live: Any, offset: int = 10) -> Any:
    def by_nodes(task: Any, nodes: Any) -> Any:
        return None if live is None else np.array(live)

    asks = None, by_nodes if live != "none" else None
    one = PluginFilter(0, offset, REASONS, asks, position=0)
    fit = blank(static_codes=[None if static is None else np.array(static)])
    nothing: Any = None
    found = one.ask(fit, nothing, nothing, slice(None))
    return None if found is None else found.tolist()


def blank(**more: Any) -> Fit:
    columns: dict[str, Any] = {
        "verdict": np.zeros(3, dtype=np.int16),
        "room": np.zeros(3, dtype=np.int8),
        "score": np.zeros(3),
        "value": np.zeros(3),
        "static_codes": [],
        "static_score": None,
    }
    return Fit(**(columns | more))


@pytest.mark.parametrize(
    ("static", "live", "wanted"),
    [
        (None, None, None),
        (None, "none", None),
        ([0, 1, 2], "none", [0, 11, 12]),
        ([0, 1, 2], None, [0, 11, 12]),
        (None, [0, 1, 2], [0, 11, 12]),
        ([0, 0, 0], [0, 1, 2], [0, 11, 12]),
        ([1, 1, 1], [0, 1, 2], [11, 11, 12]),
        ([2, 2, 2], [0, 1, 2], [12, 12, 12]),
        (None, [False, True, True], [11, 0, 0]),
    ],
)
def test_of_two_answers_of_a_plugin_a_lasting_reason_comes_first(
    static: Any, live: Any, wanted: Any
) -> None:
    assert ask(static, live) == wanted


def test_failures_of_filters_are_reasons_behind_those_of_the_plugin() -> None:
    class One(Plugin, name="one"):
        reasons = REASONS

    found = filter_reasons(One())
    assert found[:2] == REASONS
    assert [each.text for each in found[2:]] == [
        "plugin one failed in filter_shape",
        "plugin one failed in filter_nodes",
    ]
    assert not any(each.curable for each in found[2:])


def test_answers_of_some_rows_are_stored_and_what_was_explained_is_forgotten() -> None:
    fit = blank(no_node=NoNode({}))
    answers = Answers(
        np.array([1, 2]), np.array([1, 2], dtype=np.int8), np.array([3.0, 4.0]), np.array([5.0, 6])
    )
    fit.take(slice(1, 3), answers)
    assert fit.no_node is None
    assert [fit.verdict.tolist(), fit.room.tolist()] == [[0, 1, 2], [0, 1, 2]]
    assert [fit.score.tolist(), fit.value.tolist()] == [[0, 3, 4], [0, 5, 6]]
    part = answers.part(slice(1, 2))
    found = [getattr(part, name).tolist() for name in ("verdict", "room", "score", "value")]
    assert found == [[2], [2], [4.0], [6.0]]
    plain = Answers(0, answers.room, 0.5, answers.value).part(slice(1))
    assert (plain.verdict, plain.score, plain.room.tolist()) == (0, 0.5, [1])


def test_the_memory_of_a_fit_is_that_of_all_its_columns() -> None:
    fit = blank(static_codes=[None, np.zeros(3, dtype=np.int16)], static_score=np.zeros(3))
    assert fit.n_bytes == 3 * (2 + 1 + 8 + 8 + 2 + 8)
