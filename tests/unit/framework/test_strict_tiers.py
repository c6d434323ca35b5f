"""`victims: strict`: what every plugin of a tier permits, and nobody else."""

from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf, read_conf
from pumice.core.resources import Mask
from pumice.framework.dispatch import Enabled, Hooks
from pumice.framework.plugin import Plugin
from pumice.framework.registry import deciding_order
from pumice.plugins import builtin_plugins
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue


def naming(*rows: Any) -> Plugin:
    class Naming(Plugin, name="naming"):
        def preemptable(self, preemptor: Any, candidates: list[int]) -> Mask | None:
            return None if rows == (None,) else np.isin(candidates, rows)

    return Naming()


@pytest.mark.parametrize(
    ("tiers", "volcano", "strict"),
    [
        ([[(1, 2), (2, 3)]], [2], [2]),
        ([[(1,), (2,), (3, 4)]], [3, 4], []),  # Volcano: an emptied intersection is forgotten
        ([[(1,), ()], [(3,)]], [3], []),  # a strict tier has the last word
        ([[(None,), (1, 2), (2, 3)]], [2], [2]),
        ([[(None,)], [(3,)]], [3], []),
    ],
)
def test_the_victims_of_a_strict_tier_are_those_that_all_permit(
    tiers: Any, volcano: list[int], strict: list[int]
) -> None:
    for is_strict, wanted in ((False, volcano), (True, strict)):
        entries = [[Enabled(naming(*rows), {}, is_strict) for rows in tier] for tier in tiers]
        assert Hooks(entries).chosen(Plugin.preemptable)(None, [1, 2, 3, 4]) == wanted  # type: ignore[arg-type]


def world() -> list[dict[str, Any]]:
    """A node with a running gang of high priority and a loose pod of low priority."""
    return [
        node("n1", cpu=4),
        queue("default"),
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 10}
        | {"metadata": {"name": "high"}},
        pod_group("gang", min_member=3, phase="Running"),
        *(pod(f"gang-{i}", cpu=1, group="gang", node="n1", phase="Running") for i in range(3)),
        pod_group("loose", min_member=0, phase="Running", priority_class="high"),
        pod("loose-0", cpu=1, group="loose", node="n1", phase="Running"),
        pod_group("urgent", min_member=1, phase="Inqueue", priority_class="high"),
        pod("urgent-0", group="urgent", cpu=1),
    ]


CONF = """\
actions: "allocate, preempt"
{configurations}
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
  {victims}
- plugins: [{{name: drf}}, {{name: predicates}}]
"""
AWARE = "configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]"


@pytest.mark.parametrize("configurations", ["", AWARE])
@pytest.mark.parametrize(("victims", "broken"), [("", True), ("victims: strict", False)])
def test_a_running_gang_stays_whole(configurations: str, victims: str, broken: bool) -> None:
    """Priority permits the gang, gang the loose pod: together they permit nobody."""
    conf = parse_conf(CONF.format(configurations=configurations, victims=victims))
    assert bool(Scheduler(conf).cycle(world(), 0.0).evictions) is broken


def test_the_table_of_hooks_shows_who_has_the_last_word() -> None:
    conf = parse_conf(CONF.format(configurations="", victims="victims: strict"))
    rows = {hook: tiers for hook, _, _, tiers in deciding_order(conf, builtin_plugins())}
    assert rows["preemptable"] == ["priority + gang + conformance (strict: all must permit)"]
    assert len(rows["order_jobs"]) == 2


@pytest.mark.parametrize("value", ["loose", "true", "", "[strict]"])
def test_another_word_is_an_error(value: str) -> None:
    text = CONF.format(configurations="", victims=f"victims: {value}")
    [problem] = read_conf(text).problems
    assert (problem.severity, problem.wanted, problem.line) == ("error", "strict", 5)
    assert "Volcano's rule" in problem.hint
