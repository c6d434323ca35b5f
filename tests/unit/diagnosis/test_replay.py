"""A lab: cycles on a copy, and turning from one world into another."""

from typing import Any

import pytest

from pumice.diagnosis.replay import Replay
from pumice.diagnosis.settings import add_nodes, remove_node
from pumice.testing import node, priority_class, queue

WORLD = [queue("default"), node("n1", cpu=4)]


def phase(lab: Any, pod: Any) -> Any:
    return lab.objects["Pod", pod]["status"]["phase"]


def test_bound_pods_run_and_know_when_they_started(world: Any, job: Any) -> None:
    lab = Replay(world([*WORLD, *job("j", cpu=2)]))
    lab.apply(lab.decide())
    bound = lab.objects["Pod", "default/j-0"]
    assert (bound["spec"]["nodeName"], bound["status"]["phase"]) == ("n1", "Running")
    assert bound["status"]["startTime"] == "2026-01-15T10:00:01Z"


def test_evicted_pods_come_back_as_pending_ones(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        priority_class("high", value=10),
        *job("low", cpu=4, nodes=["n1"], least=0),
        *job("j", cpu=4, priority_class="high"),
    ]
    conf = ("priority conformance", "predicates")
    lab = Replay(world(objects, *conf, actions="enqueue, allocate, preempt"))
    lab.settle()
    assert phase(lab, "default/j-0") == "Running"
    assert phase(lab, "default/low-0") == "Pending"
    assert "nodeName" not in lab.objects["Pod", "default/low-0"]["spec"]


def test_deciding_changes_nothing(world: Any, job: Any) -> None:
    lab = Replay(world([*WORLD, *job("j", cpu=2)]))
    before = dict(lab.objects)
    assert lab.decide() == lab.decide()
    assert lab.objects == before


def test_a_number_of_cycles_is_played(world: Any, job: Any) -> None:
    lab = Replay(world([*WORLD, *job("j", cpu=2)]))
    assert [len(each.binds) for each in lab.run(2)] == [1, 0]


def test_a_settled_lab_moves_no_more(world: Any, job: Any) -> None:
    lab = Replay(world([*WORLD, *job("a", cpu=2), *job("b", cpu=3)]))
    lab.settle()
    decisions = lab.decide()
    assert not decisions.binds
    assert not decisions.evictions


def test_ended_pods_leave_their_room(world: Any, job: Any) -> None:
    lab = Replay(world([*WORLD, *job("a", cpu=4, nodes=["n1"]), *job("b", cpu=4)]))
    assert not lab.settle()[-1].binds
    lab.finish(["default/a-0"])
    assert lab.decide().binds == {"default/b-0": "n1"}


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
    lab.settle()
    for there in (second, first, second):
        lab.become(there)
        fresh = Replay(there).decide()
        assert lab.decide().pod_groups == fresh.pod_groups
        assert lab.decide().binds.keys() == fresh.binds.keys()
