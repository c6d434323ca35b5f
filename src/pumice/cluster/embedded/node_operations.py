"""Operations on nodes: add and lose; on the embedded store."""

from collections.abc import Mapping, Sequence

from pumice.api.annotations import HOSTNAME
from pumice.api.kinds import Manifest
from pumice.api.times import rfc3339
from pumice.cluster.embedded.pods import with_condition
from pumice.cluster.embedded.store import EmbeddedCluster

_OVER = frozenset({"Succeeded", "Failed"})


def add_node(
    cluster: EmbeddedCluster,
    name: str,
    resources: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Manifest] = (),
) -> Manifest:
    """Add a node that is ready and has these resources; pods default to 110."""
    amounts = {"pods": "110", **resources}
    now = rfc3339(cluster.now())
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    node: Manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "capacity": dict(amounts),
            "allocatable": dict(amounts),
            "conditions": with_condition((), ready, now),
        },
    }
    return cluster.create(node)


def lose(cluster: EmbeddedCluster, name: str) -> list[str]:
    """Remove a node with all its pods; return "namespace/name" of each pod lost."""
    cluster.delete("Node", "", name)
    return lose_pods(cluster, name)


def lose_pods(cluster: EmbeddedCluster, name: str) -> list[str]:
    """Remove the pods of a node that is gone; return "namespace/name" of each.

    As on a real cluster pods that have not ended fail first, so that their owners see the reason.
    """
    lost = []
    for pod in pods_on(cluster, name):
        namespace, pod_name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if (pod.get("status") or {}).get("phase") not in _OVER:
            status = {"phase": "Failed", "reason": "NodeLost", "message": f"node {name} is gone"}
            cluster.merge_status("Pod", namespace, pod_name, status)
        cluster.delete("Pod", namespace, pod_name, grace_s=0)
        lost.append(f"{namespace}/{pod_name}")
    return lost


def pods_on(cluster: EmbeddedCluster, name: str) -> list[Manifest]:
    """Return the pods bound to a node."""
    return [pod for pod in cluster.list("Pod")[0] if pod["spec"].get("nodeName") == name]
