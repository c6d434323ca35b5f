"""How many equal tasks fit on a node with ever more of its victims gone."""

from typing import Any

import numpy as np
import pytest

from pumice.framework.eviction.candidates import amounts_of
from pumice.framework.eviction.eviction_ladders import Ladders, Step, copies_in
from pumice.framework.eviction.victim_lines import Lines
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
        np.arange(n),
        rows,
        np.zeros(n, dtype=np.intp),
        np.array(offered),
        known=np.array([True]),
        final=lambda: np.array([is_final]),
        in_turn=[],
    )
    task = ssn.task(row_of["default/new-0"])
    amounts = amounts_of(ssn.snapshot, rows[lines.offered])
    nodes = np.array([0])
    return Ladders(ssn.snapshot, task, nodes, lines, amounts=amounts, hopeful=[3.0])


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


@pytest.mark.parametrize(
    ("room", "request_", "need", "wanted"),
    [
        ([7, 9], [2, 3], [2, 3], 3),
        ([8, 9], [2, 3], [2, 3], 3),
        ([1, 9], [2, 3], [2, 3], 0),
        ([8, 0], [2, 0], [2, 0], 4),
        ([8, -0.05], [2, 0], [2, 0], 4),
        ([8, -0.1], [2, 0], [2, 0], 0),
        ([8, -5], [2, 0], [2, -np.inf], 4),
    ],
)
def test_as_many_copies_fit_as_each_resource_allows(
    room: Any, request_: Any, need: Any, wanted: int
) -> None:
    columns = [np.array(each, dtype=float)[:, None] for each in (room, request_, need)]
    assert copies_in(*columns).tolist() == [wanted]


def test_amounts_of_tasks_stand_above_those_with_defaults(ssn: Any) -> None:
    rows = np.array([ssn.snapshot.tasks.row_of[f"default/old-{i}"] for i in (2, 0, 1)])
    found, n = amounts_of(ssn.snapshot, rows), len(ssn.snapshot.resources)
    assert found[0].tolist() == [4000, 1000, 1000]
    assert found[n].tolist() == [4000, 1000, 1000]
    assert (found[n + 1] > 0).all()
    assert amounts_of(ssn.snapshot, rows[:0]).shape == (n + 2, 0)


def test_lines_of_two_nodes_are_kept_apart() -> None:
    made = [queue("default"), node("n1", cpu=4), node("n2", cpu=4), *CLUSTER[2:3]]
    made += [pod(f"old-{i}", group="old", cpu=2, node=f"n{1 + i // 2}") for i in range(4)]
    ssn = open_session([*made, *CLUSTER[-2:]])
    row_of = ssn.snapshot.tasks.row_of
    rows = np.array([row_of[f"default/old-{i}"] for i in range(4)])
    places, all_offered = np.array([0, 0, 1, 1]), np.array([True, False, True, True])
    final = np.array([False, True])
    known = np.array([True, True])
    at = np.arange(4)
    lines = Lines(at, rows, places, all_offered, known=known, final=lambda: final, in_turn=[])
    task = ssn.task(row_of["default/new-0"])
    amounts = amounts_of(ssn.snapshot, rows[all_offered])
    both, hopeful = np.array([0, 1]), [2.0, 2.0]
    ladders = Ladders(ssn.snapshot, task, both, lines, amounts=amounts, hopeful=hopeful)
    assert [ladders.line(place).tolist() for place in (0, 1)] == [
        rows[:2].tolist(),
        rows[2:].tolist(),
    ]
    first, second = ladders.chain(0, 9), ladders.chain(1, 9)
    assert first == [Step(0, 0, 0, 1)]
    assert second == [Step(1, 0, 0, 1), Step(1, 1, 1, 2)]
    assert [ladders.going(step) for step in second] == [[rows[2]], [rows[3]]]
    assert [[*ladders.in_line(step)] for step in (*first, *second)] == [[0], [2], [3]]
    assert [ladders.is_full(place, 1) for place in (0, 1)] == [False, True]
    nodes, at = ladders.nodes_after(second, 1.0)
    assert at.tolist() == [1, 1]
    assert nodes.releasing[0].tolist() == [2000, 4000]
    assert nodes.pipelined[0].tolist() == [2000, 4000]
    lines.known[1] = False
    assert ladders.chain(1, 9) == []
