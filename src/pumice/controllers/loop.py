"""Reconciles what changed, one object after another: watches in, effects out.

Each reconciliation sees the effects of those before, for clusters that answer at once.
``threaded_loop`` has the loop for a cluster that is slow.  A controller that fails affects only the
object it failed on.
"""

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from pumice.api.kinds import RESOURCE_QUOTA, Manifest
from pumice.clock import Clock
from pumice.cluster.base import Cluster
from pumice.controllers.backoff import NamespaceDeletions, QuotaBackoff
from pumice.controllers.base import SOURCE, Controller, Key, Plan, View
from pumice.controllers.effects import carry_out_all, carry_out_if_refused
from pumice.controllers.view import Change, ClusterView
from pumice.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    NamespaceTerminatingError,
    NotFoundError,
    QuotaExceededError,
)

_FIRST_DELAY_S: Final = 0.005
_LONGEST_DELAY_S: Final = 1000.0
_LONGEST_FOR_QUOTA_S: Final = 60.0
"""The same for a pod that a quota refuses: it has room as soon as pods of others end."""
_REMEMBERED: Final = 1000
_RECORDED_AFTER: Final = 8
"""Failures in a row, about a second's, after which an event is written on the object."""

Item = tuple[int, Key]
"""A controller, by its place, and an object it is to reconcile."""
_Concerns = Callable[[str, Manifest, View], Iterable[Key]]


class Failure(msgspec.Struct, frozen=True):
    """One failed reconciliation."""

    controller: str
    key: Key
    error: Exception
    attempts: int
    at: float


class ControllerLoop:
    """Runs controllers on a cluster.

    With a ``clock`` virtual time stops where a controller has to reconcile again.  Objects of the
    kinds ``looked_up`` are read one by one; their changes are not noticed.  ``versions`` are those
    of the last change of each kind in a cluster in memory: what a resource quota refuses waits for
    the quota, not for a time.  Delays are measured by ``steady``, so that a wall clock that is set
    back delays nothing.
    """

    def __init__(
        self,
        cluster: Cluster,
        controllers: Sequence[Controller],
        clock: Clock | None = None,
        *,
        looked_up: Collection[str] = (),
        versions: Mapping[str, int] | None = None,
        steady: Callable[[], float] | None = None,
    ) -> None:
        self._cluster = cluster
        self._steady = steady or cluster.now
        self._controllers = tuple(controllers)
        self._clock = clock
        kinds = dict.fromkeys(kind for c in controllers for kind in c.watches)
        self.quota_backoff: QuotaBackoff[Item] | None = None
        if versions is not None:
            self.quota_backoff = QuotaBackoff(
                lambda namespace: cluster.list(RESOURCE_QUOTA, namespace)[0],
                lambda: versions.get(RESOURCE_QUOTA, 0),
            )
            kinds[RESOURCE_QUOTA] = None
        self.view = ClusterView(cluster, kinds, looked_up)
        self.failures: deque[Failure] = deque(maxlen=_REMEMBERED)
        """The latest failures, oldest first."""
        self._interested = {
            kind: [(i, c.concerns) for i, c in enumerate(controllers) if kind in c.watches]
            for kind in kinds
        }
        self.on_change: list[Callable[[Change], None]] = []
        """Called with each change, before controllers are asked which objects it concerns."""
        self._queue: OrderedDict[Item, bool] = OrderedDict()
        """What is to be reconciled, and whether only because a quota has more room."""
        self._later: list[tuple[float, int, Item]] = []
        self._due: dict[Item, float] = {}
        self._attempts: dict[Item, int] = {}
        self._postponed = 0
        self._holds = NamespaceDeletions()

    @property
    def quiet(self) -> bool:
        """Whether nothing is known to need reconciliation now."""
        return not self._queue

    def next_at(self) -> float | None:
        """Return the time of the next reconciliation."""
        later = self._later
        while later and self._due.get(later[0][2]) != later[0][0]:
            heapq.heappop(later)
        return later[0][0] if later else None

    def attempts(self, controller: str, key: Key) -> int:
        """Return how often in a row an object failed."""
        names = [c.name for c in self._controllers]
        return self._attempts.get((names.index(controller), key), 0)

    def look_at(self, controller: str, key: Key) -> None:
        """Have a controller reconcile an object although nothing changed."""
        for index, known in enumerate(self._controllers):
            if known.name == controller:
                self._enqueue((index, key))

    def run_until_quiet(self, limit: int = 100_000) -> int:
        """Reconcile whatever changed until nothing does; return how often.

        Stops after ``limit`` reconciliations; then ``quiet`` is False and the next call continues.
        """
        count = 0
        self._notice()
        while self._queue and count < limit:
            item, is_released = self._queue.popitem(last=False)
            backoff = self.quota_backoff
            if is_released and backoff is not None and backoff.is_refused_again(item):
                continue
            count += 1
            if self._look(item):
                self._notice()
        return count

    def _notice(self) -> None:
        self._take_changes()
        if self.quota_backoff:
            self.quota_backoff.take_changes()
        now = self._steady()
        while (when := self.next_at()) is not None and when <= now:
            item = heapq.heappop(self._later)[2]
            del self._due[item]
            self._enqueue(item)

    def _take_changes(self) -> None:
        """Ask controllers about all that changed; they ask the view, which is complete by then."""
        for change in [*self.view.refresh()]:
            self._spread(change)

    def _spread(self, change: Change) -> None:
        if self._holds:
            self._holds.notice(change)
        for listener in self.on_change:
            listener(change)
        kind, old, new = change
        if kind == RESOURCE_QUOTA and self.quota_backoff:
            for item in sorted(self.quota_backoff.released_by(old, new), key=self._age):
                self._queue.setdefault(item, True)
        moved = old if old is not None and _moved(old, new) else None
        for index, concerns in self._interested[kind]:
            if new is not None:
                self._ask(index, concerns, kind, new)
            if moved is not None:
                self._ask(index, concerns, kind, moved)

    def _age(self, item: Item) -> tuple[str, str]:
        """Return by what to try objects in turn, oldest first, whenever each was refused."""
        _, key = item
        found = self.view.get(key.kind, key.namespace, key.name) or {}
        return str((found.get("metadata") or {}).get("creationTimestamp") or ""), key.name

    def _enqueue(self, item: Item) -> None:
        self._queue[item] = False

    def _ask(self, index: int, concerns: _Concerns, kind: str, manifest: Manifest) -> None:
        """Ask a controller which objects a change concerns, by the object after or before it."""
        try:
            for key in concerns(kind, manifest, self.view):
                self._enqueue((index, key))
        except Exception as error:  # noqa: BLE001  # one bad object must not stop the others
            self._report_odd(index, kind, manifest, error)

    def _report_odd(self, index: int, kind: str, manifest: Manifest, error: Exception) -> None:
        metadata = manifest["metadata"]
        key = Key(kind, metadata.get("namespace", ""), metadata["name"])
        self._report((index, key), error, 1)

    def _look(self, item: Item) -> bool:
        """Run a controller on one object; return whether anything may have changed."""
        index, key = item
        if self._due:
            self._due.pop(item, None)
        if self.quota_backoff is not None:
            self.quota_backoff.begin()
        plan = Plan()
        try:
            plan = self._controllers[index].reconcile(key, self.view)
            if plan.effects and self._held_back(item, plan):
                return False
            carry_out_all(self._cluster, plan.effects)
        except Exception as error:  # noqa: BLE001  # hurts this object only
            carry_out_if_refused(self._cluster, plan, [error])
            self._failed(item, error, plan)
        else:
            self._succeeded(item, plan)
        return bool(plan.effects)

    def _succeeded(self, item: Item, plan: Plan) -> None:
        """Schedule the further reconciliations of a plan that was carried out."""
        if self._attempts:
            self._attempts.pop(item, None)
        if self.quota_backoff:
            self.quota_backoff.forget(item)
        for key in plan.look_at:
            self._enqueue((item[0], key))
        again_in_s = 0.0 if plan.is_part else plan.again_in_s
        if again_in_s is not None:
            self._postpone(item, again_in_s)

    def _held_back(self, item: Item, plan: Plan) -> bool:
        """Postpone a plan that creates something in a namespace that is being deleted."""
        wait_s = self._holds.wait_s(plan.effects, self._steady())
        if wait_s > 0:
            self._postpone(item, wait_s)
        return wait_s > 0

    def _failed(self, item: Item, error: Exception, plan: Plan) -> None:
        """Reconcile again: at once after a first stale read, else with growing delays.

        What a plan has to do at a time is not delayed by a pod that a quota refuses.
        """
        if isinstance(error, NamespaceTerminatingError):
            now = self._steady()
            if self._holds.refused(error.namespace, now):
                self._report(item, error, 1)
            self._postpone(item, self._holds.left_s(error.namespace, now))
            return
        if isinstance(error, QuotaExceededError) and self.quota_backoff is not None:
            if self.quota_backoff.add(item, error):
                self._report(item, error, _RECORDED_AFTER)
            if plan.again_in_s is not None:
                self._postpone(item, plan.again_in_s)
            return
        attempts = self._attempts.get(item, 0) + 1
        self._attempts[item] = attempts
        stale = isinstance(error, ConflictError | NotFoundError | AlreadyExistsError)
        if stale and attempts == 1:
            self._enqueue(item)
            return
        if attempts >= _RECORDED_AFTER or not self._was_deleted(item, error):
            self._report(item, error, attempts)
        longest_s = _LONGEST_DELAY_S
        if isinstance(error, QuotaExceededError):
            timer_s = _LONGEST_FOR_QUOTA_S if plan.again_in_s is None else plan.again_in_s
            longest_s = min(timer_s, _LONGEST_FOR_QUOTA_S)
        self._postpone(item, min(_FIRST_DELAY_S * 2 ** min(attempts - 1, 30), longest_s))

    def _was_deleted(self, item: Item, error: Exception) -> bool:
        """Return whether an object is gone, and the watch may not have told so yet."""
        index, key = item
        if not isinstance(error, NotFoundError):
            return False
        missing = Key(error.kind, error.namespace, error.name)
        is_watched = missing.kind in self._controllers[index].watches
        return missing == key or (is_watched and self.view.get(*missing) is not None)

    def _report(self, item: Item, error: Exception, attempts: int) -> None:
        index, key = item
        name = self._controllers[index].name
        self.failures.append(Failure(name, key, error, attempts, self._cluster.now()))
        if attempts == _RECORDED_AFTER:
            about = self.view.get(key.kind, key.namespace, key.name)
            if about is not None:
                self._record_failure(about, error)

    def _record_failure(self, about: Manifest, error: Exception) -> None:
        """Write an event on the object: its owner cannot read our log."""
        tried = f"tried {_RECORDED_AFTER} times, still retrying"
        if self.quota_backoff is not None and isinstance(error, QuotaExceededError):
            tried = "waits until the resource quota has room"
        message = f"{tried}: {error}"
        with suppress(ClusterError):  # the failure is kept anyway
            self._cluster.record(about, "Warning", "FailedSync", message, SOURCE)

    def _postpone(self, item: Item, delay_s: float) -> None:
        when = self._steady() + max(delay_s, 0.0)
        self._due[item] = when
        self._postponed += 1
        heapq.heappush(self._later, (when, self._postponed, item))
        if self._clock is not None:
            self._clock.call_at(when, _nothing)


def _moved(old: Manifest | None, new: Manifest | None) -> bool:
    """Return whether an object may concern other objects than before."""
    if old is None or new is None:
        return new is None
    before, after = old["metadata"], new["metadata"]
    return bool(
        before.get("uid") != after.get("uid")
        or before.get("labels") != after.get("labels")
        or before.get("annotations") != after.get("annotations")
        or before.get("ownerReferences") != after.get("ownerReferences")
    )


def _nothing() -> None:
    """Do nothing: virtual time stops here, and the loop takes what is due."""
