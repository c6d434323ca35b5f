"""The search for the best domain: narrow tiers first, parts together, nothing left behind."""

import time
from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.gang import Gang
from pumice.plugins.network_topology_aware import NetworkTopologyAware
from pumice.plugins.priority import Priority
from pumice.scheduler import Scheduler
from pumice.testing import hyper_node, node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of

HARD = {"mode": "hard", "highestTierAllowed": 2}
TREE = [
    hyper_node("s0", nodes=["n0", "n1"]),
    hyper_node("s1", nodes=["n2", "n3"]),
    hyper_node("s2", nodes=["n4", "n5"]),
    hyper_node("g0", tier=2, children=["s0", "s1"]),
]
CONF = """
actions: "allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: network-topology-aware
"""


def decide(*objects: Any, cpus: Any = (4, 4, 4, 4, 4, 4), conf: Any = CONF) -> Any:
    nodes = [node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cpus)]
    world = [queue("default"), *nodes, *TREE, *objects]
    return Scheduler(parse_conf(conf)).cycle(world, 0.0)


def job(
    name: str = "j",
    n: Any = 2,
    *,
    cpu: Any = 2,
    parts: Any = None,
    policies: Any = (),
    first: Any = 0,
    **group: Any,
) -> Any:
    """A gang; ``parts`` is the label value of each pod."""
    group = {"min_member": n, "network_topology": HARD, "phase": "Inqueue", **group}
    spec = {"subGroupPolicy": list(policies)} if policies else {}
    labels = [{} if parts is None else {"part": str(parts[i])} for i in range(n)]
    pods = [
        pod(f"{name}-w-{first + i}", group=name, cpu=cpu, labels=label)
        for i, label in enumerate(labels)
    ]
    return [pod_group(name, spec=spec, **group), *pods]


def policy(size: Any, *, tier: Any = None, least: Any = None) -> Any:
    built = {"name": "p", "matchLabelKeys": ["part"], "subGroupSize": size}
    if least is not None:
        built["minSubGroups"] = least
    if tier is not None:
        built["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
    return built


def domain_of(decisions: Any, name: str = "j") -> Any:
    return decisions.pod_groups[f"default/{name}"].hyper_node


def nodes_of(decisions: Any) -> Any:
    return sorted(set(decisions.binds.values()))


# One job, one domain


def test_a_job_whose_tasks_lie_further_apart_than_allowed_gets_no_more() -> None:
    apart = [
        pod(f"j-w-{9 + i}", group="j", cpu=1, node=name) for i, name in enumerate(("n0", "n5"))
    ]
    decisions = decide(*apart, *job(n=1, min_member=3))
    assert decisions.binds == {}
    assert domain_of(decisions) == "<cluster-top-hypernode>"


def test_a_job_may_wait_for_room_that_is_being_freed() -> None:
    leaving = pod("old", cpu=4, node="n0")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-15T10:00:00Z"
    full = [pod(f"o{i}", cpu=4, node=f"n{i}") for i in range(2, 6)]
    decisions = decide(leaving, *full, *job(n=3))
    assert decisions.binds == {}
    assert sorted(decisions.pipelined.values()) == ["n0"]
    assert domain_of(decisions) is None


# Sub-groups


def test_each_subgroup_keeps_to_its_own_limit_inside_the_jobs() -> None:
    decisions = decide(*job(n=8, parts=[0, 0, 0, 0, 1, 1, 1, 1], policies=[policy(4, tier=1)]))
    first = {decisions.binds[f"default/j-w-{i}"] for i in range(4)}
    second = {decisions.binds[f"default/j-w-{i}"] for i in range(4, 8)}
    assert sorted([sorted(first), sorted(second)]) == [["n0", "n1"], ["n2", "n3"]]
    assert domain_of(decisions) == "g0"


def test_a_job_starts_with_as_many_subgroups_as_it_needs() -> None:
    decisions = decide(
        *job(
            n=6,
            min_member=4,
            cpu=4,
            parts=[0, 0, 1, 1, 2, 2],
            policies=[policy(2, tier=1, least=2)],
            network_topology=HARD,
        )
    )
    assert len(decisions.binds) == 4


def test_a_job_short_of_subgroups_is_not_valid() -> None:
    short = job(n=2, parts=[0, 0], policies=[policy(2, least=2)])
    assert decide(*short).binds == {}
    ssn = session_of([queue("default"), *short])
    why = ssn.policy.job_valid(ssn.snapshot.jobs.row_of["default/j"])
    assert why == "not enough sub-groups for gang-scheduling"


def test_a_policy_that_states_no_number_needs_no_subgroup() -> None:
    decisions = decide(*job(n=2, policies=[policy(2)]))
    assert len(decisions.binds) == 2


def test_a_subgroup_that_does_not_fit_holds_up_a_job_that_needs_it() -> None:
    decisions = decide(
        *job(n=4, min_member=2, cpu=4, parts=[0, 0, 0, 1], policies=[policy(3, tier=1, least=1)])
    )
    assert decisions.binds == {}


def test_subgroups_go_by_priority_then_by_number() -> None:
    parts = [10, 2]
    pods = job(n=2, min_member=1, cpu=4, parts=parts, policies=[policy(1)])
    assert next(iter(decide(*pods).binds)) == "default/j-w-1"
    pods[1]["spec"]["priority"] = 9
    assert next(iter(decide(*pods).binds)) == "default/j-w-0"


# What the search leaves behind


def session_of(objects: Any) -> Any:
    tier = [Enabled(plugin, {}) for plugin in (Priority(), Gang(), NetworkTopologyAware())]
    return Session(snapshot_of(objects), [tier])


@pytest.mark.parametrize("zones", ["xxyz", "yzxx"])
def test_domains_of_like_nodes_are_tried_apart_for_pods_that_look_beyond_their_node(
    zones: str,
) -> None:
    """Two sub-groups that keep apart by zone fit only the domain with nodes in two zones."""
    term = {"labelSelector": {"matchExpressions": [{"key": "part", "operator": "Exists"}]}}
    required = [{**term, "topologyKey": "zone"}]
    group, *pods = job(
        parts=[0, 1],
        policies=[policy(1, tier=1)],
        network_topology={"mode": "hard", "highestTierAllowed": 1},
    )
    for each in pods:
        apart = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        each["spec"]["affinity"] = {"podAntiAffinity": apart}
    nodes = [node(f"n{i}", cpu=4, labels={"zone": zone}) for i, zone in enumerate(zones)]
    world = [queue("default"), *nodes, *TREE[:2], group, *pods]
    decisions = Scheduler(parse_conf(CONF)).cycle(world, 0.0)
    assert "".join(zones[int(name[1])] for name in nodes_of(decisions)) == "yz"


# Trials that fail, and sub-groups that must come first


def test_a_pattern_written_to_take_forever_does_not_hold_up_a_cycle() -> None:
    slow = {"type": "Node", "selector": {"regexMatch": {"pattern": "^(a+)+$"}}}
    world = [queue("default"), hyper_node("slow", members=[slow]), *job(n=1, network_topology=None)]
    world += [node(f"{'a' * 60}{i}") for i in range(50)]
    started = time.thread_time()
    assert Scheduler(parse_conf(CONF)).cycle(world, 0.0).binds
    assert time.thread_time() - started < 10.0
