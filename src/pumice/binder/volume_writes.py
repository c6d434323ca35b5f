"""The writes that get a claim its volume; used for binding volumes, pure.

Each is for the object as it was seen: any change meanwhile is a conflict, so that no volume
is assigned twice.
"""

from pumice.api.annotations import BOUND_BY_CONTROLLER, SELECTED_NODE
from pumice.api.kinds import Manifest
from pumice.api.meta import ObjectMeta
from pumice.api.storage import PersistentVolume, PersistentVolumeClaim


def select_node(claim: PersistentVolumeClaim, node: str) -> Manifest:
    """Return the patch of a claim that gets a volume provisioned for a node."""
    return {"metadata": {**_as_seen(claim.metadata), "annotations": {SELECTED_NODE: node}}}


def keep_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Manifest:
    """Return the patch of a volume that keeps it for a claim.

    One that its user has reserved for the claim does not become one that a controller assigned.
    """
    metadata = _as_seen(volume.metadata)
    if not volume.is_for(claim):
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    meta = claim.metadata
    owner = {
        "apiVersion": claim.API_VERSION,
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
    return {"metadata": metadata, "spec": {"claimRef": owner}}


def _as_seen(metadata: ObjectMeta) -> Manifest:
    return {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
