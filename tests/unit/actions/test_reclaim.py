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


def test_a_running_pod_of_another_queue_goes(decide: Any) -> None:
    world = [*QUEUES, node("n1", cpu=1), *greedy(), *starved()]
    decisions = decide(world, TIER, actions="reclaim")
    assert decisions.evictions == ["default/old-0"]
    assert decisions.pipelined == {"default/new-0": "n1"}
    assert decisions.nominated == {"default/new-0": "n1"}


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


def test_just_enough_is_taken(decide: Any) -> None:
    world = [*QUEUES, node("n1", cpu=5), *greedy(4), *starved(cpu=3)]
    assert len(decide(world, TIER, actions="reclaim").evictions) == 2


def test_a_node_without_victims_is_passed_over_even_if_it_has_room(decide: Any) -> None:
    world = [*QUEUES, node("n1", cpu=1), node("n2", cpu=1), *greedy(on="n2"), *starved()]
    decisions = decide(world, TIER, actions="reclaim")
    assert decisions.pipelined == {"default/new-0": "n2"}


def test_nodes_are_tried_in_list_order_not_by_score(decide: Any) -> None:
    world = [*QUEUES, node("n2", cpu=9), node("n1", cpu=1)]
    world += [*greedy(9, on="n2", name="a"), *greedy(name="b"), *starved()]
    decisions = decide(world, f"{TIER} binpack", actions="reclaim")
    assert decisions.pipelined == {"default/new-0": "n2"}


def test_a_gang_that_cannot_be_completed_evicts_nobody(decide: Any) -> None:
    world = [*QUEUES, node("n1", cpu=1), *greedy(), *starved(2)]
    decisions = decide(world, TIER, actions="reclaim")
    assert decisions.evictions == []
    assert decisions.nominated == {}


def test_a_pod_that_never_preempts_does_not_reclaim(decide: Any) -> None:
    world = [*QUEUES, node("n1", cpu=1), *greedy()]
    world += starved(spec={"preemptionPolicy": "Never"})
    assert decide(world, TIER, actions="reclaim").evictions == []


def test_an_overused_queue_takes_nothing_back(decide: Any) -> None:
    """Both queues are at their share of two cpu; the starved one has used it up."""
    world = [*QUEUES, node("n1", cpu=4), *greedy(2), *greedy(2, name="own", where="starved")]
    world += starved()
    assert decide(world, TIER, "proportion", actions="reclaim").evictions == []


def test_a_queue_below_its_share_takes_back_what_is_beyond(decide: Any) -> None:
    world = [*QUEUES, node("n1", cpu=4), *greedy(3), *greedy(1, name="own", where="starved")]
    world += starved()
    assert decide(world, TIER, "proportion", actions="reclaim").evictions == ["default/old-2"]


def test_all_starving_jobs_of_a_queue_are_served_in_turn(decide: Any) -> None:
    world = [*QUEUES, node("n1", cpu=2), *greedy(2), *starved(name="a"), *starved(name="b")]
    decisions = decide(world, TIER, actions="reclaim")
    assert set(decisions.pipelined) == {"default/a-0", "default/b-0"}


def test_nodes_that_no_eviction_opens_are_left_alone(decide: Any) -> None:
    world = [*QUEUES, node("n1", cpu=1, unschedulable=True), node("n2", cpu=1)]
    world += [*greedy(name="a"), *greedy(on="n2", name="b"), *starved()]
    decisions = decide(world, "priority gang predicates", actions="reclaim")
    assert decisions.evictions == ["default/b-0"]


def test_what_was_made_free_is_not_given_to_others_in_the_same_cycle(decide: Any) -> None:
    world = [*QUEUES, queue("third"), node("n1", cpu=1), *greedy(), *starved()]
    world += starved(name="late", where="third")
    decisions = decide(world, TIER, actions="reclaim, allocate")
    assert decisions.binds == {}
    assert decisions.pipelined == {"default/new-0": "n1"}


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


def test_pods_of_a_job_whose_queue_does_not_exist_stay(decide: Any) -> None:
    """The limit of such a queue is unknown, so it cannot hold too much."""
    world = [*QUEUES, node("n1", cpu=1), *greedy(where="nowhere"), *starved()]
    assert decide(world, TIER, actions="reclaim").evictions == []


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_lost_device_holds_up_no_gang_that_asks_for_none(decide: Any, n: int) -> None:
    """The node has less than none left: room for equal tasks is counted as for a single one."""
    device = {"nvidia.com/gpu": 1}
    world = [*QUEUES, node("n1", cpu=8), *greedy(resources=device), *starved(n)]
    decisions = decide(world, TIER, actions="reclaim")
    assert decisions.evictions == []
    assert decisions.pipelined == {f"default/new-{i}": "n1" for i in range(n)}
