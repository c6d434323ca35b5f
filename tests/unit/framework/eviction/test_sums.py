"""Evictions on sums: victims of many nodes, nodes without them and queues meanwhile, as tried."""

from typing import Any

import numpy as np
import pytest

from pumice.core.consistency import cells, changed
from pumice.core.resources import CPU
from pumice.core.status import Status
from pumice.core.views import Nodes, Task
from pumice.framework.eviction.candidates import Candidates
from pumice.framework.eviction.evictor import queue_takes
from pumice.framework.eviction.sums import EmptiedNodes, VictimColumns, _amounts_of
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
    candidates = Candidates(ssn, Plugin.preemptable, (Status.RUNNING,))
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
        assert mine == candidates.victims(scope, task, at)


class Together(Judge, name="together"):
    """Judges all of them together."""

    judges_alone = frozenset()


@pytest.mark.parametrize(("plugin", "victims"), [(Judge(1), True), (Together(1), False)])
def test_plugins_that_judge_otherwise_are_asked_node_by_node(plugin: Any, victims: bool) -> None:
    _, candidates, columns, task = columns_of(world(0), [Ordered(), plugin])
    scope = candidates.of_queue(task.queue, best_effort_only=False)
    assert (columns.victims(scope, task, np.arange(5)) is not None) == victims


def test_candidates_that_have_no_order_are_not_lined_up() -> None:
    every = Judge(*range(10))
    for made, plugins in (
        (world(0), [Inside(), every]),
        ([*world(0), pod("odd0", group="g0", cpu=1, node="n0")], [Ordered(), every]),
    ):
        _, candidates, columns, task = columns_of(made, plugins)
        scope, nodes = candidates.of_queue(task.queue, best_effort_only=False), np.arange(5)
        assert columns.victims(scope, task, nodes) is None


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


# Nodes and queues without the victims

COLUMNS = ("idle", "used", "releasing", "pipelined", "future_idle", "view_used", "view_nonzero")


def leaving_world(*plugins: Any) -> tuple[Any, dict[str, int]]:
    made = [
        queue("default"),
        node("n0", cpu=8),
        node("n1", cpu=8),
        pod_group("g", min_member=1),
        *(pod(f"r{i}", group="g", cpu=1 + i, memory="1Gi", node=f"n{i % 2}") for i in range(4)),
        pod("plain", group="g", memory="1Gi", node="n0"),
        *(pod(f"w{i}", group="g", cpu=1) for i in range(6)),
    ]
    ssn = open_session(made, [*plugins])
    rows = {name.partition("/")[2]: row for name, row in ssn.snapshot.tasks.row_of.items()}
    return ssn, rows


@pytest.mark.parametrize("live", [False, True])
def test_emptied_nodes_are_those_after_the_evictions(live: bool) -> None:
    ssn, rows = leaving_world()
    snapshot = ssn.snapshot
    snapshot.view_is_live = live
    leaving = [["r0", "plain"], ["r3"]]
    gone = np.stack(
        [
            _amounts_of(snapshot, np.array([rows[name] for name in names])).sum(axis=1)
            for names in leaving
        ],
        axis=1,
    )
    nodes = np.array([0, 1])
    emptied = EmptiedNodes(snapshot, nodes, gone[:-2], gone[-2:])
    found = {name: getattr(emptied, name) for name in COLUMNS}
    found["view_pods"] = emptied.view_pods
    part = emptied.part(slice(1, 2))
    halves = {name: getattr(part, name) for name in (*COLUMNS, "view_pods")}
    for names in leaving:
        for name in names:
            snapshot.evict(rows[name])
    real = Nodes(snapshot, nodes)
    for name, column in found.items():
        np.testing.assert_array_equal(column, getattr(real, name), err_msg=name)
        np.testing.assert_array_equal(halves[name], column[..., 1:], err_msg=name)


class Quota(Plugin, name="quota"):
    """Allows a queue so much."""

    most = 0

    def on_open(self, ssn: Any) -> None:
        self._queues = ssn.snapshot.queues

    def allocatable(self, queue: Any, task: Any) -> bool:
        table = self._queues
        held = table.allocated
        assert (table.allocated_or_pipelined >= table.allocated).all()
        return bool(held[CPU, queue.row] + task.request[CPU, 0] <= self.most)


@pytest.mark.parametrize(("most", "wanted"), [(8999, False), (9000, True), (9001, True)])
def test_a_queue_takes_a_task_once_enough_is_evicted(most: int, wanted: bool) -> None:
    """The queue holds ten, two go and one comes."""
    quota = Quota()
    quota.most = most
    ssn, rows = leaving_world(quota)
    task = Task(ssn.snapshot, rows["w0"])
    before, evicted = cells(ssn.snapshot), np.zeros(len(ssn.snapshot.resources))
    evicted[CPU] = 2000
    assert queue_takes(ssn, task, evicted) == wanted
    assert changed(before, cells(ssn.snapshot)) == []
