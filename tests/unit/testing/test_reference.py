"""Plain placement: one node at a time, and the same decisions."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.scheduler import Scheduler
from pumice.testing.builders import node, pod, pod_group, priority_class, queue
from pumice.testing.reference import ReferenceScheduler, reference_decide
from pumice.testing.samples import sample_cluster, snapshot_of

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
