"""What cycles and queues show as metrics."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import numpy as np

from pumice.api.decisions import Decisions
from pumice.api.groups import PodGroup
from pumice.api.kinds import POD_GROUP
from pumice.api.times import epoch
from pumice.cache.informer import Informer
from pumice.core.resources import CPU, MEMORY, PODS, Column, dominant_share
from pumice.framework.future.promise_changes import stated_nodes
from pumice.framework.queue_limits.limits import QueueLimits, Reservations
from pumice.framework.session import PROMISES, Session
from pumice.framework.waiting import lacking_tasks
from pumice.metrics import Metrics
from pumice.plugins.reservation.run_history import HISTORY
from pumice.scheduler import Observer
from pumice.serve.scheduler.live_scheduler import Cycle, LiveScheduler


class QueueMetrics(Observer):
    """Updates metrics from a session, at most each ``every_s`` seconds."""

    def __init__(self, metrics: Metrics, *, every_s: float = 5.0) -> None:
        self._metrics = metrics
        self._every_s = every_s
        self._told_at: float | None = None
        self._queues: set[str] = set()
        self._jobs: dict[str, tuple[str, str, str]] = {}
        self._namespaces: set[str] = set()

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Record the causes of waiting jobs and, now and then, the state of queues and jobs."""
        del decisions
        self._report_waiting(ssn)
        if self._told_at is not None and 0 <= ssn.now - self._told_at < self._every_s:
            return
        self._told_at = ssn.now
        self._report_queues(ssn)
        self._report_jobs(ssn)
        self._report_namespaces(ssn)
        if ssn.has_plugin(PROMISES):
            self._report_reserved(ssn)

    def _report_waiting(self, ssn: Session) -> None:
        jobs = ssn.snapshot.jobs
        waiting: dict[str, int] = {}
        for row in ssn.unschedulable:
            name = jobs.keys[row].rpartition("/")[2]
            waiting[name] = waiting.get(name, 0) + lacking_tasks(ssn, ssn.job(row))
        self._metrics.unschedulable(waiting)

    # Queues

    def _report_queues(self, ssn: Session) -> None:
        queues = ssn.snapshot.queues
        rows = np.flatnonzero(queues.listed).tolist()
        limits = ssn.queue_limits()
        if limits is not None:
            self._report_limited(ssn, limits, rows)
        present = {queues.names[row] for row in rows}
        for name in self._queues - present:
            self._metrics.forget_queue(name)
        self._queues = present

    def _report_limited(self, ssn: Session, limits: QueueLimits, rows: list[int]) -> None:
        queues, amounts = ssn.snapshot.queues, _amounts(limits)
        shares = limits.shares(amounts["allocated"])
        overused = limits.overused(amounts["allocated"])
        for row in rows:
            name = queues.names[row]
            for amount, columns in amounts.items():
                self._report_amounts(ssn, name, amount, columns[:, row])
            self._metrics.queue_state(
                name,
                share=float(shares[row]),
                weight=int(queues.weight[row]),
                overused=bool(overused[row]),
            )

    def _report_amounts(self, ssn: Session, queue: str, amount: str, column: Column) -> None:
        """Set amounts; a queue without any limit has none."""
        if not np.isfinite(column).any():
            return
        names = ssn.snapshot.resources.names
        values = np.where(np.isfinite(column), column, 0.0).tolist()
        scalars = {
            names[row]: value
            for row, value in enumerate(values)
            if row not in (CPU, MEMORY, PODS) and value
        }
        self._metrics.queue_amounts(queue, amount, values[CPU], values[MEMORY], scalars)

    # Jobs

    def _report_jobs(self, ssn: Session) -> None:
        jobs = ssn.snapshot.jobs
        rows = np.flatnonzero(jobs.listed)
        if ssn.has_plugin("drf") and len(rows):
            shares = dominant_share(jobs.allocated_or_pipelined[:, rows], ssn.total[:, None])
            for row, share in zip(rows.tolist(), shares.tolist(), strict=True):
                namespace, _, name = jobs.keys[row].partition("/")
                self._metrics.job_share(namespace, name, share)
        present: dict[str, tuple[str, str, str]] = {}
        for row in rows.tolist():
            namespace, _, name = jobs.keys[row].partition("/")
            queue = ssn.snapshot.queues.names[int(jobs.queue[row])]
            present[jobs.keys[row]] = (name, queue, namespace)
        for key, job in self._jobs.items():
            if present.get(key) != job:
                self._metrics.forget_job(*job)
        for key, job in present.items():
            if self._jobs.get(key) != job:
                self._metrics.job_seen(*job, now=ssn.now)
        self._jobs = present

    def _report_reserved(self, ssn: Session) -> None:
        """Set what waiting jobs are promised, and what is idle meanwhile on their nodes."""
        found = [each for each in ssn.promises.values() if math.isfinite(each.start)]
        taken = sum((each.demand.amounts for each in found), np.zeros(len(ssn.total)))
        rows = [ssn.snapshot.nodes.row_of[name] for name in stated_nodes(ssn)]
        idle = np.minimum(ssn.snapshot.nodes.idle[:, rows].sum(axis=1), taken)
        self._metrics.reserved(len(found), _by_resource(ssn, taken), _by_resource(ssn, idle))
        history = ssn.memory[PROMISES].get(HISTORY)
        if history is not None:
            runs = history.kinds.values()
            self._metrics.learned(sum(each.n for each in runs), sum(each.late for each in runs))

    # Namespaces

    def _report_namespaces(self, ssn: Session) -> None:
        """Set the shares of namespaces that have jobs; there are no weights, so each counts 1."""
        namespaces = ssn.snapshot.namespaces
        shares = dominant_share(namespaces.allocated_or_pipelined, ssn.total[:, None]).tolist()
        present = {namespace for _, _, namespace in self._jobs.values()}
        for row, name in enumerate(namespaces.names):
            if name in present:
                self._metrics.namespace_state(name, shares[row], 1, shares[row])
        for name in self._namespaces - present:
            self._metrics.forget_namespace(name)
        self._namespaces = present


def _by_resource(ssn: Session, amounts: Column) -> dict[str, float]:
    """Return amounts (R,) by resource, in cores, bytes and whole devices."""
    names = ssn.snapshot.resources.names
    return {
        names[row]: amounts[row] / (1 if row in (MEMORY, PODS) else 1000)
        for row in np.flatnonzero(amounts > 0).tolist()
    }


def _amounts(limits: QueueLimits) -> dict[str, Column]:
    """Return amounts (R, Q) by the name of their figure; a queue includes all queues under it."""
    queues, sum_up = limits.snapshot.queues, limits.tree.sum_up
    return {
        "allocated": sum_up(queues.allocated_or_pipelined),
        "request": sum_up(queues.allocated_or_pipelined + queues.pending),
        "inqueue": sum_up(Reservations(limits.snapshot).by_queue()),
        "deserved": limits.deserved,
        "capacity": limits.capability,
        "real_capacity": limits.real_capability,
    }


_PRUNED_EACH: Final = 64  # cycles
_COUNTED_EACH_S: Final = 1.0
"""How often objects are counted, however short cycles are."""


class CycleTimer(Observer):
    """Records the time that the parts of a cycle take, and calls another observer as well."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float], inner: Observer) -> None:
        self._metrics = metrics
        self._clock = clock
        self._inner = inner
        self._mark = clock()
        self._plugin_mark = self._mark

    def synced(self) -> None:
        """Begin with the opening of the session."""
        self._mark = self._clock()

    def opened(self, ssn: Session) -> None:
        """Record the opening."""
        self._metrics.session_opened(self._lap())
        self._inner.opened(ssn)
        self._mark = self._clock()

    def plugin_done(self, plugin: str, when: str) -> None:
        """Record a plugin at the opening or closing of a session; without a name, begin to."""
        before, self._plugin_mark = self._plugin_mark, self._clock()
        if plugin:
            self._metrics.plugin_done(plugin, when, self._plugin_mark - before)

    def action_done(self, action: str) -> None:
        """Record an action."""
        self._metrics.action_done(action, self._lap())

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Call the other observer."""
        self._inner.decided(ssn, decisions)

    def _lap(self) -> float:
        before, self._mark = self._mark, self._clock()
        return self._mark - before


class CycleMetrics:
    """Records cycles and their results."""

    def __init__(
        self, metrics: Metrics, clock: Callable[[], float], session_observer: Observer
    ) -> None:
        """Record to ``metrics``; ``session_observer`` observes each session as well."""
        self._metrics = metrics
        self._clock = clock
        self._session_observer = session_observer
        self._jobs: dict[str, str] = {}
        self._bad: Counter[str] = Counter()
        self._events_lost = 0
        self._cycles = 0
        self._counted_at = -math.inf
        self._troubles: Mapping[str, str] = {}

    @contextmanager
    def timed(self) -> Iterator[Observer]:
        """Record the time of a cycle from its start to its end; yield its observer."""
        started = self._clock()
        yield CycleTimer(self._metrics, self._clock, self._session_observer)
        self._metrics.cycle_done(self._clock() - started)

    def record(self, cycle: Cycle, live: LiveScheduler, troubles: Mapping[str, str]) -> None:
        """Record what a cycle decided, results of writes, and kinds that are not being watched."""
        metrics, decided, informer = self._metrics, cycle.decisions, live.informer
        failed = len(cycle.writes.failed)
        for result, count in (
            ("scheduled", 0 if cycle.dropped else len(decided.binds)),
            ("unschedulable", len(decided.unschedulable)),
            ("error", failed),
        ):
            if count:
                metrics.attempts(result, count)
        if decided.evictions and not cycle.dropped:
            metrics.preemption(len(decided.evictions))
            for action in set(decided.evicted_by.values()):
                metrics.eviction_transaction(action)
        if not cycle.dropped:
            metrics.task_stage("Assumed", *_waited(informer, decided.binds, cycle.at))
        self._record_writes(metrics, cycle, informer)
        self._record_jobs(metrics, cycle, informer)
        if troubles != self._troubles or abs(cycle.at - self._counted_at) >= _COUNTED_EACH_S:
            self._record_objects(metrics, informer, troubles)
            self._troubles, self._counted_at = dict(troubles), cycle.at
        lost = live.binder.events_lost
        metrics.events_lost(lost - self._events_lost)
        self._events_lost = lost
        metrics.mismatches(live.scheduler.take_mismatches())

    def record_failure(self) -> None:
        """Record a failed cycle."""
        self._metrics.attempts("error")

    @staticmethod
    def _record_writes(metrics: Metrics, cycle: Cycle, informer: Informer) -> None:
        done: Counter[str] = Counter()
        for result in cycle.writes.results:
            if result.error is not None:
                metrics.write_failed(result.what, result.error.reason)
            else:
                done[result.what] += 1
        for what, count in done.items():
            metrics.write_done(what, count=count)
        binds = [each for each in cycle.writes.results if each.what == "bind" and not each.error]
        metrics.stage_took("Bind", *(each.took_s for each in binds))
        metrics.task_stage("Bound", *_waited(informer, (each.key for each in binds), cycle.at))

    def _record_jobs(self, metrics: Metrics, cycle: Cycle, informer: Informer) -> None:
        """Record gangs that can start, and forget those that are gone."""
        if cycle.dropped:
            return
        jobs = informer.snapshot.jobs
        for key, state in cycle.decisions.pod_groups.items():
            if state.phase != "Running" or key in self._jobs:
                continue
            group = jobs.groups[jobs.row_of[key]] if key in jobs.row_of else None
            if not isinstance(group, PodGroup):
                continue
            self._jobs[key] = group.spec.queue
            namespace, _, name = key.partition("/")
            created = group.metadata.creation_timestamp
            metrics.job_scheduled(
                name,
                group.spec.queue,
                namespace,
                created=epoch(created) if created else cycle.at,
                now=cycle.at,
            )
        self._cycles += 1
        if self._cycles % _PRUNED_EACH == 0:
            for key in [key for key in self._jobs if informer.known(POD_GROUP, key) is None]:
                namespace, _, name = key.partition("/")
                metrics.forget_job(name, self._jobs.pop(key), namespace)

    def _record_objects(
        self, metrics: Metrics, informer: Informer, troubles: Mapping[str, str]
    ) -> None:
        for kind, count in informer.counts().items():
            metrics.objects(kind, count)
            metrics.watching(kind, is_well=kind not in troubles)
        for kind, count in informer.skipped.items():
            before = self._bad[kind] if self._bad[kind] <= count else 0  # it may have started again
            for _ in range(count - before):
                metrics.bad_object(kind)
            self._bad[kind] = count


def _waited(informer: Informer, pods: Iterable[str], now: float) -> Iterator[float]:
    """Return the seconds since pods were created, of those that are known."""
    for pod in pods:
        known = informer.known("Pod", pod)
        if known is not None and known.metadata.creation_timestamp:
            yield now - epoch(known.metadata.creation_timestamp)
