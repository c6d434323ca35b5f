"""An API server's work on pods beyond storing them: priority, binding, disruption.

Pure functions on manifests; used by the store, which stores the results.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api.kinds import SYSTEM_PRIORITIES, Manifest
from pumice.errors import ConflictError, RejectedError


def prioritised(pod: Manifest, classes: Iterable[Manifest]) -> None:
    """Write the priority of a new pod by its priority class, in place.

    Raises:
        RejectedError: there is no such priority class.
    """
    spec = pod["spec"]
    name = spec.get("priorityClassName") or ""
    known = {c["metadata"]["name"]: c for c in classes}
    if not name and "priority" not in spec:
        defaults = (name for name, one in known.items() if one.get("globalDefault"))
        name = min(defaults, key=lambda one: int(known[one].get("value", 0)), default="")
    if not name:
        spec.setdefault("priority", 0)
        return
    found = known.get(name)
    value = SYSTEM_PRIORITIES.get(name) if found is None else found.get("value", 0)
    if value is None:
        meta = pod["metadata"]
        problem = f"no PriorityClass with name {name} was found"
        raise RejectedError("Pod", meta["namespace"], meta["name"], problem)
    spec["priorityClassName"], spec["priority"] = name, value
    policy = (found or {}).get("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("preemptionPolicy", policy)


def with_condition(
    conditions: Iterable[Mapping[str, Any]] | None, new: Mapping[str, Any], now: str
) -> list[Mapping[str, Any]]:
    """Put a condition among others, one of each type; its time moves only with its status."""
    out: list[Mapping[str, Any]] = []
    changed = now
    place = None
    for condition in conditions or ():
        if condition["type"] == new["type"]:
            place = len(out)
            if condition.get("status") == new["status"]:
                changed = condition.get("lastTransitionTime", now)
        out.append(condition)
    written = {**new, "lastTransitionTime": changed}
    if place is None:
        out.append(written)
    else:
        out[place] = written
    return out


def bound(pod: Manifest, node: str, annotations: Mapping[str, str], now: str) -> Manifest:
    """Return a pod after it is bound to a node.

    Raises:
        ConflictError: it has one, a gate holds it back, or it is being deleted.
    """
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    problem = ""
    if spec.get("nodeName"):
        problem = f"pod is already assigned to node {spec['nodeName']}"
    elif metadata.get("deletionTimestamp"):
        problem = "pod is being deleted, cannot be assigned to a host"
    elif spec.get("schedulingGates"):
        problem = f"pod {metadata['name']} has non-empty .spec.schedulingGates"
    if problem:
        raise ConflictError("Pod", metadata["namespace"], metadata["name"], problem)
    metadata = {**metadata, "generation": metadata.get("generation", 0) + 1}
    if annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    status = dict(pod.get("status") or {})
    status.pop("nominatedNodeName", None)
    scheduled = {"type": "PodScheduled", "status": "True"}
    status["conditions"] = with_condition(status.get("conditions"), scheduled, now)
    return {**pod, "metadata": metadata, "spec": {**spec, "nodeName": node}, "status": status}


def disrupted(pod: Manifest, reason: str, now: str) -> Manifest:
    """Return a pod after its eviction is decided."""
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": reason,
    }
    status = dict(pod.get("status") or {})
    status["conditions"] = with_condition(status.get("conditions"), target, now)
    return {**pod, "metadata": dict(pod["metadata"]), "status": status}
