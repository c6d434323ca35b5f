"""gangreclaim: a whole job gets room at the cost of other queues."""

from typing import Any

import pytest

from pumice.testing import node, pod, pod_group, queue

TIERS = ("priority gang conformance capacity", "predicates")


def queues(mine: Any = 4, theirs: Any = 2, **more: Any) -> Any:
    return [
        queue("mine", deserved={"cpu": mine, "memory": "8Gi"}),
        queue("theirs", deserved={"cpu": theirs, "memory": "1Gi"}, **more),
    ]


def old(n: Any = 2, *, min_member: Any = 1, **more: Any) -> Any:
    group = pod_group("old", min_member=min_member, phase="Running", queue="theirs", **more)
    return [group, *(pod(f"old-{i}", group="old", cpu=2, node="n1") for i in range(n))]


def new(n: Any = 1) -> Any:
    group = pod_group("new", min_member=n, phase="Inqueue", queue="mine")
    return [group, *(pod(f"new-{i}", group="new", cpu=2) for i in range(n))]


@pytest.mark.parametrize(
    "world",
    [
        [*queues(theirs=4), *old(), *new()],
        [*queues(reclaimable=False), *old(), *new()],
        [*queues(mine=1), *old(), *new()],
        [*queues(), *old(annotations={"volcano.sh/preemptable": "false"}), *new()],
    ],
    ids=["within its due", "not reclaimable", "asker beyond its due", "group keeps its pods"],
)
def test_who_is_out_of_reach_stays(decide: Any, world: Any) -> None:
    assert decide([node("n1", cpu=4), *world], *TIERS, actions="gangreclaim").evictions == []
