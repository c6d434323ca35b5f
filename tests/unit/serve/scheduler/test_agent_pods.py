"""Pods of agents are scheduled without a PodGroup, next to those that have one."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import pod, pod_group

GROUP = "PodGroup.scheduling.volcano.sh"
CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    make_queues(cluster)
    add_node(cluster, "n", {"cpu": "3", "memory": "8Gi"})
    return cluster


@pytest.fixture
def live(cluster: Any) -> Any:
    return LiveScheduler(cluster, Scheduler(parse_conf(CONF)), agents=("agent-scheduler",))


def agent(name: str, **more: Any) -> Any:
    return pod(name, scheduler="agent-scheduler", **more)


def placed(cluster: Any) -> dict[str, str]:
    pods, _ = cluster.list("Pod")
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in pods}


def test_they_are_bound_in_one_cycle_and_the_cluster_gets_no_group(cluster: Any, live: Any) -> None:
    cluster.create(agent("a", cpu=1))
    cluster.create(agent("b", cpu=1))
    cluster.create(pod("other", cpu=1))  # of the controllers, which give it a group
    live.cycle()
    assert placed(cluster) == {"a": "n", "b": "n", "other": ""}
    assert not cluster.list(GROUP)[0]
    assert all(result.error is None for result in live.cycle().writes.results)
    assert not live.cycle().decisions.pod_groups  # nothing is decided about them again and again


def test_they_share_the_nodes_with_gangs_and_leave_with_their_pods(cluster: Any, live: Any) -> None:
    cluster.create(pod_group("gang", min_member=2))
    for name in "xy":
        cluster.create(pod(name, group="gang", cpu=1))
    live.cycle()
    cluster.create(agent("a", cpu=1))
    cluster.create(agent("late", cpu=1))
    live.cycle()
    assert placed(cluster) == {"x": "n", "y": "n", "a": "n", "late": ""}
    (why,) = cluster.get("Pod", "default", "late")["status"]["conditions"]
    assert (why["reason"], why["status"]) == ("Unschedulable", "False")
    assert "Insufficient cpu" in why["message"]
    cluster.delete("Pod", "default", "a", grace_s=0)
    live.cycle()
    assert placed(cluster)["late"] == "n"
    assert set(live.informer.snapshot.jobs.row_of) >= {"default/gang"}
    for name in ("late", "x", "y"):
        cluster.delete("Pod", "default", name, grace_s=0)
    live.cycle()
    assert set(live.informer.snapshot.jobs.row_of) == {"default/gang"}


def test_one_with_a_group_belongs_to_it(cluster: Any, live: Any) -> None:
    cluster.create(pod_group("gang", min_member=2))
    cluster.create(agent("a", group="gang", cpu=1))
    live.cycle()
    assert placed(cluster) == {"a": ""}
    cluster.create(agent("b", group="gang", cpu=1))
    live.cycle()
    assert placed(cluster) == {"a": "n", "b": "n"}


def test_a_scheduler_that_starts_over_knows_them(cluster: Any, live: Any) -> None:
    cluster.create(agent("a", cpu=2))
    live.cycle()
    live.stale = True
    cluster.create(agent("b", cpu=2))
    live.cycle()
    assert placed(cluster) == {"a": "n", "b": ""}
    cluster.delete("Pod", "default", "a", grace_s=0)
    live.cycle()
    assert placed(cluster) == {"b": "n"}
