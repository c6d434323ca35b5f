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


# Inside one job


# Pods that were promised a node before


def nominated(name: Any, **more: Any) -> Any:
    return [*new(nominated_node=name, **more)]


def test_a_pod_promised_a_node_that_is_gone_does_not_preempt(decide: Any) -> None:
    world = [*BASE, node("n1", cpu=1), *old(), *nominated("n9")]
    assert decide(world, TIER, actions="preempt").evictions == []


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
