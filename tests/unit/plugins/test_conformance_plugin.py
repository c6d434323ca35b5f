"""conformance: pods that the cluster itself rests on are never evicted."""

from typing import Any

import pytest

from pumice.plugins.conformance import Conformance
from pumice.testing import node, pod, pod_group, queue


@pytest.fixture
def ssn(open_session: Any) -> Any:
    world = [node("n1"), queue("default"), pod_group("g"), pod_group("s", namespace="kube-system")]
    world += [
        pod("dns", group="g", node="n1", priority_class="system-cluster-critical"),
        pod("proxy", group="g", node="n1", priority_class="system-node-critical"),
        pod("plain", group="g", node="n1", priority_class="system-like"),
        pod("any", namespace="kube-system", group="s", node="n1"),
    ]
    return open_session(world, Conformance())


@pytest.mark.parametrize("hook", ["preemptable", "reclaimable", "gang_evictable"])
def test_critical_classes_and_the_system_namespace_are_protected(ssn: Any, hook: str) -> None:
    tasks = ssn.snapshot.tasks
    rows = list(range(tasks.n))
    kept = getattr(ssn.policy, hook)(ssn.task(rows[0]), rows)
    assert [tasks.keys[row] for row in kept] == ["default/plain"]
