"""backfill: pods without requests, on any node that passes the filters."""

from typing import Any

import pytest

from pumice.testing import node, pod, pod_group, queue

QUEUE = queue("default")


def test_only_pods_that_ask_for_nothing_are_placed(decide: Any) -> None:
    world = [node("n1"), QUEUE, pod_group("g", min_member=0, phase="Inqueue")]
    world += [pod("free", group="g"), pod("paid", group="g", cpu=1)]
    assert decide(world, actions="backfill").binds == {"default/free": "n1"}


def test_a_full_node_takes_them_as_long_as_it_has_a_pod_slot(decide: Any) -> None:
    world = [node("n1", cpu=1, pods=2), QUEUE, pod_group("g", phase="Inqueue")]
    world += [pod("full", cpu=1, node="n1"), pod("a", group="g"), pod("b", group="g")]
    decisions = decide(world, actions="backfill")
    assert decisions.binds == {"default/a": "n1"}
    assert decisions.task_statuses["default/g"] == {"Binding": 1, "Pending": 1}


def test_a_group_that_was_not_admitted_waits(decide: Any) -> None:
    world = [node("n1"), QUEUE, pod_group("g", phase="Pending"), pod("a", group="g")]
    assert decide(world, actions="backfill").binds == {}


def test_an_invalid_gang_waits(decide: Any) -> None:
    world = [node("n1"), QUEUE, pod_group("g", min_member=2, phase="Inqueue"), pod("a", group="g")]
    assert decide(world, actions="backfill").binds == {}


def test_a_gated_pod_waits(decide: Any) -> None:
    world = [node("n1"), QUEUE, pod_group("g", min_member=0, phase="Inqueue")]
    world.append(pod("a", group="g", spec={"schedulingGates": [{"name": "later"}]}))
    assert decide(world, actions="backfill").binds == {}


def test_pods_of_a_gang_that_is_not_ready_get_a_place_but_no_bind(decide: Any) -> None:
    world = [node("n1", cpu=1), QUEUE, pod_group("g", min_member=3, phase="Inqueue")]
    world += [pod("a", group="g"), *(pod(f"big{i}", group="g", cpu=4) for i in range(2))]
    decisions = decide(world, actions="backfill")
    assert decisions.binds == {}
    assert decisions.task_statuses["default/g"] == {"Allocated": 1, "Pending": 2}


def test_a_pod_that_no_filter_lets_in_stays_pending(decide: Any) -> None:
    world = [node("n1"), QUEUE, pod_group("g", phase="Inqueue")]
    world.append(pod("a", group="g", spec={"nodeSelector": {"disk": "ssd"}}))
    decisions = decide(world, "gang predicates", actions="backfill")
    assert decisions.binds == {}
    assert decisions.task_statuses["default/g"] == {"Pending": 1}


def test_the_last_slot_goes_to_the_higher_priority(decide: Any) -> None:
    world = [node("n1", pods=1), QUEUE]
    world += [pod_group("g", min_member=0, phase="Inqueue")]
    world += [pod("low", group="g", priority=1), pod("high", group="g", priority=9)]
    assert decide(world, "priority gang", actions="backfill").binds == {"default/high": "n1"}


def test_a_reservation_is_taken_back_and_the_pod_placed_for_good(decide: Any) -> None:
    world = [node("n1"), QUEUE, pod_group("g", phase="Inqueue"), pod("a", group="g")]
    only_promised = decide(world, "priority", actions="preempt")
    assert only_promised.pipelined == {"default/a": "n1"}
    placed = decide(world, "priority", actions="preempt, backfill")
    assert placed.binds == {"default/a": "n1"}
    assert placed.pipelined == {}


def test_the_slot_of_an_evicted_pod_is_not_free_yet(decide: Any) -> None:
    world = [node("n1", cpu=1, pods=1), QUEUE]
    world += [pod_group("old", min_member=0, phase="Running")]
    world += [pod("old-0", group="old", cpu=1, node="n1", priority=1)]
    world += [pod_group("free", phase="Inqueue"), pod("free-0", group="free")]
    world += [pod_group("new", phase="Inqueue"), pod("new-0", group="new", cpu=1)]
    decisions = decide(world, "gang predicates", actions="preempt, backfill")
    assert decisions.evictions == ["default/old-0"]
    assert decisions.binds == {}
    assert decisions.task_statuses["default/free"] == {"Pending": 1}


def test_a_closed_queue_does_not_hold_them_back(decide: Any) -> None:
    world = [node("n1"), queue("default", state="Closed"), pod_group("g", phase="Inqueue")]
    world.append(pod("a", group="g"))
    decisions = decide(world, "gang", "proportion", actions="backfill")
    assert decisions.binds == {"default/a": "n1"}


def promised(slots: int, n: int) -> Any:
    """A node whose cpu a leaving pod releases for a gang of n; two pods request nothing."""
    leaving = pod("old-1", group="old", cpu=2, node="n1")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-15T09:59:00Z"
    return [
        node("n1", cpu=3, pods=slots),
        QUEUE,
        pod_group("old", min_member=0, phase="Running"),
        pod("old-0", group="old", cpu=1, node="n1"),
        leaving,
        pod_group("gang", min_member=n, phase="Inqueue"),
        *(pod(f"gang-{i}", group="gang", cpu="500m") for i in range(n)),
        pod_group("g", min_member=0, phase="Inqueue"),
        *(pod(f"free-{i}", group="g") for i in range(2)),
    ]


@pytest.mark.parametrize(("slots", "n", "bound"), [(3, 2, 1), (4, 3, 2), (4, 2, 2), (2, 1, 0)])
def test_an_idle_slot_counts_although_it_is_promised(
    decide: Any, slots: int, n: int, bound: int
) -> None:
    decisions = decide(promised(slots, n), actions="allocate, backfill")
    assert len(decisions.pipelined) == n
    assert len(decisions.binds) == bound


def test_the_filter_of_predicates_counts_promised_slots(decide: Any) -> None:
    world = promised(3, 1)
    decisions = decide(world, "gang predicates", actions="allocate, backfill")
    assert len(decisions.pipelined) == 1
    assert decisions.binds == {}


def test_the_best_scored_of_the_nodes_with_a_slot_is_taken(decide: Any) -> None:
    world = [node("n1", cpu=4, pods=1), node("n2", cpu=2), node("n3", cpu=1), QUEUE]
    world += [pod("full", cpu=1, node="n1"), pod("some", cpu=1, node="n3")]
    world += [pod_group("g", phase="Inqueue"), pod("a", group="g")]
    decisions = decide(world, "gang binpack nodeorder", actions="backfill")
    assert decisions.binds.keys() == {"default/a"}
    assert decisions.binds["default/a"] != "n1"
