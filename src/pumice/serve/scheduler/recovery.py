"""Recovery of binds and evictions that fail, or succeed without a confirmation by the cluster.

Used by LiveScheduler.  A bind without a clear answer keeps its room and is sent again to the same
node; the room is released only when it is certain that the pod is not there.  A pod whose bind was
refused stays out of sessions for a while, each time for longer.
"""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from pumice import logs
from pumice.api.decisions import Decisions
from pumice.api.devices import ClaimReservation
from pumice.api.kinds import Manifest
from pumice.binder import Binder, WriteResult
from pumice.cache.informer import Informer
from pumice.errors import (
    ClusterError,
    ConflictError,
    FencedError,
    NotFoundError,
    RejectedError,
    UnavailableError,
)

_LONGEST_S: Final = 60.0
"""The longest time for which a pod is held back."""
_PAUSE_S: Final = 1.0
"""After this time a pod that was busy is looked at again."""
_SPARE: Final = 32
"""Refusals that are remembered beyond those of pods that are held back now."""


class HeldPods:
    """Holds pods ("namespace/name") back, and releases them in time."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._until: dict[str, float] = {}
        self._refused: dict[str, tuple[str, int]] = {}
        """Uids of pods, and how often they were refused in a row."""

    @property
    def next_release(self) -> float | None:
        """When the first pod may be placed again; None: none is held back."""
        return min(self._until.values(), default=None)

    def hold(self, pod: str, uid: str, now: float, longest_s: float = _LONGEST_S) -> None:
        """Keep a pod out of sessions."""
        known, times = self._refused.get(pod, (uid, 0))
        times = times + 1 if known == uid else 1
        self._refused[pod] = uid, times
        self._until[pod] = now + min(2.0 ** min(times - 1, 10), longest_s)
        self._informer.hold(pod)

    def hold_gone(self, pod: str, uid: str, now: float) -> None:
        """Keep a pod out of sessions that is gone, until the cluster reports it."""
        if self._is(pod, uid):
            self._refused[pod] = uid, 1
            self._until[pod] = now + _LONGEST_S
            self._informer.hold(pod)

    def accepted(self, pod: str) -> None:
        """Forget earlier refusals of a pod that is bound."""
        self._refused.pop(pod, None)

    def release(self, now: float, busy: Container[str]) -> None:
        """Release the pods whose time is over, except those (uid) that are busy."""
        for pod in [pod for pod, until in self._until.items() if until <= now]:
            if self._refused.get(pod, ("", 0))[0] in busy:
                self._until[pod] = now + _PAUSE_S
                continue
            del self._until[pod]
            self._informer.undo(pod, "held")
        if len(self._refused) > len(self._until) + _SPARE:
            self._refused = {
                pod: refused for pod, refused in self._refused.items() if self._is(pod, refused[0])
            }

    def move_to(self, informer: Informer) -> None:
        """Continue with rebuilt tables."""
        self._informer = informer
        for pod in self._until:
            if self._is(pod, self._refused.get(pod, ("", 0))[0]):
                informer.hold(pod)

    def _is(self, pod: str, uid: str) -> bool:
        """Return whether a pod is still the same one."""
        known = self._informer.known("Pod", pod)
        return (known.metadata.uid if known is not None else "") == uid


Read = Callable[[str, str, str, float], Manifest]
"""Returns an object as the cluster has it now, not as last reported, or fails in time."""

_TRIES: Final = 3
"""How often a bind without a clear answer is sent again."""
_LATE_S: Final = 5.0
"""How long after its sender gave up a write may still be done."""
_LOST_S: Final = 600.0
"""After this time without an answer, the write counts as lost."""
_READS: Final = 32
"""Maximum objects looked up in one step: the next cycle waits for them."""
_READ_S: Final = (0.1, 2.0)
"""Minimum and maximum time for one look-up."""
_LONGEST_UNSENT_S: Final = 8.0
"""The longest hold of a pod whose bind could not be sent: the cluster is down, not the pod."""
_log = logs.get("recovery")


@dataclass(slots=True)
class _PendingWrite:
    """A write about a pod that the cluster has yet to confirm."""

    uid: str
    state: Literal["sent", "done", "again", "doubtful"] = "sent"
    due: float = 0.0
    node: str = ""
    annotations: dict[str, str] | None = None
    claims: tuple[ClaimReservation, ...] = ()
    tries: int = 0
    number: int = 0
    is_old: bool = False
    """Whether it was decided on tables that were replaced: it is not sent again."""


class Recovery:
    """Tracks writes until the cluster confirms them."""

    def __init__(
        self,
        informer: Informer,
        binder: Binder,
        read: Read,
        *,
        clock: Callable[[], float],
        confirm_s: float = 30.0,
        look_s: float = 1.0,
    ) -> None:
        """Make one.

        A write that is done and not confirmed within ``confirm_s`` is looked up; all look-ups
        in one step may take ``look_s``.
        """
        self._informer = informer
        self._binder = binder
        self._read = read
        self._clock = clock
        self._confirm_s = confirm_s
        self._look_s = look_s
        self._binds: dict[str, _PendingWrite] = {}
        self._evictions: dict[str, _PendingWrite] = {}
        self._groups: dict[str, float] = {}
        self._releases: dict[str, tuple[float, str, tuple[ClaimReservation, ...]]] = {}
        """Pods (uid) whose claims are being released: when these count as released, pod, claims."""
        self._held = HeldPods(informer)
        self._numbers = 0
        self._unconfirmed: set[str] = set()
        """Pods of which the informer may have nothing to confirm, so that it names none of them."""
        self._last_answered: dict[str, tuple[int, float]] = {}
        self.undone = 0
        """Binds and evictions undone so far."""

    def assume(self, decisions: Decisions, now: float) -> None:
        """Assume what is about to be written."""
        for pod, node in decisions.binds.items():
            claims = decisions.reservations.get(pod, ())
            self.assume_bind(pod, node, decisions.annotations.get(pod, {}), claims, now)
        for pod in decisions.evictions:
            self._informer.assume_evicted(pod)
            self._evictions[pod] = self._new_write(pod, now)

    def assume_bind(
        self,
        pod: str,
        node: str,
        annotations: dict[str, str],
        claims: tuple[ClaimReservation, ...],
        now: float,
    ) -> None:
        """Assume a bind that is about to be written, with its resource claims."""
        self._informer.assume(pod, node, annotations)
        self._informer.assume_claims(pod, claims)
        write = self._binds[pod] = self._new_write(pod, now)
        self._releases.pop(write.uid, None)
        write.node, write.annotations, write.claims = node, annotations, claims

    def undo_bind(self, pod: str, uid: str, now: float) -> None:
        """Free room and claims of a pod that was assumed and is not bound; hold it back."""
        self._informer.undo_claims(uid)
        self._undo_bind(pod, now)
        self._held.hold(pod, uid, now)

    def assume_groups(self, now: float) -> None:
        """Assume the statuses of groups that were just queued."""
        for group, (status, marks) in self._binder.written_groups.items():
            self._groups[group] = now + _LOST_S
            self._informer.assume_group(group, status, marks)

    def learn(self, results: Iterable[WriteResult], now: float) -> None:
        """Process the results of writes, all of them even if one fails.

        Raises:
            Exception: the first failure; its object is in doubt.
        """
        failures: list[Exception] = []
        for result in results:
            try:
                self._learn(result, now)
            except Exception as error:  # noqa: BLE001  # reported below
                failures.append(error)
                for write in (self._binds.get(result.key), self._evictions.get(result.key)):
                    if write is not None and write.uid == result.uid:
                        write.state, write.due = "doubtful", now + _LATE_S
        if failures:
            raise failures[0]

    def move_to(self, informer: Informer, now: float) -> None:
        """Continue with rebuilt tables: sent writes still count, unclear ones are looked up."""
        self._informer = informer
        self._unconfirmed.update(self._binds, self._evictions)
        self._groups.clear()
        for sort, writes in (("bind", self._binds), ("evict", self._evictions)):
            for pod, write in writes.items():
                write.is_old = True
                on_its_way = self._binder.is_underway(sort, pod, write.uid)
                if write.state != "done" and not on_its_way:
                    write.state, write.due = "doubtful", now + _LATE_S
                if self._uid(pod) != write.uid:
                    continue
                if sort == "bind":
                    informer.assume(pod, write.node, write.annotations)
                    informer.assume_claims(pod, write.claims)
                else:
                    informer.assume_evicted(pod)
        for uid, (_, pod, claims) in self._releases.items():
            if self._uid(pod) == uid:
                informer.assume_claims(pod, claims)
        self._held.move_to(informer)

    def step(self, now: float) -> None:
        """Do what is due: send again, look up, release, let go."""
        self._held.release(now, self._releases)  # writes about their claims may cross
        for group in [group for group, due in self._groups.items() if due <= now]:
            del self._groups[group]
            self._informer.undo_group(group)
        for uid in [uid for uid, (due, *_) in self._releases.items() if due <= now]:
            self._end_release(uid)
        self._forget_confirmed()
        self._send_again(now)
        self._look_up(now)

    @property
    def open(self) -> int:
        """The number of binds and evictions that the cluster has yet to confirm."""
        return len(self._binds) + len(self._evictions)

    @property
    def next_release(self) -> float | None:
        """When the first pod that is held back may be placed again; None: none is."""
        return self._held.next_release

    # Answers

    def _learn(self, result: WriteResult, now: float) -> None:
        if result.what == "bind":
            self._learn_bind(result, now)
        elif result.what == "evict":
            self._learn_eviction(result, now)
        elif result.what == "release":
            if result.uid in self._releases and result.error is None:
                self._end_release(result.uid)
        elif result.what == "group":
            if result.error is None:
                self._groups[result.key] = now + self._confirm_s
            else:
                self._groups.pop(result.key, None)
                self._informer.undo_group(result.key)

    def _learn_bind(self, result: WriteResult, now: float) -> None:
        write = self._binds.get(result.key)
        if write is None or write.uid != result.uid:
            return
        self._note_answer("bind", write, now)
        error, clear = result.error, write.tries == 0
        match error:
            case None:
                write.state, write.due = "done", now + self._confirm_s
                self._held.accepted(result.key)
            case NotFoundError():
                self._undo_bind(result.key, now)
                self._held.hold_gone(result.key, write.uid, now)
            case FencedError() if clear:
                self._undo_bind(result.key, now)
            case UnavailableError(sent=False) if clear:
                self._undo_bind(result.key, now)
                self._held.hold(result.key, write.uid, now, _LONGEST_UNSENT_S)
            case RejectedError() if clear:
                self._undo_bind(result.key, now)
                self._held.hold(result.key, write.uid, now)
            case ConflictError() if clear:
                write.state, write.due = "doubtful", now
            case RejectedError() | ConflictError():  # an earlier attempt may have succeeded
                write.state, write.due = "doubtful", now + _LATE_S
            case _ if write.tries < _TRIES and not write.is_old:
                write.state, write.due = "again", now + 2.0**write.tries - 1
                write.tries += 1
            case _:
                write.state, write.due = "doubtful", now + _LATE_S

    def _learn_eviction(self, result: WriteResult, now: float) -> None:
        write = self._evictions.get(result.key)
        if write is None or write.uid != result.uid:
            return
        self._note_answer("evict", write, now)
        match result.error:
            case None | NotFoundError():
                write.state, write.due = "done", now + self._confirm_s
            case FencedError() | RejectedError() | UnavailableError(sent=False):
                self._undo_eviction(result.key)
            case _:
                write.state, write.due = "doubtful", now + _LATE_S

    # What is due

    def _forget_confirmed(self) -> None:
        """Forget writes that nothing waits for; only what has changed is looked at."""
        changed = self._informer.take_ended() | self._unconfirmed
        self._unconfirmed = set()
        for what, writes in (("bound", self._binds), ("evicted", self._evictions)):
            for pod in writes.keys() & changed:
                if not self._informer.waits_for(pod, writes[pod].uid, what):
                    del writes[pod]

    def _send_again(self, now: float) -> None:
        for pod, write in self._binds.items():
            if write.state == "again" and write.due <= now:
                write.state, write.due = "sent", now + _LOST_S
                self._binder.bind(pod, write.node, write.annotations or {})

    def _look_up(self, now: float) -> None:
        """Read pods whose outcome is unknown; as many as time allows."""
        due = [
            (pod, write, sort)
            for sort, writes in (("bind", self._binds), ("evict", self._evictions))
            for pod, write in writes.items()
            if write.due <= now and self._is_to_be_read(sort, write, now)
        ]
        until = self._clock() + self._look_s
        for pod, write, sort in due[:_READS]:
            try:
                found = self._find(pod, until - self._clock())
            except ClusterError as error:  # doubts stay until the cluster answers
                _log.v(2).info("look-up failed", pod=pod, why=error)
                writes = self._binds if sort == "bind" else self._evictions
                writes[pod] = writes.pop(pod)  # next time others come first
                return
            if sort == "bind":
                self._settle_bind(pod, write, found, now)
            else:
                self._settle_eviction(pod, write, found, now)
            if self._clock() >= until:
                return

    def _is_to_be_read(self, sort: str, write: _PendingWrite, now: float) -> bool:
        """Return whether a due one is to be looked up.

        A write without any answer may still be queued, unless later ones were answered or
        nothing was answered for long.
        """
        if write.state != "sent":
            return write.state != "again"
        number, at = self._last_answered.get(sort, (0, 0.0))
        return write.number < number or at <= now - _LOST_S

    def _find(self, pod: str, left_s: float) -> Manifest:
        namespace, _, name = pod.partition("/")
        least, most = _READ_S
        try:
            return self._read("Pod", namespace, name, min(max(left_s, least), most))
        except NotFoundError:
            return {}

    def _settle_bind(self, pod: str, write: _PendingWrite, found: Manifest, now: float) -> None:
        if not found or found["metadata"].get("uid", "") != write.uid:
            self._undo_bind(pod, now)
            self._held.hold_gone(pod, write.uid, now)
            return
        node = (found.get("spec") or {}).get("nodeName")
        if node:
            if node != write.node:
                self._informer.assume(pod, node)
            write.node, write.state, write.due = node, "done", now + self._confirm_s
        else:
            self._undo_bind(pod, now)
            self._held.hold(pod, write.uid, now)

    def _settle_eviction(self, pod: str, write: _PendingWrite, found: Manifest, now: float) -> None:
        metadata = found.get("metadata") or {}
        same = metadata.get("uid", "") == write.uid
        if same and not metadata.get("deletionTimestamp"):
            self._undo_eviction(pod)
        else:  # it is leaving or gone: the cluster will report it
            write.state, write.due = "done", now + self._confirm_s

    def _undo_bind(self, pod: str, now: float) -> None:
        """Free the room, the claims and the node lock of a pod that is not bound.

        Its devices count as taken until they are released: the cluster may have given them to its
        claims and not reported it yet.
        """
        write = self._binds.pop(pod, None)
        if write is not None:
            if self._binder.unreserve(pod, write.uid):
                self._releases[write.uid] = now + self._confirm_s, pod, write.claims
            else:
                self._informer.undo_claims(write.uid)
        self._informer.undo(pod, "bound")
        self.undone += 1

    def _end_release(self, uid: str) -> None:
        """Count the claims of a pod as the cluster has them."""
        del self._releases[uid]
        self._informer.undo_claims(uid)

    def _undo_eviction(self, pod: str) -> None:
        """Count a pod that was not evicted as before."""
        self._evictions.pop(pod, None)
        self._informer.undo(pod, "evicted")
        self.undone += 1

    def _uid(self, pod: str) -> str:
        known = self._informer.known("Pod", pod)
        return "" if known is None else known.metadata.uid

    def _new_write(self, pod: str, now: float) -> _PendingWrite:
        self._numbers += 1
        self._unconfirmed.add(pod)
        return _PendingWrite(self._uid(pod), due=now + _LOST_S, number=self._numbers)

    def _note_answer(self, sort: str, write: _PendingWrite, now: float) -> None:
        """Record how far answers have come."""
        number, _ = self._last_answered.get(sort, (0, 0.0))
        self._last_answered[sort] = max(number, write.number), now
