"""backfill: pods without requests, on any node that passes the filters."""

from typing import Any

import pytest

from pumice.testing import node, pod, pod_group, queue

QUEUE = queue("default")


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
