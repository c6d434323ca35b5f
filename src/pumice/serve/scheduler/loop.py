"""The loop of a served scheduler: ready, leading, cycle after cycle, whatever happens.

Its owner closes the cluster's fence when the lease is lost; the loop then decides nothing,
and starts from the cluster's state when it leads again.  No cycle begins while a cache may be
behind: before each kind was listed since the lease was taken, and while a watch is lost.
"""

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pumice import logs
from pumice.api.kinds import Manifest
from pumice.api.nodes import Node
from pumice.binder import WriteResult
from pumice.cache.informer import BadObject
from pumice.cluster.base import LiveCluster
from pumice.cluster.usage.conf import refresh_period, usage_source
from pumice.cluster.usage.endpoint import ServiceWithin
from pumice.cluster.usage.source import UsageCache
from pumice.errors import ClusterError, ConfError
from pumice.framework.session_state import ProcessMemory
from pumice.metrics import Metrics
from pumice.scheduler import Observer, Observers, Scheduler
from pumice.serve.cache_gate import CacheGate
from pumice.serve.options import SchedulerOptions
from pumice.serve.scheduler.cycle_metrics import CycleMetrics, QueueMetrics
from pumice.serve.scheduler.default_queues import DefaultQueues
from pumice.serve.scheduler.live_scheduler import Cycle, LiveScheduler
from pumice.serve.scheduler.rhythm import Rhythm
from pumice.serve.scheduler.shadow import Shadow
from pumice.serve.scheduler.shards import ShardStatus
from pumice.serve.scheduler.waiting_causes import WaitingCauses

_log = logs.get("scheduler")
_AGAIN_S: Final = 60.0
"""How often a persistent failure of one sort is logged."""
_REMEMBERED: Final = 10_000


class LoopLog:
    """Logs cycles, failures, bad objects and kinds that cannot be watched."""

    def __init__(self) -> None:
        self._traced: set[tuple[str, str]] = set()
        self._failing: list[str] = []
        self._logged_at: dict[tuple[str, str], float] = {}
        self._suppressed: dict[tuple[str, str], int] = {}
        self._bad: dict[tuple[str, str], str] = {}
        self._troubles: dict[str, str] = {}

    def broken(self, error: Exception, failures: int, pause_s: float) -> None:
        """Log that a cycle failed, the first time with its place, unless due to the cluster."""
        what = f"{type(error).__name__}: {error}"
        _log.error("cycle failed", error=what, failures=failures, pause_s=pause_s)
        if isinstance(error, ClusterError):
            return
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        is_new = (type(error).__name__, place) not in self._traced
        self._traced.add((type(error).__name__, place))
        _log.v(0 if is_new else 2).info(
            "where it failed", trace="".join(traceback.format_exception(error))
        )

    def cycle(self, cycle: Cycle) -> None:
        """Log the decisions of a cycle and the results of writes."""
        decided, results = cycle.decisions, cycle.writes.results
        if decided.failures != self._failing:
            for line in decided.failures:
                if line not in self._failing:
                    _log.warning("plugin failed and was skipped", problem=line)
            if not decided.failures:
                _log.info("all plugins work again")
            self._failing = decided.failures
        for result in results:
            if result.error is not None:
                self._write_failed(result, cycle.at)
        if decided.binds or decided.evictions or results:
            _log.v(2).info(
                "cycle",
                binds=len(decided.binds),
                evictions=len(decided.evictions),
                waiting=len(decided.unschedulable),
                answers=len(results),
                failed=sum(each.error is not None for each in results),
            )

    def _write_failed(self, result: WriteResult, now: float) -> None:
        """Log the first of a sort at once, and then one now and then with the number of others."""
        sort = result.what, type(result.error).__name__
        values = {"what": result.what, "of": result.key, "why": result.error}
        last = self._logged_at.get(sort)
        if last is None or abs(now - last) >= _AGAIN_S:
            self._logged_at[sort] = now
            more = self._suppressed.pop(sort, 0)
            _log.warning("write failed", **values, **({"more": more} if more else {}))
        else:
            self._suppressed[sort] = self._suppressed.get(sort, 0) + 1
            _log.v(2).info("write failed", **values)

    def skipped(self, problems: deque[BadObject]) -> None:
        """Log each bad object once, and again if it has another fault."""
        while problems:
            bad = problems.popleft()
            object_, why = (bad.kind, bad.key), str(bad.error)
            if self._bad.get(object_) == why:
                continue
            if len(self._bad) >= _REMEMBERED:
                self._bad.clear()
            self._bad[object_] = why
            _log.warning("object skipped", kind=bad.kind, object=bad.key, error=why)

    def troubles(self, troubles: dict[str, str]) -> None:
        """Log kinds that cannot be watched, when that begins and when it ends."""
        for kind in sorted(troubles.keys() - self._troubles.keys()):
            _log.warning("watch interrupted", kind=kind, why=troubles[kind])
        for kind in sorted(self._troubles.keys() - troubles.keys()):
            _log.info("watch resumed", kind=kind)
        self._troubles = troubles


_usage_log = logs.get("usage")
_LOOK_S: Final = 1.0
"""How often it is checked whether a reading is due."""


class BackgroundUsage:
    """Reads a source at its own pace in a thread, and returns the latest readings at once."""

    def __init__(
        self,
        metrics: Mapping[str, str],
        clock: Callable[[], float],
        api_server: ServiceWithin | None = None,
    ) -> None:
        """Make one; ``api_server`` is used by sources behind an API server.

        Raises:
            ConfError: the section is wrong.
        """
        self._cache = UsageCache(usage_source(metrics, api_server), refresh_period(metrics))
        self._clock = clock
        self._nodes: Sequence[Node] = ()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node-usage", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; a reading in progress ends in the background."""
        self._stop.set()

    def set_nodes(self, nodes: Sequence[Node]) -> None:
        """Set the nodes whose use is wanted."""
        self._nodes = nodes

    def latest(self) -> Mapping[str, Any]:
        """Return the last reading of each node."""
        return self._cache.latest()

    def _run(self) -> None:
        while not self._stop.is_set():
            nodes = self._nodes
            if nodes:
                try:
                    self._cache.refresh(self._clock(), nodes)
                except Exception as error:  # noqa: BLE001  # the next reading may do better
                    _usage_log.error(
                        "cannot read node usage", error=f"{type(error).__name__}: {error}"
                    )
            self._stop.wait(_LOOK_S)


_LONGEST_PAUSE_S: Final = 30.0
_FLUSH_S: Final = 5.0
_POLL_S: Final = 0.2


class SchedulerLoop:
    """Cycle after cycle; an exception ends a cycle and not the loop."""

    def __init__(
        self,
        cluster: LiveCluster,
        options: SchedulerOptions,
        latest_scheduler: Callable[[], Scheduler],
        metrics: Metrics,
        *,
        is_leader: Callable[[], bool] = lambda: True,
        on_turn: Callable[[], None] = lambda: None,
        on_cycle: Callable[[Cycle], None] = lambda _: None,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
        api_server: ServiceWithin | None = None,
    ) -> None:
        """Make a loop.

        ``latest_scheduler`` returns a scheduler with the last good configuration, the same one
        while that does not change.  ``observer`` sees each session.  ``on_turn`` is called
        before each turn, also when this process does not lead, so that a watchdog can detect a loop
        that hangs.  ``api_server`` is the source of node usage where the configuration names no
        other address.
        """
        self._cluster = cluster
        self._options = options
        self._latest_scheduler = latest_scheduler
        self._is_leader = is_leader
        self._on_turn = on_turn
        self._on_cycle = on_cycle
        self._observer = observer or Observer()
        self._clock = clock
        self._api_server = api_server
        self._metrics = metrics
        self._waiting_causes = WaitingCauses(metrics, QueueMetrics(metrics))
        self._cycle_metrics = CycleMetrics(metrics, clock, self._waiting_causes)
        self._wake = cluster.new_wake() if options.cycle == "event" else None
        self._rhythm = Rhythm(self._wake, clock, options.cycle_gather_s, on_turn)
        self._process = ProcessMemory(started_at=cluster.now())
        self._log = LoopLog()
        self._gate = CacheGate(cluster, metrics, _log, clock)
        self._shadow = Shadow(metrics, options.shadow_report) if options.shadow else None
        self._queues = DefaultQueues(cluster, options.default_queue, clock)
        self._shard = ShardStatus(
            cluster, options.scheduler_sharding_mode, options.scheduler_sharding_name
        )
        self._live: LiveScheduler | None = None
        self._usage: BackgroundUsage | None = None
        self._usage_conf: Mapping[str, str] = {}
        self._leads = False
        self._failures = 0
        self._failure = ""

    def problem(self) -> str:
        """Return why cycles fail, nothing if the last one did not."""
        count, why = self._failures, self._failure
        return (
            f"{count} {'cycle' if count == 1 else 'cycles'} failed in a row: {why}" if why else ""
        )

    def run(self, stop: threading.Event) -> None:
        """Schedule until stopped; then wait a little for writes in flight."""
        if self._wait_synced(stop):
            self._run_cycles(stop)
        self._cluster.flush(_FLUSH_S)

    def _wait_synced(self, stop: threading.Event) -> bool:
        """Wait for complete caches; return whether there is still something to do then."""
        started, is_reported = self._clock(), False
        while not stop.is_set():
            missing = self._cluster.wait_synced(_POLL_S)
            if not missing:
                self._metrics.ready(is_ready=True)
                return True
            is_late = self._clock() - started > self._options.resource_sync_timeout_s > 0
            if is_late and not is_reported:
                _log.error("caches not synced, still waiting", kinds=", ".join(missing))
                is_reported = True
        return False

    def _run_cycles(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                started = self._clock()
                self._on_turn()
                until = started + self._turn()
                live = self._live
                if live is None or not self._leads or self._failures:
                    stop.wait(max(0.0, until - self._clock()))
                else:
                    self._rhythm.wait(stop, until, live.next_due, self._may_start)
        finally:
            if self._usage is not None:
                self._usage.stop()

    def _turn(self) -> float:
        """Run a cycle if this process leads; return the seconds from its start to the next."""
        period = self._options.schedule_period_s
        if not self._is_leader():
            self._stand_down()
            return min(period, _POLL_S)
        if not self._is_current():
            return 0.0
        try:
            self._cycle()
        except Exception as error:  # noqa: BLE001  # whatever it is, the next cycle may do better
            return self._back_off(error)
        self._failures, self._failure = 0, ""
        return period

    def _may_start(self) -> bool:
        """Return whether changes may let something start, or need a turn for another reason."""
        live = self._live
        if live is None or not self._is_leader() or not self._gate.is_open(0.0):
            return True
        try:
            return live.look() or self._latest_scheduler() is not live.scheduler
        except Exception as error:  # noqa: BLE001  # the next cycle starts over
            self._back_off(error)
            return True

    def _is_current(self) -> bool:
        """Wait a moment for caches as new as the lease, without a gap; return whether they are."""
        if self._gate.is_open(_POLL_S):
            return True
        self._log.troubles(self._cluster.troubles())
        return False

    def _back_off(self, error: Exception) -> float:
        """Report a failed cycle; return the seconds to the next, each time more."""
        self._failures += 1
        self._failure = f"{type(error).__name__}: {error}"
        pause = self._options.schedule_period_s * 2.0 ** min(self._failures, 10)
        pause = min(pause, _LONGEST_PAUSE_S)
        self._log.broken(error, self._failures, pause)
        self._cycle_metrics.record_failure()
        if self._live is not None:
            self._log.skipped(self._live.informer.problems)
        return pause

    def _cycle(self) -> None:
        scheduler = self._latest_scheduler()
        self._measure_usage(scheduler.conf.metrics)
        if self._live is None or not self._leads:
            self._live = self._take_over(scheduler)
        live = self._live
        live.scheduler = scheduler
        if self._usage is not None:
            nodes = live.informer.snapshot.nodes.objects
            self._usage.set_nodes([each for each in nodes if isinstance(each, Node)])
        with self._cycle_metrics.timed() as observer:
            cycle = live.cycle(Observers(observer, self._rhythm, self._observer))
        troubles = self._cluster.troubles()
        self._cycle_metrics.record(cycle, live, troubles)
        if self._shadow is not None:
            self._shadow.see(cycle, live.informer.snapshot)
        elif not cycle.dropped:
            self._waiting_causes.write(live.binder)
            self._queues.ensure()
            self._shard.write(live.informer.snapshot)
        if cycle.dropped and self._shadow is None:
            _log.warning("lost the lease during a cycle, dropped its decisions")
            self._stand_down()
        self._log.cycle(cycle)
        self._log.skipped(live.informer.problems)
        self._log.troubles(troubles)
        self._on_cycle(cycle)

    def _take_over(self, scheduler: Scheduler) -> LiveScheduler:
        """Start from the cluster's state, and from this process's own earlier writes."""
        self._queues.look_again()
        live = self._live or self._new_live(scheduler)
        self._leads = True
        self._metrics.leading(leads=True)
        event = "scheduling" if self._shadow is None else "started as a shadow, writing nothing"
        names = (*self._options.scheduler_name, *self._options.agent_scheduler_name)
        _log.info(event, scheduler_names=",".join(names))
        return live

    def _new_live(self, scheduler: Scheduler) -> LiveScheduler:
        options, cluster = self._options, self._cluster

        def read(kind: str, namespace: str, name: str, timeout_s: float) -> Manifest:
            return cluster.read(kind, namespace, name, timeout_s=timeout_s)

        return LiveScheduler(
            cluster,
            scheduler,
            names=options.scheduler_name,
            agents=options.agent_scheduler_name,
            usage=self._node_usage,
            assume=self._shadow is None,
            writer=cluster,
            default_queue=options.default_queue,
            node_selector=options.node_selector,
            may_write=self._is_leader if self._shadow is None else lambda: False,
            clock=self._clock,
            read=read,
            look_s=options.schedule_period_s,
            process=self._process,
            wake=None if self._wake is None else self._wake.set,
        )

    def _stand_down(self) -> None:
        """Leave the cluster to others: a new lead starts from its state then."""
        if self._leads and self._live is not None:
            _log.info("scheduling no more: another process leads")
            self._leads = False
            self._live.stale = True
            self._metrics.leading(leads=False)

    # Measured use of nodes

    def _measure_usage(self, conf: Mapping[str, str]) -> None:
        """Start reading the use of nodes from the configured source."""
        if conf == self._usage_conf:
            return
        self._usage_conf = conf
        if self._usage is not None:
            self._usage.stop()
            self._usage = None
        if not conf.get("type"):
            return
        try:
            self._usage = BackgroundUsage(conf, self._cluster.now, self._api_server)
        except ConfError as error:
            _log.error("cannot read node usage", error=error)
        else:
            self._usage.start()

    def _node_usage(self, now: float) -> Mapping[str, Any]:
        del now
        return {} if self._usage is None else self._usage.latest()
