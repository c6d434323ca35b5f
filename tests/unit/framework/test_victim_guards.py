"""Where a configuration exposes protected pods, and that a clean one does protect them."""

from collections.abc import Sequence
from typing import Any

import pytest

from pumice.api.conf import Problem, parse_conf
from pumice.framework.conf_check import check_guards
from pumice.plugins import builtin_plugins
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue


def conf(actions: str, *tiers: str) -> Any:
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines += ["- plugins:", *(f"  - {{name: {each.strip()}}}" for each in tier.split(";"))]
    return parse_conf("\n".join(lines))


def guarded(actions: str, tiers: Sequence[str], guard: str) -> list[Problem]:
    problems = check_guards(conf(actions, *tiers), builtin_plugins())
    return [each for each in problems if each.says.endswith(f"without {guard}")]


FIRST = "priority; gang; conformance"
PROTECTING = (
    "priority; gang; proportion; drf, enablePreemptable: false; conformance",
    "overcommit; predicates; nodeorder",
)


@pytest.mark.parametrize(
    ("actions", "tiers", "passing"),
    [
        ("allocate, preempt", [FIRST], []),
        ("allocate, preempt", [FIRST, "drf; predicates"], ["drf in tier 2 (preempt)"]),
        ("allocate", [FIRST, "drf; predicates"], []),
        ("allocate, preempt", [FIRST, "drf, enablePreemptable: false"], []),
        ("allocate, reclaim", [FIRST, "drf; proportion"], ["proportion in tier 2 (reclaim)"]),
        ("allocate, reclaim", [FIRST, "proportion; conformance"], []),
        ("allocate, preempt", ["priority", "conformance"], ["priority in tier 1 (preempt)"]),
        ("allocate, preempt", ["priority; conformance; gang"], ["gang in tier 1 (preempt)"]),
        ("allocate, preempt", ["conformance; priority; gang"], ["gang in tier 1 (preempt)"]),
        ("allocate, preempt", ["conformance; gang"], []),
        ("allocate, preempt, reclaim", PROTECTING, []),
        ("allocate, preempt", ["priority; gang; pdb", "drf"], ["drf in tier 2 (preempt)"]),
        ("allocate, gangpreempt", [FIRST, "capacity"], ["capacity in tier 2 (gangpreempt)"]),
        (
            "allocate, preempt, reclaim, gangreclaim",
            [FIRST, "drf", "capacity"],
            ["drf in tier 2 (preempt)", "capacity in tier 3 (reclaim, gangreclaim)"],
        ),
    ],
)
def test_whoever_can_decide_without_a_guard_is_named(
    actions: str, tiers: list[str], passing: list[str]
) -> None:
    guard = "pdb" if "pdb" in tiers[0] else "conformance"
    problems = guarded(actions, tiers, guard)
    what = " and ".join(passing)
    found = [f" may be evicted: {what} can choose victims without {guard}"] * bool(passing)
    assert [" may be" + each.says.partition(" may be")[2] for each in problems] == found
    assert all(problem.hint and problem.line for problem in problems)


def world() -> list[dict[str, Any]]:
    """A node full of critical pods, and a job that wants the place of one."""
    critical: Any = {"group": "agent", "node": "n1", "priority_class": "system-node-critical"}
    return [
        node("n1", cpu=4),
        queue("default"),
        pod_group("agent", min_member=0, phase="Running"),
        *(pod(f"agent-{i}", cpu=1, **critical) for i in range(4)),
        pod_group("urgent", min_member=1, phase="Inqueue"),
        pod("urgent", group="urgent", cpu=1),
    ]


@pytest.mark.parametrize(("tiers", "evicted"), [((FIRST, "drf"), True), (PROTECTING, False)])
def test_a_critical_pod_goes_once_its_tier_is_emptied_unless_conformance_ends_every_tier(
    tiers: tuple[str, ...], evicted: bool
) -> None:
    settings = conf("allocate, preempt", *tiers)
    decisions = Scheduler(settings).cycle(world(), 0.0)
    assert bool(decisions.evictions) is evicted
    assert bool(guarded("allocate, preempt", tiers, "conformance")) is evicted


@pytest.mark.parametrize(
    ("guard", "actions", "tiers", "passing", "way_out"),
    [
        # the order that protects critical pods, and nothing else
        ("gang", "preempt", [FIRST], "conformance in tier 1", "victims: strict beside"),
        ("priority", "preempt", [FIRST], "conformance in tier 1", "victims: strict beside"),
        ("capacity", "reclaim", ["gang; capacity; conformance"], "conformance", "tier 1"),
        (
            "gang",
            "reclaim",
            ["gang; capacity", "drf; proportion"],
            "proportion in tier 2",
            "strict",
        ),
        ("gang", "preempt", ["priority", "gang"], "priority in tier 1", "move it to tier 1"),
        ("priority", "preempt", ["priority; gang"], "", ""),
        ("gang", "preempt", ["priority; gang"], "", ""),
        # whole gangs: gang permits everything, so only priority and conformance judge
        ("priority", "gangpreempt", ["priority; gang; capacity; conformance"], "", ""),
        ("gang", "gangpreempt", ["priority; gang; capacity; conformance"], "", ""),
    ],
)
def test_gangs_priorities_and_queues_are_guarded_too(
    guard: str, actions: str, tiers: list[str], passing: str, way_out: str
) -> None:
    problems = guarded(f"allocate, {actions}", tiers, guard)
    assert [passing in each.says for each in problems] == [True] * bool(passing)
    assert all(way_out in each.hint for each in problems)
