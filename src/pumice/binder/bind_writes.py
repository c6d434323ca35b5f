"""Binds with what must be written before them: locks on nodes, then resource claims."""

from collections.abc import Callable

from pumice.api.decisions import Decisions
from pumice.api.devices import ClaimReservation
from pumice.api.pods import Pod
from pumice.binder.claim_writes import ClaimWrites, Known
from pumice.binder.node_locks import NodeLocks
from pumice.cluster.base import Done, Write, Writer
from pumice.errors import RejectedError


class BindWrites:
    """Sends binds after what they need, and undoes that; pods are "namespace/name"."""

    def __init__(self, writer: Writer, known: Known, now: Callable[[], float]) -> None:
        self._claims = ClaimWrites(writer, known)
        self._locks = NodeLocks(writer, known, now)

    def expect(self, decisions: Decisions) -> None:
        """Record what pods need that are bound now or later."""
        self._locks.expect(decisions.node_locks, decisions.binds)

    def bind(
        self, key: str, pod: Pod, claims: tuple[ClaimReservation, ...], bind: Write, done: Done
    ) -> None:
        """Lock the node, reserve the claims, bind; the first write that fails ends it."""
        try:
            locks = self._locks.writes(key, pod.metadata.uid, bind.arguments["node"])
        except RejectedError as error:
            done(error)
        else:
            self._claims.bind(key, pod, claims, [*locks, bind], done)

    def release(self, claim: str) -> None:
        """Free the devices of a claim that no pod can use."""
        self._claims.release(claim)

    def unreserve(self, key: str, uid: str, done: Done) -> bool:
        """Release claims and lock of a pod that is not bound.

        Return whether it has claims; ``done`` is called once they are released, or not.
        """
        self._locks.unreserve(key, uid)
        return self._claims.unreserve(key, uid, done)

    def forget(self, key: str, uid: str) -> None:
        """Forget a pod that is bound."""
        self._claims.forget(key, uid)
        self._locks.forget(key, uid)

    def prune(self) -> None:
        """Forget pods that do not wait any more."""
        self._claims.prune()
        self._locks.prune(self._claims.waits)
