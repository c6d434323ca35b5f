"""backfill: pods that ask for nothing, on any node that a filter lets them on."""

from typing import Any

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
