"""What every pod of an installation must promise, asked of manifests however they were made."""

from collections.abc import Iterator
from typing import Any

PORTS = {"scheduler": 8080, "controllers": 8081, "webhooks": 8443}


def pods_in(documents: Any) -> Iterator[Any]:
    """Return name and specification of every pod that would be made."""
    for document in documents:
        if document["kind"] in {"Deployment", "Job", "DaemonSet", "StatefulSet"}:
            yield document["metadata"]["name"], document["spec"]["template"]["spec"]


def weaknesses(pod: Any) -> Any:
    """List unnecessary rights of a pod, and missing settings."""
    found = []
    context = pod.get("securityContext") or {}
    if not (context.get("runAsNonRoot") and context.get("runAsUser", 0) > 0):
        found.append("may run as root")
    if (context.get("seccompProfile") or {}).get("type") != "RuntimeDefault":
        found.append("has no seccomp profile")
    if any(pod.get(field) for field in ("hostNetwork", "hostPID", "hostIPC")):
        found.append("shares something with the host")
    if any("hostPath" in volume for volume in pod.get("volumes", [])):
        found.append("mounts a path of the host")
    for container in pod.get("initContainers", []) + pod["containers"]:
        found += [f"{container['name']}: {one}" for one in _weaknesses_of(container)]
    return found


def _weaknesses_of(container: Any) -> Iterator[Any]:
    context = container.get("securityContext") or {}
    if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
        yield "may gain privileges"
    if context.get("readOnlyRootFilesystem") is not True:
        yield "may write its root file system"
    if context.get("runAsNonRoot") is not True:
        yield "may run as root"
    capabilities = context.get("capabilities") or {}
    if capabilities.get("drop") != ["ALL"] or capabilities.get("add"):
        yield "has capabilities"
    resources = container.get("resources") or {}
    if not {"cpu", "memory"} <= (resources.get("requests") or {}).keys():
        yield "does not say what it needs"
    if "memory" not in (resources.get("limits") or {}):
        yield "may take all memory"
    if container["image"].endswith(":latest") or ":" not in container["image"]:
        yield "runs an image of no certain version"


def served(documents: Any) -> Any:
    """Return the deployments by the process that each runs."""
    return {
        one["spec"]["template"]["spec"]["containers"][0]["args"][1]: one
        for one in documents
        if one["kind"] == "Deployment"
    }
