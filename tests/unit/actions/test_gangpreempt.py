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


def test_a_gang_is_evicted_as_a_whole_for_a_gang(decide: Any) -> None:
    world = [*BASE, *nodes(4), *old(n=2, min_member=2), *new()]
    decisions = decide(world, *TIERS, actions="gangpreempt")
    assert decisions.evictions == ["default/old-0", "default/old-1"]
    assert decisions.pipelined == decisions.nominated == {"default/new-0": "n1"}


def test_tasks_that_a_gang_can_spare_go_before_whole_gangs(decide: Any) -> None:
    world = [*BASE, *nodes(4, 4), *old(n=2), *old("gang", n=2, on="n2", min_member=2), *new()]
    decisions = decide(world, *TIERS, actions="gangpreempt")
    assert decisions.evictions == ["default/old-0"]
    assert decisions.pipelined == {"default/new-0": "n1"}


def test_whole_gangs_stay_if_reported_so(decide: Any) -> None:
    world = [*BASE, *nodes(4), *old(n=2, min_member=2), *new()]
    arguments = {"gangpreempt": {"allowWholeBundle": "false"}}
    assert decide(world, *TIERS, actions="gangpreempt", arguments=arguments).evictions == []


def test_a_gang_that_cannot_be_placed_whole_evicts_nobody(decide: Any) -> None:
    world = [*BASE, *nodes(4), *old(n=2, min_member=2), *new(n=3)]
    decisions = decide(world, *TIERS, actions="gangpreempt")
    assert decisions.evictions == []
    assert decisions.pipelined == decisions.nominated == {}


def test_room_in_sum_is_not_enough_victims_are_added_until_tasks_fit_on_nodes(decide: Any) -> None:
    """After the first bundle 4 cpus are free, but on two nodes."""
    world = [
        *BASE,
        *nodes(4, 4),
        *old("a", n=2, on=["n1", "n2"], min_member=1, created="2026-01-01T00:00:00Z"),
        *old("b", n=2, on=["n1", "n2"], min_member=1, created="2026-01-02T00:00:00Z"),
        *new(cpu=4),
    ]
    decisions = decide(world, *TIERS, actions="gangpreempt")
    assert decisions.evictions == ["default/b-0", "default/a-0"]
    assert decisions.pipelined == {"default/new-0": "n1"}


def test_jobs_of_equal_priority_stay(decide: Any) -> None:
    world = [*BASE, *nodes(2), *old(priority_class="high"), *new()]
    assert decide(world, *TIERS, actions="gangpreempt").evictions == []


def test_critical_pods_save_their_gang(decide: Any) -> None:
    victims = old(n=2, min_member=2)
    victims[1]["spec"]["priorityClassName"] = "system-node-critical"
    assert (
        decide([*BASE, *nodes(4), *victims, *new()], *TIERS, actions="gangpreempt").evictions == []
    )


def test_a_job_that_starves_no_more_is_left_alone(decide: Any) -> None:
    world = [*BASE, *nodes(4), *old(n=1), pod("new-9", group="new", cpu=2, node="n1"), *new(n=1)]
    world[-2]["spec"]["minMember"] = 1
    gang_only = ("gang", "predicates")
    assert decide(world, *gang_only, actions="gangpreempt").evictions == []


def test_allocate_leaves_promised_tasks_alone(decide: Any) -> None:
    """The room is being freed; binding elsewhere would make the evictions pointless."""
    world = [*BASE, *nodes(4), *old(n=2, min_member=2), *new()]
    decisions = decide(world, *TIERS, actions="gangpreempt, allocate")
    assert decisions.evictions == ["default/old-0", "default/old-1"]
    assert decisions.pipelined == {"default/new-0": "n1"}
    assert decisions.binds == {}


# Network domains

TREE = [
    hyper_node("s0", nodes=["n1", "n2"]),
    hyper_node("s1", nodes=["n3", "n4"]),
    hyper_node("g0", tier=2, children=["s0", "s1"]),
]


def test_victims_are_taken_in_one_domain_for_a_job_that_must_lie_close(decide: Any) -> None:
    world = [
        *BASE,
        *nodes(2, 2, 2, 2),
        *TREE,
        *old("a", n=4, on=["n1", "n2", "n3", "n4"], min_member=4),
        *new(n=2, network_topology={"mode": "hard", "highestTierAllowed": 1}),
    ]
    decisions = decide(world, *TIERS, actions="gangpreempt")
    assert len(decisions.evictions) == 2
    assert set(decisions.pipelined.values()) in ({"n1", "n2"}, {"n3", "n4"})


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


def test_a_job_no_domain_is_large_enough_for_evicts_nobody(decide: Any) -> None:
    world = [
        *BASE,
        *nodes(2, 2, 2, 2),
        *TREE,
        *old(n=4, on=["n1", "n2", "n3", "n4"]),
        *new(n=3, network_topology={"mode": "hard", "highestTierAllowed": 1}),
    ]
    assert decide(world, *TIERS, actions="gangpreempt").evictions == []


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


def test_a_running_job_asks_for_one_subgroup_at_a_time(decide: Any) -> None:
    policy = {"name": "p", "matchLabelKeys": ["part"], "subGroupSize": 1}
    pods = [
        pod("new-r", group="new", cpu=2, node="n1", labels={"part": "0"}),
        pod("new-1", group="new", cpu=2, labels={"part": "1"}),
        pod("new-2", group="new", cpu=2, labels={"part": "2"}),
    ]
    group = pod_group(
        "new",
        min_member=1,
        phase="Running",
        priority_class="high",
        spec={"subGroupPolicy": [policy]},
    )
    world = [*BASE, *nodes(2, 4), *old(n=2, on="n2", min_member=0), group, *pods]
    decisions = decide(world, "priority", "predicates", actions="gangpreempt")
    assert decisions.pipelined == {"default/new-1": "n2"}
