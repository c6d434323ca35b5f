"""Where the volumes of a pod are, and where the nodes are that do not reach them."""

from typing import Any, Final

import numpy as np

from pumice.api.annotations import OLD_ZONE, ZONE
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task

_MOST_NODES: Final = 20
"""Nodes whose zones the numbers of a finding list."""


def volume_numbers(snapshot: Snapshot, task: Task, refused: Mask) -> dict[str, Any]:
    """Return the first bound volume of a pod with its zone, and the zones of refused nodes."""
    claims, volumes = snapshot.kind("PersistentVolumeClaim"), snapshot.kind("PersistentVolume")
    space = task.shape.namespace
    for volume in task.shape.spec.volumes:
        source = volume.persistent_volume_claim
        claim = claims.get(f"{space}/{source.claim_name}") if source is not None else None
        found = volumes.get(claim.spec.volume_name) if claim is not None else None
        if claim is None or found is None:
            continue
        numbers = {"volumeClaim": claim.metadata.name, "volume": found.metadata.name}
        reach = _reach(found)
        if reach:
            numbers["reachableFrom"] = reach
        key, zone = _zone_of(found)
        if not key:
            return numbers if reach else {}
        labels, names = snapshot.nodes.labels, snapshot.nodes.names
        rows = np.flatnonzero(refused)[:_MOST_NODES].tolist()
        zones = {names[row]: str(labels[row].get(key) or "") for row in rows}
        if {*zones.values()} <= {*zone.split(", ")}:
            continue  # the nodes are in its zone, so it is another one
        return numbers | {"zone": zone, "nodeZones": zones}
    return {}


def _zone_of(volume: Any) -> tuple[str, str]:
    """Return the zone of a volume, by its labels or its node affinity, with its node label."""
    for key in (ZONE, OLD_ZONE):
        if volume.metadata.labels.get(key):
            return key, str(volume.metadata.labels[key]).replace("__", ", ")
    for term in _terms(volume):
        for each in term.match_expressions:
            if each.key.rpartition("/")[2] == "zone" and each.operator == "In":
                return each.key, ", ".join(each.values)
    return "", ""


def _reach(volume: Any) -> str:
    """Write all that a volume asks of nodes."""
    return "; or ".join(
        " and ".join(
            f"{each.key} {each.operator} {','.join(each.values)}".strip()
            for each in (*term.match_expressions, *term.match_fields)
        )
        for term in _terms(volume)
    )


def _terms(volume: Any) -> Any:
    required = volume.spec.node_affinity and volume.spec.node_affinity.required
    return required.node_selector_terms if required else ()
