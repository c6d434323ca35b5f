"""Victims of many nodes at once: the same, and in the same order, as node by node."""

from typing import Any

import numpy as np
import pytest

from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.eviction.candidates import Candidates
from pumice.framework.eviction.victim_columns import VictimColumns
from pumice.framework.plugin import Plugin
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import open_session


class Judge(Plugin, name="judge"):
    """Releases tasks by the last digit of their names, each by itself; nothing if undecided."""

    judges_alone = frozenset({"preemptable"})

    def __init__(self, *digits: int, silent: bool = False) -> None:
        self._digits, self._silent = digits, silent

    def on_open(self, ssn: Any) -> None:
        self._names = ssn.snapshot.tasks.keys

    def preemptable(self, task: Any, candidates: Any) -> Any:
        if self._silent:
            return None
        return np.array([int(self._names[row][-1]) in self._digits for row in candidates], bool)


class Ordered(Plugin, name="ordered"):
    """Orders jobs by priority and tasks by theirs."""

    def order_jobs(self, jobs: Any) -> Any:
        return -jobs.priority.astype(float)

    def order_tasks(self, tasks: Any) -> Any:
        return -tasks.priority.astype(float)


class Inside(Plugin, name="inside"):
    """Orders tasks by two keys, of which the second counts inside a job only."""

    def order_tasks(self, tasks: Any) -> Any:
        priority = tasks.priority.astype(float)
        return np.stack([priority // 10, -(priority % 10)])


def world(seed: int, *, names: str = "{}-w-{}") -> list[Any]:
    rng = np.random.default_rng(seed)
    made: list[Any] = [queue("default"), *(node(f"n{i}", cpu=32) for i in range(5))]
    made += [priority_class(f"p{i}", value=i) for i in range(3)]
    for j in range(5):
        made.append(pod_group(f"g{j}", phase="Running", priority_class=f"p{rng.integers(3)}"))
        for k in range(4):
            name = names.format(f"g{j}", 4 * j + k)
            where, rank = f"n{rng.integers(4)}", int(rng.integers(3))
            made.append(pod(name, group=f"g{j}", cpu=1, node=where, priority=rank))
    return [*made, pod_group("asker", phase="Inqueue"), pod("asker-w-0", group="asker", cpu=1)]


def columns_of(made: list[Any], *tiers: Any) -> tuple[Any, Candidates, VictimColumns, Any]:
    ssn = open_session(made, *tiers)
    candidates = Candidates(ssn, (Status.RUNNING,))
    columns = VictimColumns(ssn, candidates, Plugin.preemptable)
    return (
        ssn,
        candidates,
        columns,
        Task(ssn.snapshot, ssn.snapshot.tasks.row_of["default/asker-w-0"]),
    )


TIERS: dict[str, list[list[Plugin]]] = {
    "one": [[Ordered(), Judge(*range(10))]],
    "half": [[Ordered(), Judge(0, 2, 4, 6)]],
    "intersection": [[Ordered(), Judge(0, 1, 2, 3), Judge(2, 3, 4)]],
    "forgotten": [[Ordered(), Judge(0, 1), Judge(2, 3), Judge(3, 4)]],
    "second tier": [[Ordered(), Judge(0)], [Judge(1, 2, 3, 4)]],
    "empty tier": [[Ordered(), Judge()], [Judge(*range(5))]],
    "silent": [[Ordered(), Judge(silent=True)], [Judge(*range(5))]],
    "silent beside another": [[Ordered(), Judge(silent=True), Judge(1, 2)]],
}


@pytest.mark.parametrize("tiers", TIERS)
@pytest.mark.parametrize("seed", range(4))
def test_victims_of_all_nodes_are_those_of_each(tiers: str, seed: int) -> None:
    _, candidates, columns, task = columns_of(world(seed), *TIERS[tiers])
    scope = candidates.of_queue(task.queue, best_effort_only=False)
    nodes = np.array([3, 0, 4, 2, 1])
    found = columns.victims(scope, task, nodes)
    assert found is not None
    for place, at in enumerate(nodes.tolist()):
        mine = found.rows[found.place == place].tolist()
        assert mine == candidates.victims(Plugin.preemptable, scope, task, at)
    lines = columns.lines(scope, task, nodes)
    assert lines is not None
    for place, at in enumerate(nodes.tolist()):
        mine = lines.rows[(lines.place == place) & lines.offered].tolist()
        assert mine == candidates.victims(Plugin.preemptable, scope, task, at)
    assert lines.known.all()
    assert np.array_equal(np.sort(lines.place), lines.place)


class InTurn(Judge, name="in-turn"):
    """Judges in turn."""

    judges_alone = frozenset()
    judges_in_turn = frozenset({"preemptable"})


class Together(Judge, name="together"):
    """Judges all of them together."""

    judges_alone = frozenset()


@pytest.mark.parametrize(
    ("plugin", "victims", "lines"),
    [(Judge(1), True, True), (InTurn(1), False, True), (Together(1), False, False)],
)
def test_plugins_that_judge_otherwise_are_asked_node_by_node(
    plugin: Any, victims: bool, lines: bool
) -> None:
    _, candidates, columns, task = columns_of(world(0), [Ordered(), plugin])
    scope, nodes = candidates.of_queue(task.queue, best_effort_only=False), np.arange(5)
    assert (columns.victims(scope, task, nodes) is not None) == victims
    assert (columns.lines(scope, task, nodes) is not None) == lines


def test_candidates_that_have_no_order_are_not_lined_up() -> None:
    every = Judge(*range(10))
    for made, plugins in (
        (world(0), [Inside(), every]),
        ([*world(0), pod("odd0", group="g0", cpu=1, node="n0")], [Ordered(), every]),
    ):
        _, candidates, columns, task = columns_of(made, plugins)
        scope, nodes = candidates.of_queue(task.queue, best_effort_only=False), np.arange(5)
        assert columns.victims(scope, task, nodes) is None
        assert columns.lines(scope, task, nodes) is None


@pytest.mark.parametrize(
    ("plugin", "jobs", "wanted"), [(Inside, 1, True), (Inside, 2, False), (Ordered, 2, True)]
)
def test_keys_that_count_inside_a_job_order_tasks_of_one_job(
    plugin: Any, jobs: int, wanted: bool
) -> None:
    ssn, _, columns, _ = columns_of(world(0), [plugin()])
    rows = np.array(
        [ssn.snapshot.tasks.row_of[f"default/g{i % jobs}-w-{4 * (i % jobs) + i}"] for i in range(3)]
    )
    assert (columns._task_keys(rows) is not None) == wanted


def test_candidates_of_several_queues_are_not_lined_up() -> None:
    made = [
        *world(0),
        queue("other"),
        pod_group("far", queue="other", phase="Running"),
        pod("far-w-0", group="far", cpu=1, node="n0"),
    ]
    _, candidates, columns, task = columns_of(made, [Ordered(), Judge(*range(10))])
    assert len(set(candidates.queue.tolist())) == 2
    both = candidates.of_queue(task.queue, best_effort_only=False)
    both.members[:] = True
    assert columns.lines(both, task, np.arange(5)) is None
