"""Steps of a run: whom plugins that count keep, and whose going moves the order of jobs."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pumice.core.status import Status
from pumice.framework.eviction.eviction_ladders import Step
from pumice.framework.eviction.room_making import RoomMaker, _offered
from pumice.framework.eviction.victim_lines import JobKeys
from pumice.framework.plugin import Plugin
from pumice.framework.statement import Room
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

TASK: Any = None
"""Plugins here do not look at who asks."""


@pytest.mark.parametrize(
    ("refused", "bound", "wanted"),
    [
        ([], [1, 1, 1, 1], 4),
        ([12], [1, 1, 1, 1], 2),
        ([10, 12], [1, 1, 1, 1], 0),
        ([12], [1, 1, 0, 1], 4),
        ([13], [0, 1, 0, 1], 3),
        ([13], [0, 0, 0, 0], 4),
        (None, [1, 1, 1, 1], 0),
        (None, [0, 0, 0, 0], 4),
    ],
)
def test_those_in_line_are_offered_up_to_the_first_that_is_kept(
    refused: Any, bound: Any, wanted: int
) -> None:
    def ask(_: Any, rows: list[int]) -> Any:
        return None if refused is None else np.array([row not in refused for row in rows])

    judges = [
        (ask, np.array(bound, dtype=bool)),
        (lambda _, rows: np.ones(len(rows)), ~np.zeros(4, bool)),
    ]
    assert _offered(judges, TASK, np.arange(10, 14), [0, 1, 2, 3]) == wanted


def agreed(tiers: str, kept: dict[int, int], *, promise: bool = True) -> int:
    """Ask about a step for each tier; each evicts one. ``kept`` is whom its tier keeps, by tier."""
    rows = np.arange(len(tiers))

    def judge(tier: int) -> Any:
        def ask(_: Any, line: list[int]) -> Any:
            short = len(line) < len(tiers) and not promise
            return np.array([row != kept.get(tier) and not short for row in line])

        return [(ask, np.ones(len(tiers), dtype=bool))]

    ladders: Any = SimpleNamespace(
        lines=SimpleNamespace(rows=rows, in_turn=judge(0), in_turn_later=judge(1)),
        in_line=lambda step: range(step.place, step.place + 1),
        tiers=lambda steps: [int(tiers[step.place]) for step in steps],
    )
    maker = RoomMaker(open_session([queue("default")]), Plugin.reclaimable)
    return maker._n_offered(TASK, ladders, [Step(i, 0, 0, 1) for i in range(len(tiers))])


@pytest.mark.parametrize(
    ("tiers", "kept", "wanted"),
    [
        ("0000", {}, 4),
        ("0000", {0: 2}, 2),
        ("0000", {1: 2}, 4),
        ("0101", {}, 4),
        ("0101", {0: 0}, 0),
        ("0101", {0: 1}, 2),
        ("0101", {1: 0}, 1),
        ("0101", {1: 2}, 3),
        ("0110", {0: 1, 1: 2}, 2),
        ("1100", {1: 3}, 4),
    ],
)
def test_each_tier_counts_all_who_go_and_ends_the_run_at_its_own_step(
    tiers: str, kept: dict[int, int], wanted: int
) -> None:
    assert agreed(tiers, kept) == wanted


def test_where_plugins_keep_somebody_of_a_shorter_line_nothing_is_promised() -> None:
    assert agreed("0000", {0: 2}, promise=False) == 0


class ByNumber(Plugin, name="by number"):
    """Orders jobs by how many of their tasks run."""

    def order_jobs(self, jobs: Any) -> Any:
        counts = jobs.snapshot.jobs.counts
        return counts[int(Status.RUNNING), jobs.index].astype(float)


@pytest.mark.parametrize("lasts", [False, True])
@pytest.mark.parametrize(
    ("lines", "going", "rivals"),
    [
        (["a"], ["a"], ""),
        (["ab"], ["a"], ""),
        (["aab"], ["a"], "a"),
        (["aab"], ["b"], ""),
        (["aab"], ["aa"], "a"),
        (["ab"], ["ab"], ""),
        (["ab", "b"], ["a", ""], ""),
        (["ab", "a"], ["a", ""], ""),
        (["ab", "ac"], ["a", ""], "a"),
        (["a", "ab"], ["a", "a"], "a"),
        (["a", "ab"], ["a", "b"], "a"),
        (["ab", "c"], ["a", "c"], ""),
        (["ac", "cb"], ["a", "b"], ""),
        (["ac", "cb"], ["c", "b"], "c"),
    ],
)
def test_the_order_stands_unless_a_job_moves_that_is_still_in_line_with_others(
    lines: list[str], going: list[str], rivals: str, lasts: bool
) -> None:
    made: list[Any] = []
    for name in "abc":
        group = pod_group(name, phase="Running")
        made += [group, *(pod(f"{name}-{i}", group=name, node="n0") for i in range(3))]
    ssn = open_session([queue("default"), node("n0"), *made], [ByNumber()])
    tasks, numbers = ssn.snapshot.tasks, {name: iter(range(3)) for name in "abc"}
    rows = [
        [tasks.row_of[f"default/{name}-{next(numbers[name])}"] for name in line] for line in lines
    ]
    left = [list(zip(line, row, strict=True)) for line, row in zip(lines, rows, strict=True)]
    steps: list[Any] = []
    rooms: list[Room] = []
    for place, names in enumerate(going):
        for name in names:
            chosen = next(pair for pair in left[place] if pair[0] == name)
            left[place].remove(chosen)
            steps.append(Step(place, 0, 0, 1))
            rooms.append(Room(0, 0, [chosen[1]], freed=True))
    in_line = SimpleNamespace(
        rows=np.array([row for line in rows for row in line]),
        place=np.array([place for place, line in enumerate(lines) for _ in line]),
        lasts=lasts,
    )
    shared = {place for place, line in enumerate(lines) if len(set(line)) > 1}
    maker = RoomMaker(ssn, Plugin.preemptable)
    found = maker._rivals(SimpleNamespace(shared=shared, lines=in_line), steps, rooms)  # type: ignore[arg-type]
    if not lasts and "ac" in lines and going == ["a", ""]:
        rivals = ""  # no later job is served on nodes that were left out
    assert [tasks.keys[row].partition("/")[2][0] for row in found] == list(rivals)
    before: JobKeys = {int(tasks.job[row]): (3.0,) for row in range(len(tasks.keys))}
    if found:
        assert not maker._keeps_job_order(found, before)
