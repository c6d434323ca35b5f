"""A lab: a cycle on a copy, and turning from one world into another."""

from typing import Any

import pytest

from pumice.diagnosis.runner import Replay
from pumice.diagnosis.settings import add_nodes, remove_node
from pumice.testing import node, queue

WORLD = [queue("default"), node("n1", cpu=4)]


def test_deciding_changes_nothing(world: Any, job: Any) -> None:
    lab = Replay(world([*WORLD, *job("j", cpu=2)]))
    before = dict(lab.objects)
    assert lab.decide() == lab.decide()
    assert lab.objects == before


@pytest.mark.parametrize(
    "make",
    [lambda world: add_nodes(world, 2, node("n1", cpu=4)), lambda _: remove_node("n2")],
    ids=["more", "fewer"],
)
def test_a_lab_that_turned_into_a_world_decides_as_one_made_for_it(
    world: Any, job: Any, make: Any
) -> None:
    objects = [*WORLD, node("n2", cpu=8), *job("a", cpu=3, pods=3), *job("b", cpu=2, pods=2)]
    first = world([*objects, *job("old", cpu=1, nodes=["n2"])])
    second = make(first)(first)
    lab = Replay(first)
    lab.decide()
    for there in (second, first, second):
        lab.become(there)
        fresh = Replay(there).decide()
        assert lab.decide().pod_groups == fresh.pod_groups
        assert lab.decide().binds.keys() == fresh.binds.keys()
