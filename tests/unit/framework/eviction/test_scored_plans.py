"""Plans that several jobs of a queue share: they evict as one task after the other."""

from typing import Any, ClassVar

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.core.resources import CPU
from pumice.framework.eviction.eviction_runs import EvictionRuns
from pumice.framework.eviction.scored_plans import ScoredPlans
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Reason
from pumice.plugins import builtin_plugins
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, priority_class, queue
from pumice.testing.samples import snapshot_of

CONF = """
actions: "preempt"
tiers:
- plugins: [{{name: priority}}, {{name: taste}}, {{name: conformance}}, {{name: {first}}}]
- plugins: [{{name: {second}}}]
"""
TIERS = ("proportion", "gang"), ("gang", "proportion")
WAYS = ("spread", "pack", "equal", "waves", "closes")


class Taste(Plugin, name="taste"):
    """Scores nodes in some way; may refuse those with enough promises for good."""

    reasons = (Reason("enough"), Reason("enough for good", curable=False))
    foreseeable = True
    way: ClassVar[str] = ""

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        free = nodes.future_idle[CPU] / 1000
        waves = (free * 7 + nodes.index) % 5
        flat = np.zeros(len(free))
        return {"spread": free, "pack": -free, "equal": flat, "closes": free}.get(self.way, waves)

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        promised = nodes.pipelined[CPU] / 1000
        refused = (1 + nodes.index % 2) * (promised >= 3 + nodes.index % 3)
        return refused if self.way == "closes" else None


def crowd(rng: np.random.Generator) -> list[Any]:
    """Make full nodes, and gangs of few shapes that wait in one queue; some run in part."""
    made: list[Any] = [queue("mine", weight=5), queue("other")]
    made += [priority_class(name, value=i) for i, name in enumerate(("low", "middle", "high"))]
    made += [node(f"n{i}", cpu=8) for i in range(8)]
    room = [8] * 8
    for j in range(6):
        where = "mine" if rng.random() < 0.7 else "other"
        cls = "low" if rng.random() < 0.8 else "middle"
        least = int(rng.integers(0, 5))
        made.append(
            pod_group(f"old{j}", queue=where, phase="Running", min_member=least, priority_class=cls)
        )
        for k in range(10):
            on = int(np.argmax(room)) if rng.random() < 0.5 else int(rng.integers(0, 8))
            if room[on]:
                room[on] -= 1
                made.append(pod(f"old{j}-{k}", group=f"old{j}", cpu=1, node=f"n{on}"))
    for j in range(6):
        n, cpu = int(rng.integers(3, 7)), 1 + int(rng.random() < 0.2)
        cls = "high" if rng.random() < 0.8 else "middle"
        least = int(rng.integers(1, n + 1))
        made.append(
            pod_group(
                f"new{j}", queue="mine", phase="Inqueue", min_member=least, priority_class=cls
            )
        )
        made += [pod(f"new{j}-{k}", group=f"new{j}", cpu=cpu) for k in range(n)]
        if rng.random() < 0.2:
            made.append(pod(f"new{j}-run", group=f"new{j}", cpu=1, node="n0"))
    return made


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tiers", TIERS)
def test_jobs_that_share_a_plan_evict_as_one_task_after_the_other(
    way: str, tiers: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Taste, "way", way)
    rng = np.random.default_rng(WAYS.index(way))
    holds, shared, evicted = ScoredPlans._holds, 0, 0

    def noted(plans: ScoredPlans, *args: Any) -> bool:
        nonlocal shared
        found = holds(plans, *args)
        shared += found
        return found

    monkeypatch.setattr(ScoredPlans, "_holds", noted)
    conf = parse_conf(CONF.format(first=tiers[0], second=tiers[1]))
    for seed in range(12):
        world, found = crowd(rng), []
        for alone in (False, True):
            with monkeypatch.context() as patch:
                if alone:
                    patch.setattr(EvictionRuns, "equals", lambda *_: 0)
                    patch.setattr(EvictionRuns, "_failing_with", lambda *_: 1)
                plugins = {**builtin_plugins(), "taste": Taste}
                scheduler = Scheduler(conf, seed=seed, plugins=plugins)
                found.append(scheduler.decide(snapshot_of(world), 0.0))
        assert found[0] == found[1]
        evicted += len(found[0].evictions)
    assert evicted > 100
    assert shared or tiers[0] == "gang", "gangs that lose pods move in the order of jobs"
