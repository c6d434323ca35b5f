"""Pods with a node that wait until the cluster has bound their claims.

Used by LiveScheduler.  A claim that waited for its first consumer gets its volume in two steps:
here the volume is reserved for it, or a node selected for it; then the cluster binds the two.
Only after that are its resource claims reserved and the pod bound.  Any failure releases the
pod's room and its devices.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from msgspec.structs import replace

from pumice import logs
from pumice.api.decisions import BindVolumes, ClaimChoice, Decisions
from pumice.api.devices import ClaimReservation
from pumice.api.kinds import CLAIM, VOLUME
from pumice.api.meta import KubeObject
from pumice.api.pods import Pod
from pumice.api.storage import PersistentVolume, PersistentVolumeClaim
from pumice.binder import Binder, WriteResult
from pumice.binder.volume_writes import keep_for, select_node
from pumice.cache.informer import Informer
from pumice.core.labels import selects_node
from pumice.errors import ClusterError, ConflictError, UnavailableError
from pumice.serve.scheduler.recovery import Recovery

_log = logs.get("volumes")
_CONFLICT_S: Final = 5.0
"""Seconds to wait for the newer version after a conflict; one that never comes was no conflict."""

_State = Literal["to write", "sent", "written", "outdated", "reported", "failed"]
"""State of a claim's write: confirmed by the cluster, or outdated by another client."""


@dataclass(slots=True)
class _Wait:
    """A pod on its node, waiting for its claims."""

    uid: str
    node: str
    annotations: dict[str, str]
    resource_claims: tuple[ClaimReservation, ...]
    volumes: BindVolumes
    until: float


@dataclass(slots=True)
class _Claim:
    """A claim on its way to its volume."""

    choice: ClaimChoice
    uid: str
    state: _State = "to write"
    version: str = ""
    """The version of the written object before the write."""
    again_at: float = 0.0
    """When an outdated write is tried again, though no newer version was seen."""
    problem: str = ""


class _NeverBoundError(Exception):
    """Why a pod's claims will not be bound, at least not for its node."""


class VolumeBinding:
    """Tracks claims and the pods that wait for them, until both are bound."""

    def __init__(self, informer: Informer, binder: Binder, recovery: Recovery) -> None:
        self._informer = informer
        self._binder = binder
        self._recovery = recovery
        self._waits: dict[str, _Wait] = {}
        self._claims: dict[str, _Claim] = {}
        self._now = 0.0

    def __len__(self) -> int:
        """Count the pods that wait for their claims."""
        return len(self._waits)

    @property
    def next_deadline(self) -> float | None:
        """When a pod has waited long enough or a write is tried again; None: none waits."""
        again = (each.again_at for each in self._claims.values() if each.state == "outdated")
        return min((*again, *(wait.until for wait in self._waits.values())), default=None)

    def begin(self, decisions: Decisions, now: float) -> Decisions:
        """Assume and write what pods need first; return the decisions without their binds."""
        self._now = now
        if not decisions.volumes:
            return decisions
        binds = dict(decisions.binds)
        for pod, volumes in decisions.volumes.items():
            node, known = binds.pop(pod), self._informer.known("Pod", pod)
            if known is None:
                continue
            marks, devices = decisions.annotations.get(pod, {}), decisions.reservations.get(pod, ())
            self._informer.assume(pod, node, marks)
            self._informer.assume_claims(pod, devices)
            until = now + volumes.timeout_s
            self._waits[pod] = _Wait(known.metadata.uid, node, marks, devices, volumes, until)
            for choice in volumes.choices:
                self._begin_claim(choice)
        return replace(decisions, binds=binds)

    def learn(self, results: Iterable[WriteResult]) -> None:
        """Process the results of writes."""
        by_object = {_written_object(each.choice): each for each in self._claims.values()}
        for result in results:
            claim = by_object.get((result.what, result.key))
            if claim is not None and claim.state == "sent":
                claim.state, claim.problem = _after(result.error)
                claim.again_at = self._now + _CONFLICT_S

    def step(self, now: float) -> None:
        """Bind pods whose claims are bound, release those whose claims will not be."""
        self._now = now
        for pod in list(self._waits):
            self._step(pod, self._waits[pod], now)
        used = {each.claim for wait in self._waits.values() for each in wait.volumes.choices}
        for key in [key for key in self._claims if key not in used]:
            self._informer.undo_choice(self._claims.pop(key).choice)

    def move_to(self, informer: Informer) -> None:
        """Continue with rebuilt tables: all waiting pods are scheduled again.

        Their choices are in the cluster and lead to the same volumes.
        """
        self._informer = informer
        self._waits.clear()
        self._claims.clear()

    # Pods

    def _step(self, pod: str, wait: _Wait, now: float) -> None:
        known = self._informer.known("Pod", pod)
        if not isinstance(known, Pod) or known.metadata.uid != wait.uid or known.spec.node_name:
            del self._waits[pod]
            self._informer.undo_claims(wait.uid)
            return
        try:
            is_ready = self._is_ready(known, wait, now)
        except _NeverBoundError as why:
            self._give_up(pod, wait, str(why), now)
        else:
            if is_ready:
                self._bind(pod, wait, now)

    def _is_ready(self, pod: Pod, wait: _Wait, now: float) -> bool:
        """Return whether all claims of a pod are bound; write what is still to be written."""
        if pod.metadata.deletion_timestamp:
            raise _NeverBoundError("the pod is being deleted")
        choices = wait.volumes.choices
        unbound = [each for each in choices if not self._is_bound(each.claim, wait.node)]
        if unbound and now >= wait.until:
            names = ", ".join(f'persistentvolumeclaim "{_name(each.claim)}"' for each in unbound)
            raise _NeverBoundError(f"{names} not bound within {wait.volumes.timeout_s:g} s")
        return not unbound

    def _bind(self, pod: str, wait: _Wait, now: float) -> None:
        del self._waits[pod]
        marks, devices = wait.annotations, wait.resource_claims
        self._recovery.assume_bind(pod, wait.node, marks, devices, now)
        self._binder.bind(pod, wait.node, marks, devices)

    def _give_up(self, pod: str, wait: _Wait, why: str, now: float) -> None:
        _log.warning("volumes not bound", pod=pod, node=wait.node, why=why)
        del self._waits[pod]
        self._recovery.undo_bind(pod, wait.uid, now)
        self._binder.report_unbound_volumes(pod, wait.node, why)

    # Claims

    def _begin_claim(self, choice: ClaimChoice) -> None:
        known = self._informer.known(CLAIM, choice.claim)
        if known is None or choice.claim in self._claims:
            return
        self._claims[choice.claim] = _Claim(choice, known.metadata.uid)
        self._informer.assume_choice(choice, known.metadata.uid)
        try:
            self._is_bound(choice.claim, choice.node)
        except _NeverBoundError as why:  # reported to every waiting pod, in the next step
            _log.v(2).info("claim cannot be bound", claim=choice.claim, why=why)

    def _is_bound(self, key: str, node: str) -> bool:
        """Return whether a claim is bound; write what is still to be written.

        Raises:
            _NeverBoundError: it will not be, or not to a volume that the node reaches.
        """
        waiting, claim = self._claims.get(key), self._informer.known(CLAIM, key)
        if waiting is None or not isinstance(claim, PersistentVolumeClaim):
            raise _NeverBoundError(f'persistentvolumeclaim "{_name(key)}" not found')
        if claim.metadata.uid != waiting.uid:
            raise _NeverBoundError(f'persistentvolumeclaim "{_name(key)}" is another one by now')
        if waiting.state == "failed":
            raise _NeverBoundError(waiting.problem)
        if claim.is_bound:
            return self._reaches(node, claim.spec.volume_name)
        if waiting.choice.volume:
            self._keep_volume(waiting, claim)
        else:
            self._select_node(waiting, claim, node)
        return False

    def _select_node(self, waiting: _Claim, claim: PersistentVolumeClaim, node: str) -> None:
        if claim.selected_node == node:
            waiting.state = "reported"
            return
        if claim.selected_node is not None or self._was_undone(waiting, claim):
            name = claim.metadata.name
            raise _NeverBoundError(f'provisioning failed for persistentvolumeclaim "{name}"')
        if waiting.state == "to write":
            self._write(waiting, CLAIM, waiting.choice.claim, claim, select_node(claim, node))

    def _keep_volume(self, waiting: _Claim, claim: PersistentVolumeClaim) -> None:
        name = waiting.choice.volume
        volume = self._informer.known(VOLUME, name)
        if not isinstance(volume, PersistentVolume):
            raise _NeverBoundError(f'persistentvolume "{name}" not found')
        owner = volume.spec.claim_ref
        if owner is not None and not volume.is_for(claim):
            raise _NeverBoundError(f'persistentvolume "{name}" is kept for another claim')
        if owner is not None and owner.uid:
            waiting.state = "reported"
            return
        if self._was_undone(waiting, volume):
            raise _NeverBoundError(f'persistentvolume "{name}" is no longer kept for the claim')
        if waiting.state == "to write":
            self._write(waiting, VOLUME, name, volume, keep_for(volume, claim))

    def _was_undone(self, waiting: _Claim, thing: KubeObject) -> bool:
        """Return whether a write was undone; it is missing now."""
        moved = thing.metadata.resource_version != waiting.version
        if waiting.state == "outdated" and (moved or self._now >= waiting.again_at):
            waiting.state = "to write"  # on top of another client's write, if there was one
        return waiting.state == "reported" or (waiting.state == "written" and moved)

    def _write(
        self, waiting: _Claim, kind: str, key: str, known: KubeObject, patch: dict[str, object]
    ) -> None:
        waiting.state, waiting.version = "sent", known.metadata.resource_version
        self._binder.write_storage(kind, key, known, patch)

    def _reaches(self, node: str, name: str) -> bool:
        """Return whether a node reaches a bound volume; False if the volume is unknown yet."""
        snapshot, volume = self._informer.snapshot, self._informer.known(VOLUME, name)
        row = snapshot.nodes.row_of.get(node)
        if row is None:
            raise _NeverBoundError(f'node "{node}" not found')
        if not isinstance(volume, PersistentVolume):
            return False
        affinity = volume.spec.node_affinity
        required = None if affinity is None else affinity.required
        if required is not None and not selects_node(required, node, snapshot.nodes.labels[row]):
            raise _NeverBoundError(f'the node does not reach persistentvolume "{name}"')
        return True


def _after(error: ClusterError | None) -> tuple[_State, str]:
    """Return the state of a claim after a write, and its final problem."""
    match error:
        case None:
            return "written", ""
        case ConflictError():
            return "outdated", ""
        case UnavailableError():  # done or not: it is for one version, so it is done once at most
            return "to write", ""
        case _:
            return "failed", str(error)


def _written_object(choice: ClaimChoice) -> tuple[str, str]:
    return (VOLUME, choice.volume) if choice.volume else (CLAIM, choice.claim)


def _name(key: str) -> str:
    return key.partition("/")[2]
