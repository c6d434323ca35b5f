"""Candidates in line where jobs can lose so many tasks: who goes, node after node."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.eviction.candidates import Candidates
from pumice.framework.eviction.eviction_ladders import Ladders, Step
from pumice.framework.eviction.victim_columns import VictimColumns
from pumice.framework.plugin import Plugin
from pumice.framework.simulator_assumptions import SimulatorAssumptions
from pumice.plugins.gang import Gang
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session


class Keeper(Gang, name="keeper"):
    """Keeps gangs whole, and does not order jobs: their order stands."""

    order_jobs = Plugin.order_jobs  # as if it had none


class Everybody(Plugin, name="everybody"):
    """Offers all tasks, in turn; or all but one, each by itself."""

    judges_in_turn = frozenset({"reclaimable"})

    def __init__(self, kept: str = "", *, alone: bool = False) -> None:
        self._kept, self._alone = kept, alone
        if alone:
            self.judges_alone, self.judges_in_turn = self.judges_in_turn, frozenset()  # type: ignore[misc]

    def on_open(self, ssn: Any) -> None:
        self._keys = ssn.snapshot.tasks.keys

    def reclaimable(self, task: Any, candidates: Any) -> Any:
        return np.array([self._keys[row] != f"default/{self._kept}" for row in candidates], bool)


def world(seed: int, *tiers: Any) -> tuple[Any, Any, Candidates, Any]:
    """Return a session, who asks, the candidates, and those that may be reclaimed."""
    rng = np.random.default_rng(seed)
    made: list[Any] = [queue("default"), queue("mine"), *(node(f"n{i}", cpu=9) for i in range(4))]
    for j in range(4):
        n = int(rng.integers(2, 7))
        least = int(rng.integers(0, n + 1))
        made.append(pod_group(f"g{j}", phase="Running", min_member=least))
        hosts = rng.integers(0, 4, n).tolist()
        made += [pod(f"g{j}-{k}", group=f"g{j}", node=f"n{on}") for k, on in enumerate(hosts)]
    made += [pod_group("new", queue="mine"), pod("new-0", group="new", cpu=1)]
    ssn = open_session(made, *tiers)
    candidates = Candidates(ssn, (Status.RUNNING,))
    task = Task(ssn.snapshot, ssn.snapshot.tasks.row_of["default/new-0"])
    return ssn, task, candidates, candidates.of_other_queues(task.queue)


def lines_of(ssn: Any, task: Any, candidates: Candidates, scope: Any) -> Any:
    columns = VictimColumns(ssn, candidates, Plugin.reclaimable)
    return columns, columns.lines(scope, task, np.arange(4), emptied_in_order=True)


def emptied_one_by_one(ssn: Any, task: Any, candidates: Candidates, scope: Any) -> list[int]:
    """Evict the first whom plugins offer, again and again, node after node."""
    stmt, gone = ssn.statement(), []
    for on in range(4):
        while found := candidates.victims(Plugin.reclaimable, scope, task, on):
            stmt.evict(found[0], "reclaim")
            gone.append(found[0])
    stmt.discard()
    return gone


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("has_next", [False, True])
def test_tasks_go_in_the_order_in_which_tiers_offer_them(seed: int, has_next: bool) -> None:
    tiers = [[Everybody(alone=True), Keeper()], [Everybody()]][: 1 + has_next]
    here = world(seed, *tiers)
    ssn, task, candidates, scope = here
    columns, lines = lines_of(*here)
    assert lines.rows.tolist() == emptied_one_by_one(*here)
    assert lines.offered.all()
    assert lines.known.all()
    assert lines.final().all() == (not has_next and bool(lines.counted))
    assert columns.still(task, lines)
    spare = ssn.snapshot.jobs.counts[Status.RUNNING] - ssn.snapshot.jobs.min_member
    jobs = candidates.job.tolist()
    assert lines.counted == {job for job, n in Counter(jobs).items() if n > spare[job]}
    for place, split in enumerate(lines.split or ()):
        mine = lines.rows[lines.place == place].tolist()
        first = ssn.policy.reclaimable(task, candidates.on_node(scope, place))
        assert len(mine[:split]) <= len(first) or not split


def test_lines_fall_back_where_another_plugin_keeps_somebody() -> None:
    for tiers, is_split in (
        ([[Keeper(), Everybody("g0-0", alone=True)]], False),
        ([[Keeper(), Everybody("g0-0", alone=True)], [Everybody()]], False),
        ([[Keeper(), Everybody()], [Everybody()]], False),
        ([[Keeper(), Keeper()], [Everybody()]], False),
        ([[Everybody()], [Keeper()]], False),
        ([[Keeper()], [Everybody()]], True),
    ):
        for seed in range(10):
            here = world(seed, *tiers)
            _, lines = lines_of(*here)
            assert lines is not None
            assert not is_split or (lines.split is not None) == bool(lines.counted)
            assert is_split or lines.split is None


@pytest.mark.parametrize("seed", range(10))
def test_a_next_tier_that_may_keep_somebody_offers_nobody_in_advance(seed: int) -> None:
    silent = Everybody(alone=True)
    silent.reclaimable = lambda *_: None  # type: ignore[method-assign]
    for later in (Everybody("g0-0", alone=True), silent):
        here = world(seed, [Keeper()], [later])
        _, lines = lines_of(*here)
        gone = emptied_one_by_one(*world(seed, [Keeper()]))
        assert lines.rows.tolist() == gone
        assert not lines.final().any()


def test_lines_hold_for_another_job_unless_it_is_offered_less() -> None:
    judge = Everybody(alone=True)
    here = world(0, [Keeper(), judge], [Everybody()])
    ssn, task, _, _ = here
    columns, lines = lines_of(*here)
    assert columns.still(task, lines)
    judge._kept = ssn.snapshot.tasks.keys[int(lines.rows[0])].partition("/")[2]
    assert not columns.still(task, lines)


@pytest.mark.parametrize("moving", [False, True])
def test_lines_hold_for_another_job_only_where_the_order_of_tasks_stands(moving: bool) -> None:
    class Ordered(Plugin, name="ordered"):
        """Orders tasks by their rows, and may not state that they stay so."""

        def order_tasks(self, tasks: Any) -> Any:
            return tasks.index.astype(float)

    Ordered.simulator = Plugin.simulator if moving else SimulatorAssumptions()
    here = world(0, [Keeper(), Ordered()], [Everybody()])
    columns, lines = lines_of(*here)
    assert columns.still(here[1], lines) == (not moving)


def ladders_of(here: Any, hopeful: float = 9.0) -> Ladders:
    ssn, task, candidates, _ = here
    _, lines = lines_of(*here)
    amounts = candidates.amounts(lines.at[lines.offered])
    nodes = np.arange(4)
    return Ladders(ssn.snapshot, task, nodes, lines, amounts=amounts, hopeful=[hopeful] * 4)


@pytest.mark.parametrize("seed", range(20))
def test_no_step_takes_victims_of_two_tiers(seed: int) -> None:
    here = world(seed, [Keeper()], [Everybody()])
    ladders = ladders_of(here)
    for place in range(4):
        split = ladders.lines.split[place] if ladders.lines.split else None
        steps = ladders.chain(place, 99)
        tiers = ladders.tiers(steps)
        assert tiers == sorted(tiers)
        for step, tier in zip(steps, tiers, strict=True):
            assert split is None or not step.before < split < step.after
            assert split is None or tier == (step.after > split)


@pytest.mark.parametrize("seed", range(10))
def test_who_stays_matters_if_later_nodes_follow_from_his_going(seed: int) -> None:
    ladders = ladders_of(world(seed, [Keeper()], [Everybody()]))
    lines = ladders.lines
    for place in range(4):
        rows = lines.rows[lines.place == place]
        jobs = ladders._snapshot.tasks.job[rows].tolist()
        for gone in range(len(rows) + 1):
            wanted = any(job in lines.counted for job in jobs[gone:])
            assert ladders.strands_counted(place, gone) == wanted


def test_nodes_are_shared_by_the_jobs_in_line() -> None:
    ladders = ladders_of(world(0, [Keeper()], [Everybody()]))
    lines, job = ladders.lines, ladders._snapshot.tasks.job
    by_place = [set(job[lines.rows[lines.place == place]].tolist()) for place in range(4)]
    assert ladders.shared == {place for place, jobs in enumerate(by_place) if len(jobs) > 1}
    assert ladders.tiers([Step(0, 0, 0, 1)]) in ([0], [1])
