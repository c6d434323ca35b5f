"""Which changes of a cluster begin a cycle."""

from typing import Any

import pytest

from pumice.api.annotations import WAITING_CAUSE
from pumice.api.kinds import POD_GROUP, QUEUE
from pumice.cache.informer import Informer
from pumice.cache.ingest import Ingest
from pumice.cache.news import News
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.snapshot import Snapshot
from pumice.testing import pod, pod_group, queue


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    cluster.create(queue("q"))
    cluster.create(pod_group("g"))
    cluster.create(pod("waits", group="g", cpu=1))
    cluster.create(pod("runs", group="g", cpu=1))
    cluster.bind("default", "runs", "n", {})
    return cluster


def patch(kind: str, name: str, change: Any, subresource: str = "") -> Any:
    home = "" if kind in ("Node", QUEUE) else "default"
    return lambda cluster: cluster.patch(kind, home, name, change, subresource=subresource)


def labels(**given: str) -> Any:
    return {"metadata": {"labels": given}}


CHANGES = {
    "a new pod": (lambda c: c.create(pod("new", group="g")), "pods"),
    "a pod with other labels": (patch("Pod", "waits", labels(x="y")), "pods"),
    "a new group": (lambda c: c.create(pod_group("new")), "groups"),
    "another size": (patch(POD_GROUP, "g", {"spec": {"minMember": 2}}), "groups"),
    "an ended pod": (patch("Pod", "runs", {"status": {"phase": "Failed"}}, "status"), "others"),
    "a deleted pod": (lambda c: c.delete("Pod", "default", "runs", grace_s=0), "others"),
    "a pod bound by others": (lambda c: c.bind("default", "waits", "n", {}), "others"),
    "a new node": (lambda c: add_node(c, "m", {"cpu": "4"}), "others"),
    "a node with other labels": (patch("Node", "n", labels(x="y")), "others"),
    "another queue": (patch(QUEUE, "q", {"spec": {"weight": 7}}), "others"),
    "a closed queue": (patch(QUEUE, "q", {"status": {"state": "Closed"}}, "status"), "others"),
    "a pod that runs": (patch("Pod", "runs", {"status": {"phase": "Running"}}, "status"), ""),
    "a reason": (patch("Pod", "waits", {"status": {"reason": "no room"}}, "status"), ""),
    "a phase": (patch(POD_GROUP, "g", {"status": {"phase": "Running"}}), ""),
    "a cause": (patch(POD_GROUP, "g", {"metadata": {"annotations": {WAITING_CAUSE: "x"}}}), ""),
    "counts of a queue": (patch(QUEUE, "q", {"status": {"running": 3}}, "status"), ""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_cycle_begins_with_changes_that_may_let_something_start(cluster: Any, name: str) -> None:
    informer = Informer(cluster, Ingest(Snapshot()))
    informer.sync()
    informer.take_news()
    change, wanted = CHANGES[name]
    change(cluster)
    informer.sync()
    news = informer.take_news()
    found = {kind for kind in ("pods", "groups", "others") if getattr(news, kind)}
    assert found == ({wanted} if wanted else set())


def test_a_bind_that_was_assumed_is_no_news(cluster: Any) -> None:
    informer = Informer(cluster, Ingest(Snapshot()))
    informer.sync()
    informer.take_news()
    informer.assume("default/waits", "n", {"mark": "m"})
    cluster.bind("default", "waits", "n", {"mark": "m"})
    informer.sync()
    assert informer.take_news() == News()
