"""capacity and reclaim: who may take, and what may be taken from whom."""

from typing import Any

import numpy as np
import pytest

from pumice.api.codes import Spared
from pumice.core.views import Queue
from pumice.plugins.capacity import Capacity
from pumice.testing import node, pod, pod_group, queue

CLUSTER = node("n", cpu=100, memory="100Gi", pods=1000, resources={"example.com/chip": 10})
CHIP = "example.com/chip"


def job(name: Any, in_queue: Any, pods: Any, *, runs: bool = True) -> Any:
    """A job of pods given by their requests."""
    on = "n" if runs else None
    made = [pod(f"{name}-{i}", group=name, resources=each, node=on) for i, each in enumerate(pods)]
    return [pod_group(name, queue=in_queue, phase="Running" if runs else "Inqueue"), *made]


class World:
    """A session in which a pod ``new-0`` asks for the pods ``old-*``."""

    def __init__(self, ssn: Any) -> None:
        self.ssn = ssn
        self.rows = ssn.snapshot.tasks.row_of
        self.asking = ssn.task(self.rows["default/new-0"])

    def may_reclaim(self) -> Any:
        return self.ssn.policy.preemptive(self.asking.queue, self.asking.request[:, 0])

    def olds(self) -> Any:
        return [key for key in self.rows if key.startswith("default/old")]

    def victims(self) -> Any:
        found = self.ssn.policy.reclaimable(self.asking, [self.rows[key] for key in self.olds()])
        keys = self.ssn.snapshot.tasks.keys
        return [keys[row].removeprefix("default/") for row in found]

    def bounds(self) -> Any:
        rows = np.asarray([self.rows[key] for key in self.olds()])
        plugin = self.ssn.plugins[0]
        return plugin.bound_victims("reclaimable", self.asking, rows).tolist()


@pytest.fixture
def world(open_session: Any) -> Any:
    def made(
        *objects: Any,
        level: Any = 0,
        hierarchy: bool = False,
        new: Any = None,
        queue_of_new: str = "poor",
    ) -> Any:
        asking = job("new", queue_of_new, [new or {"cpu": 1}], runs=False)
        plugin = Capacity(ancestor_reclaim_level=level)
        ssn = open_session([CLUSTER, *objects, *asking], plugin, enableHierarchy=hierarchy)
        return World(ssn)

    return made


POOR = queue("poor", deserved={"cpu": 50})


# Who may reclaim


# What may be taken


def test_pods_without_any_resource_in_common_are_of_no_use(world: Any) -> None:
    """Every pod takes a slot of its node; that does not count."""
    rich = [queue("rich"), *job("old", "rich", [{CHIP: 1}, {"cpu": 1}])]
    assert world(POOR, *rich).victims() == ["old-1"]


def test_bounds_on_victims_judge_each_pod_alone(world: Any) -> None:
    """All three could be the first to go, though only one goes; the pod next door never."""
    rich = [queue("rich", deserved={"cpu": 5}), *job("old", "rich", [{"cpu": 2}] * 3)]
    meagre = [queue("meagre", deserved={"cpu": 5}), *job("old-meagre", "meagre", [{"cpu": 2}])]
    found = world(POOR, *rich, *meagre)
    assert found.bounds() == [True, True, True, False]
    assert found.victims() == ["old-0"]


# In a tree

TREE = [
    queue("root"),
    queue("p1", deserved={"cpu": 30}),
    queue("p2", deserved={"cpu": 30}),
    queue("poor", parent="p1"),
    queue("rich", parent="p2"),
    queue("near", parent="p1"),
]


@pytest.mark.parametrize(("level", "allowed"), [(0, False), (1, True)])
def test_an_ancestor_within_the_level_vouches_for_a_queue_that_deserves_nothing(
    world: Any, level: int, allowed: bool
) -> None:
    assert world(*TREE, level=level, hierarchy=True).may_reclaim() is allowed


@pytest.mark.parametrize(
    ("level", "held", "names"),
    [(0, [1] * 3, ["old-0", "old-1", "old-2"]), (1, [1] * 3, []), (1, [20, 11, 2], ["old-0"])],
)
def test_ancestors_within_the_level_must_exceed_their_due(
    world: Any, level: int, held: Any, names: Any
) -> None:
    """The leaf deserves nothing, so its pods would go at once; but p2 deserves 30.

    With 33 in p2 the pod of 20 may go, then p2 has 13 and the others stay.
    """
    old = job("old", "rich", [{"cpu": cpu} for cpu in held])
    assert world(*TREE, *old, level=level, hierarchy=True).victims() == names


def test_queues_that_deserve_nothing_leave_each_other_alone_under_a_shared_ancestor(
    world: Any,
) -> None:
    old = job("old", "near", [{"cpu": 40}])
    assert world(*TREE, *old, level=0, hierarchy=True).victims() == ["old-0"]
    assert world(*TREE, *old, level=1, hierarchy=True).victims() == []


def test_pods_of_a_misplaced_queue_are_left_alone(world: Any) -> None:
    lost = [queue("lost", parent="gone"), *job("old", "lost", [{"cpu": 1}])]
    tree = [queue("root"), queue("poor", deserved={"cpu": 5})]
    assert world(*tree, *lost, hierarchy=True).victims() == []


# For whole jobs


# Bounds


@pytest.mark.parametrize(
    ("due", "held", "asked", "allowed"),
    [
        ({"cpu": 50}, {"cpu": 49}, {"cpu": 1}, True),
        ({"cpu": 50}, {"cpu": 49}, {"cpu": "1001m"}, False),
        ({"cpu": 50}, {"cpu": 1}, {"memory": "1Gi"}, False),
        ({"cpu": 5, "memory": "5Gi"}, {"cpu": 5}, {"memory": "5Gi"}, True),
        ({"cpu": 5, CHIP: 2}, {"cpu": 1}, {CHIP: 3}, False),
    ],
)
def test_a_queue_deserves_more_while_a_request_keeps_it_within_its_due(
    world: Any, due: Any, held: Any, asked: Any, allowed: bool
) -> None:
    here = world(queue("poor", deserved=due), *job("own", "poor", [held]), new=asked)
    assert here.may_reclaim() is allowed


@pytest.mark.parametrize(
    ("level", "held", "spared"),
    [
        (1, [20], (Spared.ANCESTOR_LEVEL, {"queue": "p2"})),
        (0, [20], (Capacity.spares, {})),
        (1, [31], (Capacity.spares, {})),
    ],
)
def test_a_pod_is_spared_by_its_queue_or_by_an_ancestor(
    world: Any, level: int, held: Any, spared: Any
) -> None:
    old = job("old", "rich", [{"cpu": cpu} for cpu in held])
    here = world(*TREE, *old, level=level, hierarchy=True)
    victim = here.ssn.task(here.rows["default/old-0"])
    assert here.ssn.plugins[0].why_spared("reclaimable", here.asking, victim) == spared


def test_each_victim_counts_for_the_ancestors_of_the_next(world: Any) -> None:
    """Of p2's 35 at most 5 are too many: one pod of 5 goes, then p2 has its due."""
    old = job("old", "rich", [{"cpu": 5}] * 7)
    assert world(*TREE, *old, level=1, hierarchy=True).victims() == ["old-0"]


def test_victims_of_misplaced_queues_are_compared_as_equal(world: Any) -> None:
    lost = queue("lost", parent="gone")
    found = world(*TREE, lost, hierarchy=True).ssn
    rows = found.snapshot.queues.row_of
    plugin = found.plugins[0]
    near, rich, poor, away = (
        Queue(found.snapshot, rows[name]) for name in ("near", "rich", "poor", "lost")
    )
    compared = plugin.compare_victim_queues
    assert compared(near, rich, poor) == -1.0
    assert [compared(near, away, poor), compared(away, near, poor), compared(near, rich, away)] == [
        0.0
    ] * 3


def test_only_resources_that_a_queue_deserves_some_of_are_compared(world: Any) -> None:
    """The queue has chips within its due; the cpu of its pods, of which it deserves none, does not
    make it exceed anything."""
    rich = [queue("rich", deserved={CHIP: 2}), *job("old", "rich", [{"cpu": 9, CHIP: 1}] * 2)]
    assert world(POOR, *rich).victims() == []
