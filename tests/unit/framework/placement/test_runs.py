"""Runs of equal tasks: how long they are; sums as they would be."""

from collections import deque
from typing import Any

import numpy as np
import pytest

from pumice.core.consistency import cells, changed
from pumice.core.resources import CPU, PODS
from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.job_placement import _SHORTEST, JobMemory, JobPlacement
from pumice.framework.placement.ahead import (
    Imagined,
    ImaginedQueues,
    cumulate,
    has_host_ports,
    has_plain_shape,
    longest,
)
from pumice.framework.plugin import Plugin
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

TOPOLOGY: dict[str, Any] = {"affinity": {"nodeAffinity": {}}}
PORT = {"containerPort": 80, "hostPort": 8080}


@pytest.mark.parametrize("n", range(-1, 12))
def test_the_longest_that_holds_is_found(n: int) -> None:
    for most in range(13):
        asked: list[int] = []

        def holds(k: int, most: int = most, asked: list[int] = asked) -> bool:
            asked.append(k)
            return k <= most

        assert longest(n, holds) == max(0, min(n, most))
        assert len(asked) <= 6
        assert all(1 <= k <= n for k in asked)


# Which tasks


def gang(n: int, first: int = 0, **more: Any) -> list[Any]:
    return [pod(f"g-w-{i}", group="g", **({"cpu": 1} | more)) for i in range(first, first + n)]


def session(*pods: Any, plugins: Any = (), cpu: int = 32, **group: Any) -> tuple[Any, list[int]]:
    made = [queue("default"), node("n0", cpu=cpu), node("n1", cpu=cpu), pod_group("g", **group)]
    ssn = open_session([*made, *pods], [*plugins])
    return ssn, [ssn.snapshot.tasks.row_of[f"default/{one['metadata']['name']}"] for one in pods]


def never() -> bool:
    return False


def equal_run(
    ssn: Any, tasks: list[int], is_done: Any, most: Any = None, *, any_role: bool = False
) -> int:
    """Return how many of the first tasks are placed as one run."""
    memory = JobMemory(mixed_roles=frozenset() if any_role else None)
    round_ = JobPlacement(ssn, 0, deque(tasks), memory, is_done, most=most)
    return round_._equal_heads(Task(ssn.snapshot, tasks[0]))


DIFFERENT: dict[str, dict[str, Any]] = {
    "shape": {"cpu": 2},
    "role": {"role": "other"},
    "nominated": {"nominated_node": "n0"},
    "gated": {"spec": {"schedulingGates": [{"name": "x"}]}},
}


@pytest.mark.parametrize("which", DIFFERENT)
@pytest.mark.parametrize("at", [0, 3, 4, 6])
def test_a_run_ends_before_a_task_that_differs(which: str, at: int) -> None:
    pods = [*gang(at), *gang(1, first=at, **DIFFERENT[which]), *gang(7 - at, first=at + 1)]
    ssn, tasks = session(*pods)
    assert equal_run(ssn, tasks, never) == (at if at >= _SHORTEST else 0)
    if which == "role":
        assert equal_run(ssn, tasks, never, any_role=True) == 8


@pytest.mark.parametrize(("most", "wanted"), [(0, 0), (3, 0), (4, 4), (7, 7), (20, 9)])
def test_no_more_are_placed_than_the_caller_allows(most: int, wanted: int) -> None:
    ssn, tasks = session(*gang(9))
    assert equal_run(ssn, tasks, never, lambda: most) == wanted


@pytest.mark.parametrize(("most", "wanted"), [(2, 0), (3, 0), (4, 4), (8, 8), (9, 9)])
def test_a_run_ends_where_the_queue_would_refuse(most: int, wanted: int) -> None:
    class Quota(Plugin, name="quota"):
        foreseeable = True

        def on_open(self, ssn: Any) -> None:
            self._ssn = ssn

        def allocatable(self, queue: Any, task: Any) -> bool:
            held = self._ssn.snapshot.queues.allocated[CPU, queue.row]
            return bool(held + 1000 <= most * 1000)

    ssn, tasks = session(*gang(9), plugins=[Quota()])
    before = cells(ssn.snapshot)
    assert equal_run(ssn, tasks, never) == wanted
    assert changed(before, cells(ssn.snapshot)) == []


@pytest.mark.parametrize(("enough", "wanted"), [(1, 0), (3, 0), (4, 4), (8, 8), (9, 9), (12, 9)])
def test_a_run_ends_with_the_task_that_makes_the_job_complete(enough: int, wanted: int) -> None:
    ssn, tasks = session(*gang(9))
    snapshot = ssn.snapshot
    before = cells(snapshot)

    def is_done() -> bool:
        counted = snapshot.jobs.counts[Status.ALLOCATED, 0]
        assert (snapshot.tasks.status[tasks] == Status.ALLOCATED).sum() == counted
        return bool(counted >= enough)

    assert equal_run(ssn, tasks, is_done) == wanted
    assert changed(before, cells(snapshot)) == []


def test_a_run_ends_where_a_plugin_tells_tasks_apart() -> None:
    class Apart(Plugin, name="apart"):
        def vary_by(self, task: Any) -> Any:
            return int(task.name.rpartition("-")[2]) // 5

        def score_nodes(self, task: Any, nodes: Any) -> Any:
            return np.zeros(len(nodes))

    ssn, tasks = session(*gang(9), plugins=[Apart()])
    assert ssn.placing.varying
    assert equal_run(ssn, tasks, never) == 5
    assert equal_run(ssn, tasks[3:], never) == 0
    assert equal_run(ssn, tasks[5:], never) == 4


def test_what_is_imagined_is_counted_and_taken_back() -> None:
    ssn, tasks = session(*gang(5))
    snapshot, before = ssn.snapshot, cells(ssn.snapshot)
    task = Task(snapshot, tasks[0])
    for n, pipelined in ((0, False), (2, False), (3, True)):
        with Imagined(snapshot, task, n, pipelined=pipelined):
            status = Status.PIPELINED if pipelined else Status.ALLOCATED
            assert snapshot.jobs.counts[[Status.PENDING, status], 0].tolist() == [5 - n, n]
        assert changed(before, cells(snapshot)) == []


@pytest.mark.parametrize(
    ("spec", "plain"),
    [
        ({}, True),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, True),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, False),
        ({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}, False),
        ({"resourceClaims": [{"name": "c", "resourceClaimName": "x"}]}, False),
        (TOPOLOGY, False),
        ({"containers": [{"name": "c", "image": "i", "ports": [PORT]}]}, False),
        ({"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 8}]}]}, True),
        ({"initContainers": [{"name": "c", "image": "i", "ports": [PORT]}]}, False),
        (
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
                ]
            },
            False,
        ),
    ],
)
def test_a_shape_is_plain_unless_it_looks_beyond_its_node(spec: Any, plain: bool) -> None:
    ssn, tasks = session(pod("p", group="g", spec=spec))
    shape = ssn.snapshot.shapes[ssn.snapshot.tasks.shape[tasks[0]]]
    assert has_plain_shape(shape) == plain
    assert has_plain_shape(shape) == plain  # as it is remembered
    ports = [*shape.spec.containers, *shape.spec.init_containers]
    assert has_host_ports(shape.spec) == any(p.host_port for c in ports for p in c.ports)


# Rows that do not exist yet


def test_amounts_are_added_up_row_by_row_in_their_order() -> None:
    rng = np.random.default_rng(0)
    for n in range(1, 9):
        amounts, rows = rng.integers(0, 9, (2, 3, n)).astype(float), rng.integers(0, 4, n)
        wanted = [amounts[..., : i + 1][..., rows[: i + 1] == rows[i]].sum(-1) for i in range(n)]
        np.testing.assert_array_equal(cumulate(amounts, rows), np.stack(wanted, axis=-1))


def test_imagined_queues_hold_what_was_added() -> None:
    ssn, tasks = session(*gang(4))
    snapshot = ssn.snapshot
    shape = snapshot.shapes[snapshot.tasks.shape[tasks[0]]]
    step = shape.step("place", 1, live=False)[1]
    rows = np.zeros(3, dtype=np.intp)
    imagined = ImaginedQueues(snapshot, rows, np.stack([step * k for k in range(3)], axis=-1))
    assert imagined.allocated[CPU].tolist() == [0, 1000, 2000]
    assert imagined.allocated_or_pipelined[CPU].tolist() == [0, 1000, 2000]
    assert imagined.pending[CPU].tolist() == [4000, 3000, 2000]
    assert imagined.part(slice(1, 3)).pending[PODS].tolist() == [3, 2]
