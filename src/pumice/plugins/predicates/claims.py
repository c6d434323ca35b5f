"""The volume claims of pods: bound ones, and those that must find a volume first.

Reads storage objects once for each session; promises made to placed pods are journaled.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pumice.api.decisions import ClaimChoice
from pumice.api.storage import WAIT_FOR_FIRST_CONSUMER, PersistentVolume, PersistentVolumeClaim
from pumice.core.labels import node_labels
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.plugins.predicates.free_volumes import FreeVolumes, Pick, Reach, Rows
from pumice.plugins.predicates.provisioning import Provisioning

_NOWHERE: Rows = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class Promise:
    """A claim's result of placing a pod: a volume, or one to be provisioned on a node."""

    volume: str
    node: int


@dataclass(frozen=True)
class Offer:
    """The volumes for the waiting claims of a pod, node by node."""

    fits: Mask
    """Where each finds a volume or can have one provisioned (n,)."""
    has_room: Mask
    """Where there is storage for provisioned volumes (n,)."""
    picks: dict[str, Pick]
    """By claim, the volume it would take."""


class Claims:
    """The claims of a session's pods."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        labels = node_labels(snapshot)
        self._claims: dict[str, PersistentVolumeClaim] = snapshot.kind("PersistentVolumeClaim")
        self._volumes: dict[str, PersistentVolume] = snapshot.kind("PersistentVolume")
        self._classes: dict[str, Any] = snapshot.kind("StorageClass")
        self._keys: dict[int, tuple[str, ...]] = {}
        self._reach = Reach(labels, snapshot.nodes.n)
        self._provisioning = Provisioning(snapshot, labels)
        self.promises: dict[str, Promise] = {}
        self.version = 0
        """Grows with every promise that is made or withdrawn."""

    @cached_property
    def _free(self) -> FreeVolumes:
        return FreeVolumes(self._volumes.values(), self._reach, self._snapshot.nodes.n)

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

    def named(self, task: Task) -> tuple[str, ...]:
        """List the claims that a pod names; Kubernetes asks for the zones of these alone."""
        if not names_its_pod(task):
            return self.keys(task)
        claims = (each.persistent_volume_claim for each in task.shape.spec.volumes)
        names = (f"{task.shape.namespace}/{each.claim_name}" for each in claims if each is not None)
        return tuple(dict.fromkeys(names))

    def problem(self, task: Task, *, binding: bool, zones: bool) -> str:
        """Return why no node can provide a pod's volumes; empty if one may.

        Without volume binding a claim may be going or lost; its zone counts once it has a volume.
        """
        for key in self.keys(task):
            claim = self._claims.get(key)
            if claim is None:
                return self._missing(task, key.partition("/")[2])
            problem = self._going(claim) if binding else ""
            if not problem and zones and key in self.named(task):
                problem = self._without_zone(claim)
            if not problem and binding and not claim.is_bound:
                problem = self._cannot_wait(claim)
            if problem:
                return problem
        return self._foreign(task) if names_its_pod(task) else ""

    def _without_zone(self, claim: PersistentVolumeClaim) -> str:
        """Return why the zone of a claim's volume is not known, though no pod decides on it."""
        volume = claim.spec.volume_name
        if volume:
            return "" if volume in self._volumes else f'persistentvolume "{volume}" not found'
        return self._cannot_wait(claim)

    def _going(self, claim: PersistentVolumeClaim) -> str:
        """Return that a claim is being deleted, or has lost its volume."""
        name = claim.metadata.name
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if claim.status.phase == "Lost":
            lost = f'non-existent persistentvolume "{claim.spec.volume_name}"'
            return f'persistentvolumeclaim "{name}" bound to {lost}'
        return ""

    def _missing(self, task: Task, name: str) -> str:
        """Return that a claim does not exist; one of the pod's own is made by the cluster."""
        own = {f"{task.name}-{each.name}" for each in task.shape.spec.volumes if each.ephemeral}
        if name in own:
            return (
                "waiting for ephemeral volume controller to create the persistentvolumeclaim "
                f'"{name}"'
            )
        return f'persistentvolumeclaim "{name}" not found'

    def _foreign(self, task: Task) -> str:
        """Return that a claim with the name of a pod's own one was made for another pod."""
        uid = task.pod.metadata.uid
        for each in task.shape.spec.volumes:
            name = f"{task.name}-{each.name}"
            if each.ephemeral is None:
                continue
            owners = self._claims[f"{task.namespace}/{name}"].metadata.owner_references
            if not any(owner.controller and owner.uid == uid for owner in owners):
                return f'persistentvolumeclaim "{name}" was not created for the pod'
        return ""

    def _cannot_wait(self, claim: PersistentVolumeClaim) -> str:
        """Return why an unbound claim does not leave its volume to the scheduler."""
        wanted = claim.class_name
        if wanted and wanted not in self._classes:
            return f'storageclass "{wanted}" not found'
        if not wanted or claim.spec.volume_name:
            return "pod has unbound immediate PersistentVolumeClaims"
        if self._classes[wanted].volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
            return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def volumes(self, keys: Iterable[str]) -> Iterable[PersistentVolume]:
        """Return the volumes that claims are bound to."""
        for key in keys:
            claim = self._claims.get(key)
            if claim is not None and claim.spec.volume_name in self._volumes:
                yield self._volumes[claim.spec.volume_name]

    def handle(self, key: str) -> tuple[str, str] | None:
        """Return the driver of a claim's volume and a name for the volume; None: no such driver."""
        claim = self._claims.get(key)
        if claim is None:
            return None
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is not None:
            source = volume.spec.csi
            return (source.driver, source.volume_handle) if source and source.driver else None
        known = self._classes.get(claim.class_name)
        return (known.provisioner, f"claim {key}") if known and known.provisioner else None

    # Nodes

    def bound_fits(self, task: Task) -> Mask | None:
        """Mark nodes that reach all bound volumes of a pod; None: all (n,)."""
        fits: Mask | None = None
        for key in self.keys(task):
            claim = self._claims.get(key)
            promise = self.promises.get(key)
            if claim is not None and claim.is_bound:
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
        return self._reach.mask(self._volumes.get(name))

    def waiting(self, task: Task) -> list[str]:
        """List the claims of a pod that wait for a volume, the smallest requests first."""
        keys = [
            key
            for key in self.keys(task)
            if key in self._claims and key not in self.promises and not self._claims[key].is_bound
        ]
        return sorted(keys, key=lambda key: self._claims[key].size)

    def offer(self, task: Task) -> Offer:
        """Return the volumes for the waiting claims of a pod on each node.

        A claim with a selected node is provisioned there and nowhere else.
        """
        n = self._snapshot.nodes.n
        fits, has_room = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
        picks: dict[str, Pick] = {}
        for key in self.waiting(task):
            claim = self._claims[key]
            lacking = np.ones(n, dtype=bool)
            if claim.selected_node is None:
                picks[key] = self._free.pick(claim, list(picks.values()))
                lacking = picks[key] < 0
            fits &= ~lacking | self._provisioning.can_make(claim)
            has_room &= ~lacking | self._provisioning.has_room(claim)
        return Offer(fits, has_room, picks)

    def promise(self, key: str, promise: Promise | None) -> None:
        """Promise a claim its volume, or withdraw the promise; a roll-back undoes it."""
        old = self.promises.get(key)
        if promise is None:
            del self.promises[key]
        else:
            self.promises[key] = promise
        if old is not None:
            self._free.take(old.volume, taken=False)
        if promise is not None:
            self._free.take(promise.volume, taken=True)
        self.version += 1

    def changed_by(self, promises: Mapping[str, Promise | None]) -> Rows | None:
        """Return the nodes on which promises change an answer to other pods; None: all nodes.

        A taken volume matters where it can be reached; a shared claim matters to all its pods.
        """
        changed: list[Rows] = []
        for key, promise in promises.items():
            given = promise or self.promises[key]
            volume = self._volumes.get(given.volume)
            rows = _NOWHERE if volume is None else self._reach.rows(volume)
            if rows is None or self._users[key] > 1:
                return None
            changed.append(rows)
        return changed[0] if len(changed) == 1 else np.unique(np.concatenate(changed))

    @cached_property
    def _users(self) -> Counter[str]:
        """How many pods use each claim."""
        snapshot = self._snapshot
        shapes = snapshot.tasks.shape[: snapshot.tasks.n]
        claiming = np.array([bool(shape.spec.volumes) for shape in snapshot.shapes], dtype=bool)
        rows = np.flatnonzero((shapes >= 0) & claiming[shapes]).tolist()
        return Counter(key for row in rows for key in self.keys(Task(snapshot, row)))

    def promised(self, task: Task, node: int, offer: Offer) -> dict[str, Promise]:
        """Return the promises to the waiting claims of a pod on a node; none if one fails."""
        waiting = self.waiting(task)
        if not waiting:
            return {}
        if not offer.fits[node] or not offer.has_room[node]:
            return {}
        picked = {key: int(pick[node]) for key, pick in offer.picks.items()}
        return {key: Promise(self._free.name(picked.get(key, -1)), node) for key in waiting}

    def choices(self, task: Task) -> list[ClaimChoice]:
        """Return how the claims of a placed pod get their volumes."""
        names, promises = self._snapshot.nodes.names, self.promises
        return [
            ClaimChoice(key, promises[key].volume, names[promises[key].node])
            for key in self.keys(task)
            if key in promises
        ]


def names_its_pod(task: Task) -> bool:
    """Return whether a pod has claims of its own, named after it."""
    return any(each.ephemeral is not None for each in task.shape.spec.volumes)
