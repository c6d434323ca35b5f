"""Nodes that tasks are leaving, imagined, and quotas meanwhile: as if the tasks had left."""

from typing import Any

import numpy as np
import pytest

from pumice.core.consistency import cells, changed
from pumice.core.resources import CPU
from pumice.core.views import Nodes, Task
from pumice.framework.eviction.candidates import amounts_of
from pumice.framework.eviction.emptied_nodes import EmptiedNodes, PromisedNodes
from pumice.framework.eviction.queue_quota import QueueQuota
from pumice.framework.plugin import Plugin
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

COLUMNS = ("idle", "used", "releasing", "pipelined", "future_idle", "view_used", "view_nonzero")


def world(*plugins: Any) -> tuple[Any, dict[str, int]]:
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
@pytest.mark.parametrize("promised", [0, 2])
def test_imagined_nodes_are_those_after_the_moves(live: bool, promised: int) -> None:
    ssn, rows = world()
    snapshot = ssn.snapshot
    snapshot.view_is_live = live
    leaving = [["r0", "plain"], ["r3"]]
    gone = np.stack(
        [
            amounts_of(snapshot, np.array([rows[name] for name in names])).sum(axis=1)
            for names in leaving
        ],
        axis=1,
    )
    nodes = np.array([0, 1])
    task = Task(snapshot, rows["w0"])
    if promised:
        copies = np.array([promised, 0.0])
        imagined: Nodes = PromisedNodes(snapshot, nodes, gone, task.shape, copies)
    else:
        imagined = EmptiedNodes(snapshot, nodes, gone[:-2], gone[-2:])
    found = {name: getattr(imagined, name) for name in COLUMNS}
    found["view_pods"] = imagined.view_pods
    part = imagined.part(slice(1, 2))
    halves = {name: getattr(part, name) for name in (*COLUMNS, "view_pods")}
    for names in leaving:
        for name in names:
            snapshot.evict(rows[name])
    for i in range(promised):
        snapshot.pipeline(rows[f"w{i}"], 0)
    real = Nodes(snapshot, nodes)
    for name, column in found.items():
        np.testing.assert_array_equal(column, getattr(real, name), err_msg=name)
        np.testing.assert_array_equal(halves[name], column[..., 1:], err_msg=name)


class Quota(Plugin, name="quota"):
    """Allows a queue so much, counted as held or as held and promised."""

    most = 0
    promised = False
    asked = 0

    def on_open(self, ssn: Any) -> None:
        self._queues = ssn.snapshot.queues

    def allocatable(self, queue: Any, task: Any) -> bool:
        self.asked += 1
        table = self._queues
        held = table.allocated_or_pipelined if self.promised else table.allocated
        assert (table.allocated_or_pipelined >= table.allocated).all()
        return bool(held[CPU, queue.row] + task.request[CPU, 0] <= self.most)


@pytest.mark.parametrize(("most", "wanted"), [(8999, False), (9000, True), (9001, True)])
def test_a_queue_takes_a_task_once_enough_is_evicted(most: int, wanted: bool) -> None:
    """The queue holds ten, two go and one comes."""
    quota = Quota()
    quota.most = most
    ssn, rows = world(quota)
    quota_of = QueueQuota(ssn, Task(ssn.snapshot, rows["w0"]))
    before, evicted = cells(ssn.snapshot), np.zeros(len(ssn.snapshot.resources))
    evicted[CPU] = 2000
    assert quota_of.takes(evicted) == wanted
    assert changed(before, cells(ssn.snapshot)) == []


@pytest.mark.parametrize("promised", [False, True])
@pytest.mark.parametrize("evictions", [[1, 1, 1, 1], [3, 0, 0, 2], [0, 0, 0, 0], [2, 0, 2, 0]])
@pytest.mark.parametrize("most", range(6, 13))
def test_as_many_tasks_are_taken_as_one_after_the_other(
    promised: bool, evictions: Any, most: int
) -> None:
    quota = Quota()
    quota.most, quota.promised = most * 1000, promised
    ssn, rows = world(quota)
    evicted = np.zeros((len(ssn.snapshot.resources), 4))
    evicted[CPU] = np.array(evictions) * 1000
    wanted, held = 0, 10
    for i, amount in enumerate(evictions):
        held -= amount
        if held + (i if promised else 0) + 1 > most:
            break
        wanted += 1
    quota.asked = 0
    found = QueueQuota(ssn, Task(ssn.snapshot, rows["w0"])).n_taken(evicted)
    assert found == wanted
    assert quota.asked <= 5
