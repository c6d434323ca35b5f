"""Whole cycles of evictions: nodes that cannot help are passed over, and nothing else changes."""

from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.framework.eviction import candidates as module
from pumice.framework.eviction import evictor
from pumice.framework.eviction.candidates import Candidates, Visit
from pumice.scheduler import Scheduler
from pumice.testing import node, pdb, pod, pod_group, priority_class, queue

TIERS = [
    ["priority gang conformance"],
    ["gang priority", "pdb drf"],
    ["conformance", "gang drf proportion"],
    ["pdb gang", "priority proportion predicates"],
    ["priority", "cdp predicates binpack"],
]


def random_world(seed: Any) -> Any:
    """A small full cluster of two queues with running and starving gangs."""
    rng = np.random.default_rng(seed)
    world = [queue("q0"), queue("q1"), pdb("b", match_labels={"app": "a0"}, disruptions_allowed=1)]
    world += [priority_class(f"p{i}", value=i) for i in range(4)]
    nodes = [f"n{i}" for i in range(12)]
    world += [node(name, cpu=4, memory="8Gi", pods=6) for name in nodes]
    for j in range(10):
        world.append(_group(rng, f"old{j}", "Running", int(rng.integers(0, 4))))
        for k in range(4):
            where = nodes[int(rng.integers(len(nodes)))]
            world.append(_pod(rng, f"old{j}-w-{k}", f"old{j}", node=where))
    for j in range(6):
        size = int(rng.integers(1, 4))
        world.append(_group(rng, f"new{j}", "Inqueue", size))
        world += [_pod(rng, f"new{j}-w-{k}", f"new{j}") for k in range(size)]
    return world


def _group(rng: Any, name: Any, phase: Any, min_member: Any) -> Any:
    return pod_group(
        name,
        min_member=min_member,
        phase=phase,
        queue=f"q{rng.integers(2)}",
        priority_class=f"p{rng.integers(4)}",
    )


def _pod(rng: Any, name: Any, group: Any, **more: Any) -> Any:
    return pod(
        name,
        group=group,
        role="w" if rng.integers(2) else None,
        cpu=[None, 1, 1, 2, 3][int(rng.integers(5))],
        priority=int(rng.integers(3)),
        labels={"app": f"a{rng.integers(3)}"},
        **more,
    )


def decide(world: Any, tiers: Any, actions: Any) -> Any:
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines += ["- plugins:", *(f"  - name: {name}" for name in tier.split())]
    found = Scheduler(parse_conf("\n".join(lines))).cycle(world, 0.0)
    return found.evictions, found.pipelined, found.nominated


class AskAll(Visit):
    """Asks about every node."""

    def keep(self, nodes: Any) -> None:
        pass


def ask_about_everything(patch: Any) -> None:
    everywhere = lambda self, scope, task: np.ones(self._snapshot.nodes.n, dtype=bool)  # noqa: E731
    patch.setattr(module, "Visit", AskAll)
    patch.setattr(Candidates, "with_room", everywhere)
    forgetful = type("Forgetful", (set,), {"__contains__": lambda *_: False})
    patch.setattr(evictor, "set", forgetful, raising=False)


@pytest.mark.parametrize("tiers", TIERS, ids=" | ".join)
@pytest.mark.parametrize("actions", ["preempt", "reclaim", "allocate, reclaim, preempt"])
def test_passing_hopeless_nodes_over_changes_no_decision(
    tiers: Any, actions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds = [random_world(seed) for seed in range(2)]
    monkeypatch.setattr(module, "_PATIENCE", 1)
    quick = [decide(world, tiers, actions) for world in worlds]
    ask_about_everything(monkeypatch)
    slow = [decide(world, tiers, actions) for world in worlds]
    assert slow == quick


def test_the_worlds_above_do_lead_to_evictions() -> None:
    evicted = [decide(random_world(seed), TIERS[0], "preempt")[0] for seed in range(8)]
    assert sum(map(bool, evicted)) > 4
