"""Runs of equal tasks that evict: which tasks are equal, who is served alone, the best nodes."""

from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.core.resources import CPU
from pumice.core.status import Status
from pumice.framework.eviction.candidates import Candidates
from pumice.framework.eviction.eviction_runs import EvictionRuns
from pumice.framework.eviction.scored_plans import _best
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Reason
from pumice.plugins import builtin_plugins
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import open_session, snapshot_of


def runs_of(*pods: Any, plugins: Any = ()) -> tuple[Any, EvictionRuns, list[int]]:
    made = [queue("default"), node("n0", cpu=8), node("n1", cpu=8)]
    made += [pod_group("g", min_member=1), pod_group("old", phase="Running")]
    made += [pod(f"old-{i}", group="old", cpu=4, node=f"n{i % 2}") for i in range(4)]
    ssn = open_session([*made, *pods], [*plugins])
    candidates = Candidates(ssn, (Status.RUNNING,))
    tasks = [ssn.snapshot.tasks.row_of[f"default/{each['metadata']['name']}"] for each in pods]
    return ssn, EvictionRuns(ssn, candidates, Plugin.preemptable), tasks


def some(n: int, first: int = 0, **more: Any) -> list[Any]:
    return [pod(f"g-w-{i}", group="g", **({"cpu": 1} | more)) for i in range(first, first + n)]


DIFFERENT: dict[str, dict[str, Any]] = {
    "shape": {"cpu": 2},
    "role": {"role": "other"},
    "priority": {"priority": 7},
    "labels": {"labels": {"app": "x"}},
    "nominated": {"nominated_node": "n0"},
    "patient": {"spec": {"preemptionPolicy": "Never"}},
}


@pytest.mark.parametrize("which", DIFFERENT)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_tasks_are_alike_up_to_the_first_that_differs(which: str, n: int) -> None:
    pods = [*some(n), *some(1, first=n, **DIFFERENT[which]), *some(2, first=n + 1)]
    _, runs, tasks = runs_of(*pods)
    if n:
        assert runs._alike(tasks) == n
    else:
        assert runs._alike(tasks) == (0 if which in ("nominated", "patient") else 1)
    assert runs._alike(tasks[n + 1 :]) == 2


@pytest.mark.parametrize("closed", [None, [False, False], [True, False]])
def test_a_task_that_nodes_are_closed_to_is_not_alike(closed: Any) -> None:
    ssn, runs, tasks = runs_of(*some(4))
    ssn.records.barred[tasks[2]] = None if closed is None else np.array(closed)
    assert runs._alike(tasks) == (2 if closed and any(closed) else 4)


def served(runs: EvictionRuns, stmt: Any, tasks: list[int], takes: Any, moves: Any) -> Any:
    """Return the tasks that are tried alone, and those offered to be served together."""
    offered: list[list[int]] = []

    def serve(rest: list[int]) -> int:
        offered.append(rest)
        runs._is_cut, n = takes(len(offered))
        return int(n)

    alone = []
    for task in runs.rest(stmt, tasks, serve):
        alone.append(task)
        moves(task)
    return alone, offered


def test_a_task_that_nothing_can_be_done_for_ends_its_equals() -> None:
    pods = [*some(4), *some(2, first=4, cpu=2), *some(1, first=6, role="r")]
    ssn, runs, tasks = runs_of(*pods)
    alone, offered = served(runs, ssn.statement(), tasks, lambda _: (False, 0), lambda _: None)
    assert alone == [tasks[0], tasks[4], tasks[6]]
    assert offered == [tasks, tasks[4:]], "two at least are too few to be tried together"


def test_after_a_task_that_moved_the_next_is_tried() -> None:
    ssn, runs, tasks = runs_of(*some(5))
    stmt = ssn.statement()
    alone, offered = served(
        runs, stmt, tasks, lambda _: (False, 0), lambda task: stmt.pipeline(task, 0)
    )
    assert alone == tasks
    assert offered == [tasks, tasks[1:]], "after two runs that came to nothing there is no third"


@pytest.mark.parametrize("cut", [False, True])
def test_tasks_served_together_are_not_tried_again(cut: bool) -> None:
    """After a run that was cut short the next task is tried alone."""
    ssn, runs, tasks = runs_of(*some(8))
    stmt = ssn.statement()
    alone, offered = served(
        runs, stmt, tasks, lambda _: (cut, 3), lambda task: stmt.pipeline(task, 0)
    )
    if cut:
        assert (alone, offered) == ([tasks[3], tasks[7]], [tasks, tasks[4:]])
    else:
        assert (alone, offered) == ([tasks[6], tasks[7]], [tasks, tasks[3:]])


def test_where_plugins_follow_evictions_tasks_are_served_one_by_one() -> None:
    class Follower(Plugin, name="follower"):
        def on_evict(self, task: Any, node: int) -> None:
            pass

    ssn, runs, tasks = runs_of(*some(4), plugins=[Follower()])
    alone, offered = served(runs, ssn.statement(), tasks, lambda _: (False, 3), lambda _: None)
    assert (alone, offered) == (tasks, [])


@pytest.mark.parametrize(("n", "wanted"), [(2, 0), (3, 3), (5, 5)])
def test_a_few_equal_tasks_can_be_served_together(n: int, wanted: int) -> None:
    _, runs, tasks = runs_of(*some(n))
    assert runs.equals(tasks, lambda: True) == wanted
    assert runs.equals(tasks, lambda: False) == 0


def test_as_many_are_served_together_as_hold_with_those_before_them() -> None:
    ssn, runs, tasks = runs_of(*some(8))
    jobs, row = ssn.snapshot.jobs, ssn.snapshot.jobs.row_of["default/g"]

    for most in range(9):
        holds = lambda most=most: bool(jobs.counts[Status.PIPELINED, row] < most)  # noqa: E731
        assert runs.equals(tasks, holds) == (most if most >= 3 else 0)
    assert jobs.counts[Status.PIPELINED, row] == 0


@pytest.mark.parametrize("n", range(1, 8))
def test_the_best_nodes_come_first_and_of_equals_the_lower_row(n: int) -> None:
    nodes = np.array([2, 5, 6, 8, 11])
    for scores in ([1, 1, 1, 1, 1], [1, 2, 3, 4, 5], [5, 1, 5, 1, 5], [-np.inf, 0, 7, 0, 7]):
        pairs = sorted(zip([-score for score in scores], nodes.tolist(), strict=True))
        found = _best(nodes, np.array(scores, dtype=float), n)
        assert found.tolist() == [row for _, row in pairs][:n]


# Runs against one task after the other


class Taste(Plugin, name="taste"):
    """Scores nodes by what they promise, in one of several ways; may close those that promise."""

    foreseeable = True
    reasons = (Reason("promised away", curable=False), Reason("busy"))
    way = "spread"

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        free = nodes.future_idle[CPU] / 1000
        return {
            "spread": free,
            "pack": -free,
            "equal": np.zeros(len(free)),
            "rows": -np.asarray(nodes.index, dtype=float),
            "waves": (free * 7 + nodes.index) % 5,
            "drops": 3.0 * (nodes.index % 3) - 4 * (nodes.pipelined[CPU] > 0),
            "closes": free,
            "tires": free,
        }[self.way]

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        promised = nodes.pipelined[CPU] / 1000
        return {"closes": 1 * (promised >= 2 + nodes.index % 3), "tires": 2 * (promised >= 3)}.get(
            self.way
        )


WAYS = ("spread", "pack", "equal", "rows", "waves", "drops", "closes", "tires")
CONF = """
actions: "{}"
tiers:
- plugins: [{{name: priority}}, {{name: taste}}, {{name: conformance}}]
- plugins: [{{name: {}}}]
"""


def full(rng: Any) -> list[Any]:
    """Make a few nodes full of small pods, and gangs that need the room of several."""
    made: list[Any] = [
        queue("mine", weight=5),
        queue("other", weight=int(rng.integers(1, 3))),
        priority_class("low", value=1),
        priority_class("high", value=9),
    ]
    for i in range(int(rng.integers(2, 7))):
        cpu = int(rng.integers(2, 9))
        made.append(node(f"n{i}", cpu=cpu))
        for k in range(cpu):
            name = f"old{i}-{k}"
            where = "mine" if rng.random() < 0.5 else "other"
            made.append(pod_group(name, queue=where, phase="Running", priority_class="low"))
            critical = "kube-system" if rng.random() < 0.1 else "default"
            one = pod(name, group=name, cpu=1, node=f"n{i}", namespace=critical)
            made.append(one)
    for j in range(2):
        n, cpu = int(rng.integers(3, 9)), int(rng.integers(1, 4))
        least = int(rng.integers(1, n + 1))
        group = pod_group(
            f"new{j}", queue="mine", phase="Inqueue", min_member=least, priority_class="high"
        )
        made += [group, *(pod(f"new{j}-{k}", group=f"new{j}", cpu=cpu) for k in range(n))]
    return made


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_runs_evict_as_one_task_after_the_other(
    way: str, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Taste, "way", way)
    rng = np.random.default_rng(WAYS.index(way))
    evicted = 0
    for seed in range(12):
        conf = parse_conf(CONF.format(action, "gang" if seed % 3 else "proportion"))
        snapshots = [snapshot_of(world) for world in [full(rng)] * 2]
        found = []
        for snapshot, alone in zip(snapshots, (False, True), strict=True):
            with monkeypatch.context() as patch:
                if alone:
                    patch.setattr(EvictionRuns, "equals", lambda *_: 0)
                    patch.setattr(EvictionRuns, "_failing_with", lambda *_: 1)
                scheduler = Scheduler(
                    conf, seed=seed, plugins={**builtin_plugins(), "taste": Taste}
                )
                found.append(scheduler.decide(snapshot, 0.0))
        assert found[0] == found[1]
        evicted += len(found[0].evictions)
    assert evicted > 10


def test_a_task_that_stays_on_a_node_counts_for_the_next_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two tasks leave one of four victims on the first node, so its gang can lose one more."""
    made: list[Any] = [
        queue("mine", weight=9),
        queue("other"),
        node("n0", cpu=4),
        node("n1", cpu=4),
    ]
    for name, least, hosts in (("a", 1, "000011"), ("b", 0, "11")):
        made.append(pod_group(name, queue="other", phase="Running", min_member=least))
        age = f"2026-01-01T00:00:0{'ba'.index(name)}Z"
        made += [
            pod(f"{name}-w-{i}", group=name, cpu=1, node=f"n{on}", created=age)
            for i, on in enumerate(hosts)
        ]
    made.append(pod_group("new", queue="mine", phase="Inqueue", min_member=3))
    made += [pod(f"new-w-{i}", group="new", cpu="1500m") for i in range(3)]
    conf = parse_conf(
        """
actions: "reclaim"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: proportion}]
"""
    )
    found = [Scheduler(conf).decide(snapshot_of(made), 0.0).evictions]
    monkeypatch.setattr(EvictionRuns, "equals", lambda *_: 0)
    found.append(Scheduler(conf).decide(snapshot_of(made), 0.0).evictions)
    assert found[0] == found[1]
    assert len(found[0]) == 5
    assert sum("/a-" in name for name in found[0]) == 5
