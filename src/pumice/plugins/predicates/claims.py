"""The volume claims of pods: which are bound to what, and which must find a volume first.

Reads storage objects once for each session; promises made to placed pods are journaled.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.api.annotations import BIND_COMPLETED
from pumice.api.quantity import value
from pumice.api.storage import PersistentVolume, PersistentVolumeClaim
from pumice.core.labels import node_labels
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task

SELECTED_NODE = "volume.kubernetes.io/selected-node"
STATIC_ONLY = "kubernetes.io/no-provisioner"
WAIT = "WaitForFirstConsumer"


@dataclass(frozen=True)
class Promise:
    """What a claim gets because a pod that uses it was placed: a volume, or one made on a node."""

    volume: str
    node: int


class Claims:
    """The claims of a session's pods."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._labels = node_labels(snapshot)
        self._claims: dict[str, PersistentVolumeClaim] = snapshot.kind("PersistentVolumeClaim")
        self._volumes: dict[str, PersistentVolume] = snapshot.kind("PersistentVolume")
        self._classes: dict[str, Any] = snapshot.kind("StorageClass")
        self._keys: dict[int, tuple[str, ...]] = {}
        self._reach: dict[str, Mask] = {}
        self.promises: dict[str, Promise] = {}

    def keys(self, task: Task) -> tuple[str, ...]:
        """List the claims that a pod's volumes use."""
        found = self._keys.get(task.shape.id)
        if found is not None:
            return found
        spec, space = task.shape.spec, task.shape.namespace
        names = [
            f"{space}/{each.persistent_volume_claim.claim_name}"
            if each.persistent_volume_claim is not None
            else f"{space}/{task.name}-{each.name}"
            for each in spec.volumes
            if each.persistent_volume_claim is not None or each.ephemeral is not None
        ]
        found = tuple(dict.fromkeys(names))
        if not names_its_pod(task):
            self._keys[task.shape.id] = found
        return found

    def problem(self, task: Task, *, must_bind: bool) -> str:
        """Say why no node can give a pod its volumes; empty if one may."""
        for key in self.keys(task):
            claim = self._claims.get(key)
            name = key.partition("/")[2]
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if claim.metadata.deletion_timestamp:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if claim.status.phase == "Lost":
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume'
            problem = self._cannot_wait(claim) if must_bind and not self._is_bound(claim) else ""
            if problem:
                return problem
        return self._foreign(task) if names_its_pod(task) else ""

    def _foreign(self, task: Task) -> str:
        """Say that a claim with the name of a pod's own one was made for somebody else."""
        uid = task.pod.metadata.uid
        for each in task.shape.spec.volumes:
            name = f"{task.name}-{each.name}"
            if each.ephemeral is None:
                continue
            owners = self._claims[f"{task.namespace}/{name}"].metadata.owner_references
            if not any(owner.controller and owner.uid == uid for owner in owners):
                return f'persistentvolumeclaim "{name}" was not created for the pod'
        return ""

    def _is_bound(self, claim: PersistentVolumeClaim) -> bool:
        done = BIND_COMPLETED in claim.metadata.annotations or claim.status.phase == "Bound"
        return bool(claim.spec.volume_name) and done

    def _cannot_wait(self, claim: PersistentVolumeClaim) -> str:
        """Say why an unbound claim does not leave its volume to the scheduler."""
        wanted = claim.spec.storage_class_name or ""
        if wanted and wanted not in self._classes:
            return f'storageclass "{wanted}" not found'
        if not wanted or claim.spec.volume_name:
            return "pod has unbound immediate PersistentVolumeClaims"
        if self._classes[wanted].volume_binding_mode != WAIT:
            return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def volumes(self, task: Task) -> Iterable[PersistentVolume]:
        """Give the volumes that a pod's claims are bound to."""
        for key in self.keys(task):
            claim = self._claims.get(key)
            if claim is not None and claim.spec.volume_name in self._volumes:
                yield self._volumes[claim.spec.volume_name]

    def handle(self, key: str) -> tuple[str, str] | None:
        """Give the driver of a claim's volume and a name for the volume; None: no such driver."""
        claim = self._claims.get(key)
        if claim is None:
            return None
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is not None:
            source = volume.spec.csi
            return (source.driver, source.volume_handle) if source and source.driver else None
        known = self._classes.get(claim.spec.storage_class_name or "")
        return (known.provisioner, f"claim {key}") if known and known.provisioner else None

    # Nodes

    def bound_fits(self, task: Task) -> Mask | None:
        """Mark nodes that reach all bound volumes of a pod; None: all (n,)."""
        fits: Mask | None = None
        for key in self.keys(task):
            claim = self._claims.get(key)
            promise = self.promises.get(key)
            if claim is not None and self._is_bound(claim):
                here = self._reached_by(claim.spec.volume_name)
            elif promise is not None:
                here = self._kept(promise)
            else:
                continue
            fits = here if fits is None else fits & here
        return fits

    def _kept(self, promise: Promise) -> Mask:
        if promise.volume:
            return self._reached_by(promise.volume)
        here = np.zeros(self._snapshot.nodes.n, dtype=bool)
        here[promise.node] = True
        return here

    def _reached_by(self, name: str) -> Mask:
        """Mark nodes that reach a volume; none reaches one that does not exist (n,)."""
        found = self._reach.get(name)
        if found is None:
            volume = self._volumes.get(name)
            found = np.full(self._snapshot.nodes.n, volume is not None)
            affinity = None if volume is None else volume.spec.node_affinity
            if affinity is not None and affinity.required is not None:
                found = self._labels.selected(affinity.required)
            self._reach[name] = found
        return found

    def waiting(self, task: Task) -> list[str]:
        """List the claims of a pod that wait for a volume, those that ask for least first."""
        keys = [
            key
            for key in self.keys(task)
            if key in self._claims
            and key not in self.promises
            and not self._is_bound(self._claims[key])
        ]
        return sorted(keys, key=lambda key: self._size(self._claims[key]))

    def unbound_fits(self, task: Task) -> tuple[Mask, dict[str, list[tuple[str, Mask]]]]:
        """Mark nodes on which every waiting claim of a pod finds a volume or can have one made.

        Also gives, for each claim, the volumes it would take and on which nodes (n,).
        """
        n = self._snapshot.nodes.n
        fits = np.ones(n, dtype=bool)
        taken: dict[str, Mask] = {}
        picks: dict[str, list[tuple[str, Mask]]] = {}
        for key in self.waiting(task):
            claim = self._claims[key]
            lacking = np.ones(n, dtype=bool)
            for volume in self._candidates(claim, key):
                name = volume.metadata.name
                used = taken.setdefault(name, np.zeros(n, dtype=bool))
                here = lacking & self._reached_by(name) & ~used
                used |= here
                lacking &= ~here
                picks.setdefault(key, []).append((name, here))
            fits &= ~lacking | self._can_make(claim)
        return fits, picks

    def _candidates(self, claim: PersistentVolumeClaim, key: str) -> list[PersistentVolume]:
        """List free volumes that suit a claim, smallest first; one kept for it is the only one."""
        kept = {promise.volume for promise in self.promises.values()}
        found = []
        for volume in self._volumes.values():
            owner = volume.spec.claim_ref
            if owner is not None and f"{owner.namespace}/{owner.name}" == key:
                return [volume]
            if owner is None and volume.metadata.name not in kept and self._suits(claim, volume):
                found.append(volume)
        return sorted(found, key=lambda each: value(each.spec.capacity.get("storage", 0)))

    def _suits(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
        spec = volume.spec
        return (
            spec.storage_class_name == (claim.spec.storage_class_name or "")
            and volume.status.phase == "Available"
            and not volume.metadata.deletion_timestamp
            and value(spec.capacity.get("storage", 0)) >= self._size(claim)
            and set(claim.spec.access_modes) <= set(spec.access_modes)
        )

    def _size(self, claim: PersistentVolumeClaim) -> int:
        return value(claim.spec.resources.requests.get("storage", 0))

    def _can_make(self, claim: PersistentVolumeClaim) -> Mask:
        """Mark nodes on which the class of a claim can make a volume (n,)."""
        known = self._classes.get(claim.spec.storage_class_name or "")
        n = self._snapshot.nodes.n
        if known is None or known.provisioner in ("", STATIC_ONLY):
            return np.zeros(n, dtype=bool)
        fits = np.full(n, not known.allowed_topologies)
        for term in known.allowed_topologies:
            here = np.full(n, bool(term.match_label_expressions))
            for each in term.match_label_expressions:
                values = set(each.values)
                here &= self._labels.column(each.key).where(values.__contains__)
            fits |= here
        chosen = claim.metadata.annotations.get(SELECTED_NODE)
        if chosen is not None:
            fits &= self._labels.names().where(lambda name: name == chosen)
        return fits


def names_its_pod(task: Task) -> bool:
    """Tell pods with claims of their own, named after them."""
    return any(each.ephemeral is not None for each in task.shape.spec.volumes)
