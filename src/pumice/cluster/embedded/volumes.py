"""Binds claims to volumes and provisions volumes, as Kubernetes and a storage driver would.

A claim whose class waits for the first consumer is bound to the volume that is kept for it, or
gets one provisioned once a node is selected.  Every provisioner is simulated, without limit.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pumice.api.annotations import BIND_COMPLETED, BOUND_BY_CONTROLLER, HOSTNAME
from pumice.api.kinds import CLAIM, STORAGE_CLASS, VOLUME, Manifest
from pumice.api.objects import from_manifest
from pumice.api.storage import (
    STATIC_ONLY,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from pumice.cluster.embedded.status_upkeep import selects
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import InputError

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_Thing = TypeVar("_Thing")


def provisioned_volume(claim: Manifest, made_by: StorageClass, node: Manifest | None) -> Manifest:
    """Return the volume that a provisioner makes for a claim, on the disk of a node if given."""
    spec, meta = claim.get("spec") or {}, claim["metadata"]
    volume: Manifest = {
        "capacity": (spec.get("resources") or {}).get("requests") or {},
        "accessModes": spec.get("accessModes") or [],
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        "storageClassName": made_by.metadata.name,
        "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": _reference(claim),
    }
    if node is not None:
        name = (node["metadata"].get("labels") or {}).get(HOSTNAME)
        key, where = (HOSTNAME, "matchExpressions") if name else ("metadata.name", "matchFields")
        only = {"key": key, "operator": "In", "values": [name or node["metadata"]["name"]]}
        volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{where: [only]}]}}
    return {
        "apiVersion": "v1",
        "kind": VOLUME,
        "metadata": {
            "name": f"pvc-{meta.get('uid') or '-'.join(_place(meta))}",
            "annotations": {PROVISIONED_BY: made_by.provisioner},
        },
        "spec": volume,
    }


def kept(volume: Manifest, claim: Manifest) -> Manifest:
    """Return the changes to a volume that bind it to a claim."""
    owner = (volume.get("spec") or {}).get("claimRef")
    changes: Manifest = {"spec": {"claimRef": _reference(claim)}}
    if not owner:
        changes["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return changes


def bound(claim: Manifest, volume: Manifest) -> Manifest:
    """Return the changes to a claim, status apart, that bind it to a volume."""
    marks = {BIND_COMPLETED: "yes"}
    if not (claim.get("spec") or {}).get("volumeName"):
        marks[BOUND_BY_CONTROLLER] = "yes"
    return {
        "metadata": {"annotations": marks},
        "spec": {"volumeName": volume["metadata"]["name"]},
    }


def bound_status(volume: Manifest) -> Manifest:
    """Return the status of a claim that has a volume."""
    spec = volume.get("spec") or {}
    given = {"accessModes": spec.get("accessModes") or [], "capacity": spec.get("capacity") or {}}
    return {"phase": "Bound", **given}


def _reference(claim: Manifest) -> Manifest:
    meta = claim["metadata"]
    namespace, name = _place(meta)
    place = {"namespace": namespace, "name": name, "uid": meta.get("uid", "")}
    return {"apiVersion": "v1", "kind": CLAIM, **place}


def _place(metadata: Manifest) -> tuple[str, str]:
    return metadata.get("namespace") or "default", metadata["name"]


class VolumeController:
    """Works on one embedded cluster; ``sync`` costs nothing while there are no volumes."""

    def __init__(self, cluster: EmbeddedCluster, *, provisions: bool = True) -> None:
        """Make one; without ``provisions`` no driver makes volumes."""
        self._cluster = cluster
        self._provisions = provisions
        self._seen = -1

    def sync(self) -> None:
        """Bind what can be bound and write the phase of each volume."""
        cluster = self._cluster
        if cluster.version == self._seen:
            return
        for manifest in cluster.list(CLAIM)[0]:
            claim = _read(manifest, PersistentVolumeClaim)
            if claim is not None and not claim.is_bound and not claim.metadata.deletion_timestamp:
                self._serve(manifest, claim)
        for manifest in cluster.list(VOLUME)[0]:
            self._report_phase(manifest)
        self._seen = cluster.version

    def _serve(self, manifest: Manifest, claim: PersistentVolumeClaim) -> None:
        """Bind a claim if there is a volume for it, or one can be made."""
        found = self._cluster.list(STORAGE_CLASS)[0]
        classes = {each["metadata"]["name"]: each for each in found}
        made_by = _read(classes.get(claim.class_name), StorageClass)
        waits = made_by is not None and made_by.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        volume = self._matching(claim, manifest, waits=waits)
        selected = claim.selected_node
        if volume is None and made_by is not None and (not waits or selected is not None):
            volume = self._provision(manifest, made_by, selected)
        if volume is not None:
            self._bind(manifest, volume)

    def _matching(
        self, claim: PersistentVolumeClaim, manifest: Manifest, *, waits: bool
    ) -> Manifest | None:
        """Return the volume that is kept for a claim, or the smallest that suits it."""
        named, selector = claim.spec.volume_name, (manifest.get("spec") or {}).get("selector")
        suited: list[tuple[int, str, Manifest]] = []
        for one in self._cluster.list(VOLUME)[0]:
            volume = _read(one, PersistentVolume)
            if volume is None or named not in ("", volume.metadata.name):
                continue
            if volume.is_for(claim):
                return one
            free = volume.spec.claim_ref is None and (named or not waits)
            labelled = selector is None or selects(selector, volume.metadata.labels)
            if free and labelled and _suits(volume, claim):
                suited.append((volume.size, volume.metadata.name, one))
        return min(suited, key=lambda each: each[:2])[2] if suited else None

    def _provision(
        self, claim: Manifest, made_by: StorageClass, selected: str | None
    ) -> Manifest | None:
        """Make a volume, None if no driver does; the selection of a missing node is undone."""
        if not self._provisions or made_by.provisioner in ("", STATIC_ONLY):
            return None
        node = None if selected is None else self._cluster.peek("Node", "", selected)
        if selected is not None and node is None:
            return None
        return self._cluster.create(provisioned_volume(claim, made_by, node))

    def _bind(self, claim: Manifest, volume: Manifest) -> None:
        cluster, meta = self._cluster, claim["metadata"]
        name, place = volume["metadata"]["name"], (meta["namespace"], meta["name"])
        cluster.patch(VOLUME, "", name, kept(volume, claim))
        cluster.merge_status(VOLUME, "", name, {"phase": "Bound"})
        cluster.patch(CLAIM, *place, bound(claim, volume))
        cluster.merge_status(CLAIM, *place, bound_status(volume))

    def _report_phase(self, volume: Manifest) -> None:
        """Write whether a volume is free, bound or left over; delete a provisioned one again."""
        spec, meta = volume.get("spec") or {}, volume["metadata"]
        name, marks = meta["name"], meta.get("annotations") or {}
        owner, phase = spec.get("claimRef"), (volume.get("status") or {}).get("phase", "")
        if not owner and phase in ("", "Pending"):
            self._cluster.merge_status(VOLUME, "", name, {"phase": "Available"})
        elif owner and phase == "Bound" and self._claim_of(owner) is None:
            if PROVISIONED_BY in marks:
                self._cluster.delete(VOLUME, "", name)
            else:
                self._cluster.merge_status(VOLUME, "", name, {"phase": "Released"})
        elif owner and BOUND_BY_CONTROLLER in marks and self._has_another(owner, name):
            free = {"annotations": {BOUND_BY_CONTROLLER: None}}
            self._cluster.patch(VOLUME, "", name, {"metadata": free, "spec": {"claimRef": None}})
            self._cluster.merge_status(VOLUME, "", name, {"phase": "Available"})

    def _has_another(self, owner: Mapping[str, Any], name: str) -> bool:
        """Return whether the claim of a volume was bound to another one in the end."""
        claim = self._claim_of(owner)
        return claim is not None and claim["spec"].get("volumeName", name) != name

    def _claim_of(self, owner: Mapping[str, Any]) -> Manifest | None:
        found = self._cluster.peek(CLAIM, str(owner.get("namespace")), str(owner.get("name")))
        same = found is not None and owner.get("uid") in (None, "", found["metadata"]["uid"])
        return found if same else None


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    alike = (volume.class_name, volume.sort) == (claim.class_name, claim.sort)
    alike &= not volume.metadata.deletion_timestamp
    modes = set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    return alike and modes and volume.size >= claim.size


def _read(manifest: Manifest | None, kind: type[_Thing]) -> _Thing | None:
    """Read an object; None if absent or unreadable."""
    if manifest is None:
        return None
    try:
        thing = from_manifest(manifest)
    except InputError:
        return None
    return thing if isinstance(thing, kind) else None
