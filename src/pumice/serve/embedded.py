"""Wiring: a whole control plane on an embedded cluster.

Used by the command line.
"""

import threading
from collections.abc import Callable, Sequence

from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.clock import Clock, VirtualClock
from pumice.cluster.base import Cluster
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.resource_claims import ResourceClaimUpkeep
from pumice.cluster.embedded.status_upkeep import StatusUpkeep
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.embedded.volumes import VolumeController
from pumice.cluster.services import SERVICES
from pumice.controllers import all_controllers
from pumice.controllers.base import Controller
from pumice.controllers.loop import ControllerLoop
from pumice.framework.session_state import ProcessMemory
from pumice.metrics import Metrics
from pumice.scheduler import Observer, Observers, Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import Cycle, LiveScheduler, Usage
from pumice.serve.scheduler.waiting_causes import WaitingCauses, load_examination


class EmbeddedControlPlane:
    """An embedded cluster with controllers, scheduler and kubelet on one clock."""

    def __init__(
        self,
        conf: SchedulerConf | None = None,
        controllers: Sequence[Controller] | None = None,
        *,
        clock: Clock | None = None,
        cluster: EmbeddedCluster | None = None,
        kubelet: Kubelet | None = None,
        scheduler: Scheduler | None = None,
        seed: int = 0,
        period_s: float = 1.0,
        idle_period_s: float | None = None,
        usage: Usage | None = None,
        write_conditions: bool = True,
        write_causes: bool = False,
        process: ProcessMemory | None = None,
        observed: Callable[[EmbeddedCluster], Cluster] | None = None,
    ) -> None:
        """Make one, by default with all controllers.

        ``period_s`` is the time between cycles while something changes, ``idle_period_s`` the
        longest time between two if nothing does, for policies that use the clock.  With
        ``write_causes`` pod groups show why their jobs wait.  ``observed`` returns the cluster
        as the scheduler gets it, for one that is recorded.
        """
        if cluster is None:
            cluster = EmbeddedCluster(clock or VirtualClock(), seed=seed)
        self.cluster = cluster
        self.clock = cluster.clock
        self.kubelet = kubelet or Kubelet(cluster)
        self.books = StatusUpkeep(cluster)
        self.resource_claims = ResourceClaimUpkeep(cluster)
        self.volumes = VolumeController(cluster)
        made = all_controllers() if controllers is None else controllers
        self.controllers = ControllerLoop(cluster, made, self.clock, versions=cluster.tables.latest)
        self.scheduler = LiveScheduler(
            cluster if observed is None else observed(cluster),
            scheduler or Scheduler(conf or parse_conf(DEFAULT_CONF), seed=seed, services=SERVICES),
            usage=usage,
            write_conditions=write_conditions,
            process=process,
        )
        self._causes = WaitingCauses(Metrics()) if write_causes else None
        if write_causes:
            load_examination()
        self.period_s = period_s
        self.idle_period_s = idle_period_s
        self.observers: list[Observer] = []
        """Observers of each session."""
        self.on_cycle: list[Callable[[Cycle], None]] = []
        """Called after each cycle."""
        make_queues(cluster)

    def step(self) -> bool:
        """Run controllers, a scheduling cycle and the kubelet; return whether anything changed."""
        with self.cluster.lock:
            before = self.cluster.version
            self.settle()
            causes = [] if self._causes is None else [self._causes]
            cycle = self.scheduler.cycle(Observers(*causes, *self.observers))
            if self._causes is not None and not cycle.dropped:
                self._causes.write(self.scheduler.binder)
            self.settle()
            for listener in self.on_cycle:
                listener(cycle)
            return self.cluster.version != before

    def settle(self) -> None:
        """Run controllers and kubelet until only the scheduler can change something."""
        while True:
            before = self.cluster.version
            self.kubelet.sync()
            self.books.sync()
            self.resource_claims.sync()
            self.volumes.sync()
            self.cluster.collect_garbage()
            self.controllers.run_until_quiet()
            if self.cluster.version == before:
                return

    def run(self, until: float | None = None, *, max_cycles: int = 1_000_000) -> int:
        """Run in virtual time until a time, or until nothing is left to happen; return the cycles.

        While something changes a cycle follows each ``period_s``; else time moves to the next
        timer at once, or by ``idle_period_s`` if that is less.

        Raises:
            TypeError: the clock is not virtual.
        """
        clock = self.clock
        if not isinstance(clock, VirtualClock):
            raise TypeError("only virtual time can be run; use serve")
        cycles = 0
        while cycles < max_cycles:
            due = self._next_cycle(changed=self.step())
            cycles += 1
            if due is None or (until is not None and due > until):
                break
            clock.advance_to(due)
        if until is not None and cycles < max_cycles:
            clock.advance_to(until)
            self.settle()
        return cycles

    def serve(self, stop: threading.Event) -> None:
        """Run in real time until stopped: a cycle each ``period_s``."""
        while not stop.is_set():
            started = self.clock.now()
            with self.cluster.lock:
                self.clock.run_due()
            self.step()
            stop.wait(max(0.0, self.period_s - (self.clock.now() - started)))

    def _next_cycle(self, *, changed: bool) -> float | None:
        """Return when to decide again, None if nothing will happen."""
        now, timer = self.clock.now(), self.clock.next_at()
        if changed:
            return now + self.period_s
        due = self.scheduler.next_due
        if due is not None:
            timer = max(due, now + self.period_s) if timer is None else min(timer, max(due, now))
        if timer is None or self.idle_period_s is None:
            return timer
        return min(timer, now + self.idle_period_s)
