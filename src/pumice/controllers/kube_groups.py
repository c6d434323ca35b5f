"""Kubernetes' own gangs (``scheduling.k8s.io``): what a PodGroup asks for, and its condition.

The pods of one have a Volcano PodGroup that follows it, as plain pods of one owner have; all else
knows only that.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pumice.api.kinds import HYPER_NODE, Manifest
from pumice.api.times import rfc3339
from pumice.controllers.base import View

_STARTED: Final = frozenset({"Running", "Completed"})
"""Phases of a Volcano PodGroup of which enough pods have a node, or had one."""
_OLD: Final = "scheduling.k8s.io/v1alpha2"


def gang_of(pod: Mapping[str, Any]) -> str:
    """Name the Kubernetes PodGroup of a pod, empty if it names none."""
    group = (pod.get("spec") or {}).get("schedulingGroup")
    return str((group or {}).get("podGroupName") or "")


def min_member(gang: Manifest) -> int:
    """Return how many pods must be able to start together; under the policy ``basic`` one."""
    policy: dict[str, Any] = gang["spec"].get("schedulingPolicy") or {}
    return int((policy.get("gang") or {}).get("minCount") or 1)


def topology_key(gang: Manifest) -> str:
    """Return the label of nodes whose value all pods must share, empty if none."""
    constraints = gang["spec"].get("schedulingConstraints") or {}
    return "".join(str(one["key"]) for one in (constraints.get("topology") or ())[:1])


def missing_tier(gang: Manifest, hyper_nodes: Iterable[Manifest]) -> str:
    """Return the label by which pods must be together, if no HyperNode stands for its values."""
    key = topology_key(gang)
    if not key or any(one["spec"].get("tierName") == key for one in hyper_nodes):
        return ""
    return key


def tier_missing_for(gang: Manifest, view: View) -> str:
    """Return the same in a cluster."""
    return missing_tier(gang, view.list(HYPER_NODE)) if topology_key(gang) else ""


def scheduled_status(gang: Manifest, group: Manifest | None, view: View) -> Manifest | None:
    """Return the status that a Kubernetes PodGroup is to have, None if it has it.

    As kube-scheduler writes it: once the gang was scheduled, that stays.
    """
    status, reason, message = _verdict(gang, group, view)
    kind = "PodGroupScheduled" if gang["apiVersion"] == _OLD else "PodGroupInitiallyScheduled"
    conditions: list[Manifest] = (gang.get("status") or {}).get("conditions") or []
    known = next((one for one in conditions if one["type"] == kind), {})
    said = known.get("status"), known.get("reason"), known.get("message", "")
    if not status or said == (status, reason, message) or known.get("status") == "True":
        return None
    is_same = known.get("status") == status
    condition = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": known["lastTransitionTime"] if is_same else rfc3339(view.now),
        "observedGeneration": gang["metadata"].get("generation", 0),
    }
    return {"conditions": [*(one for one in conditions if one["type"] != kind), condition]}


def _verdict(gang: Manifest, group: Manifest | None, view: View) -> tuple[str, str, str]:
    """Return status, reason and message of the condition; nothing if there is nothing to tell."""
    if group is None:
        tier = tier_missing_for(gang, view)
        message = f"no HyperNode has the tierName {tier}: turn on HyperNode discovery by this label"
        return ("False", "Unschedulable", message) if tier else ("", "", "")
    stated = group.get("status") or {}
    if stated.get("phase") in _STARTED:
        return "True", "Scheduled", ""
    for one in stated.get("conditions") or ():
        if one.get("type") == "Unschedulable" and one.get("status") == "True":
            return "False", "Unschedulable", str(one.get("message") or "")
    return "", "", ""
