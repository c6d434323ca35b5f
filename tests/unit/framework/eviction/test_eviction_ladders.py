"""How many equal tasks fit on a node with ever more of its victims gone."""

from typing import Any

import numpy as np
import pytest

from pumice.framework.eviction.eviction_ladders import Ladders, Step
from pumice.framework.eviction.victim_columns import Lines
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

CLUSTER = [
    queue("default"),
    node("n1", cpu=7),
    pod_group("old", phase="Running"),
    *(pod(f"old-{i}", group="old", cpu=cpu, node="n1") for i, cpu in enumerate((1, 1, 4))),
    pod_group("new", phase="Inqueue"),
    pod("new-0", group="new", cpu=2),
]


@pytest.fixture
def ssn() -> Any:
    return open_session(CLUSTER)


def ladders_of(ssn: Any, offered: list[bool], *, is_final: bool = False) -> Ladders:
    row_of, n = ssn.snapshot.tasks.row_of, len(offered)
    rows = np.array([row_of[f"default/old-{i}"] for i in range(n)])
    lines = Lines(
        rows,
        np.zeros(n, dtype=np.intp),
        np.array(offered),
        known=np.array([True]),
        final=lambda: np.array([is_final]),
        in_turn=[],
    )
    task = ssn.task(row_of["default/new-0"])
    here = np.array([0])
    return Ladders(ssn.snapshot, task, here, lines, need=task.request, hopeful=[3.0])


def test_each_task_waits_for_the_first_victims_that_make_room_for_it(ssn: Any) -> None:
    ladders = ladders_of(ssn, [True, True, True])
    steps = ladders.chain(0, 9)
    assert steps == [Step(0, 0, 0, 1), Step(0, 1, 1, 3), Step(0, 2, 3, 3)]
    assert [len(ladders.going(step)) for step in steps] == [1, 2, 0]
    assert [[*ladders.in_line(step)] for step in steps] == [[0], [1, 2], []]
    assert ladders.amounts(steps)[0].tolist() == [1000.0, 5000.0, 0.0]


def test_steps_end_with_the_tasks_or_with_the_members_that_are_left(ssn: Any) -> None:
    ladders = ladders_of(ssn, [True, True, True])
    assert len(ladders.chain(0, 2)) == 2
    assert len(ladders.chain(0, 9, members=3)) == 2


def test_victims_that_plugins_keep_stay_and_are_in_line(ssn: Any) -> None:
    ladders = ladders_of(ssn, [False, True, True])
    steps = ladders.chain(0, 9)
    assert steps == [Step(0, 0, 0, 1), Step(0, 1, 1, 2), Step(0, 2, 2, 2)]
    assert [[*ladders.in_line(step)] for step in steps] == [[0, 1], [2], []]


def test_a_node_is_full_if_it_is_hopeless_or_nobody_else_is_offered(ssn: Any) -> None:
    assert ladders_of(ssn, [True, True, True]).is_full(0, 3)
    assert not ladders_of(ssn, [True, False, False]).is_full(0, 1)
    assert ladders_of(ssn, [True, False, False], is_final=True).is_full(0, 1)
