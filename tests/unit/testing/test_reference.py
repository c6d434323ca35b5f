"""Plain placement: one node at a time, and the same decisions."""

from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.core.views import Task
from pumice.framework.plugin import Plugin, Reason
from pumice.scheduler import Scheduler
from pumice.testing.builders import node, pod, pod_group, priority_class, queue
from pumice.testing.reference import ReferencePlacing, ReferenceScheduler, reference_decide
from pumice.testing.samples import open_session, sample_cluster, snapshot_of

CONF = """
actions: "enqueue, allocate, backfill, preempt, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
TOPOLOGY_AWARE = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}]
configurations:
- name: preempt
  arguments:
    enableTopologyAwarePreemption: true
"""


class Seen(Plugin, name="seen"):
    """Writes down how many nodes it is asked about."""

    reasons = (Reason("odd"), Reason("broken", curable=False))

    def on_open(self, ssn: Any) -> None:
        self.sizes: list[Any] = []

    def filter_shape(self, shape: Any, facts: Any) -> Any:
        return (facts.index == 1).astype(np.int16)

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        self.sizes.append(len(nodes))
        return np.where(nodes.index == 2, 2, nodes.index == 1)

    def best_node(self, task: Any, nodes: Any, scores: Any) -> Any:
        return int(nodes.index[-1])


@pytest.mark.parametrize("seed", range(4))
def test_the_plain_way_decides_the_same(seed: Any) -> None:
    conf, cluster = parse_conf(CONF), sample_cluster(seed)
    fast = Scheduler(conf, seed=seed).cycle(cluster, 0.0)
    assert fast.binds
    assert fast == reference_decide(snapshot_of(cluster), conf, seed=seed)
    assert fast == ReferenceScheduler(conf, seed=seed).cycle(cluster, 0.0)


def test_the_plain_way_tries_the_evictions_that_are_otherwise_computed() -> None:
    conf = parse_conf(TOPOLOGY_AWARE)
    groups = [
        pod_group("running", phase="Running", priority_class="low"),
        pod_group("waiting", min_member=2, phase="Inqueue", priority_class="high"),
    ]
    cluster = [
        *(queue("default"), priority_class("low", value=1), priority_class("high", value=2)),
        *(node(name, cpu=4) for name in ("n1", "n2")),
        *groups,
        *(pod(f"r{i}", group="running", cpu=2, node=f"n{i % 2 + 1}") for i in range(4)),
        *(pod(f"w{i}", group="waiting", cpu=2) for i in range(2)),
    ]
    fast = Scheduler(conf).cycle(cluster, 0.0)
    assert len(fast.evictions) == 2
    assert fast == reference_decide(snapshot_of(cluster), conf)


def test_the_plain_way_asks_one_node_at_a_time() -> None:
    seen = Seen()
    ssn = open_session(sample_cluster(1), [seen], placing=ReferencePlacing)
    task = Task(ssn.snapshot, ssn.pending_tasks(ssn.waiting_jobs()[0])[0])
    fit = ssn.placing.fit(task)
    assert set(seen.sizes) == {1}
    assert fit.verdict.tolist()[:4] == [0, 1, 2, 0]
    assert ssn.placing.fit(task) is not fit
    chosen = ssn.placing.choose(task, fit)
    room = np.flatnonzero(fit.value > -np.inf)
    assert chosen == (int(room[-1]), True)
    ssn.snapshot.release_session()


def test_nothing_is_chosen_where_nothing_fits() -> None:
    ssn = open_session(sample_cluster(1), placing=ReferencePlacing)
    task = Task(ssn.snapshot, ssn.pending_tasks(ssn.waiting_jobs()[0])[0])
    nowhere = np.zeros(ssn.snapshot.nodes.n, dtype=bool)
    assert ssn.placing.choose(task, ssn.placing.fit(task), nowhere) is None
