"""ReplicaSets: as many equal pods as asked for."""

from typing import Any

from pumice.api.kinds import POD, Manifest
from pumice.controllers.base import Create, Effect, Key, Plan, View
from pumice.controllers.ownership import controller_of
from pumice.controllers.workloads.template import (
    AT_ONCE,
    DEPLOYMENT,
    availability,
    is_active,
    is_ready,
    new_status,
    phase,
    pod_of,
    removal,
    replicas_of,
)


def reconcile_replica_set(owner: Manifest, view: View) -> Plan:
    """Make missing pods, delete those beyond the number asked for, count the others."""
    spec = owner.get("spec") or {}
    owned = view.owned_by(POD, owner)
    pods = [pod for pod in owned if is_active(pod)]
    missing = replicas_of(owner) - len(pods)
    effects: list[Effect] = []
    if missing > 0 and spec.get("template"):
        name = f"{owner['metadata']['name']}-"
        made = min(missing, AT_ONCE)
        effects += [Create(pod_of(owner, spec["template"], generateName=name)) for _ in range(made)]
    elif missing < 0:
        effects += [removal(pod) for pod in sorted(pods, key=_keep_last)[:-missing]]
    available, next_in_s = availability(pods, spec.get("minReadySeconds") or 0, view.now)
    status = {
        "replicas": len(pods),
        "fullyLabeledReplicas": len(pods) or None,
        "readyReplicas": sum(map(is_ready, pods)) or None,
        "availableReplicas": available or None,
        "observedGeneration": owner["metadata"].get("generation", 1),
    }
    above = [] if owned else _deployments(owner)
    return Plan([*new_status(owner, status), *effects], again_in_s=next_in_s, look_at=above)


def _deployments(owner: Manifest) -> list[Key]:
    """Name the Deployment that may wait until the last pod of a ReplicaSet is gone."""
    above = controller_of(owner)
    if above is None or above.get("kind") != "Deployment" or replicas_of(owner):
        return []
    return [Key(DEPLOYMENT, owner["metadata"]["namespace"], str(above["name"]))]


def _keep_last(pod: Manifest) -> tuple[Any, ...]:
    """Return by what to delete pods in turn: those that have come least far, then the youngest."""
    placed = bool(pod["spec"].get("nodeName"))
    metadata = pod["metadata"]
    age = tuple(-ord(letter) for letter in str(metadata.get("creationTimestamp") or ""))
    return placed, phase(pod) == "Running", is_ready(pod), age, metadata["name"]
