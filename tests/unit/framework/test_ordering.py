"""Order: keys of plugins tier by tier, the fixed tie-breaks, heaps, victims."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from pumice.framework.plugin import Plugin
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import open_session


class Priority(Plugin, name="priority"):
    """Orders by priority."""

    def order_jobs(self, jobs: Any) -> Any:
        return -jobs.priority.astype(float)

    def order_tasks(self, tasks: Any) -> Any:
        return -tasks.priority.astype(float)


class Pairs(Plugin, name="pairs"):
    """Compares queues by the last letter of their names, largest first."""

    def compare_queues(self, left: Any, right: Any) -> Any:
        return ord(right.name[-1]) - ord(left.name[-1])


class Weight(Plugin, name="weight"):
    """Orders queues by weight; two keys at once."""

    def order_queues(self, queues: Any) -> Any:
        weight = queues.snapshot.queues.weight[queues.rows].astype(float)
        return np.array([np.zeros(len(queues)), weight])


def at(second: Any) -> str:
    return f"2026-01-01T00:00:{second:02d}Z"


def names(ssn: Any, rows: Any) -> Any:
    return [ssn.snapshot.tasks.keys[row].partition("/")[2] for row in rows]


def jobs_of(ssn: Any, rows: Any) -> Any:
    return [ssn.snapshot.jobs.keys[row].partition("/")[2] for row in rows]


def all_tasks(ssn: Any) -> Any:
    return list(ssn.snapshot.tasks.row_of.values())


def test_jobs_go_by_plugins_then_age_then_name() -> None:
    ssn = open_session(
        [
            priority_class("high", value=9),
            queue("default"),
            pod_group("young", created=at(5)),
            pod_group("b", created=at(1)),
            pod_group("a", created=at(1)),
            pod_group("first", created=at(9), priority_class="high"),
        ],
        [Priority()],
    )
    assert jobs_of(ssn, ssn.ordering.sort_jobs(ssn.jobs())) == ["first", "a", "b", "young"]


def test_numbers_in_pod_names_decide_if_both_have_one() -> None:
    """The index counts only in names of at least three parts."""
    ssn = open_session(
        [
            pod("job-task-10", created=at(1)),
            pod("job-task-9", created=at(3)),
            pod("job-task-0", created=at(7)),
        ]
    )
    ordered = ssn.ordering.sort_tasks(all_tasks(ssn))
    assert names(ssn, ordered) == ["job-task-0", "job-task-9", "job-task-10"]


def test_without_numbers_age_decides_then_uid() -> None:
    ssn = open_session(
        [pod("zeta", created=at(1)), pod("beta", created=at(2)), pod("alpha-7", created=at(2))]
    )
    assert names(ssn, ssn.ordering.sort_tasks(all_tasks(ssn))) == ["zeta", "alpha-7", "beta"]


def test_a_number_on_one_side_only_does_not_decide() -> None:
    ssn = open_session([pod("job-task-0", created=at(5)), pod("old", created=at(1))])
    assert names(ssn, ssn.ordering.sort_tasks(all_tasks(ssn))) == ["old", "job-task-0"]


@pytest.mark.parametrize("oldest", [0, 1, 2])
def test_numbers_decide_beside_a_name_without_one(oldest: int) -> None:
    """Zero is a number like any other: a younger lone pod does not change who goes first."""
    numbered = [pod(f"job-task-{i}", created=at(2 if i == oldest else 3)) for i in range(3)]
    ssn = open_session([*numbered, pod("lone", created=at(9))])
    ordered = ssn.ordering.sort_tasks(all_tasks(ssn))
    assert names(ssn, ordered) == ["job-task-0", "job-task-1", "job-task-2", "lone"]


def test_plugins_come_before_numbers() -> None:
    ssn = open_session([pod("job-task-0", priority=1), pod("job-task-9", priority=5)], [Priority()])
    assert names(ssn, ssn.ordering.sort_tasks(all_tasks(ssn))) == ["job-task-9", "job-task-0"]
    assert names(ssn, [ssn.ordering.first_task(all_tasks(ssn))]) == ["job-task-9"]


QUEUES = [
    queue("ab", weight=1, created=at(3)),
    queue("ba", weight=2, created=at(2)),
    queue("aa", weight=2, created=at(2)),
]


@pytest.mark.parametrize(
    ("plugins", "wanted"),
    [
        ([], ["aa", "ba", "ab"]),
        ([Weight()], ["ab", "aa", "ba"]),
        ([Pairs()], ["ab", "aa", "ba"]),
        ([Weight(), Pairs()], ["ab", "aa", "ba"]),
    ],
    ids=["ties", "keys", "pairs", "both"],
)
def test_queues_go_by_plugins_then_age_then_name(plugins: Any, wanted: Any) -> None:
    ssn = open_session(QUEUES, plugins)
    rows = ssn.ordering.sort_queues(ssn.snapshot.queues.row_of.values())
    assert wanted == [ssn.snapshot.queues.names[row] for row in rows]


def test_keys_and_pairs_are_asked_in_the_order_of_the_plugins() -> None:
    light = [queue("xa", weight=1), queue("yb", weight=2)]
    for plugins, wanted in (([Weight(), Pairs()], "xa"), ([Pairs(), Weight()], "yb")):
        ssn = open_session(light, plugins)
        first = ssn.ordering.sort_queues([0, 1])[0]
        assert wanted == ssn.snapshot.queues.names[first]


VICTIMS = [
    priority_class("high", value=9),
    priority_class("low", value=1),
    node("n0", cpu=16),
    queue("mine", created=at(1)),
    queue("other", created=at(2)),
    pod_group("high", queue="mine", priority_class="high", created=at(1)),
    pod_group("low", queue="mine", priority_class="low", created=at(2)),
    pod_group("far", queue="other", priority_class="high", created=at(3)),
    pod("high-x-0", group="high", node="n0"),
    pod("low-x-0", group="low", node="n0"),
    pod("low-x-1", group="low", node="n0"),
    pod("far-x-0", group="far", node="n0"),
]


def test_victims_of_late_queues_and_low_jobs_go_first_and_last_tasks_before_first() -> None:
    ssn = open_session(VICTIMS, [Priority()])
    mine = ssn.snapshot.queues.row_of["mine"]
    ordered = ssn.ordering.sort_victims(all_tasks(ssn), mine)
    assert names(ssn, ordered) == ["far-x-0", "low-x-1", "low-x-0", "high-x-0"]


def test_a_plugin_may_turn_the_order_of_victim_queues() -> None:
    class MineFirst(Plugin, name="mine-first"):
        def compare_victim_queues(self, left: Any, right: Any, preemptor: Any) -> Any:
            return (right.name == preemptor.name) - (left.name == preemptor.name)

    ssn = open_session(VICTIMS, [Priority(), MineFirst()])
    mine = ssn.snapshot.queues.row_of["mine"]
    ordered = ssn.ordering.sort_victims(all_tasks(ssn), mine)
    assert names(ssn, ordered) == ["low-x-1", "low-x-0", "high-x-0", "far-x-0"]
    other = ssn.snapshot.queues.row_of["other"]
    assert ssn.ordering.compare_victim_queues(mine, other, mine) == -1


def test_jobs_of_equal_rank_are_reported_apart_by_their_tasks() -> None:
    """Volcano: neither age nor name of the job counts among victims."""
    ssn = open_session(
        [
            node("n0", cpu=16),
            queue("default"),
            pod_group("old", created=at(1)),
            pod_group("new", created=at(9)),
            pod("old-x-5", group="old", node="n0"),
            pod("new-x-3", group="new", node="n0"),
        ],
        [Priority()],
    )
    ordered = ssn.ordering.sort_victims(all_tasks(ssn), 0)
    assert names(ssn, ordered) == ["old-x-5", "new-x-3"]


@pytest.mark.parametrize("turn", range(6))
def test_names_with_and_without_numbers_may_make_a_circle_that_does_not_depend_on_arrival(
    turn: int,
) -> None:
    """By number j-w-0 goes before j-w-1, by age j-w-1 before lone, and lone before j-w-0."""
    pods = [
        pod("j-w-0", created=at(9)),
        pod("j-w-1", created=at(1)),
        pod("lone", created=at(5)),
    ]
    found = []
    for arrived in (pods, list(permutations(pods))[turn]):
        ssn = open_session(arrived)
        found.append(names(ssn, ssn.ordering.sort_tasks(all_tasks(ssn))))
    assert found[0] == found[1]
