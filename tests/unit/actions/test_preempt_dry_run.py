"""preempt with enableTopologyAwarePreemption: several nodes are tried, the cheapest is taken."""

from typing import Any

import pytest

from pumice.actions.preempt_dry_run import DryRun
from pumice.core.status import Status
from pumice.framework.eviction.candidates import Candidates
from pumice.framework.plugin import Plugin
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import open_session

CLASSES = [priority_class("low", value=10), priority_class("high", value=100)]
BASE = [queue("default"), *CLASSES]
ALL_NODES = {"enableTopologyAwarePreemption": "true", "minCandidateNodesPercentage": 100}


def running(name: Any, on: Any, cpu: Any = 1, **more: Any) -> Any:
    group = pod_group(name, min_member=0, phase="Running", priority_class="low")
    return [group, pod(f"{name}-0", group=name, cpu=cpu, node=on, **more)]


def waiting(name: str = "new", cpu: Any = 1, **more: Any) -> Any:
    group = pod_group(name, phase="Inqueue", priority_class="high")
    return [group, pod(f"{name}-0", group=name, cpu=cpu, **more)]


@pytest.fixture
def preempt(decide: Any) -> Any:
    def run(objects: Any, *tiers: Any, **arguments: Any) -> Any:
        tiers = tiers or ("priority gang",)
        return decide(
            objects, *tiers, actions="preempt", arguments={"preempt": {**ALL_NODES, **arguments}}
        )

    return run


def test_the_victim_is_evicted_and_the_task_nominated(preempt: Any) -> None:
    decisions = preempt([*BASE, node("n1", cpu=1), *running("old", "n1"), *waiting()])
    assert decisions.evictions == ["default/old-0"]
    assert decisions.nominated == {"default/new-0": "n1"}


@pytest.mark.parametrize(("leaving", "evicted"), [(0, ["default/old-0"]), (1, []), (2, [])])
def test_nobody_goes_for_a_slot_that_leaving_pods_free(
    preempt: Any, leaving: int, evicted: list[str]
) -> None:
    things = [*BASE, node("n1", cpu=8, pods=3), *running("old", "n1"), *waiting()]
    for number in range(2):
        group, mate = running(f"mate-{number}", "n1", preemptable=False)
        if number < leaving:
            mate["metadata"]["deletionTimestamp"] = "2026-01-15T12:00:00Z"
        things += [group, mate]
    assert preempt(things, "priority gang predicates conformance").evictions == evicted


def test_a_slot_alone_is_not_enough(preempt: Any) -> None:
    group, mate = running("mate", "n1")
    mate["metadata"]["deletionTimestamp"] = "2026-01-15T12:00:00Z"
    things = [*BASE, node("n1", cpu=2, pods=2), *running("old", "n1"), group, mate]
    assert preempt([*things, *waiting(cpu=2)], "priority gang predicates").evictions == [
        "default/old-0"
    ]


@pytest.mark.parametrize("first", ["n1", "n2"])
def test_the_node_with_the_least_important_victim_is_taken(preempt: Any, first: str) -> None:
    cost = {"n1": 5, "n2": 1}
    nodes = [node(name, cpu=1) for name in sorted(cost, key=lambda name: name != first)]
    pods = [thing for on in cost for thing in running(on, on, priority=cost[on])]
    assert preempt([*BASE, *nodes, *pods, *waiting()]).evictions == ["default/n2-0"]


def test_fewer_victims_cost_less_at_equal_priority(preempt: Any) -> None:
    pods = [*running("a", "n1"), *running("b", "n1"), *running("c", "n2", cpu=2)]
    world = [*BASE, node("n1", cpu=2), node("n2", cpu=2), *pods, *waiting(cpu=2)]
    assert preempt(world).evictions == ["default/c-0"]


def test_the_pod_that_started_last_goes_at_equal_cost(preempt: Any) -> None:
    early, late = running("a", "n1"), running("b", "n2")
    early[1]["status"]["startTime"] = "2026-01-15T08:00:00Z"
    late[1]["status"]["startTime"] = "2026-01-15T09:00:00Z"
    world = [*BASE, node("n1", cpu=1), node("n2", cpu=1), *early, *late, *waiting()]
    assert preempt(world).evictions == ["default/b-0"]


def test_who_need_not_go_is_spared_most_important_first(preempt: Any) -> None:
    """Victims are taken lowest first until it fits; the small one then proves needless."""
    pods = [*running("small", "n1", priority=1), *running("large", "n1", cpu=2, priority=5)]
    world = [*BASE, node("n1", cpu=3), *pods, *waiting(cpu=2)]
    assert preempt(world).evictions == ["default/large-0"]


def test_a_node_that_needs_no_eviction_is_no_candidate(preempt: Any) -> None:
    decisions = preempt([*BASE, node("n1", cpu=2), *running("old", "n1"), *waiting()])
    assert decisions.evictions == []
    assert decisions.pipelined == {}


def test_all_filters_are_tried_not_only_some(preempt: Any) -> None:
    """Evicting the pod frees cpu but not the host port of another."""
    port = [{"hostPort": 80, "containerPort": 80}]
    holder, wants = pod("holder", node="n1"), waiting()
    holder["spec"]["containers"][0]["ports"] = port
    wants[1]["spec"]["containers"][0]["ports"] = port
    world = [*BASE, node("n1", cpu=1), holder, *running("old", "n1"), *wants]
    assert preempt(world, "priority gang predicates").evictions == []


def test_a_pod_that_is_wanted_nearby_is_not_evicted_with_the_others(preempt: Any) -> None:
    """Once the first has gone there is room; without the second the newcomer has no reason."""
    term = {"topologyKey": "kubernetes.io/hostname"}
    term["labelSelector"] = {"matchLabels": {"app": "db"}}  # type: ignore[assignment]
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [
        *running("plain", "n1", priority=1),
        *running("db", "n1", priority=5, labels={"app": "db"}),
    ]
    labels = {"kubernetes.io/hostname": "n1"}
    world = [*BASE, node("n1", cpu=2, labels=labels), *pods, *waiting(spec={"affinity": near})]
    decisions = preempt(world, "priority gang predicates")
    assert decisions.evictions == ["default/plain-0"]
    assert decisions.nominated == {"default/new-0": "n1"}


def test_a_closed_queue_evicts_nobody(preempt: Any) -> None:
    world = [queue("default", state="Closed"), *CLASSES, node("n1", cpu=1)]
    world += [*running("old", "n1"), *waiting()]
    assert preempt(world, "priority gang", "proportion").evictions == []


def test_tries_leave_no_trace(preempt: Any) -> None:
    """The plan that was not taken evicts nothing and frees nothing."""
    pods = [*running("a", "n1", priority=5), *running("b", "n2", priority=1)]
    world = [*BASE, node("n1", cpu=1), node("n2", cpu=1), *pods, *waiting()]
    decisions = preempt(world)
    assert decisions.task_statuses["default/a"] == {"Running": 1}
    assert decisions.task_statuses["default/b"] == {"Releasing": 1}


@pytest.mark.parametrize("few", [{"at_least": 1}, {"at_least": 9, "at_most": 1}])
@pytest.mark.parametrize("tier", ["priority gang", "priority"])  # tried, and by sums
def test_no_more_nodes_are_tried_than_asked_for(preempt: Any, few: Any, tier: str) -> None:
    """With one candidate wanted, whatever node comes first decides, however dear."""
    arguments = {
        "minCandidateNodesPercentage": 0,
        "minCandidateNodesAbsolute": few["at_least"],
        "maxCandidateNodesAbsolute": few.get("at_most", 100),
    }
    costs = []
    for turn in range(5):
        cost = {f"n{i}": (i + turn) % 5 for i in range(5)}
        pods = [thing for on in cost for thing in running(on, on, priority=cost[on])]
        world = [*BASE, *(node(on, cpu=1) for on in cost), *pods, *waiting()]
        cheapest = min(cost, key=cost.__getitem__)
        assert preempt(world, tier).evictions == [f"default/{cheapest}-0"]
        (evicted,) = preempt(world, tier, **arguments).evictions
        costs.append(cost[evicted.removeprefix("default/").removesuffix("-0")])
    assert sorted(costs) == [0, 1, 2, 3, 4]


def gang(n: int, **more: Any) -> Any:
    group = pod_group("new", min_member=n, phase="Inqueue", priority_class="high")
    return [group, *(pod(f"new-{i}", group="new", cpu=1, **more) for i in range(n))]


def test_a_gang_evicts_for_each_of_its_pods(preempt: Any) -> None:
    """The second pod sees what the first one took: no victim is counted twice."""
    pods = [*running("a", "n1"), *running("b", "n1"), *running("c", "n2")]
    world = [*BASE, node("n1", cpu=2), node("n2", cpu=1), *pods, *gang(3)]
    decisions = preempt(world)
    assert sorted(decisions.evictions) == ["default/a-0", "default/b-0", "default/c-0"]
    assert sorted(decisions.pipelined.values()) == ["n1", "n1", "n2"]
    assert set(decisions.nominated) == {"default/new-0", "default/new-1", "default/new-2"}


def test_a_gang_that_finds_too_few_victims_evicts_nobody(preempt: Any) -> None:
    world = [*BASE, node("n1", cpu=1), node("n2", cpu=1), *running("a", "n1"), *gang(3)]
    decisions = preempt(world)
    assert decisions.evictions == []
    assert decisions.nominated == {}


def test_all_victims_of_the_best_plan_go(preempt: Any) -> None:
    pods = [*running("a", "n1"), *running("b", "n1")]
    decisions = preempt([*BASE, node("n1", cpu=2), *pods, *waiting(cpu=2)])
    assert sorted(decisions.evictions) == ["default/a-0", "default/b-0"]
    assert decisions.pipelined == {"default/new-0": "n1"}


"""The lowest priority that a pod can state."""


@pytest.mark.parametrize(
    ("n", "percentage", "at_least", "at_most", "wanted"),
    [
        (100, 10, 1, 100, 10),
        (100, 10, 20, 100, 20),
        (100, 10, 20, 15, 15),
        (8, 100, 1, 100, 8),
        (8, 0, 1, 100, 1),
        (8, 0, 50, 100, 8),
        (199, 1, 1, 100, 1),
        (200, 1, 1, 100, 2),
    ],
)
def test_as_many_plans_are_made_as_the_arguments_say(
    n: int, percentage: int, at_least: int, at_most: int, wanted: int
) -> None:
    arguments = {
        "minCandidateNodesPercentage": percentage,
        "minCandidateNodesAbsolute": at_least,
        "maxCandidateNodesAbsolute": at_most,
    }
    ssn = open_session(BASE, action_arguments={"preempt": arguments})
    run = DryRun(ssn, Candidates(ssn, Plugin.preemptable, (Status.RUNNING,)))
    assert run._plans_wanted(n) == wanted
