"""The loop of a served scheduler: ready, leading, one cycle a period, whatever happens.

Called by the command that serves.  Whoever calls it closes the cluster's fence when the lease is
lost; the loop then decides nothing, and starts from what the cluster has when it leads again.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pumice import logs
from pumice.api.conf import SchedulerConf
from pumice.api.kinds import Manifest
from pumice.api.nodes import Node
from pumice.cluster.base import Cluster, Writer
from pumice.errors import ConfError
from pumice.metrics import Metrics
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.cycle_metrics import CycleMetrics
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import Cycle, LiveScheduler
from pumice.serve.scheduler.loop_log import LoopLog
from pumice.serve.scheduler.node_usage import BackgroundUsage
from pumice.serve.scheduler.queue_metrics import QueueMetrics

_log = logs.get("scheduler")
_LONGEST_PAUSE_S: Final = 30.0
_FLUSH_S: Final = 5.0
_POLL_S: Final = 0.2


class LiveCluster(Cluster, Writer, Protocol):
    """What the loop needs: a cluster with caches that also takes writes."""

    def wait_synced(self, timeout_s: float) -> list[str]:
        """Wait until caches are complete; name those that are not."""

    def read(self, kind: str, namespace: str, name: str, *, timeout_s: float) -> Manifest:
        """Give one object as it is now, whatever is in memory; one attempt, in time or not."""

    def troubles(self) -> dict[str, str]:
        """Tell by kind why it is not followed just now; empty when all is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """How to run; ``conf`` is asked before each cycle for the last good configuration."""

    conf: Callable[[], SchedulerConf]
    names: tuple[str, ...] = ("volcano",)
    period_s: float = 1.0
    default_queue: str = "default"
    node_selector: tuple[str, ...] = ()
    is_leader: Callable[[], bool] = lambda: True
    on_ready: Callable[[bool], None] = lambda _: None
    on_turn: Callable[[], None] = lambda: None
    """Told before each turn, also when it is not on us: whoever is not told any more may worry."""
    on_cycle: Callable[[Cycle], None] = lambda _: None
    sync_timeout_s: float = 60.0
    confirm_s: float = 30.0
    seed: int = 0


def run_scheduler(
    cluster: LiveCluster,
    options: LiveOptions,
    metrics: Metrics | None,
    stop: threading.Event,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Schedule until told to stop; then wait a little for writes under way."""
    loop = SchedulerLoop(cluster, options, metrics, clock)
    if loop.wait_until_complete(stop):
        loop.run(stop)
    options.on_ready(False)  # noqa: FBT003  # a callback has no names
    cluster.flush(_FLUSH_S)


class SchedulerLoop:
    """Cycle after cycle; an exception ends a cycle and not the loop."""

    def __init__(
        self,
        cluster: LiveCluster,
        options: LiveOptions,
        metrics: Metrics | None,
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._options = options
        inner = None if metrics is None else QueueMetrics(metrics)
        self._meter = CycleMetrics(metrics, clock, inner)
        self._clock = clock
        self._conf: SchedulerConf | None = None
        self._scheduler: Scheduler | None = None
        self._live: LiveScheduler | None = None
        self._usage: BackgroundUsage | None = None
        self._leads = False
        self._failures = 0
        self._words = LoopLog()

    def wait_until_complete(self, stop: threading.Event) -> bool:
        """Wait for complete caches; says whether there is still something to do then."""
        started, told = self._clock(), False
        while not stop.is_set():
            missing = self._cluster.wait_synced(_POLL_S)
            if not missing:
                self._meter.ready(is_ready=True)
                self._options.on_ready(True)  # noqa: FBT003
                return True
            if not told and self._clock() - started > self._options.sync_timeout_s > 0:
                _log.error("caches are not complete, still waiting", kinds=", ".join(missing))
                told = True
        return False

    def run(self, stop: threading.Event) -> None:
        """Run cycles until told to stop."""
        try:
            while not stop.is_set():
                started = self._clock()
                self._options.on_turn()
                pause = self._turn()
                stop.wait(max(0.0, pause - (self._clock() - started)))
        finally:
            if self._usage is not None:
                self._usage.stop()

    def _turn(self) -> float:
        """Run a cycle if it is on us; gives the seconds from its start to the next."""
        if not self._options.is_leader():
            self._stand_down()
            return min(self._options.period_s, _POLL_S)
        try:
            self._cycle()
        except Exception as error:  # noqa: BLE001  # whatever it is, the next cycle may do better
            return self._broken(error)
        self._failures = 0
        return self._options.period_s

    def _broken(self, error: Exception) -> float:
        self._failures += 1
        pause = min(self._options.period_s * 2.0 ** min(self._failures, 10), _LONGEST_PAUSE_S)
        self._words.broken(error, self._failures, pause)
        self._meter.failed()
        if self._live is not None:
            self._words.skipped(self._live.follower.problems)
        return pause

    def _cycle(self) -> None:
        scheduler = self._configured()
        if self._live is None or not self._leads:
            self._live = self._take_over(scheduler)
        live = self._live
        live.scheduler = scheduler
        if self._usage is not None:
            nodes = live.follower.snapshot.nodes.objects
            self._usage.tell_nodes([each for each in nodes if isinstance(each, Node)])
        with self._meter.cycle() as observer:
            cycle = live.cycle(observer)
        troubles = self._cluster.troubles()
        self._meter.count(cycle, live, troubles)
        if cycle.dropped:
            _log.warning("lost the lease while deciding, dropped what was decided")
            self._stand_down()
        self._words.cycle(cycle)
        self._words.skipped(live.follower.problems)
        self._words.troubles(troubles)
        self._options.on_cycle(cycle)

    def _take_over(self, scheduler: Scheduler) -> LiveScheduler:
        """Start from what the cluster has, and from what this process itself has sent before."""
        make_queues(self._cluster, self._options.default_queue)
        live = self._live or self._new_live(scheduler)
        self._leads = True
        self._meter.leading(leads=True)
        _log.info("leads", names=",".join(self._options.names))
        return live

    def _new_live(self, scheduler: Scheduler) -> LiveScheduler:
        options, cluster = self._options, self._cluster

        def read(kind: str, namespace: str, name: str, timeout_s: float) -> Manifest:
            return cluster.read(kind, namespace, name, timeout_s=timeout_s)

        return LiveScheduler(
            cluster,
            scheduler,
            names=options.names,
            usage=self._node_usage,
            assume=True,
            writer=cluster,
            default_queue=options.default_queue,
            node_selector=options.node_selector,
            may_write=options.is_leader,
            clock=self._clock,
            read=read,
            confirm_s=options.confirm_s,
            look_s=options.period_s,
        )

    def _stand_down(self) -> None:
        """Leave the cluster to others: who leads again starts from what it has then."""
        if self._leads and self._live is not None:
            _log.info("leads no more")
            self._leads = False
            self._live.stale = True
            self._meter.leading(leads=False)

    # Configuration

    def _configured(self) -> Scheduler:
        """Give a scheduler with the latest configuration that can be used."""
        conf = self._options.conf()
        if conf is not self._conf or self._scheduler is None:
            before, self._conf = self._conf, conf
            try:
                self._scheduler = Scheduler(conf, seed=self._options.seed)
            except ConfError as error:
                if self._scheduler is None:
                    self._conf = None
                    raise
                _log.error("configuration refused, the last good one stays", error=error)
            else:
                if before is None or before.metrics != conf.metrics:
                    self._measure(conf.metrics)
        return self._scheduler

    def _measure(self, metrics: Mapping[str, str]) -> None:
        """Read the use of nodes from where the configuration says."""
        if self._usage is not None:
            self._usage.stop()
            self._usage = None
        if not metrics.get("type"):
            return
        try:
            self._usage = BackgroundUsage(metrics, self._cluster.now)
        except ConfError as error:
            _log.error("use of nodes is not read", error=error)
        else:
            self._usage.start()

    def _node_usage(self, now: float) -> Mapping[str, Any]:
        del now
        return {} if self._usage is None else self._usage.latest()
