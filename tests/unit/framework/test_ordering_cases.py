"""Order, case by case: ties of queues, keys that count inside a job only, victims while they go."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from pumice.framework.ordering import Heap, TaskTie, _sift
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02d}Z"


def names(ssn: Any, rows: Any) -> list[str]:
    return [ssn.snapshot.tasks.keys[row].partition("/")[2] for row in rows]


def all_tasks(ssn: Any) -> list[int]:
    return list(ssn.snapshot.tasks.row_of.values())


# Queues

QUEUES = [
    queue("b", created=at(1), weight=2),
    queue("a", created=at(1), weight=2),
    queue("c", created=at(0), weight=2),
    queue("d", created=at(9), weight=1),
]


class Weight(Plugin, name="weight"):
    """Orders queues by weight."""

    asked = 0

    def order_queues(self, queues: Any) -> Any:
        self.asked += 1
        return queues.snapshot.queues.weight[queues.rows].astype(float)


class WeightPairs(Plugin, name="pairs"):
    """Compares queues by weight."""

    def compare_queues(self, left: Any, right: Any) -> Any:
        return float(left.weight - right.weight) / 8


@pytest.mark.parametrize("plugin", [Weight, WeightPairs])
def test_two_queues_are_compared_as_all_are_sorted(plugin: Any) -> None:
    ssn = open_session(QUEUES, [plugin()])
    row_of = ssn.snapshot.queues.row_of
    wanted = [row_of[name] for name in "dcab"]
    assert ssn.ordering.sort_queues(row_of.values()) == wanted
    for i, left in enumerate(wanted):
        for j, right in enumerate(wanted):
            assert ssn.ordering.compare_queues(left, right) == (i > j) - (i < j)
    keys = ssn.ordering.queue_keys(wanted)
    assert keys == ssn.ordering.queue_keys(wanted)
    for one, two in permutations(range(4), 2):
        assert (keys[one] < keys[two]) == (one < two)
        assert keys[one] != keys[two]


class Declared(Weight, name="declared"):
    """A plugin of which something may be assumed."""

    simulator = SimulatorAssumptions()


@pytest.mark.parametrize(
    ("plugin", "options", "wanted"),
    [
        (Declared, {"keep_keys": True}, 1),
        (Declared, {}, 3),
        (Declared, {"keep_keys": True, "live": True}, 3),
        (Weight, {"keep_keys": True}, 3),
    ],
)
def test_the_key_of_a_queue_is_kept_until_something_moves(
    plugin: Any, options: Any, wanted: int
) -> None:
    weight = plugin()
    ssn = open_session([*QUEUES, node("n")], [weight])
    heap = ssn.ordering.queue_heap([0, 1, 2], **options)
    popped = heap.pop()
    before = weight.asked
    for _ in range(3):
        heap.push(popped)
        assert heap.pop() == popped
    assert weight.asked - before == wanted
    ssn.snapshot.journal.tick()
    heap.push(popped)
    assert weight.asked == before + wanted + 1


def test_a_single_row_gets_its_key_when_another_comes() -> None:
    asked: list[list[int]] = []

    def keys(rows: list[int]) -> list[int]:
        asked.append(rows)
        return [-row for row in rows]

    heap = Heap(keys, [3])
    assert (asked, len(heap)) == ([], 1)
    heap.push(5)
    heap.push(4)
    assert asked == [[3], [5], [4]]
    assert [heap.pop() for _ in range(3)] == [5, 4, 3]
    heap.push(7)
    assert (asked[3:], heap.pop()) == ([], 7)


def test_a_heap_that_asks_about_a_single_row_asks_about_each() -> None:
    asked: list[list[int]] = []

    def keys(rows: list[int]) -> list[int]:
        asked.append(rows)
        return rows

    heap = Heap(keys, [3], ask_alone=True)
    heap.push(2)
    assert [heap.pop(), heap.pop()] == [2, 3]
    heap.push(1)
    assert asked == [[3], [2], [1]]


def test_a_heap_that_sees_moves_asks_again_only_after_one_and_no_one_about_the_last() -> None:
    asked: list[int] = []
    moves = [0]

    def keys(rows: list[int]) -> list[int]:
        asked.extend(rows)
        return [0] * len(rows)

    heap = Heap(keys, range(4), moves=moves)
    asked.clear()
    assert (heap.pop(), asked) == (0, [])
    moves.append(0)
    assert (heap.pop(), sorted(asked)) == (1, [2, 3])
    asked.clear()
    moves.append(0)
    assert ([heap.pop(), heap.pop()], asked) == ([2, 3], [])


# Tasks


class Inside(Plugin, name="inside"):
    """Orders tasks by two keys, of which the second counts inside a job only."""

    def order_tasks(self, tasks: Any) -> Any:
        priority = tasks.priority.astype(float)
        return np.stack([priority // 10, -(priority % 10)])


class Some(Inside, name="some"):
    """Orders the tasks of one job."""

    def on_open(self, ssn: Any) -> None:
        self.ordered_jobs = frozenset({ssn.snapshot.jobs.row_of["default/a"]})


def tasks_of(*priorities: tuple[str, int]) -> list[Any]:
    made = [queue("default"), *(pod_group(name) for name in "abc")]
    for i, (group, priority) in enumerate(priorities):
        made.append(pod(f"{group}-w-{i}", group=group, priority=priority))
    return made


def test_a_second_key_counts_inside_a_job_only() -> None:
    ssn = open_session(tasks_of(("a", 1), ("b", 5), ("a", 3), ("b", 12)), [Inside()])
    tasks = all_tasks(ssn)
    keys = ssn.ordering.task_keys(tasks)
    first, second, third, fourth = keys
    assert third < first, "of one job the larger rest goes first"
    assert first < second < third, "between jobs the number in the name decides"
    assert all(key < fourth for key in keys[:3])
    assert ssn.ordering.plain_task_keys(tasks) is None
    mine = [tasks[0], tasks[2]]
    assert ssn.ordering.sort_tasks(mine) == mine[::-1]
    assert ssn.ordering.plain_task_keys(mine) is not None


def test_a_plugin_orders_the_jobs_that_it_names() -> None:
    ssn = open_session(tasks_of(("a", 1), ("a", 3), ("b", 1), ("b", 3)), [Some()])
    tasks = all_tasks(ssn)
    columns, between = ssn.ordering.task_columns(tasks)
    assert between == [True, False]
    assert np.isnan(columns[1]).tolist() == [False, False, True, True]
    assert ssn.ordering.task_columns(tasks[2:]) == ([], [])
    assert names(ssn, ssn.ordering.sort_tasks(tasks[:2])) == ["a-w-1", "a-w-0"]
    assert names(ssn, ssn.ordering.sort_tasks(tasks[2:])) == ["b-w-2", "b-w-3"]
    assert ssn.ordering.plain_task_keys(tasks) is None


@pytest.mark.parametrize(
    ("pods", "plain"),
    [
        (["a-w-0", "a-w-1"], True),
        (["x", "y"], True),
        (["a-w-0", "y"], False),
    ],
)
def test_keys_are_plain_unless_only_some_names_have_numbers(pods: Any, plain: bool) -> None:
    ssn = open_session([pod(name) for name in pods])
    assert (ssn.ordering.plain_task_keys(all_tasks(ssn)) is not None) == plain


@pytest.mark.parametrize("plugin", [Inside, Some])
@pytest.mark.parametrize("seed", range(4))
def test_the_first_task_of_a_job_is_the_first_of_all_sorted(plugin: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = [("a", int(priority)) for priority in rng.integers(0, 30, 6)]
    ssn = open_session(tasks_of(*drawn, *drawn[:2]), [plugin()])
    tasks = all_tasks(ssn)
    while tasks:
        ordered = ssn.ordering.sort_tasks(tasks)
        first = ssn.ordering.first_task(rng.permutation(tasks).tolist())
        assert first == ordered[0]
        tasks.remove(first)


TIES = [(0, 5.0, "d"), (1, 9.0, "c"), (-1, 7.0, "b"), (1, 9.0, "e"), (-1, 7.0, "a")]


def test_ties_are_equal_for_one_task_only_and_in_order_otherwise() -> None:
    """Numbers decide if both have one and they differ, else age and then the uid."""
    for i, one in enumerate(TIES):
        for j, two in enumerate(TIES):
            left, right = TaskTie(*one), TaskTie(*two)
            assert (left == right) == (i == j)
            both = one[0] >= 0 <= two[0] and one[0] != two[0]
            assert (left < right) == (one[0] < two[0] if both else one[1:] < two[1:])
    assert TaskTie(*TIES[0]) != TIES[0]


# Victims


@pytest.mark.parametrize("n", range(8))
def test_the_first_of_a_heap_sinks_to_its_place(n: int) -> None:
    """Of equals neither moves; a child moves up if it goes before."""
    for first in range(-1, 8):
        heap = sorted(range(n))
        heap[:1] = [first] if n else []
        kept = sorted(heap)
        _sift(heap, lambda one, two: one // 2 - two // 2)
        assert sorted(heap) == kept
        for child in range(1, n):
            assert heap[child] // 2 >= heap[(child - 1) // 2] // 2
        if n and all(first // 2 <= each // 2 for each in kept):
            assert heap[0] == first


class Turning(Plugin, name="turning"):
    """Orders jobs by name until something is evicted, and the other way round from then on."""

    def on_open(self, ssn: Any) -> None:
        self._ssn = ssn

    def order_jobs(self, jobs: Any) -> Any:
        sign = -1.0 if len(self._ssn.snapshot.journal.moved) else 1.0
        return sign * np.asarray(jobs.rows, dtype=float)


def test_victims_in_turn_follow_an_order_that_moves_after_the_next_one() -> None:
    """The victim after the one that goes was chosen before that went."""
    groups = ("a", "a", "b", "b", "c", "c")
    made = [queue("default"), node("n", cpu=32), *(pod_group(name) for name in "abc")]
    made += [pod(f"{name}-w-{i}", group=name, cpu=1, node="n") for i, name in enumerate(groups)]
    ssn = open_session(made, [Turning()])
    ordered = ssn.ordering.sort_victims(all_tasks(ssn), 0)
    assert names(ssn, ordered) == ["c-w-5", "c-w-4", "b-w-3", "b-w-2", "a-w-1", "a-w-0"]
    assert list(ssn.ordering.victims_in_turn(ordered, 0)) == ordered
    gone = []
    for victim in ssn.ordering.victims_in_turn(ordered, 0):
        gone.append(victim)
        ssn.snapshot.evict(victim)
    assert names(ssn, gone)[:2] == ["c-w-5", "c-w-4"]
    assert names(ssn, gone)[2:] != names(ssn, ordered)[2:]
    assert sorted(gone) == sorted(ordered)
    assert names(ssn, gone)[-1][0] != "a", "the last ones are now those of the first job"
