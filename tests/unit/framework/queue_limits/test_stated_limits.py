"""Limits that queues state, flat and in a tree, and the places of queues in the tree."""

from typing import Any

import numpy as np
import pytest

from pumice.core.resources import CPU, PODS
from pumice.core.tables import NOWHERE
from pumice.framework.queue_limits.limits import BRANCH, LEAF, MISPLACED, ClusterLimit, QueueTree
from pumice.framework.queue_limits.stated import StatedLimits
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of

GPU = "x.org/gpu"
NODE = node("n", cpu=20, memory="100Gi", resources={GPU: 8})


def limits_of(*queues: Any, hierarchy: bool = False, total: Any = None) -> Any:
    snapshot = snapshot_of([NODE, *queues])
    amounts = snapshot.total() if total is None else total
    return snapshot, StatedLimits.of(snapshot, amounts, hierarchy=hierarchy)


def amounts(snapshot: Any, column: Any, name: str, resource: str = "cpu") -> float:
    row = snapshot.resources.names.index(resource)
    return float(column[row, snapshot.queues.row_of[name]]) / 1000


# Flat


@pytest.mark.parametrize(
    ("mine", "other", "real", "deserved"),
    [
        ({}, {}, 20, 0),
        ({"capability": {"cpu": 5}}, {}, 5, 0),
        ({"capability": {"cpu": 0}}, {}, 20, 0),
        ({"capability": {"cpu": 50}}, {}, 20, 0),
        ({"deserved": {"cpu": 7}}, {}, 20, 7),
        ({"deserved": {"cpu": 7}, "capability": {"cpu": 5}}, {}, 5, 5),
        ({"guarantee": {"cpu": 6}}, {}, 20, 6),
        ({"guarantee": {"cpu": 6}, "deserved": {"cpu": 7}}, {}, 20, 7),
        ({"deserved": {"cpu": 18}}, {"guarantee": {"cpu": 4}}, 16, 16),
        ({"guarantee": {"cpu": 3}}, {"guarantee": {"cpu": 4}}, 16, 3),
        ({"guarantee": {"cpu": 3}}, {"guarantee": {"cpu": 40}}, 3, 3),
    ],
)
def test_flat_queues_share_what_is_not_guaranteed_to_others(
    mine: Any, other: Any, real: float, deserved: float
) -> None:
    snapshot, limits = limits_of(queue("q", **mine), queue("other", **other))
    assert amounts(snapshot, limits.real_capability, "q") == real
    assert amounts(snapshot, limits.deserved, "q") == deserved
    assert limits.ceiling is limits.real_capability


@pytest.mark.parametrize(
    ("mine", "other", "deserved"),
    [
        ({"deserved": {GPU: 3}}, {}, 3),
        ({"deserved": {GPU: 9}}, {}, 8),
        ({"deserved": {GPU: 9}}, {"guarantee": {GPU: 8}}, 9),
        ({"deserved": {GPU: 9}, "guarantee": {GPU: 1}}, {"guarantee": {GPU: 8}}, 1),
    ],
)
def test_a_scalar_that_is_neither_free_nor_guaranteed_cuts_nothing(
    mine: Any, other: Any, deserved: float
) -> None:
    snapshot, limits = limits_of(queue("q", **mine), queue("other", **other))
    assert amounts(snapshot, limits.deserved, "q", GPU) == deserved


@pytest.mark.parametrize(
    ("fields", "cpu", "gpu"),
    [
        ({}, False, False),
        ({"deserved": {"cpu": 2}}, True, False),
        ({"deserved": {"cpu": 0, GPU: 0}}, False, True),
        ({"guarantee": {GPU: 1}}, False, True),
        ({"guarantee": {"cpu": 1}}, True, False),
    ],
)
def test_what_is_deserved_counts_if_there_is_any_or_a_scalar_is_named(
    fields: Any, cpu: bool, gpu: bool
) -> None:
    for hierarchy in (False, True):
        snapshot, limits = limits_of(queue("root"), queue("q", **fields), hierarchy=hierarchy)
        row = snapshot.queues.row_of["q"]
        names = snapshot.resources.names
        found = [bool(limits.deserved_counts[names.index(name), row]) for name in ("cpu", GPU)]
        if GPU not in str(fields):
            assert found[0] == cpu
        else:
            assert found == [cpu, gpu]


@pytest.mark.parametrize(
    ("deserved", "held", "share", "overused", "best_effort"),
    [
        ({"cpu": 4}, 2, 0.5, False, False),
        ({"cpu": 4}, 4, 1.0, False, False),
        ({"cpu": 4}, 5, 1.25, True, False),
        ({}, 0, 1.0, False, True),
        ({}, 9, 1.0, False, True),
        ({"pods": 5}, 9, 1.0, False, True),
    ],
)
def test_a_queue_is_overused_beyond_what_it_deserves(
    deserved: Any, held: float, share: float, overused: bool, best_effort: bool
) -> None:
    snapshot, limits = limits_of(queue("q", deserved=deserved))
    row = snapshot.queues.row_of["q"]
    column = np.zeros_like(limits.deserved)
    column[CPU, row] = held * 1000
    assert limits.shares(column)[row] == share
    assert limits.overused(column)[row] == overused
    assert limits.best_effort[row] == best_effort
    assert column[PODS, row] == 0


# In a tree


def test_children_share_the_limit_of_their_parent_beside_guarantees() -> None:
    snapshot, limits = limits_of(
        queue("root", capability={"cpu": 16}),
        queue("a", parent="root", capability={"cpu": 10}, guarantee={"cpu": 2}),
        queue("b", parent="root", guarantee={"cpu": 3}),
        queue("a1", parent="a", capability={"cpu": 0}),
        queue("a2", parent="a", capability={"cpu": 4}, guarantee={"cpu": 1}),
        queue("a3", parent="a", capability={"cpu": 40}),
        queue("a4", parent="a", capability={"cpu": "1m"}),
        hierarchy=True,
    )
    names = ("root", "a", "b", "a1", "a2", "a3", "a4")
    real = [amounts(snapshot, limits.real_capability, name) for name in names]
    stated = [amounts(snapshot, limits.capability, name) for name in names]
    assert real == [16, 10, 14, 9, 4, 9, 0.001]
    assert stated == [16, 10, 16, 10, 4, 40, 0.001]
    assert [amounts(snapshot, limits.guarantee, name) for name in names] == [5, 2, 3, 0, 1, 0, 0]
    assert [amounts(snapshot, limits.deserved, name) for name in names] == [5, 2, 3, 0, 1, 0, 0]


def test_a_root_that_states_nothing_is_unlimited_in_what_nodes_offer() -> None:
    snapshot, limits = limits_of(
        queue("root"),
        queue("q", capability={"ghost.org/device": 3}, deserved={GPU: 2}),
        hierarchy=True,
    )
    root, names = snapshot.queues.row_of["root"], snapshot.resources.names
    real = dict(zip(names, limits.real_capability[:, root].tolist(), strict=True))
    assert real["ghost.org/device"] == 0
    assert {real[name] for name in ("cpu", "memory", "pods", GPU)} == {np.inf}
    assert (limits.capability[:, root] == np.inf).all()
    assert limits.deserved[names.index(GPU), root] == 2000
    assert limits.deserved_counts[names.index(GPU), root]
    assert not limits.deserved_counts[CPU, root]


def test_a_root_with_a_capability_has_none_of_cpu_or_memory_it_leaves_out() -> None:
    snapshot, limits = limits_of(
        queue("root", capability={"memory": "8Gi"}), queue("q"), hierarchy=True
    )
    root, names = snapshot.queues.row_of["root"], snapshot.resources.names
    capability = dict(zip(names, limits.capability[:, root].tolist(), strict=True))
    assert (capability["cpu"], capability["memory"], capability[GPU]) == (0, 8.0 * 2**30, np.inf)
    assert amounts(snapshot, limits.real_capability, "q") == 0


def test_children_beyond_their_parent_are_named() -> None:
    snapshot, limits = limits_of(
        queue("root"),
        queue("p", capability={"cpu": 4}, deserved={"cpu": 3}, guarantee={"cpu": 1}),
        queue("a", parent="p", capability={"cpu": 6}, deserved={"cpu": 2}, guarantee={"cpu": 1}),
        queue("b", parent="p", deserved={"cpu": 2}, guarantee={"cpu": 1}),
        hierarchy=True,
    )
    assert limits.overdrawn() == [
        "queue a may have 6 of cpu, its parent p 4 of cpu",
        "the queues under p deserve 4 of cpu together, the queue itself 3 of cpu",
        "the queues under p are guaranteed 2 of cpu together, the queue itself 1 of cpu",
    ]
    flat = StatedLimits.of(snapshot, snapshot.total(), hierarchy=False)
    assert flat.overdrawn() == []


def test_children_within_their_parent_are_not_named() -> None:
    _, limits = limits_of(
        queue("root"),
        queue("p", capability={"cpu": 4}, deserved={"cpu": 4}),
        queue("a", parent="p", capability={"cpu": 4}, deserved={"cpu": 2}),
        queue("b", parent="p", deserved={"cpu": 2}),
        hierarchy=True,
    )
    assert limits.overdrawn() == []


# Places


def test_misplaced_queues_are_told_why_and_stop_those_under_them() -> None:
    snapshot = snapshot_of(
        [
            queue("root"),
            queue("good"),
            queue("lost", parent="nowhere"),
            queue("under", parent="lost"),
            queue("x", parent="y"),
            queue("y", parent="x"),
            queue("z", parent="y"),
        ]
    )
    tree, rows = QueueTree.of(snapshot), snapshot.queues.row_of
    problems = {snapshot.queues.names[row]: text for row, text in tree.problems.items()}
    assert problems["lost"] == "there is no queue 'nowhere' as its parent"
    assert problems["under"] == "its parent is queue 'lost', which has no valid place"
    assert problems["x"] == problems["y"] == "its parents form a cycle: x under y under x"
    assert problems["z"] == "its parent is queue 'y', which has no valid place"
    assert set(problems) == {"lost", "under", "x", "y", "z"}
    assert [tree.rank(rows[name]) for name in ("good", "root", "z")] == [LEAF, BRANCH, MISPLACED]


def test_without_a_root_no_queue_has_a_place() -> None:
    snapshot = snapshot_of([queue("a"), queue("b", parent="a")])
    tree, rows = QueueTree.of(snapshot), snapshot.queues.row_of
    assert tree.root == NOWHERE
    assert tree.problems[rows["a"]] == "there is no queue 'root' as its parent"
    assert tree.problems[rows["b"]] == "its parent is queue 'a', which has no valid place"
    assert tree.ancestors == {}


def test_the_depth_that_two_queues_share() -> None:
    snapshot = snapshot_of(
        [
            queue("root"),
            queue("a"),
            queue("b"),
            queue("a1", parent="a"),
            queue("a2", parent="a"),
            queue("a11", parent="a1"),
            queue("b1", parent="b"),
        ]
    )
    tree, rows = QueueTree.of(snapshot), snapshot.queues.row_of
    for left, right, wanted in (
        ("a1", "a2", 1),
        ("a11", "a2", 1),
        ("a11", "a1", 1),
        ("a1", "b1", 0),
        ("a", "b", 0),
        ("a11", "a11", 2),
    ):
        assert tree.common_depth(rows[left], rows[right]) == wanted
    for steps, found in ((0, None), (1, "a1"), (2, "a"), (3, None), (4, None)):
        above = tree.ancestor(rows["a11"], steps)
        assert above == (NOWHERE if found is None else rows[found])
    assert sorted(tree.subtree[rows["a"]]) == sorted(rows[n] for n in ("a", "a1", "a2", "a11"))
    assert sorted(tree.children[rows["root"]]) == sorted(rows[n] for n in ("a", "b"))
    flat = QueueTree.flat(snapshot)
    assert (flat.children, flat.ancestors[rows["a1"]], flat.chain(rows["a1"])) == (
        {},
        (),
        [rows["a1"]],
    )


def test_what_is_held_is_that_of_all_queues_under_it() -> None:
    snapshot = snapshot_of(
        [
            NODE,
            queue("root"),
            queue("p"),
            queue("a", parent="p"),
            pod_group("g", queue="a", phase="Running"),
            pod("x", group="g", cpu=3, node="n"),
        ]
    )
    limits = StatedLimits.of(snapshot, snapshot.total(), hierarchy=True)
    rows = snapshot.queues.row_of
    for name in ("root", "p", "a"):
        held = limits.held(rows[name])
        assert held[CPU] == 3000
        held[CPU] = 0
        assert limits.held(rows[name])[CPU] == 3000
    limit = ClusterLimit(snapshot, snapshot.total())
    assert limit.reservable()[CPU].tolist() == [17000] * snapshot.queues.capacity
