"""Manifests of pages on a whole embedded cluster."""

import re
from pathlib import Path

from pumice.api.manifests import load_values
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import all_controllers
from pumice.controllers.workloads import WorkloadController
from pumice.serve.embedded import EmbeddedControlPlane

DOCS = Path(__file__).parents[2] / "docs"
VOLCANO = "PodGroup.scheduling.volcano.sh"


def applied(page: str) -> EmbeddedCluster:
    """Apply the first manifests of a page to a cluster with a node of 4 CPU; return it later."""
    cluster = EmbeddedCluster(VirtualClock())
    plane = EmbeddedControlPlane(
        controllers=(*all_controllers(), WorkloadController()), cluster=cluster
    )
    add_node(cluster, "n", {"cpu": "4", "memory": "64Gi", "pods": "100"})
    for name in ("research", "serving"):
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        cluster.create({**queue, "metadata": {"name": name}, "spec": {"weight": 1}})
    block = re.search(r"```yaml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert block
    found = load_values(block[1])
    for one in found[0].get("objects", found):
        if one["kind"] not in ("Node", "Queue"):
            one["metadata"]["namespace"] = "default"
            cluster.create(one)
    plane.run(cluster.now() + 30)
    return cluster


def test_plain_workloads_get_the_groups_of_their_page() -> None:
    cluster = applied("integrations/plain-workloads.md")
    found = {
        one["metadata"]["ownerReferences"][0]["kind"]: (
            one["spec"]["minMember"],
            one["spec"]["queue"],
            one["status"]["phase"] == "Running",
        )
        for one in cluster.list(VOLCANO)[0]
    }
    assert found == {"Job": (3, "research", False), "ReplicaSet": (1, "serving", True)}


def test_a_group_of_kubernetes_gets_its_condition() -> None:
    """Two pods of 3 CPU wait whole on a node of 4."""
    cluster = applied("integrations/kubernetes-gangs.md")
    told = cluster.get("PodGroup.scheduling.k8s.io", "default", "train")["status"]["conditions"]
    assert [(one["status"], one["reason"]) for one in told] == [("False", "Unschedulable")]
    assert [one["spec"]["queue"] for one in cluster.list(VOLCANO)[0]] == ["research"]
    assert not any(one["spec"].get("nodeName") for one in cluster.list("Pod")[0])
