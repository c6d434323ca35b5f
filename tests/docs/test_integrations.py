"""The manifests of plain workloads on their page, on a whole embedded cluster."""

import re
from pathlib import Path

from pumice.api.manifests import load_values
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import all_controllers
from pumice.controllers.workloads import WorkloadController
from pumice.serve.embedded import EmbeddedControlPlane

PAGE = Path(__file__).parents[2] / "docs" / "integrations" / "plain-workloads.md"


def test_plain_workloads_get_the_groups_of_their_page() -> None:
    cluster = EmbeddedCluster(VirtualClock())
    plane = EmbeddedControlPlane(
        controllers=(*all_controllers(), WorkloadController()), cluster=cluster
    )
    add_node(cluster, "n", {"cpu": "4", "memory": "64Gi", "pods": "100"})
    for name in ("research", "serving"):
        metadata = {"name": name}
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        cluster.create({**queue, "metadata": metadata, "spec": {"weight": 1}})
    block = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block
    for manifest in load_values(block[1]):
        manifest["metadata"]["namespace"] = "default"
        cluster.create(manifest)
    plane.run(cluster.now() + 30)
    groups = cluster.list("PodGroup.scheduling.volcano.sh")[0]
    found = {
        one["metadata"]["ownerReferences"][0]["kind"]: (
            one["spec"]["minMember"],
            one["spec"]["queue"],
            one["status"]["phase"] == "Running",
        )
        for one in groups
    }
    assert found == {"Job": (3, "research", False), "ReplicaSet": (1, "serving", True)}
