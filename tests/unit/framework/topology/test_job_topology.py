"""Places of jobs in the network: sub-groups, limits, allocated domains."""

from typing import Any

import pytest

from pumice.framework.session import Session
from pumice.framework.topology.domains import _number
from pumice.testing import hyper_node, node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of

NODES = [node(f"n{i}", cpu=4) for i in range(6)]
TREE = [
    hyper_node("s0", nodes=["n0", "n1"], tier_name="rack"),
    hyper_node("s1", nodes=["n2", "n3"], tier_name="rack"),
    hyper_node("g0", tier=2, children=["s0", "s1"], tier_name="pod"),
]
TOP_TIER = 3


def policy(name: str = "p", keys: Any = ("part",), **more: Any) -> Any:
    return {"name": name, "matchLabelKeys": list(keys), **more}


def topology_of(*pods: Any, tree: Any = TREE, **group: Any) -> Any:
    spec = {"subGroupPolicy": group.pop("policies")} if "policies" in group else {}
    group = pod_group("g", spec=spec, **{"min_member": 2, **group})
    ssn = Session(snapshot_of([*NODES, *tree, queue("default"), group, *pods]), [])
    return ssn.topology, ssn.snapshot.jobs.row_of["default/g"]


def member(name: Any, part: Any = None, **more: Any) -> Any:
    labels = {} if part is None else {"part": part}
    return pod(name, group="g", cpu=1, labels={**labels, **more.pop("labels", {})}, **more)


def parts(topology: Any, job: Any) -> Any:
    return {part.id: (part.size, part.n_tasks) for part in topology.subgroups(job)}


# Sub-groups


def test_a_job_without_policy_is_one_subgroup_of_its_least_number() -> None:
    topology, job = topology_of(member("a"), member("b"), member("c"))
    assert parts(topology, job) == {"default/g": (2, 3)}
    assert not topology.has_policy(job)


def test_pods_divide_by_the_values_of_their_labels() -> None:
    topology, job = topology_of(
        member("a", "0"), member("b", "0"), member("c", "1"), policies=[policy(subGroupSize=2)]
    )
    assert parts(topology, job) == {"default/g/p-0": (2, 2), "default/g/p-1": (2, 1)}


def test_a_policy_without_size_makes_subgroups_of_one() -> None:
    topology, job = topology_of(member("a", "0"), policies=[policy()])
    assert parts(topology, job) == {"default/g/p-0": (1, 1)}


def test_the_first_policy_that_fits_takes_a_pod_and_the_rest_stay_together() -> None:
    first = policy("first", labelSelector={"matchLabels": {"role": "x"}})
    topology, job = topology_of(
        member("a", "0", labels={"role": "x"}),
        member("b", "0"),
        member("c"),
        member("d", ""),
        policies=[first, policy("second"), policy("empty", keys=())],
    )
    assert parts(topology, job) == {
        "default/g": (1, 2),
        "default/g/first-0": (1, 1),
        "default/g/second-0": (1, 1),
    }


def test_a_subgroup_is_as_important_as_its_most_important_task() -> None:
    topology, job = topology_of(member("a", priority=3), member("b", priority=7))
    assert topology.subgroups(job)[0].priority == 7


def test_subgroups_know_the_number_in_their_label() -> None:
    topology, job = topology_of(member("a", "12"), member("b", "x1"), policies=[policy()])
    assert [part.match_index for part in topology.subgroups(job)] == [12, 0]


def test_readiness_counts_placed_tasks_and_pending_ones_that_ask_for_nothing() -> None:
    topology, job = topology_of(
        member("a", "0", node="n0"),
        pod("b", group="g", labels={"part": "0"}),
        member("c", "1"),
        policies=[policy(subGroupSize=2, minSubGroups=2)],
    )
    ready, waiting = topology.subgroups(job)
    assert ready.is_ready
    assert not waiting.is_pipelined
    assert not topology.has_enough_subgroups(job, lambda part: part.is_ready)
    assert topology.has_enough_subgroups(job, lambda part: part.n_tasks > 0)


# Limits


@pytest.mark.parametrize(
    ("asked", "limit"),
    [
        ({"mode": "hard", "highestTierAllowed": 1}, 1),
        ({"mode": "hard", "highestTierName": "pod"}, 2),
        ({"mode": "hard", "highestTierName": "unknown"}, None),
        ({"mode": "hard"}, None),
        ({"mode": "soft"}, TOP_TIER),
        ({"mode": "soft", "highestTierAllowed": 1}, TOP_TIER),
    ],
)
def test_a_topology_is_a_limit_on_the_tier_and_a_soft_one_ends_with_the_top(
    asked: Any, limit: Any
) -> None:
    topology, job = topology_of(member("a"), network_topology=asked)
    assert topology.limit(job) == limit
    assert topology.has_topology(job)
    assert topology.needs_search(job) is (limit is not None)


def test_a_job_that_asks_for_nothing_is_not_searched_for() -> None:
    topology, job = topology_of(member("a"))
    assert not topology.has_topology(job)
    assert not topology.needs_search(job)


def test_subgroups_without_topology_are_placed_one_by_one_wherever_they_fit() -> None:
    topology, job = topology_of(member("a", "0"), member("b", "1"), policies=[policy()])
    assert topology.needs_search(job)
    assert not topology.has_topology(job)
    assert not topology.is_limited(job)


def test_a_soft_subgroup_keeps_within_the_limit_of_its_job() -> None:
    soft = policy(networkTopology={"mode": "soft"})
    topology, job = topology_of(
        member("a", "0"),
        policies=[soft],
        network_topology={"mode": "hard", "highestTierAllowed": 2},
    )
    assert [part.limit for part in topology.subgroups(job)] == [2]


# Where jobs lie


def test_a_job_lies_in_the_smallest_domain_around_its_placed_tasks() -> None:
    topology, _ = topology_of(
        member("a", node="n0"), member("b", node="n2"), network_topology={"mode": "soft"}
    )
    assert topology.allocated(topology.subgroups(0)[0]).name == "g0"


def test_a_job_lies_over_its_subgroups() -> None:
    strict = policy(networkTopology={"mode": "hard", "highestTierAllowed": 1})
    topology, job = topology_of(
        member("a", "0", node="n0"), member("b", "1", node="n3"), policies=[strict]
    )
    assert [topology.allocated(part).name for part in topology.subgroups(job)] == ["s0", "s1"]
    assert topology.allocated(_job(topology, job)).name == "g0"


def test_a_job_that_asks_for_nothing_lies_nowhere() -> None:
    topology, job = topology_of(member("a", node="n0"))
    assert topology.allocated(_job(topology, job)) is None


def test_the_place_so_far_grows_with_each_task_and_is_forgotten_afterwards() -> None:
    topology, job = topology_of(member("a"), network_topology={"mode": "soft"})
    part = topology.subgroups(job)[0]
    placed = topology.follow(part, topology.tree.top)
    assert topology.near(part) is None
    placed(0, 0)
    assert topology.near(part).name == "s0"
    placed(0, 3)
    assert topology.near(part).name == "g0"
    topology.stop_following()
    assert topology.near(part) is None


def test_nothing_is_followed_where_all_nodes_are_equally_near() -> None:
    topology, job = topology_of(member("a"), network_topology={"mode": "soft"})
    assert topology.follow(topology.subgroups(job)[0], topology.tree.by_name["s0"]) is None


def _job(topology: Any, row: Any) -> Any:
    return topology._job(row)


def test_a_subgroup_without_topology_lies_nowhere_in_particular() -> None:
    """Only the part that asks for a place has one; the job lies where that part does."""
    rack = {"mode": "hard", "highestTierAllowed": 1}
    policies = [policy("p", networkTopology=rack), policy("q", keys=("other",))]
    topology, job = topology_of(
        member("a", "0", node="n0"),
        member("b", node="n2", labels={"other": "1"}),
        policies=policies,
    )
    lies = {part.id: topology.allocated(part) for part in topology.subgroups(job)}
    assert {key: domain and domain.name for key, domain in lies.items()} == {
        "default/g/p-0": "s0",
        "default/g/q-1": None,
    }


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("007", 7),
        ("", 0),
        ("+", 0),
        ("x7", 0),
        ("--7", 0),
        ("\u0667", 0),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, 0),
        ("-" + "9" * 18, 1 - 10**18),
    ],
)
def test_a_label_is_a_number_as_go_reads_it(text: str, number: int) -> None:
    assert _number(text) == number
