"""preempt: starving jobs take the room of others in their queue, or of their own lesser tasks."""

from typing import Any

import numpy as np
import pytest

from pumice.actions.preempt import preempt as preempt_action
from pumice.core.status import Status
from pumice.framework.plugin import Plugin
from pumice.plugins.conformance import Conformance
from pumice.plugins.gang import Gang
from pumice.plugins.priority import Priority
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import open_session

CLASSES = [priority_class("low", value=10), priority_class("high", value=100)]
BASE = [queue("default"), *CLASSES]
TIER = "priority gang conformance"


def old(
    name: str = "old",
    n: Any = 1,
    *,
    on: str = "n1",
    cpu: Any = 1,
    group_class: str = "low",
    **more: Any,
) -> Any:
    """A running group whose pods may all go."""
    where = more.pop("queue", "default")
    group = pod_group(name, min_member=0, phase="Running", priority_class=group_class, queue=where)
    return [group, *(pod(f"{name}-{i}", group=name, cpu=cpu, node=on, **more) for i in range(n))]


def new(
    name: str = "new",
    n: Any = 1,
    *,
    cpu: Any = 1,
    group_class: str = "high",
    min_member: Any = None,
    **more: Any,
) -> Any:
    """A starving group."""
    group = pod_group(name, min_member=min_member or n, phase="Inqueue", priority_class=group_class)
    return [group, *(pod(f"{name}-{i}", group=name, cpu=cpu, **more) for i in range(n))]


def test_a_pod_of_lower_priority_goes_and_its_room_is_promised(decide: Any) -> None:
    decisions = decide([*BASE, node("n1", cpu=1), *old(), *new()], TIER, actions="preempt")
    assert decisions.evictions == ["default/old-0"]
    assert decisions.pipelined == {"default/new-0": "n1"}
    assert decisions.nominated == {"default/new-0": "n1"}
    assert decisions.binds == {}


@pytest.mark.parametrize(
    "safe",
    [
        {"queue": "other"},
        {"group_class": "high"},
        {"preemptable": False},
        {"priority_class": "system-node-critical"},
    ],
)
def test_who_is_out_of_reach_stays(decide: Any, safe: Any) -> None:
    world = [*BASE, queue("other"), node("n1", cpu=1), *old(**safe), *new()]
    assert decide(world, TIER, actions="preempt").evictions == []


def test_a_bound_pod_that_does_not_run_yet_may_go_too(decide: Any) -> None:
    world = [*BASE, node("n1", cpu=1), *old(phase="Pending"), *new()]
    assert decide(world, TIER, actions="preempt").evictions == ["default/old-0"]


def test_a_pod_that_never_preempts_does_not(decide: Any) -> None:
    world = [*BASE, node("n1", cpu=1), *old(), *new(spec={"preemptionPolicy": "Never"})]
    assert decide(world, TIER, actions="preempt").evictions == []


def test_no_more_go_than_needed_and_the_least_important_first(decide: Any) -> None:
    group = pod_group("old", min_member=0, phase="Running", priority_class="low")
    pods = [
        pod(name, group="old", cpu=1, node="n1", priority=p)
        for name, p in (("a", 5), ("b", 1), ("c", 9))
    ]
    world = [*BASE, node("n1", cpu=3), group, *pods, *new(cpu=2)]
    assert decide(world, TIER, actions="preempt").evictions == ["default/b", "default/a"]


def test_a_gang_that_cannot_be_completed_evicts_nobody(decide: Any) -> None:
    decisions = decide([*BASE, node("n1", cpu=1), *old(), *new(n=2)], TIER, actions="preempt")
    assert decisions.evictions == []
    assert decisions.pipelined == {}
    assert decisions.nominated == {}


def test_a_pod_that_fits_at_once_is_promised_room_without_an_eviction(decide: Any) -> None:
    decisions = decide([*BASE, node("n1", cpu=2), *old(), *new()], TIER, actions="preempt")
    assert decisions.evictions == []
    assert decisions.pipelined == {"default/new-0": "n1"}
    assert decisions.nominated == {}


def test_a_pod_that_asks_for_nothing_may_only_take_such_pods(decide: Any) -> None:
    world = [*BASE, node("n1", pods=1)]
    dear = [*old(cpu=1), *new(cpu=None)]
    cheap = [*old(cpu=None), *new(cpu=None)]
    assert decide([*world, *dear], "priority", actions="preempt").evictions == []
    assert decide([*world, *cheap], "priority", actions="preempt").evictions == ["default/old-0"]


def test_the_eviction_frees_what_else_was_in_the_way(decide: Any) -> None:
    port = {"containers": [{"name": "c", "ports": [{"hostPort": 80, "containerPort": 80}]}]}
    world = [*BASE, node("n1", cpu=2), *old(cpu=None, spec=port), *new(cpu=None, spec=port)]
    decisions = decide(world, "priority gang predicates", actions="preempt")
    assert decisions.evictions == ["default/old-0"]
    assert decisions.pipelined == {"default/new-0": "n1"}


def test_what_was_rolled_back_is_in_the_way_again(decide: Any) -> None:
    """A gang that fails on its second pod leaves the port of the first victim taken."""
    port = {"ports": [{"hostPort": 80, "containerPort": 80}]}
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}, **port}]}
    world = [*BASE, node("n1", cpu=2), *old(spec=spec)]
    world += [*new("gang", n=2, cpu=2), *new("web", spec=spec, group_class="low")]
    decisions = decide(world, "priority gang predicates", actions="preempt")
    assert decisions.evictions == []
    assert decisions.pipelined == {}


def test_nodes_that_no_eviction_opens_are_left_alone(decide: Any) -> None:
    tainted = node("n1", cpu=1, taints=[{"key": "k", "effect": "NoSchedule"}])
    world = [*BASE, tainted, node("n2", cpu=1), *old("a", on="n1"), *old("b", on="n2"), *new()]
    decisions = decide(world, "priority gang predicates", actions="preempt")
    assert decisions.evictions == ["default/b-0"]


def test_the_best_scored_node_is_tried_first(decide: Any) -> None:
    world = [*BASE, node("n1", cpu=8), node("n2", cpu=2), *old("a", 8), *old("b", 2, on="n2")]
    decisions = decide([*world, *new()], f"{TIER} binpack", actions="preempt")
    assert decisions.pipelined == {"default/new-0": "n1"}


def test_equal_nodes_are_tried_in_list_order(decide: Any) -> None:
    world = [*BASE, node("n2", cpu=1), node("n1", cpu=1), *old("a"), *old("b", on="n2"), *new()]
    assert decide(world, TIER, actions="preempt").evictions == ["default/b-0"]


def test_without_a_plugin_that_sees_starving_jobs_nothing_starts(decide: Any) -> None:
    world = [*BASE, node("n1", cpu=1), *old(), *new()]
    assert decide(world, "conformance", actions="preempt").evictions == []


def test_gang_and_priority_together_preempt_only_up_to_the_least_number(decide: Any) -> None:
    world = [*BASE, node("n1", cpu=2), *old(n=2), *new(n=2, min_member=1)]
    assert len(decide(world, TIER, actions="preempt").evictions) == 1
    assert len(decide(world, "priority", actions="preempt").evictions) == 2


def test_a_queue_that_has_its_share_must_give_up_as_much_as_it_takes(decide: Any) -> None:
    """The node has room for the new pod, the queue has not."""
    wanted = pod_group("wants", phase="Inqueue", queue="other")
    world = [*BASE, queue("other"), wanted, pod("wants-0", group="wants", cpu=4)]
    world += [node("n1", cpu=4), *old(n=2), *new()]
    decisions = decide(world, "priority gang", "proportion", actions="preempt")
    assert decisions.evictions == ["default/old-1"]
    assert decisions.pipelined == {"default/new-0": "n1"}


def test_a_closed_queue_evicts_nobody(decide: Any) -> None:
    world = [queue("default", state="Closed"), *CLASSES, node("n1", cpu=1), *old(), *new()]
    assert decide(world, "priority gang", "proportion", actions="preempt").evictions == []


def test_a_job_that_must_lie_close_together_does_not_preempt(decide: Any) -> None:
    group = pod_group(
        "new", phase="Inqueue", priority_class="high", network_topology={"mode": "soft"}
    )
    world = [*BASE, node("n1", cpu=1), *old(), group, pod("new-0", group="new", cpu=1)]
    assert decide(world, TIER, actions="preempt").evictions == []


# Inside one job


def within(*running: Any, **pending: Any) -> Any:
    """A job above its least number, with running pods and one that waits."""
    group = pod_group("g", min_member=1, phase="Running")
    return [group, *running, pod("boss", group="g", cpu=1, **pending)]


def test_a_task_takes_the_room_of_a_lesser_task_of_its_job(decide: Any) -> None:
    running = pod("minor", group="g", cpu=1, node="n1", priority=1)
    decisions = decide(
        [*BASE, node("n1", cpu=1), *within(running, priority=5)], "priority", actions="preempt"
    )
    assert decisions.evictions == ["default/minor"]
    assert decisions.pipelined == {"default/boss": "n1"}


def test_a_task_of_equal_priority_is_safe(decide: Any) -> None:
    running = pod("minor", group="g", cpu=1, node="n1", priority=5)
    world = [*BASE, node("n1", cpu=1), *within(running, priority=5)]
    assert decide(world, "priority", actions="preempt").evictions == []


def test_the_first_task_that_fails_ends_the_job(decide: Any) -> None:
    """The task after it would have found room at once."""
    world = [*BASE, node("n1", cpu=1), pod_group("g", min_member=3, phase="Inqueue")]
    world += [pod("big", group="g", cpu=4, priority=9), pod("small", group="g", cpu=1)]
    world += [pod("third", group="g", cpu=4)]
    assert decide(world, TIER, actions="preempt").pipelined == {}


# Pods that were promised a node before


def nominated(name: Any, **more: Any) -> Any:
    return [*new(nominated_node=name, **more)]


def test_a_pod_whose_room_is_on_its_way_does_not_preempt_again(decide: Any) -> None:
    world = [*BASE, node("n1", cpu=1), *old(), *nominated("n1")]
    assert decide(world, TIER, actions="preempt").evictions == []


def test_a_pod_promised_a_node_that_is_gone_does_not_preempt(decide: Any) -> None:
    world = [*BASE, node("n1", cpu=1), *old(), *nominated("n9")]
    assert decide(world, TIER, actions="preempt").evictions == []


def test_a_pod_whose_promised_node_was_closed_may_preempt_elsewhere(decide: Any) -> None:
    closed = node("n2", cpu=1, unschedulable=True)
    world = [*BASE, node("n1", cpu=1), closed, *old(), *nominated("n2")]
    decisions = decide(world, "priority gang predicates", actions="preempt")
    assert decisions.evictions == ["default/old-0"]


@pytest.mark.parametrize(("reason", "evicts"), [("PreemptionByScheduler", 0), ("Other", 1)])
def test_a_pod_waits_while_pods_preempted_for_it_are_leaving(
    decide: Any, reason: str, evicts: int
) -> None:
    """Its promised node refuses it in a way that evictions could cure."""
    leaving = pod("leaving", cpu=1, node="n2", priority=0, labels={"app": "x"})
    leaving["metadata"]["deletionTimestamp"] = "2026-01-15T09:59:00Z"
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    leaving["status"]["conditions"] = [condition]
    port = {"hostPort": 80, "containerPort": 80}
    leaving["spec"]["containers"][0]["ports"] = [port]
    world = [*BASE, node("n1", cpu=1), node("n2", cpu=2), leaving, *old()]
    world += nominated("n2", priority=5)
    world[-1]["spec"]["containers"][0]["ports"] = [port]
    decisions = decide(world, "priority gang predicates", actions="preempt")
    assert len(decisions.evictions) == evicts


# What allocate found out


def test_nodes_that_allocate_found_hopeless_are_not_asked_again(decide: Any) -> None:
    world = [*BASE, node("n1", cpu=1, labels={"disk": "hdd"}), node("n2", cpu=1)]
    world += [*old("a"), *old("b", on="n2"), *new(spec={"nodeSelector": {"disk": "hdd"}})]
    decisions = decide(world, "priority gang predicates", actions="allocate, preempt")
    assert decisions.evictions == ["default/a-0"]


class Grudge(Plugin, name="grudge"):
    """Takes nobody into the queue while one pod is there, whatever the queue holds."""

    def on_open(self, ssn: Any) -> None:
        self.snapshot = ssn.snapshot

    def allocatable(self, queue: Any, task: Any) -> bool:
        tasks = self.snapshot.tasks
        return bool(tasks.status[tasks.row_of["default/old1-0"]] == Status.RELEASING)


@pytest.mark.parametrize("foreseeable", [False, True])
def test_a_queue_that_does_not_go_by_amounts_is_asked_after_each_eviction(
    foreseeable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that says it goes by amounts is asked before, with the amounts of the victims gone."""
    monkeypatch.setattr(Grudge, "foreseeable", foreseeable)
    world = [*BASE, *(node(f"n{i}", cpu=1) for i in range(3))]
    world += [each for i in range(3) for each in old(f"old{i}", on=f"n{i}")]
    ssn = open_session([*world, *new()], [Priority(), Gang(), Conformance()], [Grudge()])
    preempt_action(ssn)
    names = [ssn.snapshot.tasks.keys[row] for row in victims(ssn)]
    assert names == ([] if foreseeable else ["default/old1-0"])


def victims(ssn: Any) -> list[int]:
    tasks = ssn.snapshot.tasks
    return np.flatnonzero(tasks.status[: tasks.n] == Status.RELEASING).tolist()
