"""reclaim: starving jobs take back what other queues have beyond their share."""

from typing import Any

import pytest

from pumice.testing import node, pod, pod_group, queue

TIER = "priority gang conformance"


def greedy(
    n: Any = 1,
    *,
    on: str = "n1",
    cpu: Any = 1,
    name: str = "old",
    where: str = "greedy",
    **more: Any,
) -> Any:
    group = pod_group(name, min_member=0, phase="Running", queue=where)
    return [group, *(pod(f"{name}-{i}", group=name, cpu=cpu, node=on, **more) for i in range(n))]


def starved(
    n: Any = 1, *, cpu: Any = 1, name: str = "new", where: str = "starved", **more: Any
) -> Any:
    group = pod_group(name, min_member=n, phase="Inqueue", queue=where)
    return [group, *(pod(f"{name}-{i}", group=name, cpu=cpu, **more) for i in range(n))]


QUEUES = [queue("greedy"), queue("starved")]


@pytest.mark.parametrize(
    "safe",
    [
        {"phase": "Pending"},
        {"preemptable": False},
        {"where": "starved"},
        {"where": "closed"},
        {"priority_class": "system-cluster-critical"},
    ],
)
def test_who_is_out_of_reach_stays(decide: Any, safe: Any) -> None:
    """Pods that do not run yet, protected ones, those of the own queue or of a queue that keeps."""
    keeps = queue("closed", reclaimable=False)
    world = [*QUEUES, keeps, node("n1", cpu=1), *greedy(**safe), *starved()]
    assert decide(world, TIER, actions="reclaim").evictions == []


def with_roles(first: str | None, second: str | None, **rule: Any) -> Any:
    """A gang of two, one of which n2 always refuses; n3 has room for one only by eviction."""
    return [
        *QUEUES,
        node("n1", cpu=2, labels={"disk": "ssd", "zone": "a"}),
        node("n2", cpu=4),
        node("n3", cpu="2500m", labels={"disk": "ssd", "zone": "a"}),
        *greedy(2, on="n3"),
        *greedy(on="n2", name="one"),
        pod_group("new", min_member=2, phase="Inqueue", queue="starved"),
        pod("new-0", group="new", role=first, cpu="1500m", spec=rule),
        pod("new-1", group="new", role=second, cpu="1500m"),
    ]


SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
    ]
}


@pytest.mark.parametrize("rule", [{"nodeSelector": {"disk": "ssd"}}, SPREAD])
def test_a_node_that_refused_the_role_for_good_is_left_out_for_its_other_tasks(
    decide: Any, rule: Any
) -> None:
    decisions = decide(with_roles("w", "w", **rule), "gang predicates", actions="allocate, reclaim")
    assert decisions.evictions == []
    assert decisions.pipelined == {}


@pytest.mark.parametrize("roles", [("w", "v"), (None, None)])
def test_what_another_role_was_refused_for_counts_for_nobody_else(decide: Any, roles: Any) -> None:
    world = with_roles(*roles, nodeSelector={"disk": "ssd"})
    decisions = decide(world, "gang predicates", actions="allocate, reclaim")
    assert decisions.binds == {"default/new-0": "n1", "default/new-1": "n2"}


def test_a_refusal_that_evictions_cure_bars_no_other_task_of_the_role(decide: Any) -> None:
    """Both nodes are too full for the first task; the second may still evict there."""
    world = [
        *QUEUES,
        node("n0", cpu=2),
        *greedy(on="n0", cpu=2, name="big"),
        node("n2", cpu=2),
        *greedy(on="n2", cpu=1),
        pod_group("new", min_member=2, phase="Inqueue", queue="starved"),
        pod("new-0", group="new", role="w", cpu=2),
        pod("new-1", group="new", role="w", cpu="1500m"),
    ]
    decisions = decide(world, TIER, actions="allocate, reclaim")
    assert set(decisions.evictions) == {"default/big-0", "default/old-0"}


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_lost_device_holds_up_no_gang_that_asks_for_none(decide: Any, n: int) -> None:
    """The node has less than none left: room for equal tasks is counted as for a single one."""
    device = {"nvidia.com/gpu": 1}
    world = [*QUEUES, node("n1", cpu=8), *greedy(resources=device), *starved(n)]
    decisions = decide(world, TIER, actions="reclaim")
    assert decisions.evictions == []
    assert decisions.pipelined == {f"default/new-{i}": "n1" for i in range(n)}
