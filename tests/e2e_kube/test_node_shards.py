"""Nodes divided among schedulers, on a real API server: the controller assigns, a scheduler keeps
to its part."""

from typing import Any

import yaml

from tests.e2e_kube.install import HOME
from tests.e2e_kube.space import job
from tests.e2e_kube.waiting import until

WARM = "example.com/warm"


def settings(value: str) -> dict[str, Any]:
    """Return settings by which the scheduler volcano gets the node with the label."""
    limit = {"name": "node-limit", "arguments": {"minNodes": 1, "maxNodes": 1}}
    warm = {"warmupLabel": WARM, "warmupLabelValue": value}
    mine = {"name": "volcano", "policies": [{"name": "warmup", "arguments": warm}, limit]}
    rest = {"name": "others", "policies": [{"name": "node-limit", "arguments": {"maxNodes": 9}}]}
    text = yaml.safe_dump({"schedulerConfigs": [mine, rest], "shardSyncPeriod": "1s"})
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-sharding-configmap", "namespace": HOME},
        "data": {"sharding.yaml": text},
    }


def shard(space: Any, name: str = "volcano") -> tuple[list[str], list[str]]:
    """Return the nodes that a scheduler should use, and those that it uses."""
    found = {each["metadata"]["name"]: each for each in space.kubectl.items("nodeshards")}
    one = found.get(name, {"spec": {"nodesDesired": []}})
    return one["spec"]["nodesDesired"], one.get("status", {}).get("nodesInUse", [])


def test_a_scheduler_keeps_to_its_shard_and_follows_it(
    space: Any, servers: Any, scheduler: Any, kubectl: Any
) -> None:
    space.nodes(3, cpu=2)
    space.kubectl("label", "node/node-1", f"{WARM}=first")
    kubectl.apply(settings("first"))
    flags = {"controllers": "*", "kube-api-qps": 500, "kube-api-burst": 1000}
    with (
        servers.serving("controllers", flags),
        scheduler(scheduler_sharding_mode="hard"),
    ):
        until("the shard", lambda: shard(space), lambda seen: seen == (["node-1"], ["node-1"]))
        assert sorted(shard(space, "others")[0]) == ["node-0", "node-2"]
        space.kubectl.apply(job("a", replicas=2))
        space.wait_running("a", 2)
        assert {*space.placed("a").values()} == {"node-1"}
        space.kubectl.apply(job("b"))
        until(
            "why it waits",
            lambda: [each["message"] for each in space.events("FailedScheduling")],
            lambda seen: any("node isn't in scheduler node shard" in each for each in seen),
        )
        space.kubectl("label", "node/node-2", f"{WARM}=second")
        kubectl.apply(settings("second"))
        space.wait_running("b", 1)
        assert {*space.placed("b").values()} == {"node-2"}
        assert shard(space) == (["node-2"], ["node-2"])
        stray = {"apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard"}
        kubectl.apply({**stray, "metadata": {"name": "stray"}, "spec": {"nodesDesired": []}})
        names = lambda: {each["metadata"]["name"] for each in kubectl.items("nodeshards")}  # noqa: E731
        until("no shard without a scheduler", names, lambda seen: seen == {"volcano", "others"})
    space.kubectl("delete", "nodeshards", "--all")
    kubectl("delete", "configmap", "volcano-sharding-configmap", "-n", HOME)
