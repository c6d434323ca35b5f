"""Candidates and their scopes against a plain look at every task, while tasks go and come back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.core.resources import CPU, PODS, fits
from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.eviction.candidates import Candidates, Visit, fits_after_evictions
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Reason
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

RUNNING = (Status.RUNNING, Status.BOUND)


def world(seed: int) -> list[Any]:
    """Make nodes, of which some are empty, and jobs of three queues, of which one is not open."""
    rng = np.random.default_rng(seed)
    made: list[Any] = [queue("a"), queue("b"), queue("c", reclaimable=False)]
    made += [node(f"n{i}", cpu=16) for i in range(6)]
    made += [pod_group(f"g{i}", queue="abc"[i % 3], phase="Running") for i in range(5)]
    for i in range(30):
        group = None if i % 10 == 9 else f"g{rng.integers(5)}"
        waits = i % 6 == 5
        made.append(
            pod(
                f"p-w-{i}",
                group=group,
                cpu=[None, 1, 2][int(rng.integers(3))],
                preemptable=None if i % 7 == 3 else True,
                node=None if waits else f"n{rng.integers(4)}",
                phase="Succeeded" if i % 11 == 10 else None,
            )
        )
    made.append(pod("lost", group="g0", cpu=1, node="nowhere", preemptable=True))
    return made


def is_candidate(ssn: Any, row: int) -> bool:
    tasks = ssn.snapshot.tasks
    return bool(
        tasks.status[row] in RUNNING
        and tasks.preemptable[row]
        and tasks.node[row] >= 0
        and tasks.job[row] >= 0
    )


class Scoped:
    """A scope, and whom it is about, found by looking at every task."""

    def __init__(self, ssn: Any, name: str, scope: Any, belongs: Any) -> None:
        self.ssn, self.name, self.scope = ssn, name, scope
        rows = range(ssn.snapshot.tasks.n)
        self.members = [row for row in rows if is_candidate(ssn, row) and belongs(row)]

    def check(self, candidates: Candidates) -> None:
        snapshot = self.ssn.snapshot
        tasks, n = snapshot.tasks, snapshot.nodes.n
        live = [row for row in self.members if tasks.status[row] in RUNNING]
        sums = np.zeros((len(snapshot.resources), n))
        for row in live:
            sums[:, tasks.node[row]] += snapshot.request(row)
        for at in range(n):
            here = [row for row in live if tasks.node[row] == at]
            assert sorted(candidates.on_node(self.scope, at)) == here, self.name
        np.testing.assert_array_equal(
            candidates.room(self.scope), snapshot.nodes.future_idle + sums
        )
        np.testing.assert_array_equal(candidates.sums(self.scope), sums)
        assert candidates.occupied(self.scope).tolist() == (sums[PODS] > 0).tolist()


def scopes(ssn: Any, candidates: Candidates) -> list[Scoped]:
    tasks, jobs, queues = ssn.snapshot.tasks, ssn.snapshot.jobs, ssn.snapshot.queues
    found = []
    for only in (False, True):
        for row in range(3):
            scope = candidates.of_queue(row, best_effort_only=only)
            assert scope is candidates.of_queue(row, best_effort_only=only)
            found.append(
                Scoped(
                    ssn,
                    f"queue {row}, {only}",
                    scope,
                    lambda t, row=row, only=only: (
                        jobs.queue[tasks.job[t]] == row and (tasks.best_effort[t] or not only)
                    ),
                )
            )
        for row in range(5):
            scope = candidates.of_job(row, best_effort_only=only)
            assert scope.own_job
            found.append(
                Scoped(
                    ssn,
                    f"job {row}, {only}",
                    scope,
                    lambda t, row=row, only=only: (
                        tasks.job[t] == row and (tasks.best_effort[t] or not only)
                    ),
                )
            )

    def takes(row: int) -> Callable[[int], bool]:
        return lambda task: bool(
            jobs.queue[tasks.job[task]] != row and queues.reclaimable[jobs.queue[tasks.job[task]]]
        )

    found += [
        Scoped(ssn, f"others than {row}", candidates.of_other_queues(row), takes(row))
        for row in range(3)
    ]
    return found


@pytest.mark.parametrize("few_shapes", [8, 0])
@pytest.mark.parametrize("seed", range(4))
def test_scopes_are_what_a_look_at_every_task_finds(
    seed: int, few_shapes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pumice.framework.eviction.candidates._FEW_SHAPES", few_shapes)
    ssn = open_session(world(seed))
    snapshot = ssn.snapshot
    candidates = Candidates(ssn, RUNNING)
    found = scopes(ssn, candidates)
    assert sum(bool(each.members) for each in found) > 8
    for each in found:
        each.check(candidates)
    rng, mark = np.random.default_rng(seed), snapshot.journal.mark()
    for _ in range(3):
        rows = [row for row in range(snapshot.tasks.n) if is_candidate(ssn, row)]
        snapshot.evict(int(rng.choice(rows)))
        snapshot.evict_each(
            np.array(rng.choice([row for row in rows if is_candidate(ssn, row)], 1))
        )
        waiting = np.flatnonzero(
            (snapshot.tasks.status[: snapshot.tasks.n] == Status.PENDING)
            & (snapshot.tasks.job[: snapshot.tasks.n] >= 0)
        )
        snapshot.place(int(rng.choice(waiting)), int(rng.integers(6)))
        for each in found:
            each.check(candidates)
        late = Candidates(ssn, RUNNING).of_other_queues(0)
        np.testing.assert_array_equal(late.sums, candidates.sums(candidates.of_other_queues(0)))
    snapshot.journal.rollback(mark)
    for each in found:
        each.check(candidates)


def test_the_scopes_of_a_job_are_forgotten_with_it() -> None:
    candidates = Candidates(open_session(world(0)), RUNNING)
    kept = {
        (job, only): candidates.of_job(job, best_effort_only=only)
        for job in (0, 1)
        for only in (False, True)
    }
    candidates.forget_job(0)
    for (job, only), scope in kept.items():
        assert (candidates.of_job(job, best_effort_only=only) is scope) == (job == 1)


@pytest.mark.parametrize("hook", [Plugin.preemptable, Plugin.reclaimable])
@pytest.mark.parametrize("own", [False, True])
def test_candidates_of_some_nodes_are_those_of_each_in_turn(hook: Any, own: bool) -> None:
    """A job takes nothing from itself, unless its own tasks compete or queues reclaim."""
    ssn = open_session(world(1))
    candidates, tasks = Candidates(ssn, RUNNING), ssn.snapshot.tasks
    waiting = [
        row for row in range(tasks.n) if tasks.status[row] == Status.PENDING and tasks.job[row] >= 0
    ]
    spared = 0
    for row in waiting:
        task = Task(ssn.snapshot, row)
        scope = (
            candidates.of_job(task.job, best_effort_only=False)
            if own
            else candidates.of_queue(task.queue, best_effort_only=False)
        )
        nodes = np.array([3, 0, 5, 1])
        at, place = candidates.on_nodes(hook, scope, task, nodes)
        found = [(int(place[i]), int(candidates.rows[at[i]])) for i in range(len(at))]
        wanted = [
            (i, each)
            for i, name in enumerate(nodes.tolist())
            for each in candidates.on_node(scope, name)
            if own or hook is Plugin.reclaimable or tasks.job[each] != task.job
        ]
        spared += len(wanted) < sum(len(candidates.on_node(scope, n)) for n in nodes.tolist())
        assert found == wanted
    assert bool(spared) == (hook is Plugin.preemptable and not own)


def test_a_node_has_room_for_a_task_if_all_members_left_up_to_less_than_a_step() -> None:
    ssn = open_session(world(2))
    candidates, snapshot = Candidates(ssn, RUNNING), ssn.snapshot
    scope = candidates.of_other_queues(0)
    row = int(np.flatnonzero(snapshot.tasks.status[: snapshot.tasks.n] == Status.PENDING)[0])
    task = Task(snapshot, row)
    for short, wanted in ((0.0, True), (0.05, True), (0.1, False), (1.0, False)):
        snapshot.nodes.books[0, CPU] = task.need[CPU, 0] - short
        snapshot.journal.touch(np.arange(snapshot.nodes.n))
        free = candidates.occupied(scope) == 0
        assert (candidates.with_room(scope, task)[free] == wanted).all()


# Visits


def visited(n: int, scores: Any, kept: Any) -> tuple[list[int], int]:
    asked = 0

    def sieve() -> Any:
        nonlocal asked
        asked += 1
        return np.isin(np.arange(100), kept)

    rows = np.arange(n) * 2
    return list(Visit(rows, sieve, scores)), asked


@pytest.mark.parametrize(
    ("n", "scores", "kept", "wanted", "asked"),
    [
        (0, None, [], [], 0),
        (3, None, [], [0, 2, 4], 0),
        (8, None, [], [0, 2, 4, 6, 8, 10, 12, 14], 0),
        (9, None, [], [0, 2, 4, 6, 8, 10, 12, 14], 1),
        (12, None, [20, 22], [0, 2, 4, 6, 8, 10, 12, 14, 20, 22], 1),
        (3, [1.0, 5.0, 5.0], [], [2, 4, 0], 0),
        (10, [*range(10)], [0], [18, 16, 14, 12, 10, 8, 6, 4, 0], 1),
        (11, [0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9], [0, 2, 4], [*range(6, 22, 2), 0, 2, 4], 1),
    ],
)
def test_nodes_are_visited_in_order_and_after_eight_only_hopeful_ones(
    n: int, scores: Any, kept: Any, wanted: Any, asked: int
) -> None:
    numbers = None if scores is None else np.array(scores, dtype=float)
    assert visited(n, numbers, kept) == (wanted, asked)


def test_nodes_may_be_dropped_while_others_are_visited() -> None:
    visit = Visit(np.arange(5), lambda: np.ones(5, dtype=bool), np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    walk = iter(visit)
    assert next(walk) == 4
    visit.keep(np.array([True, True, True, False, True]))
    assert list(walk) == [2, 1, 0]


# Whether a task fits in the end


class Closed(Plugin, name="closed"):
    """Refuses the node n1."""

    reasons = (Reason("closed"),)

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        return nodes.index != 1

    def allocatable(self, queue: Any, task: Any) -> bool:
        return bool(task.request[CPU, 0] < 3000)


@pytest.mark.parametrize(
    ("name", "at", "wanted"), [("p", 0, True), ("p", 1, False), ("p", 2, False), ("q", 0, False)]
)
def test_a_task_fits_where_room_filters_and_queue_allow(name: str, at: int, wanted: bool) -> None:
    ssn = open_session(
        [
            queue("default"),
            *(node(f"n{i}", cpu=cpu) for i, cpu in enumerate((4, 4, 1))),
            pod_group("g"),
            pod("p", group="g", cpu=2),
            pod("q", group="g", cpu=3),
        ],
        [Closed()],
    )
    task = Task(ssn.snapshot, ssn.snapshot.tasks.row_of[f"default/{name}"])
    assert fits_after_evictions(ssn, task, at) == wanted
    assert bool(fits(task.need[:, 0], ssn.snapshot.nodes.future_idle_of(at))) == (at != 2)
