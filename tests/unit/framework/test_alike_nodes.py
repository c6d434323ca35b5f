"""Nodes of equal amounts are found, and leave their group when they move."""

from typing import Any

import numpy as np
import pytest

from pumice.core.status import PENDING
from pumice.core.views import Nodes
from pumice.framework.alike_nodes import AlikeNodes, Speakers, refine
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of


def cluster() -> Any:
    made = [queue("q"), pod_group("g", queue="q", min_member=3)]
    made += [node(f"n{i}", cpu=(4, 8)[i % 2], memory="8Gi") for i in range(6)]
    made += [pod(f"g-{i}", group="g", cpu="1", memory="1Gi") for i in range(3)]
    return snapshot_of([*made, pod("r", node="n4", cpu="1", phase="Running")])


def alike(asked: Any, group: Any) -> set[frozenset[int]]:
    found = [frozenset(np.flatnonzero(group == i).tolist()) for i in range(len(asked))]
    for i, rows in enumerate(found):
        assert not rows or int(asked[i]) in rows
    return {rows for rows in found if rows}


def test_nodes_of_the_same_amounts_are_one_group() -> None:
    assert alike(*AlikeNodes(cluster()).groups()) == {
        frozenset({0, 2}),
        frozenset({1, 3, 5}),
        frozenset({4}),
    }


def test_a_node_that_moves_is_asked_for_itself_from_then_on() -> None:
    snapshot = cluster()
    groups = AlikeNodes(snapshot)
    task = snapshot.tasks.row_of["default/g-0"]
    mark = snapshot.journal.mark()
    snapshot.place(task, 1)
    parted = {frozenset({0, 2}), frozenset({1}), frozenset({3, 5}), frozenset({4})}
    assert alike(*groups.groups()) == parted
    snapshot.journal.rollback(mark)
    assert alike(*groups.groups()) == parted
    snapshot.journal.touch(np.array([3, 5, 1]))
    assert alike(*groups.groups()) == parted - {frozenset({3, 5})} | {
        frozenset({3}),
        frozenset({5}),
    }


def test_groups_are_parted_by_further_numbers() -> None:
    group = np.array([0, 0, 1, 1, 0])
    codes = np.array([0, 2, 0, 0, 2], dtype=np.int16)
    asked, parted = refine(group, [codes, np.array([0, 0, 0, 1, 0], dtype=np.int16)])
    assert alike(asked, parted) == {
        frozenset({0}),
        frozenset({1, 4}),
        frozenset({2}),
        frozenset({3}),
    }


@pytest.mark.parametrize("seed", range(30))
def test_copies_and_draws_are_those_of_all_nodes(seed: int) -> None:
    snapshot, rng = cluster(), np.random.default_rng(seed)
    groups, task = AlikeNodes(snapshot), snapshot.tasks.row_of["default/g-0"]
    for _ in range(4):
        speakers, whole = groups.speakers(), Nodes(snapshot)
        for name in ("idle", "used", "releasing", "pipelined", "future_idle", "view_used"):
            copied = getattr(speakers.nodes, name)[:, speakers.group]
            assert copied.tolist() == getattr(whole, name).tolist()
        for name in ("allocatable", "capacity", "view_nonzero", "view_pods"):
            copied = getattr(speakers.nodes, name)[..., speakers.group]
            assert copied.tolist() == getattr(whole, name).tolist()
        part = speakers.nodes.part(slice(1, 3))
        assert part.idle.tolist() == Nodes(snapshot, part.index).idle.tolist()
        chosen = rng.random(len(speakers.nodes)) < 0.6
        ties = np.flatnonzero(chosen[speakers.group]).tolist()
        for other in (speakers, Speakers(speakers.nodes, speakers.group)):
            drawn = [other.draw(chosen, lambda n, i=i: i) for i in range(len(ties))]  # type: ignore[misc]
            assert drawn == ties
        snapshot.place(task, int(rng.integers(0, 6)))
        if rng.random() < 0.5:
            snapshot.journal.touch(rng.integers(0, 6, size=3))
            snapshot.journal.rollback(0)
        task += 1
        if snapshot.tasks.status[task] != PENDING:
            break
