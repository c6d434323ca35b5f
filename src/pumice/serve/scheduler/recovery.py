"""What becomes of binds and evictions that fail, or succeed without the cluster ever telling.

Used by LiveScheduler.  A bind without a clear answer keeps its room and is sent again to the same
node; only when it is certain that the pod is not there is the room given back.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from pumice import logs
from pumice.api.decisions import Decisions
from pumice.api.kinds import Manifest
from pumice.binder import Binder, Outcome
from pumice.cache.informer import Informer
from pumice.errors import (
    ClusterError,
    ConflictError,
    FencedError,
    NotFoundError,
    RejectedError,
    UnavailableError,
)

Read = Callable[[str, str, str, float], Manifest]
"""Gives an object as the cluster has it now, not as it was last heard of, or fails in time."""

_TRIES: Final = 3
"""How often a bind without a clear answer is sent again."""
_LATE_S: Final = 5.0
"""How long after its sender gave up a write may still be done."""
_LOST_S: Final = 600.0
"""After so long without an answer none is waited for any more."""
_READS: Final = 32
"""Objects looked up in one step at most: the next cycle waits for them."""
_READ_S: Final = (0.1, 2.0)
"""The least and the most time that one is given."""
_LONGEST_S: Final = 60.0
"""The longest a pod whose bind was refused is held back."""
_LONGEST_UNSENT_S: Final = 8.0
"""The longest a pod is held back whose bind could not be sent: the cluster is away, not the pod."""
_log = logs.get("recovery")


@dataclass(slots=True)
class _Promise:
    """A write about a pod that the cluster has yet to confirm."""

    uid: str
    state: Literal["sent", "done", "again", "doubtful"] = "sent"
    due: float = 0.0
    node: str = ""
    annotations: dict[str, str] | None = None
    tries: int = 0
    number: int = 0
    is_old: bool = False
    """Whether it was decided on tables that are no more: it is not sent again."""


class Recovery:
    """Keeps account of writes until the cluster tells of them."""

    def __init__(
        self,
        follower: Informer,
        binder: Binder,
        read: Read,
        *,
        clock: Callable[[], float],
        confirm_s: float = 30.0,
        look_s: float = 1.0,
    ) -> None:
        """Make one.

        A write that is done and not told within ``confirm_s`` is looked up; all that is looked up
        in one step may take ``look_s``.
        """
        self._follower = follower
        self._binder = binder
        self._read = read
        self._clock = clock
        self._confirm_s = confirm_s
        self._look_s = look_s
        self._binds: dict[str, _Promise] = {}
        self._evictions: dict[str, _Promise] = {}
        self._groups: dict[str, float] = {}
        self._held: dict[str, float] = {}
        self._refused: dict[str, tuple[str, int]] = {}
        self._numbers = 0
        self._heard: dict[str, tuple[int, float]] = {}
        self.undone = 0
        """Binds and evictions taken back so far."""

    def assume(self, decisions: Decisions, now: float) -> None:
        """Count on what is about to be written."""
        for pod, node in decisions.binds.items():
            self._follower.assume(pod, node)
            marks = decisions.annotations.get(pod, {})
            self._binds[pod] = self._promise(pod, now, node, marks)
        for pod in decisions.evictions:
            self._follower.assume_evicted(pod)
            self._evictions[pod] = self._promise(pod, now)

    def assume_groups(self, now: float) -> None:
        """Count on the statuses of groups that were just handed in."""
        for group, (status, marks) in self._binder.stated.items():
            self._groups[group] = now + _LOST_S
            self._follower.assume_group(group, status, marks)

    def learn(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Take in what came of writes, of all of them even if one cannot be taken in.

        Raises:
            Exception: the first that came up; what it was about is in doubt.
        """
        failures: list[Exception] = []
        for outcome in outcomes:
            try:
                self._learn(outcome, now)
            except Exception as error:  # noqa: BLE001  # told below
                failures.append(error)
                for promise in (self._binds.get(outcome.key), self._evictions.get(outcome.key)):
                    if promise is not None and promise.uid == outcome.uid:
                        promise.state, promise.due = "doubtful", now + _LATE_S
        if failures:
            raise failures[0]

    def move_to(self, follower: Informer, now: float) -> None:
        """Go on with tables made anew: what was sent still counts, what is unclear is looked up."""
        self._follower = follower
        self._groups.clear()
        for sort, promises in (("bind", self._binds), ("evict", self._evictions)):
            for pod, promise in promises.items():
                promise.is_old = True
                on_its_way = self._binder.is_underway(sort, pod, promise.uid)
                if promise.state != "done" and not on_its_way:
                    promise.state, promise.due = "doubtful", now + _LATE_S
                if self._uid(pod) != promise.uid:
                    continue
                if sort == "bind":
                    follower.assume(pod, promise.node)
                else:
                    follower.assume_evicted(pod)
        for pod in self._held:
            if self._uid(pod) == self._refused.get(pod, ("", 0))[0]:
                follower.hold(pod)

    def step(self, now: float) -> None:
        """Do what is due: send again, look up, give back, let go."""
        self._end_holds(now)
        for group in [group for group, due in self._groups.items() if due <= now]:
            del self._groups[group]
            self._follower.undo_group(group)
        self._forget_confirmed()
        self._send_again(now)
        self._look_up(now)

    @property
    def open(self) -> int:
        """Count the binds and evictions that the cluster has yet to confirm."""
        return len(self._binds) + len(self._evictions)

    # Answers

    def _learn(self, outcome: Outcome, now: float) -> None:
        if outcome.what == "bind":
            self._learn_bind(outcome, now)
        elif outcome.what == "evict":
            self._learn_eviction(outcome, now)
        elif outcome.what == "group":
            if outcome.error is None:
                self._groups[outcome.key] = now + self._confirm_s
            else:
                self._groups.pop(outcome.key, None)
                self._follower.undo_group(outcome.key)

    def _learn_bind(self, outcome: Outcome, now: float) -> None:
        promise = self._binds.get(outcome.key)
        if promise is None or promise.uid != outcome.uid:
            return
        self._hear("bind", promise, now)
        error, clear = outcome.error, promise.tries == 0
        match error:
            case None:
                promise.state, promise.due = "done", now + self._confirm_s
                self._refused.pop(outcome.key, None)
            case NotFoundError():
                self._give_back(outcome.key)
            case FencedError() if clear:
                self._give_back(outcome.key)
            case UnavailableError(sent=False) if clear:
                self._give_back(outcome.key)
                self._hold(outcome.key, promise.uid, now, _LONGEST_UNSENT_S)
            case RejectedError() if clear:
                self._give_back(outcome.key)
                self._hold(outcome.key, promise.uid, now)
            case ConflictError() if clear:
                promise.state, promise.due = "doubtful", now
            case RejectedError() | ConflictError():  # an earlier attempt may have been done
                promise.state, promise.due = "doubtful", now + _LATE_S
            case _ if promise.tries < _TRIES and not promise.is_old:
                promise.state, promise.due = "again", now + 2.0**promise.tries - 1
                promise.tries += 1
            case _:
                promise.state, promise.due = "doubtful", now + _LATE_S

    def _learn_eviction(self, outcome: Outcome, now: float) -> None:
        promise = self._evictions.get(outcome.key)
        if promise is None or promise.uid != outcome.uid:
            return
        self._hear("evict", promise, now)
        match outcome.error:
            case None | NotFoundError():
                promise.state, promise.due = "done", now + self._confirm_s
            case FencedError() | RejectedError() | UnavailableError(sent=False):
                self._spare(outcome.key)
            case _:
                promise.state, promise.due = "doubtful", now + _LATE_S

    # What is due

    def _forget_confirmed(self) -> None:
        waits = self._follower.waits_for
        for what, promises in (("bound", self._binds), ("evicted", self._evictions)):
            gone = [pod for pod, each in promises.items() if not waits(pod, each.uid, what)]
            for pod in gone:
                del promises[pod]

    def _send_again(self, now: float) -> None:
        for pod, promise in self._binds.items():
            if promise.state == "again" and promise.due <= now:
                promise.state, promise.due = "sent", now + _LOST_S
                self._binder.bind(pod, promise.node, promise.annotations or {})

    def _look_up(self, now: float) -> None:
        """Read pods of which it is not known what became; as many as time allows."""
        due = [
            (pod, promise, sort)
            for sort, promises in (("bind", self._binds), ("evict", self._evictions))
            for pod, promise in promises.items()
            if promise.due <= now and self._is_to_be_read(sort, promise, now)
        ]
        until = self._clock() + self._look_s
        for pod, promise, sort in due[:_READS]:
            try:
                found = self._find(pod, until - self._clock())
            except ClusterError as error:  # what is in doubt stays so until the cluster answers
                _log.v(2).info("look-up failed", pod=pod, why=error)
                promises = self._binds if sort == "bind" else self._evictions
                promises[pod] = promises.pop(pod)  # next time others are asked for first
                return
            if sort == "bind":
                self._settle_bind(pod, promise, found, now)
            else:
                self._settle_eviction(pod, promise, found, now)
            if self._clock() >= until:
                return

    def _is_to_be_read(self, sort: str, promise: _Promise, now: float) -> bool:
        """Say whether one that is due is to be looked up.

        A write without any answer may still wait for its turn, unless later ones had theirs or
        nothing was heard for long.
        """
        if promise.state != "sent":
            return promise.state != "again"
        number, at = self._heard.get(sort, (0, 0.0))
        return promise.number < number or at <= now - _LOST_S

    def _find(self, pod: str, left_s: float) -> Manifest:
        namespace, _, name = pod.partition("/")
        least, most = _READ_S
        try:
            return self._read("Pod", namespace, name, min(max(left_s, least), most))
        except NotFoundError:
            return {}

    def _settle_bind(self, pod: str, promise: _Promise, found: Manifest, now: float) -> None:
        if not found or found["metadata"].get("uid", "") != promise.uid:
            self._give_back(pod)
            return
        node = (found.get("spec") or {}).get("nodeName")
        if node:
            if node != promise.node:
                self._follower.assume(pod, node)
            promise.node, promise.state, promise.due = node, "done", now + self._confirm_s
        else:
            self._give_back(pod)
            self._hold(pod, promise.uid, now)

    def _settle_eviction(self, pod: str, promise: _Promise, found: Manifest, now: float) -> None:
        metadata = found.get("metadata") or {}
        same = metadata.get("uid", "") == promise.uid
        if same and not metadata.get("deletionTimestamp"):
            self._spare(pod)
        else:  # it goes or is gone: the cluster will tell
            promise.state, promise.due = "done", now + self._confirm_s

    def _give_back(self, pod: str) -> None:
        """Free the room of a pod that is not bound."""
        self._binds.pop(pod, None)
        self._follower.undo(pod, "bound")
        self.undone += 1

    def _spare(self, pod: str) -> None:
        """Count a pod that was not evicted as what it was."""
        self._evictions.pop(pod, None)
        self._follower.undo(pod, "evicted")
        self.undone += 1

    # Pods held back

    def _hold(self, pod: str, uid: str, now: float, longest_s: float = _LONGEST_S) -> None:
        """Keep a pod whose bind was refused out of sessions, each time for longer."""
        known, times = self._refused.get(pod, (uid, 0))
        times = times + 1 if known == uid else 1
        self._refused[pod] = uid, times
        self._held[pod] = now + min(2.0 ** min(times - 1, 10), longest_s)
        self._follower.hold(pod)

    def _end_holds(self, now: float) -> None:
        for pod in [pod for pod, until in self._held.items() if until <= now]:
            del self._held[pod]
            self._follower.undo(pod, "held")
        if len(self._refused) > len(self._held) + _READS:
            there = [pod for pod in self._refused if self._uid(pod) == self._refused[pod][0]]
            self._refused = {pod: self._refused[pod] for pod in there}

    def _uid(self, pod: str) -> str:
        known = self._follower.known("Pod", pod)
        return "" if known is None else known.metadata.uid

    def _promise(
        self, pod: str, now: float, node: str = "", annotations: dict[str, str] | None = None
    ) -> _Promise:
        self._numbers += 1
        return _Promise(
            self._uid(pod),
            due=now + _LOST_S,
            node=node,
            annotations=annotations,
            number=self._numbers,
        )

    def _hear(self, sort: str, promise: _Promise, now: float) -> None:
        """Note how far answers have come."""
        number, _ = self._heard.get(sort, (0, 0.0))
        self._heard[sort] = max(number, promise.number), now
