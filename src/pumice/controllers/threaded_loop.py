"""The controllers' loop on a cluster that is slow: one thread reconciles, others write.

Reconciliations run one after another on one thread, so controllers and their view need no locks;
their effects go to workers, for each controller as many objects in parallel as it may have.
An object is not reconciled again while its effects are being carried out.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Final, Protocol

from pumice import logs
from pumice.api.kinds import Manifest
from pumice.cluster.base import Cluster
from pumice.controllers.base import Controller, Delete, Effect, Plan
from pumice.controllers.effects import (
    Attempt,
    batches,
    carry_out_if_refused,
    one_of_each_task_first,
)
from pumice.controllers.loop import ControllerLoop, Item
from pumice.controllers.view import LOOKED_UP

_HANDS: Final = 32
"""How many effects of all plans together are carried out in parallel."""
_LONGEST_PAUSE_S: Final = 1.0

_log = logs.get("controllers")


class LookMetrics(Protocol):
    """Metrics of reconciliations."""

    def looked(self, controller: str, *, failed: bool = False) -> None:
        """Count a reconciliation."""

    def waiting_reconciles(self, count: int) -> None:
        """Set how many objects wait."""


@dataclass
class _Done:
    """The result of one plan."""

    item: Item
    plan: Plan
    is_retry: bool = False
    written: list[Manifest] = field(default_factory=list)
    error: Exception | None = None


class ThreadedLoop(ControllerLoop):
    """Runs controllers on a cluster whose answers take time.

    ``workers`` sets by controller name how many of its objects are handled in parallel.
    ``wake`` is set by the cluster when something changed there.  ``on_look`` is called before each
    pass and each reconciliation.  ``is_current`` waits so long for what the cluster's caches may
    lack; nothing is reconciled while they lack something.
    """

    def __init__(
        self,
        cluster: Cluster,
        controllers: Sequence[Controller],
        *,
        workers: Mapping[str, int] | None = None,
        wake: threading.Event | None = None,
        metrics: LookMetrics | None = None,
        on_look: Callable[[], None] = lambda: None,
        steady: Callable[[], float] | None = None,
        is_current: Callable[[float], bool] = lambda _: True,
    ) -> None:
        super().__init__(cluster, controllers, looked_up=LOOKED_UP, steady=steady)
        given = workers or {}
        self._limits = [given.get(controller.name, 1) for controller in self._controllers]
        self._queues: list[OrderedDict[Item, None]] = [OrderedDict() for _ in self._controllers]
        self._busy: list[set[Item]] = [set() for _ in self._controllers]
        self._done: SimpleQueue[_Done] = SimpleQueue()
        self._wake = wake or threading.Event()
        self._metrics = metrics
        self._on_look = on_look
        self._is_current = is_current
        self._workers = ThreadPoolExecutor(
            max(sum(self._limits), 1), thread_name_prefix="controllers"
        )
        self._hands = ThreadPoolExecutor(_HANDS, thread_name_prefix="effects")

    @property
    def quiet(self) -> bool:
        """Whether nothing is known to wait or to be in progress."""
        return not any(self._queues) and not any(self._busy)

    def run(self, stop: threading.Event) -> None:
        """Run until stopped; effects in progress are finished."""
        try:
            while not stop.is_set():
                if not self._is_current(_LONGEST_PAUSE_S):
                    self._on_look()
                    continue
                self.turn()
                self._wake.wait(self._pause())
                self._wake.clear()
        finally:
            self.close()

    def turn(self) -> None:
        """Process changes and results, and start what there is room for."""
        self._on_look()
        self._notice()
        while not self._done.empty():
            self._take(self._done.get())
        for index in range(len(self._controllers)):
            self._fill(index)
        if self._metrics is not None:
            self._metrics.waiting_reconciles(sum(len(queue) for queue in self._queues))

    def _fill(self, index: int) -> None:
        """Reconcile a controller's objects while it has workers left."""
        queue, busy = self._queues[index], self._busy[index]
        while len(busy) < self._limits[index]:
            item = next((item for item in queue if item not in busy), None)
            if item is None:
                return
            del queue[item]
            self._start(item)

    def close(self) -> None:
        """Finish what is in progress; nothing can be started after it."""
        self._workers.shutdown(wait=True, cancel_futures=True)
        self._hands.shutdown(wait=True)

    def run_until_quiet(self, limit: int = 100_000) -> int:
        """Take turns until nothing is left to do; return the number of passes."""
        for turns in range(limit):
            self.turn()
            if self.quiet:
                return turns
            self._wake.wait(self._pause())
            self._wake.clear()
        return limit

    def _enqueue(self, item: Item) -> None:
        self._queues[item[0]][item] = None

    def _pause(self) -> float:
        due = self.next_at()
        if due is None:
            return _LONGEST_PAUSE_S
        return min(max(due - self._steady(), 0.0), _LONGEST_PAUSE_S)

    def _start(self, item: Item) -> None:
        """Reconcile an object, and carry its plan out."""
        index, key = item
        self._on_look()
        self._due.pop(item, None)
        try:
            plan = self._controllers[index].reconcile(key, self.view)
        except Exception as error:  # noqa: BLE001  # hurts this object only
            self._take(_Done(item, Plan(), error=error))
            return
        if self._held_back(item, plan):
            return
        if not plan.effects:
            self._take(_Done(item, plan))
            return
        self._busy[index].add(item)
        self._workers.submit(self._work, _Done(item, plan, item in self._attempts))

    def _work(self, done: _Done) -> None:
        """Carry a plan out, on a thread of a worker, up to a batch in which an effect fails."""
        attempt = Attempt(self._cluster)
        try:
            for batch in batches(done.plan.effects):
                parts = one_of_each_task_first(batch) if done.is_retry else [batch]
                errors = [each for part in parts for each in self._carry_out(attempt, part, done)]
                if errors:
                    done.error = errors[0]
                    found = carry_out_if_refused(self._cluster, done.plan, errors)
                    done.written += [] if found is None else [found]
                    break
        except Exception as error:  # noqa: BLE001  # reported to the thread that reconciles
            done.error = error
        self._done.put(done)
        self._wake.set()

    def _carry_out(self, attempt: Attempt, part: list[Effect], done: _Done) -> list[Exception]:
        """Carry out effects in parallel; all are tried, then failures are returned."""
        errors = []
        for result in self._results(attempt, part):
            try:
                found = result()
            except Exception as error:  # noqa: BLE001  # as above
                errors.append(error)
            else:
                done.written += [] if found is None else [found]
        return errors

    def _results(self, attempt: Attempt, part: list[Effect]) -> list[Callable[[], Manifest | None]]:
        """Start effects; return what waits for each: a single one needs no other thread."""
        if len(part) == 1:
            return [partial(attempt.carry_out, part[0])]
        return [self._hands.submit(attempt.carry_out, effect).result for effect in part]

    def _take(self, done: _Done) -> None:
        """Process the result of a plan."""
        index, _ = item = done.item
        self._busy[index].discard(item)
        for manifest in done.written:
            change = self.view.expect(manifest)
            if change is not None:
                self._spread(change)
            elif self.view.lacks(manifest):  # deleted meanwhile: a watch need not report either
                self._enqueue(item)
        for effect in done.plan.effects:
            if isinstance(effect, Delete):
                self.view.lookups.forget(effect.key)
        if self._metrics is not None:
            name = self._controllers[index].name
            self._metrics.looked(name, failed=done.error is not None)
        if done.error is not None:
            self.view.lookups.clear()  # a cached object may be the cause
            self._failed(item, done.error, done.plan)
            return
        self._succeeded(item, done.plan)

    def _report(self, item: Item, error: Exception, attempts: int) -> None:
        super()._report(item, error, attempts)
        index, key = item
        _log.warning(
            "reconciliation failed, retrying",
            controller=self._controllers[index].name,
            object=f"{key.kind} {key.namespace}/{key.name}",
            attempts=attempts,
            error=error,
        )

    def _record_failure(self, about: Manifest, error: Exception) -> None:
        self._hands.submit(super()._record_failure, about, error)
