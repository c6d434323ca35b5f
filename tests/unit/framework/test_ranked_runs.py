"""Runs of tasks whose candidates are compared: the decisions are those of one after the other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pumice.actions.allocate import allocate
from pumice.api.conf import parse_conf
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework.plugin import Plugin, ranks_ahead
from pumice.framework.ranked_runs import RankedRun, rankers_ahead
from pumice.plugins.gang import Gang
from pumice.plugins.nodeorder import NodeOrder
from pumice.plugins.task_topology import TaskTopology
from pumice.plugins.task_topology.wishes import AFFINITY, ANTI_AFFINITY
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.reference import reference_decide
from pumice.testing.samples import open_session

NOW = 1768478400.0
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
RANKED = """  - name: task-topology
    arguments:
      task-topology.weight: {weight}
"""


def jobs(seed: int) -> Iterator[Any]:
    """Make jobs of several roles that attract or avoid each other, on nodes partly in use."""
    rng = np.random.default_rng(seed)
    yield queue("default")
    for i in range(8):
        yield node(f"n{i}", cpu=int(rng.integers(4, 12)), memory="32Gi")
        if rng.random() < 0.4:
            leaves = {"metadata": {"deletionTimestamp": "2026-01-15T12:00:00Z"}}
            used = pod(f"old-{i}", group="old", node=f"n{i}", cpu=2)
            used["metadata"] |= leaves["metadata"] if rng.random() < 0.5 else {}
            yield used
    yield pod_group("old", phase="Running")
    for j in range(4):
        n = int(rng.integers(3, 14))
        wish = rng.choice([AFFINITY, ANTI_AFFINITY, "none"], p=[0.6, 0.2, 0.2])
        roles = [f"r{rng.integers(0, 2)}" for _ in range(n)]
        roles[:2] = ["r0", "r1"]
        least = {"r0": 1, "r1": int(rng.integers(1, 3))} if rng.random() < 0.3 else None
        yield pod_group(
            f"g{j}",
            min_member=int(rng.integers(1, n + 1)),
            min_task_member=least,
            phase="Inqueue",
            annotations={str(wish): rng.choice(["r0,r1", "r0;r1", "r0"])},
        )
        cpus = [1, int(rng.integers(1, 3))] if rng.random() < 0.3 else [1, 1]
        for k, role in enumerate(roles):
            yield pod(f"g{j}-{k}", group=f"g{j}", role=role, cpu=cpus[int(role[1])], memory="1Gi")


@pytest.mark.parametrize("weight", [None, 1, 10])
@pytest.mark.parametrize("seed", range(30))
def test_decisions_are_those_of_one_after_the_other(
    seed: int, weight: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody ranks nodes: equal tasks of several roles are placed together, too."""
    made, picked = list(jobs(seed)), []
    pick = RankedRun.pick

    def noted(run: RankedRun, n: int) -> list[int]:
        picked.append(n)
        return pick(run, n)

    monkeypatch.setattr(RankedRun, "pick", noted)
    conf = parse_conf(CONF if weight is None else CONF + RANKED.format(weight=weight))
    fast = Scheduler(conf).cycle(made, NOW)
    snapshot = Ingest(Snapshot()).load([from_manifest(each) for each in made])
    assert fast == reference_decide(snapshot, conf, now=NOW)
    assert seed or bool(picked) is (weight is not None), "the first cluster has a run"


class Listener(Plugin, name="listener"):
    """Follows placements and ranks nodes, both task by task."""

    def on_place(self, task: Task, node: int) -> None:
        pass


class Stubborn(TaskTopology, name="stubborn"):
    """Ranks otherwise than its base class."""

    def rank_nodes(self, task: Task, nodes: Any) -> Any:
        return None


class Wavering(TaskTopology, name="wavering"):
    """Fails to rank ahead."""

    def rank_ahead(self, task: Task, nodes: Any, copies: Any) -> Any:
        if copies:
            raise ValueError
        return super().rank_ahead(task, nodes, copies)


class Picker(Plugin, name="picker"):
    """Chooses among candidates itself."""

    def best_node(self, task: Task, nodes: Any, scores: Any) -> int | None:
        return None


def gang(*plugins: Plugin) -> Any:
    made = [queue("default"), *(node(f"n{i}", cpu=8) for i in range(3))]
    made.append(pod_group("g", min_member=6, phase="Inqueue", annotations={AFFINITY: "a"}))
    made += [pod(f"g-{i}", group="g", role="a", cpu=1) for i in range(6)]
    return open_session(made, plugins)


@pytest.mark.parametrize(
    ("plugin", "ranks", "together"),
    [
        (TaskTopology(), True, True),
        (Wavering(), True, True),
        (Stubborn(), False, False),
        (Listener(), False, False),
        (Plugin(), False, True),
    ],
)
def test_who_follows_placements_must_rank_ahead(plugin: Any, ranks: bool, together: bool) -> None:
    assert ranks_ahead(plugin) is ranks
    assert gang(plugin).policy.by_row_ahead is together


def test_candidates_are_not_compared_ahead_where_a_plugin_chooses_among_them() -> None:
    for plugins, can in (([TaskTopology()], True), ([TaskTopology(), Picker()], False)):
        ssn = gang(*plugins)
        found = rankers_ahead(ssn.placing, Task(ssn.snapshot, 0))
        assert (found is not None) is can


def test_a_plugin_without_ranks_for_a_task_is_not_asked_ahead() -> None:
    ssn = gang(TaskTopology(), NodeOrder())
    found = rankers_ahead(ssn.placing, Task(ssn.snapshot, 0))
    assert found is not None
    assert len(found) == 1


def test_where_ranking_ahead_fails_tasks_are_placed_one_by_one() -> None:
    good, bad = gang(Gang(), TaskTopology()), gang(Gang(), Wavering())
    for ssn in (good, bad):
        allocate(ssn)
    nodes = [ssn.snapshot.tasks.node[:6].tolist() for ssn in (good, bad)]
    assert nodes[0] == nodes[1]
    assert len(set(nodes[0])) == 1, "they share a node"
    assert [*bad.hooks.failures.errors] == [("wavering", "rank_ahead")]
