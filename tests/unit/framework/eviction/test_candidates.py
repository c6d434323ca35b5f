"""Candidates, their scopes and visits against a plain look at every task and node."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.core.resources import CPU, PODS, fits
from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.eviction import candidates as module
from pumice.framework.eviction import evictor
from pumice.framework.eviction.candidates import Candidates, Visit
from pumice.framework.eviction.evictor import fits_after_evictions
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Reason
from pumice.scheduler import Scheduler
from pumice.testing import node, pdb, pod, pod_group, priority_class, queue
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
        asker = Task(snapshot, int(np.flatnonzero(tasks.status == Status.PENDING)[0]))
        for at in range(n):
            here = [row for row in live if tasks.node[row] == at]
            assert sorted(candidates._in_order(self.scope, asker, at)) == here, self.name
        np.testing.assert_array_equal(candidates.sums(self.scope), sums)
        np.testing.assert_array_equal(self.scope.room, snapshot.nodes.future_idle + sums)
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
    candidates = Candidates(ssn, Plugin.reclaimable, RUNNING)
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
        late = Candidates(ssn, Plugin.reclaimable, RUNNING).of_other_queues(0)
        np.testing.assert_array_equal(late.sums, candidates.sums(candidates.of_other_queues(0)))
    snapshot.journal.rollback(mark)
    for each in found:
        each.check(candidates)


def test_the_scopes_of_a_job_are_forgotten_with_it() -> None:
    candidates = Candidates(open_session(world(0)), Plugin.reclaimable, RUNNING)
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
    candidates, tasks = Candidates(ssn, hook, RUNNING), ssn.snapshot.tasks
    waiting = [
        row for row in range(tasks.n) if tasks.status[row] == Status.PENDING and tasks.job[row] >= 0
    ]
    kept = 0
    for row in waiting:
        task = Task(ssn.snapshot, row)
        scope = (
            candidates.of_job(task.job, best_effort_only=False)
            if own
            else candidates.of_queue(task.queue, best_effort_only=False)
        )
        nodes = np.array([3, 0, 5, 1])
        at, place = candidates.on_nodes(scope, task, nodes)
        here = scope.members & np.isin(candidates.node, nodes)
        mine = candidates.job[here] == task.job
        takes_own = own or hook is Plugin.reclaimable
        kept += not takes_own and bool(mine.any())
        assert len(at) == np.count_nonzero(here) - (0 if takes_own else np.count_nonzero(mine))
        for i, name in enumerate(nodes.tolist()):
            found = sorted(candidates.rows[at[place == i]].tolist())
            assert found == sorted(candidates._in_order(scope, task, name))
    assert bool(kept) == (hook is Plugin.preemptable and not own)


def test_a_node_has_room_for_a_task_if_all_members_left_up_to_less_than_a_step() -> None:
    ssn = open_session(world(2))
    candidates, snapshot = Candidates(ssn, Plugin.reclaimable, RUNNING), ssn.snapshot
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

    nodes, values = np.isin(np.arange(100), np.arange(n) * 2), None
    if scores is not None:
        values = np.zeros(100)
        values[nodes] = scores
    return list(Visit(nodes, sieve, values, 8)), asked


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
    every = np.ones(5, dtype=bool)
    visit = Visit(every, lambda: every, np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 8)
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


# Whole cycles: nodes that cannot help are skipped without asking plugins

TIERS = [
    ["priority gang conformance"],
    ["gang priority", "pdb drf"],
    ["conformance", "gang drf proportion"],
    ["pdb gang", "priority proportion predicates"],
    ["priority", "cdp predicates binpack"],
]


def random_world(seed: Any) -> Any:
    """A small full cluster of two queues with running and starving gangs."""
    rng = np.random.default_rng(seed)
    world = [queue("q0"), queue("q1"), pdb("b", match_labels={"app": "a0"}, disruptions_allowed=1)]
    world += [priority_class(f"p{i}", value=i) for i in range(4)]
    nodes = [f"n{i}" for i in range(12)]
    world += [node(name, cpu=4, memory="8Gi", pods=6) for name in nodes]
    for j in range(10):
        world.append(_group(rng, f"old{j}", "Running", int(rng.integers(0, 4))))
        for k in range(4):
            where = nodes[int(rng.integers(len(nodes)))]
            world.append(_pod(rng, f"old{j}-w-{k}", f"old{j}", node=where))
    for j in range(6):
        size = int(rng.integers(1, 4))
        world.append(_group(rng, f"new{j}", "Inqueue", size))
        world += [_pod(rng, f"new{j}-w-{k}", f"new{j}") for k in range(size)]
    return world


def _group(rng: Any, name: Any, phase: Any, min_member: Any) -> Any:
    return pod_group(
        name,
        min_member=min_member,
        phase=phase,
        queue=f"q{rng.integers(2)}",
        priority_class=f"p{rng.integers(4)}",
    )


def _pod(rng: Any, name: Any, group: Any, **more: Any) -> Any:
    return pod(
        name,
        group=group,
        role="w" if rng.integers(2) else None,
        cpu=[None, 1, 1, 2, 3][int(rng.integers(5))],
        priority=int(rng.integers(3)),
        labels={"app": f"a{rng.integers(3)}"},
        **more,
    )


def decide(world: Any, tiers: Any, actions: Any) -> Any:
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines += ["- plugins:", *(f"  - name: {name}" for name in tier.split())]
    found = Scheduler(parse_conf("\n".join(lines))).cycle(world, 0.0)
    return found.evictions, found.pipelined, found.nominated


class AskAll(Visit):
    """Asks about every node."""

    def keep(self, nodes: Any) -> None:
        pass


def ask_about_everything(patch: Any) -> None:
    everywhere = lambda self, scope, task: np.ones(self._snapshot.nodes.n, dtype=bool)  # noqa: E731
    patch.setattr(module, "Visit", AskAll)
    patch.setattr(Candidates, "with_room", everywhere)
    forgetful = type("Forgetful", (set,), {"__contains__": lambda *_: False})
    patch.setattr(evictor, "set", forgetful, raising=False)


@pytest.mark.parametrize("tiers", TIERS, ids=" | ".join)
@pytest.mark.parametrize("actions", ["preempt", "reclaim", "allocate, reclaim, preempt"])
def test_passing_hopeless_nodes_over_changes_no_decision(
    tiers: Any, actions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds = [random_world(seed) for seed in range(2)]
    monkeypatch.setattr(module, "_PATIENCE", 1)
    quick = [decide(world, tiers, actions) for world in worlds]
    ask_about_everything(monkeypatch)
    slow = [decide(world, tiers, actions) for world in worlds]
    assert slow == quick


def test_the_worlds_above_do_lead_to_evictions() -> None:
    evicted = [decide(random_world(seed), TIERS[0], "preempt")[0] for seed in range(8)]
    assert sum(map(bool, evicted)) > 4


@pytest.mark.parametrize("seed", range(6))
def test_requests_add_up_the_same_by_counting_shapes_and_by_weighing_pods(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssn = open_session(random_world(seed))
    candidates = [Candidates(ssn, Plugin.reclaimable, (Status.RUNNING,)) for _ in range(2)]
    counted = candidates[0].sums(candidates[0].of_other_queues(0))
    monkeypatch.setattr(module, "_FEW_SHAPES", 0)
    weighed = candidates[1].sums(candidates[1].of_other_queues(0))
    assert counted.any()
    np.testing.assert_array_equal(counted, weighed)


def test_jobs_for_which_nobody_goes_ask_about_few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all nodes are filtered out for one job, those of the next are filtered at once."""
    nodes = [node(f"n{i:02}", cpu=4) for i in range(20)]
    running = [
        one
        for i in range(20)
        for one in (pod_group(f"r{i}", phase="Running"), pod(f"r{i}", group=f"r{i}", cpu=4))
    ]
    for i, one in enumerate(each for each in running if each["kind"] == "Pod"):
        one["spec"]["nodeName"], one["status"]["phase"] = f"n{i:02}", "Running"
    waiting = [
        one
        for i in range(10)
        for one in (pod_group(f"w{i}", phase="Inqueue"), pod(f"w{i}", group=f"w{i}", cpu=2))
    ]
    asked: list[int] = []
    victims = Candidates.victims

    def counted(self: Candidates, scope: Any, task: Any, at: int) -> list[int]:
        asked.append(at)
        return victims(self, scope, task, at)

    monkeypatch.setattr(Candidates, "victims", counted)
    conf = 'actions: "preempt"\ntiers:\n- plugins:\n  - name: priority\n  - name: predicates\n'
    decisions = Scheduler(parse_conf(conf)).cycle(
        [queue("default"), *nodes, *running, *waiting], 0.0
    )
    assert not decisions.evictions
    assert 0 < len(asked) <= 8
