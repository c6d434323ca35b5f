"""Resource claims of pods that are about to be bound: allocated and reserved first, or released.

Used by the binder.  Every write may be repeated: a claim that already belongs to the pod keeps
its devices, and the cluster refuses to give it others.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from pumice import logs
from pumice.api.devices import DELETE_PROTECTION, ClaimReservation
from pumice.api.kinds import RESOURCE_CLAIM, Manifest
from pumice.api.meta import KubeObject
from pumice.api.pods import Pod
from pumice.cluster.base import Done, Lane, Write, Writer
from pumice.errors import ClusterError, NotFoundError, RejectedError

_log = logs.get("claims")
_PodKey = tuple[str, str]
"""``namespace/name`` and uid."""
_KIND: Final = RESOURCE_CLAIM
_BIND: Final = Lane.BIND

Known = Callable[[str, str], KubeObject | None]
"""Returns an object by kind and key as the cluster had it last."""


class _ClaimGoneError(RejectedError):
    """A refusal because the claim does not exist: then it has no devices either."""


class ClaimWrites:
    """Writes claims before pods are bound, and releases them."""

    def __init__(self, writer: Writer, known: Known) -> None:
        self._writer = writer
        self._known = known
        self._reserved: dict[_PodKey, tuple[ClaimReservation, ...]] = {}
        """Claims of pods whose bind is not confirmed."""
        self._releasing: set[str] = set()

    def bind(
        self,
        key: str,
        pod: Pod,
        claims: tuple[ClaimReservation, ...],
        writes: Sequence[Write],
        done: Done,
    ) -> None:
        """Reserve the claims of a pod, one after the other, between other writes and its bind.

        A repeated bind need not name its claims: they are remembered.
        """
        place = key, pod.metadata.uid
        claims = _joined(claims, self._reserved.get(place, ()))
        if claims:
            self._reserved[place] = claims
        if not claims and len(writes) == 1:  # as of most pods
            self._writer.submit(writes[0], lane=_BIND, done=done)
            return
        *before, bind = writes
        reserved = [write for claim in claims for write in _reserve(claim, pod)]
        self._send([*before, *reserved, bind], done)

    def unreserve(self, key: str, uid: str, done: Done) -> bool:
        """Release the claims of a pod that is not bound, with their devices.

        Return whether it has any; ``done`` is then called once, with the first failure if any.
        """
        claims = self._reserved.get((key, uid), ())
        left, failed = list(claims), list[ClusterError]()

        def released(claim: ClaimReservation, error: ClusterError | None) -> None:
            left.remove(claim)
            if error is not None and not self._is_gone(claim, error):
                _log_failure(claim.claim)(error)
                failed.append(error)
            if left:
                return
            if not failed and self._reserved.get((key, uid)) is claims:  # else it is bound again
                del self._reserved[key, uid]
            done(failed[0] if failed else None)

        for claim in claims:
            self._send(list(_unreserve(claim, uid)), partial(released, claim))
        return bool(claims)

    def _is_gone(self, claim: ClaimReservation, error: ClusterError) -> bool:
        """Return whether a claim was not released because it does not exist any more."""
        known = self._known(_KIND, claim.claim)
        is_another = known is not None and known.metadata.uid != claim.uid
        return is_another or isinstance(error, _ClaimGoneError)

    def forget(self, key: str, uid: str) -> None:
        """Forget a pod that is bound: the claims are its own."""
        self._reserved.pop((key, uid), None)

    def release(self, key: str) -> None:
        """Free the devices of a claim that no pod can use, unless it has changed."""
        claim = self._known(_KIND, key)
        if claim is None or key in self._releasing:
            return
        self._releasing.add(key)
        answer = _log_failure(key)

        def done(error: ClusterError | None) -> None:
            self._releasing.discard(key)
            answer(error)

        metadata = claim.metadata
        seen = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        freed = {"allocation": None, "reservedFor": None}
        self._send([_status(key, {"metadata": seen, "status": freed})], done)

    def prune(self) -> None:
        """Forget pods that do not wait any more."""
        self._reserved = {pod: kept for pod, kept in self._reserved.items() if self.waits(*pod)}

    def waits(self, key: str, uid: str) -> bool:
        """Return whether a pod still exists and has no node."""
        pod = self._known("Pod", key)
        return isinstance(pod, Pod) and pod.metadata.uid == uid and not pod.spec.node_name

    def _send(self, writes: Sequence[Write], done: Done) -> None:
        """Send writes in turn; report the first that fails, or the last."""
        left = deque(writes)

        def send_next(error: ClusterError | None) -> None:
            if error is not None or not left:
                done(error)
                return
            write = left.popleft()
            answered = send_next if write.verb == "bind" else _as_refusal(send_next)
            self._writer.submit(write, lane=_BIND, done=answered)

        send_next(None)


def _joined(
    claims: tuple[ClaimReservation, ...], known: tuple[ClaimReservation, ...]
) -> tuple[ClaimReservation, ...]:
    """Return reservations with the devices of earlier ones that were not released."""
    given = {each.claim: each for each in known if each.allocation is not None}
    joined = (each if each.allocation else given.get(each.claim, each) for each in claims)
    return tuple(joined) or known


def _as_refusal(done: Done) -> Done:
    """Report that a claim or a node is gone as a refusal of the pod, which is not gone."""

    def report(error: ClusterError | None) -> None:
        if isinstance(error, NotFoundError):
            is_claim = error.kind == _KIND
            problem = "the resource claim is gone" if is_claim else "the node is gone"
            refusal = _ClaimGoneError if is_claim else RejectedError
            error = refusal(error.kind, error.namespace, error.name, problem)
        done(error)

    return report


def _log_failure(claim: str) -> Done:
    def report(error: ClusterError | None) -> None:
        if error is not None:  # others may use the devices by now: then nothing is to be freed
            _log.v(2).info("claim stays allocated", claim=claim, why=error)

    return report


def _reserve(claim: ClaimReservation, pod: Pod) -> Iterable[Write]:
    user = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
    status: Manifest = {"reservedFor": [user]}
    mark = _mark(claim)
    if claim.allocation is not None:
        protected = {"metadata": {**mark["metadata"], "finalizers": [DELETE_PROTECTION]}}
        yield _patch(claim.claim, protected)
        status["allocation"] = msgspec.json.decode(msgspec.json.encode(claim.allocation))
    yield _status(claim.claim, {**mark, "status": status})


def _unreserve(claim: ClaimReservation, uid: str) -> Iterable[Write]:
    gone = {"$patch": "delete", "uid": uid}
    yield _status(claim.claim, {**_mark(claim), "status": {"reservedFor": [gone]}})
    if claim.allocation is not None:  # refused as long as another pod uses it
        yield _status(claim.claim, {**_mark(claim), "status": {"allocation": None}})


def _mark(claim: ClaimReservation) -> Manifest:
    """Return the mark of the claim that is meant, should another one have its name."""
    return {"metadata": {"uid": claim.uid}}


def _status(claim: str, patch: Manifest) -> Write:
    return _patch(claim, patch, subresource="status")


def _patch(claim: str, patch: Manifest, **more: Any) -> Write:
    namespace, _, name = claim.partition("/")
    about = {"kind": _KIND, "namespace": namespace, "name": name, "patch": patch}
    return Write("patch", {**about, "patch_type": "strategic", **more})
