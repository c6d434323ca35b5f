"""Bundles of victims: what a running gang can spare, and in which order bundles go."""

from typing import Any

import numpy as np
import pytest

from pumice.framework.dispatch import Enabled
from pumice.framework.eviction.gangs import Bundle, bundles_in_turn, candidates, keep_allowed
from pumice.framework.session import Session
from pumice.framework.topology.domains import GangEviction
from pumice.plugins.gang import Gang
from pumice.plugins.priority import Priority
from pumice.testing import hyper_node, node, pod, pod_group, priority_class, queue
from pumice.testing.samples import snapshot_of

BASE = [
    queue("default", created="2026-01-01T00:00:00Z"),
    queue("other", created="2026-01-02T00:00:00Z"),
    queue("kept", reclaimable=False),
    priority_class("low", value=1),
    priority_class("high", value=9),
    node("n1", cpu=20),
    node("n2", cpu=20),
    hyper_node("s1", nodes=["n1"]),
]
ASKER = [
    pod_group("asker", min_member=1, phase="Inqueue", priority_class="high"),
    pod("asker-0", group="asker", cpu=4),
]


def gang(
    name: Any,
    n: Any,
    *,
    min_member: Any = 1,
    on: str = "n1",
    cpu: Any = 1,
    pods: Any = None,
    **more: Any,
) -> Any:
    """A running gang; ``pods`` has further fields for single pods."""
    group = {"phase": "Running", "priority_class": "low", **more}
    pods = pods or [{} for _ in range(n)]
    return [
        pod_group(name, min_member=min_member, **group),
        *(
            pod(f"{name}-{i}", group=name, **{"cpu": cpu, "node": on, **extra})
            for i, extra in enumerate(pods)
        ),
    ]


class World:
    """A session with one job that asks for victims."""

    def __init__(self, *objects: Any, reclaims: bool = False, domain: Any = None) -> None:
        tier = [Enabled(plugin, {}) for plugin in (Priority(), Gang())]
        self.ssn = Session(snapshot_of([*BASE, *ASKER, *objects]), [tier])
        tree = self.ssn.topology.tree
        asker = self.ssn.job(self.ssn.snapshot.jobs.row_of["default/asker"])
        where = tree.by_name[domain] if domain else tree.top
        self.eviction = GangEviction(asker, where, reclaims)

    def names(self, rows: Any) -> Any:
        return [self.ssn.snapshot.tasks.keys[row].partition("/")[2] for row in rows]

    def candidates(self) -> Any:
        found = candidates(self.ssn, self.eviction)
        return sorted(name for rows in found.values() for name in self.names(rows))

    def bundles(self, need_cpu: Any = 4000.0) -> Any:
        need = np.zeros(len(self.ssn.snapshot.resources))
        need[0] = need_cpu
        found = candidates(self.ssn, self.eviction)
        ordered = bundles_in_turn(self.ssn, found, self.eviction, need)
        return [("whole" if b.is_whole else "safe", self.names(b.tasks)) for b in ordered]


# Who may be asked for


def test_jobs_of_lower_priority_in_the_same_queue_pay_for_gangpreempt() -> None:
    world = World(
        *gang("low", 1),
        *gang("equal", 1, priority_class="high"),
        *gang("far", 1, queue="other"),
    )
    assert world.candidates() == ["low-0"]


def test_reclaimable_queues_pay_for_gangreclaim_whatever_the_priority() -> None:
    world = World(
        *gang("mine", 1),
        *gang("far", 1, queue="other", priority_class="high"),
        *gang("safe", 1, queue="kept"),
        reclaims=True,
    )
    assert world.candidates() == ["far-0"]


@pytest.mark.parametrize(("reclaims", "wanted"), [(False, ["x-0"]), (True, [])])
def test_a_bound_pod_that_does_not_run_yet_is_only_preempted(reclaims: bool, wanted: Any) -> None:
    where = "other" if reclaims else "default"
    world = World(*gang("x", 1, pods=[{"phase": "Pending"}], queue=where), reclaims=reclaims)
    assert world.candidates() == wanted


def test_only_nodes_of_the_domain_are_looked_at() -> None:
    world = World(*gang("near", 1), *gang("away", 1, on="n2"), domain="s1")
    assert world.candidates() == ["near-0"]


def test_pods_and_groups_that_must_not_be_preempted_are_left_alone() -> None:
    mark = {"volcano.sh/preemptable": "false"}
    world = World(
        *gang("pods", 2, pods=[{"preemptable": False}, {}]),
        *gang("noted", 1, annotations=mark),
        *gang("labelled", 1, labels=mark),
    )
    assert world.candidates() == ["pods-1"]


# What a gang can spare


def test_the_least_important_tasks_are_spared_first() -> None:
    pods = [{"priority": 5}, {"priority": 1}]
    assert World(*gang("x", 2, min_member=1, pods=pods)).bundles()[0] == ("safe", ["x-1"])


def test_of_a_gang_that_is_broken_everything_is_safe_to_take() -> None:
    assert World(*gang("x", 2, min_member=3)).bundles() == [("safe", ["x-0", "x-1"])]


@pytest.mark.parametrize("least", range(1, 8))
@pytest.mark.parametrize("of_role", [{}, {"a": 1}, {"a": 2, "b": 1}, {"a": 4, "b": 2}, {"c": 1}])
def test_tasks_are_safe_to_take_one_after_the_other_while_all_numbers_hold(
    least: int, of_role: dict[str, int]
) -> None:
    """Least numbers of roles count unless they add up to more than that of the gang."""
    roles = "aabaabx"
    pods = [{"role": None if role == "x" else role} for role in roles]
    world = World(*gang("x", 7, min_member=least, pods=pods, min_task_member=of_role))
    counted = of_role if sum(of_role.values()) <= least else {}
    safe, left = [], list(roles)
    for i, role in enumerate(roles):
        if len(left) > least and left.count(role) > counted.get(role, 0):
            left.remove(role)
            safe.append(f"x-{i}")
    whole = [f"x-{i}" for i in range(7) if f"x-{i}" not in safe]
    bundles = [("safe", safe), ("whole", whole)]
    assert world.bundles() == [bundle for bundle in bundles if bundle[1]]


def test_one_subgroup_is_broken_up_before_a_second_is_touched() -> None:
    policy = {"name": "p", "matchLabelKeys": ["part"], "subGroupSize": 2, "minSubGroups": 1}
    pods = [{"labels": {"part": part}} for part in "0101"]
    world = World(*gang("x", 4, min_member=1, pods=pods, spec={"subGroupPolicy": [policy]}))
    assert world.bundles() == [("safe", ["x-0", "x-2"]), ("whole", ["x-1", "x-3"])]


def test_subgroups_beyond_the_least_number_are_all_safe_to_take() -> None:
    policy = {"name": "p", "matchLabelKeys": ["part"], "subGroupSize": 1, "minSubGroups": 1}
    pods = [{"labels": {"part": part}} for part in "0123"]
    world = World(*gang("x", 4, min_member=1, pods=pods, spec={"subGroupPolicy": [policy]}))
    assert world.bundles() == [("safe", ["x-0", "x-1", "x-2"]), ("whole", ["x-3"])]


# Order


def test_safe_bundles_go_first_then_the_job_that_stands_last() -> None:
    world = World(
        *gang("old", 2, min_member=1, created="2026-01-01T00:00:00Z"),
        *gang("young", 2, min_member=1, created="2026-01-02T00:00:00Z"),
    )
    assert world.bundles() == [
        ("safe", ["young-0"]),
        ("safe", ["old-0"]),
        ("whole", ["young-1"]),
        ("whole", ["old-1"]),
    ]


def test_for_other_queues_the_bundle_that_loses_least_for_what_it_brings_goes_first() -> None:
    world = World(
        *gang(
            "wide", 4, min_member=4, pods=[{}, {}, {"node": "n2"}, {"node": "n2"}], queue="other"
        ),
        *gang("tight", 2, min_member=2, queue="other"),
        reclaims=True,
        domain="s1",
    )
    assert world.bundles() == [("whole", ["tight-0", "tight-1"]), ("whole", ["wide-0", "wide-1"])]


def test_the_queue_that_stands_last_pays_first() -> None:
    world = World(
        queue("late", created="2026-01-03T00:00:00Z"),
        *gang("a", 1, min_member=1, queue="other"),
        *gang("b", 1, min_member=1, queue="late"),
        reclaims=True,
    )
    assert world.bundles() == [("whole", ["b-0"]), ("whole", ["a-0"])]


def test_a_whole_bundle_goes_complete_or_not_at_all_a_safe_one_shrinks() -> None:
    bundles = [Bundle(0, [1, 2], is_whole=False), Bundle(0, [3, 4], is_whole=True)]
    assert keep_allowed(bundles, [2, 3]) == [Bundle(0, [2], is_whole=False)]
    assert keep_allowed(bundles, [3, 4]) == [Bundle(0, [3, 4], is_whole=True)]
