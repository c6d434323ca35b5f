"""The metrics of a served scheduler that come from its cycles: times, attempts, writes, objects."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pumice.api.decisions import Decisions
from pumice.api.groups import PodGroup
from pumice.api.kinds import POD_GROUP
from pumice.api.times import epoch
from pumice.cache.informer import Informer
from pumice.framework.session import Session
from pumice.metrics import Metrics
from pumice.scheduler import Observer
from pumice.serve.scheduler.live_scheduler import Cycle, LiveScheduler

_PRUNED_EACH: Final = 64  # cycles


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
        self._record_objects(metrics, informer, troubles)
        lost = live.binder.events_lost
        metrics.events_lost(lost - self._events_lost)
        self._events_lost = lost

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
