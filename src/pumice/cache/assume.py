"""Assumptions about objects before the cluster confirms them: pods bound, evicted or held back.

Used by the informer, which shows pods, groups, claims and volumes to the scheduler as
assumed.  The cluster's own state ends an assumption, and so does another object of the same
name.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from pumice.api.annotations import SELECTED_NODE
from pumice.api.decisions import ClaimChoice
from pumice.api.devices import Allocation, ClaimConsumer, ClaimReservation, ResourceClaim
from pumice.api.groups import PodGroup, PodGroupStatus
from pumice.api.kinds import ENDED_PHASES
from pumice.api.meta import KubeObject, ObjectMeta
from pumice.api.pods import Pod, SchedulingGate
from pumice.api.storage import ClaimReference, PersistentVolume, PersistentVolumeClaim

_HELD: Final = (SchedulingGate(name="pumice.dev/held-back"),)
_SOON: Final = "1970-01-01T00:00:00Z"
"""The time at which an evicted pod is assumed to leave; only its presence matters."""


class _AssumedPod(msgspec.Struct):
    """The assumptions about one pod."""

    uid: str
    node: str = ""
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Annotations written with the bind."""
    leaves: bool = False
    held: bool = False

    def is_idle(self) -> bool:
        """Return whether nothing is assumed any more."""
        return not (self.node or self.leaves or self.held)


class _AssumedGroup(msgspec.Struct, frozen=True):
    """The assumed status of one group."""

    uid: str
    status: PodGroupStatus
    annotations: dict[str, str]


class _AssumedClaim(msgspec.Struct, frozen=True):
    """The assumptions about a resource claim: its pod, and its devices."""

    uid: str
    user: ClaimConsumer
    allocation: Allocation | None


class Assumptions:
    """All assumptions, by "namespace/name"."""

    def __init__(self) -> None:
        self._pods: dict[str, _AssumedPod] = {}
        self._ended: set[str] = set()
        """Pods about which something is no longer assumed, since the last ``take_ended``."""
        self._groups: dict[str, _AssumedGroup] = {}
        self._resource_claims: dict[str, dict[str, _AssumedClaim]] = {}
        """Claims to the assumptions about them, by the uid of the pod."""
        self._volumes: dict[str, ClaimReference] = {}
        self._claims: dict[str, tuple[str, str]] = {}

    @property
    def has_pods(self) -> bool:
        """Whether anything is assumed of a pod."""
        return bool(self._pods)

    def bound(self, key: str, pod: Pod, node: str, annotations: Mapping[str, str]) -> None:
        """Assume a pod to be on a node, with more annotations."""
        thought = self._of(key, pod.metadata.uid)
        thought.node, thought.annotations = node, annotations

    def evicted(self, key: str, pod: Pod) -> None:
        """Assume a pod to be leaving."""
        self._of(key, pod.metadata.uid).leaves = True

    def held(self, key: str, pod: Pod) -> None:
        """Assume that a pod must not be placed now."""
        self._of(key, pod.metadata.uid).held = True

    def stated(
        self, key: str, group: PodGroup, status: PodGroupStatus, annotations: dict[str, str]
    ) -> None:
        """Assume a group to have a status and more annotations."""
        self._groups[key] = _AssumedGroup(group.metadata.uid, status, annotations)

    def reserved(self, pod: Pod, claims: Iterable[ClaimReservation]) -> None:
        """Assume a pod to have its resource claims."""
        meta = pod.metadata
        user = ClaimConsumer(resource="pods", name=meta.name, uid=meta.uid)
        for each in claims:
            users = self._resource_claims.setdefault(each.claim, {})
            known = users.get(meta.uid)
            given = None if known is None or known.uid != each.uid else known.allocation
            users[meta.uid] = _AssumedClaim(each.uid, user, each.allocation or given)

    def forget_claims(self, pod_uid: str) -> list[str]:
        """Drop the assumptions about the claims of a pod; return the claims."""
        found = [key for key, users in self._resource_claims.items() if pod_uid in users]
        for key in found:
            del self._resource_claims[key][pod_uid]
            if not self._resource_claims[key]:
                del self._resource_claims[key]
        return found

    def show(self, key: str, thing: KubeObject) -> KubeObject:
        """Return an object as the scheduler is to see it."""
        if isinstance(thing, Pod):
            return self.show_pod(key, thing)
        if isinstance(thing, PodGroup):
            return self.show_group(key, thing)
        if isinstance(thing, ResourceClaim):
            return self.show_resource_claim(key, thing)
        if isinstance(thing, PersistentVolume):
            return self.show_volume(key, thing)
        if isinstance(thing, PersistentVolumeClaim):
            return self.show_claim(key, thing)
        return thing

    def show_resource_claim(self, key: str, claim: ResourceClaim) -> ResourceClaim:
        """Return a resource claim as assumed; what the cluster confirms is no longer assumed."""
        status = claim.status
        users = {each.uid for each in status.reserved_for}
        left = {
            uid: each
            for uid, each in self._resource_claims.pop(key, {}).items()
            if each.uid == claim.metadata.uid and uid not in users
        }
        if not left:
            return claim
        self._resource_claims[key] = left
        given = next((each.allocation for each in left.values() if each.allocation), None)
        assumed = (*status.reserved_for, *(each.user for each in left.values()))
        status = replace(status, allocation=status.allocation or given, reserved_for=assumed)
        return replace(claim, status=status)

    def chosen(self, choice: ClaimChoice, uid: str) -> None:
        """Assume a claim to have its volume, or a node to be selected for it."""
        namespace, _, name = choice.claim.partition("/")
        if choice.volume:
            owner = ClaimReference(namespace=namespace, name=name, uid=uid)
            self._volumes[choice.volume] = owner
        else:
            self._claims[choice.claim] = uid, choice.node

    def forget_choice(self, choice: ClaimChoice) -> None:
        """Drop the assumption on how a claim gets its volume."""
        if choice.volume:
            self._volumes.pop(choice.volume, None)
        else:
            self._claims.pop(choice.claim, None)

    def forget(self, key: str, what: str = "") -> bool:
        """Drop an assumption about a pod: "bound", "evicted", "held", or all of them."""
        thought = self._pods.get(key)
        if thought is None:
            return False
        self._ended.add(key)
        if what in ("", "bound"):
            thought.node = ""
        if what in ("", "evicted"):
            thought.leaves = False
        if what in ("", "held"):
            thought.held = False
        if thought.is_idle():
            del self._pods[key]
        return True

    def forget_group(self, key: str) -> bool:
        """Drop the assumption about a group."""
        return self._groups.pop(key, None) is not None

    def take_ended(self) -> set[str]:
        """Return the pods about which something is no longer assumed since the last call."""
        ended, self._ended = self._ended, set()
        return ended

    def waits_for(self, key: str, uid: str, what: str) -> bool:
        """Return whether the cluster has not confirmed yet that a pod is "bound" or "evicted"."""
        thought = self._pods.get(key)
        if thought is None or thought.uid != uid:
            return False
        return thought.leaves if what == "evicted" else bool(thought.node)

    def show_pod(self, key: str, pod: Pod) -> Pod:
        """Return a pod as assumed; what the cluster confirms is no longer assumed."""
        thought = self._pods.get(key)
        if thought is None:
            return pod
        metadata, spec = pod.metadata, pod.spec
        if metadata.uid != thought.uid:
            self._ended.add(key)
            del self._pods[key]
            return pod
        if spec.node_name:
            self._ended.add(key)
            thought.node, thought.held = "", False
        if metadata.deletion_timestamp or pod.status.phase in ENDED_PHASES:
            self._ended.add(key)
            thought.leaves = thought.held = False
        if thought.is_idle():
            del self._pods[key]
            return pod
        if thought.node:
            spec = replace(spec, node_name=thought.node)
            if thought.annotations:
                marks = {**metadata.annotations, **thought.annotations}
                metadata = replace(metadata, annotations=marks)
        elif thought.held:
            spec = replace(spec, scheduling_gates=_HELD)
        if thought.leaves:
            metadata = replace(metadata, deletion_timestamp=_SOON)
        return replace(pod, metadata=metadata, spec=spec)

    def show_group(self, key: str, group: PodGroup) -> PodGroup:
        """Return a group as assumed."""
        stated = self._groups.get(key)
        if stated is None:
            return group
        metadata = group.metadata
        marks = metadata.annotations
        confirmed = group.status == stated.status and stated.annotations.items() <= marks.items()
        if metadata.uid != stated.uid or confirmed:
            del self._groups[key]
            return group
        if stated.annotations:
            metadata = _marked(metadata, stated.annotations)
        return replace(group, metadata=metadata, status=stated.status)

    def show_volume(self, key: str, volume: PersistentVolume) -> PersistentVolume:
        """Return a volume as assumed; one that the cluster has assigned stays assigned."""
        owner = self._volumes.get(key)
        kept = volume.spec.claim_ref
        if owner is None or (kept is not None and kept.uid):
            return volume
        return replace(volume, spec=replace(volume.spec, claim_ref=owner))

    def show_claim(self, key: str, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Return a claim as assumed."""
        uid, node = self._claims.get(key, ("", ""))
        if not node or uid != claim.metadata.uid or claim.selected_node is not None:
            return claim
        return replace(claim, metadata=_marked(claim.metadata, {SELECTED_NODE: node}))

    def _of(self, key: str, uid: str) -> _AssumedPod:
        thought = self._pods.get(key)
        if thought is None or thought.uid != uid:
            self._ended.add(key)
            thought = self._pods[key] = _AssumedPod(uid)
        return thought


def _marked(metadata: ObjectMeta, annotations: dict[str, str]) -> ObjectMeta:
    return replace(metadata, annotations={**metadata.annotations, **annotations})
