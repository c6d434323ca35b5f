"""gangpreempt: a whole job gets room at the cost of less important jobs of its queue."""

from typing import Any

import pytest

from pumice.testing import hyper_node, node, pod, pod_group, priority_class, queue

BASE = [queue("default"), priority_class("low", value=10), priority_class("high", value=100)]
TIERS = ("priority gang conformance", "predicates network-topology-aware")


def old(
    name: str = "old", n: Any = 1, *, on: Any = "n1", cpu: Any = 2, min_member: Any = 1, **more: Any
) -> Any:
    """A running gang of low priority."""
    group = {"phase": "Running", "priority_class": "low", **more}
    on = [on] * n if isinstance(on, str) else on
    pods = [pod(f"{name}-{i}", group=name, cpu=cpu, node=where) for i, where in enumerate(on)]
    return [pod_group(name, min_member=min_member, **group), *pods]


def new(name: str = "new", n: Any = 1, *, cpu: Any = 2, min_member: Any = None, **more: Any) -> Any:
    """A starving gang of high priority."""
    group = {"phase": "Inqueue", "priority_class": "high", **more}
    pods = [pod(f"{name}-{i}", group=name, cpu=cpu) for i in range(n)]
    return [pod_group(name, min_member=min_member or n, **group), *pods]


def nodes(*cpus: Any) -> Any:
    return [node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cpus, start=1)]


def test_whole_gangs_stay_if_reported_so(decide: Any) -> None:
    world = [*BASE, *nodes(4), *old(n=2, min_member=2), *new()]
    arguments = {"gangpreempt": {"allowWholeBundle": "false"}}
    assert decide(world, *TIERS, actions="gangpreempt", arguments=arguments).evictions == []


# Network domains

TREE = [
    hyper_node("s0", nodes=["n1", "n2"]),
    hyper_node("s1", nodes=["n3", "n4"]),
    hyper_node("g0", tier=2, children=["s0", "s1"]),
]


@pytest.mark.parametrize("limit", [1, 2])
def test_wider_domains_are_looked_at_first(decide: Any, limit: int) -> None:
    """A domain over all nodes offers the spare task of n4; one over a rack may not."""
    world = [
        *BASE,
        *nodes(2, 2, 2, 4),
        *TREE,
        *old("gang", n=3, on=["n1", "n2", "n3"], min_member=3),
        *old("loose", n=2, on=["n4", "n4"], min_member=1),
        *new(n=1, network_topology={"mode": "hard", "highestTierAllowed": limit}),
    ]
    arguments = {"gangpreempt": {"maxDomains": 1}}
    decisions = decide(world, *TIERS, actions="gangpreempt", arguments=arguments)
    spared = decisions.evictions == ["default/loose-0"]
    assert spared is (limit == 2)


def test_each_subgroup_gets_its_room_in_one_domain(decide: Any) -> None:
    """Nodes of a rack are not neighbours by name, so that the first free ones would not do."""
    near = {"mode": "hard", "highestTierAllowed": 1}
    policy = {"name": "p", "matchLabelKeys": ["part"], "subGroupSize": 2, "networkTopology": near}
    racks = [{"n1", "n3"}, {"n2", "n4"}]
    wide = {"mode": "hard", "highestTierAllowed": 2}
    group, *pods = new(n=4, network_topology=wide, spec={"subGroupPolicy": [policy]})
    for each, part in zip(pods, "0011", strict=True):
        each["metadata"]["labels"] = {"part": part}
    world = [
        *BASE,
        *nodes(2, 2, 2, 2),
        *(hyper_node(f"s{i}", nodes=sorted(rack)) for i, rack in enumerate(racks)),
        hyper_node("g0", tier=2, children=["s0", "s1"]),
        *old(n=4, on=["n1", "n2", "n3", "n4"], min_member=4),
        group,
        *pods,
    ]
    given = decide(world, *TIERS, actions="gangpreempt").pipelined
    parts = [{given[f"default/new-{i}"] for i in some} for some in ((0, 1), (2, 3))]
    assert sorted(parts, key=min) == racks
