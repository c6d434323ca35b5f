"""The texts of conditions, as Volcano words them."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

TAINT = {"key": "k", "effect": "NoSchedule"}


def decide(objects: Any, actions: str = "allocate", tiers: str = "gang predicates") -> Any:
    lines = [f'actions: "{actions}"', "tiers:", "- plugins:"]
    lines += [f"  - name: {name}" for name in tiers.split()]
    return Scheduler(parse_conf("\n".join(lines))).cycle([queue("default"), *objects], 0.0)


def gang(n: Any, min_member: Any = None, **more: Any) -> Any:
    group = pod_group("g", min_member=min_member or n, phase="Inqueue")
    return [group, *(pod(f"g-w-{i}", group="g", **more) for i in range(n))]


def message(decisions: Any) -> Any:
    (condition,) = decisions.pod_groups["default/g"].conditions
    return condition.message


def test_tasks_are_counted_by_status_and_pending_ones_by_reason() -> None:
    """Two had a node before the gang was given up, the third found none."""
    assert message(decide([node("n1", cpu=2), *gang(3, cpu=1)])) == (
        "1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; "
        "Pending: 1 Unschedulable, 2 Schedulable. "
        "Origin reason is g-w-2: 0/1 nodes are unavailable: 1 Insufficient cpu."
    )


def test_counts_are_sorted_as_text() -> None:
    objects = [node("n1", cpu=1), *gang(12, min_member=2, cpu=4)]
    expected = "pod group is not ready, 12 Pending, 2 minAvailable; Pending: 12 Unschedulable"
    assert decide(objects).unschedulable["default/g"].startswith(expected)


def test_nodes_are_counted_by_the_first_thing_they_lack() -> None:
    nodes = [
        node("n1", cpu=1, memory="1Gi"),
        node("n2", cpu=9, memory="1Gi"),
        node("n3", cpu=9, memory="9Gi", taints=[TAINT]),
        node("n4", cpu=1, memory="9Gi", taints=[TAINT]),
    ]
    assert message(decide([*nodes, *gang(1, cpu=2, memory="2Gi")])).endswith(
        "0/4 nodes are unavailable: 1 Insufficient memory, "
        "1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    )


def test_a_pod_that_no_action_looked_at_has_no_origin() -> None:
    assert message(decide([node("n1"), *gang(1, cpu=1)], actions="backfill")) == (
        "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; "
        "Pending: 1 Unschedulable"
    )


def test_a_group_that_was_bound_just_now_is_ready() -> None:
    found = decide([node("n1"), *gang(2, cpu=1)]).unschedulable
    assert found == {"default/g": "pod group is ready, 2 Binding, 2 minAvailable"}


def test_the_reason_stays_when_the_pod_is_promised_room_afterwards() -> None:
    old = [pod_group("old", min_member=0, phase="Running")]
    old.append(pod("old-0", group="old", cpu=1, node="n1"))
    decisions = decide([node("n1", cpu=1), *old, *gang(1, cpu=1)], "allocate, preempt")
    assert decisions.unschedulable["default/g"] == (
        "pod group is not ready, 1 Pipelined, 1 minAvailable. "
        "Origin reason is g-w-0: 0/1 nodes are unavailable: 1 Insufficient cpu."
    )


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_only_groups_that_wait_have_a_text(phase: str) -> None:
    running = [pod_group("done", phase="Running"), pod("done-0", group="done", cpu=1, node="n1")]
    waiting = [pod_group("g", phase=phase), pod("g-0", group="g", cpu=9)]
    found = decide([node("n1"), *running, *waiting], actions="backfill").unschedulable
    assert set(found) == {"default/g"}


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (["g-w-2", "g-w-0", "g-w-1"], "g-w-0"),
        (["g-w-10", "g-w-9"], "g-w-9"),
        (["g-b-1", "g-w-0", "g-a-0"], "g-a-0"),
    ],
)
def test_the_origin_is_the_pod_of_the_least_number_whatever_the_order(
    names: list[str], first: str
) -> None:
    pods = [pod(name, group="g", cpu=4) for name in names]
    group = pod_group("g", min_member=1, phase="Inqueue")
    text = decide([node("n1", cpu=1), group, *pods]).unschedulable["default/g"]
    assert f"Origin reason is {first}: 0/1 nodes" in text
