"""Operations on nodes: add, register and lose; on the embedded store."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pumice.api.annotations import HOSTNAME
from pumice.api.kinds import EMBEDDED_BUILD, Manifest
from pumice.api.times import rfc3339
from pumice.cluster.embedded.pods import with_condition
from pumice.cluster.embedded.store import EmbeddedCluster

_OVER = frozenset({"Succeeded", "Failed"})
_SYSTEM: Final[Mapping[str, str]] = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
_INFO: Final[Mapping[str, str]] = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "pumice://none",
    "kernelVersion": "",
    "kubeProxyVersion": "",
    "kubeletVersion": f"v1.32.0{EMBEDDED_BUILD}",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "simulated",
    "systemUUID": "",
}


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
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "capacity": dict(amounts),
            "allocatable": dict(amounts),
            "conditions": with_condition((), ready, now),
        },
    }
    return cluster.create(registered(node, cluster.version))


def registered(node: Manifest, number: int) -> Manifest:
    """Return a new node with what its kubelet reports of it; ``number`` makes its address."""
    metadata, status = node.get("metadata"), node.get("status") or {}
    if not isinstance(metadata, dict) or not isinstance(status, dict):
        return node  # it will be refused
    name = metadata.get("name")
    address = f"172.{16 + number // 65024 % 16}.{number // 254 % 256}.{number % 254 + 1}"
    addresses = [
        {"type": "InternalIP", "address": address},
        {"type": "Hostname", "address": name},
    ]
    labels = {HOSTNAME: name, **_SYSTEM, **_known(metadata.get("labels"))}
    status = {
        "addresses": addresses,
        **status,
        "nodeInfo": {**_INFO, **_known(status.get("nodeInfo"))},
    }
    return {**node, "metadata": {**metadata, "labels": labels}, "status": status}


def address_of(node: Manifest) -> str:
    """Return the address of a node inside the cluster, empty if it states none."""
    for one in (node.get("status") or {}).get("addresses") or ():
        if one.get("type") == "InternalIP":
            return str(one.get("address") or "")
    return ""


def _known(part: Any) -> Mapping[str, Any]:
    return part if isinstance(part, dict) else {}


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
