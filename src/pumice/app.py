"""Wiring: a scheduler on a cluster, and a whole control plane on an embedded one.

Used by the command line and the simulator.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.api.decisions import Decisions
from pumice.binder import Applied, Binder
from pumice.cache.follow import Follower
from pumice.cache.ingest import Ingest
from pumice.cluster.base import Cluster, Manifest
from pumice.cluster.embedded.clock import Clock, VirtualClock
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import all_controllers
from pumice.controllers.base import Controller
from pumice.controllers.loop import ControllerLoop
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.errors import AlreadyExistsError
from pumice.scheduler import Observer, Scheduler

Usage = Callable[[float], Mapping[str, Any]]
"""Measured use of nodes at a time, as ``Scheduler.decide`` wants it."""
_QUEUES: Final[tuple[Manifest, ...]] = (
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "root"},
        "spec": {"weight": 1, "reclaimable": False},
    },
    {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"weight": 1, "reclaimable": True, "parent": "root"},
    },
)


@dataclass(slots=True)
class Cycle:
    """One scheduling cycle: when, what was decided, what came of it."""

    at: float
    decisions: Decisions
    applied: Applied


class LiveScheduler:
    """Follows a cluster, decides, writes: one ``cycle`` at a time.

    With ``assume`` a bound pod counts on its node before the cluster tells so, which a cluster
    that tells late needs.
    """

    def __init__(
        self,
        cluster: Cluster,
        scheduler: Scheduler,
        *,
        names: Sequence[str] = ("volcano",),
        usage: Usage | None = None,
        write_conditions: bool = True,
        assume: bool = False,
    ) -> None:
        self._cluster = cluster
        self.scheduler = scheduler
        self.follower = Follower(cluster, Ingest(Snapshot(), names))
        self.binder = Binder(cluster, source=names[0], write_conditions=write_conditions)
        self._usage = usage
        self._assume = assume

    def cycle(self, observer: Observer | None = None) -> Cycle:
        """Take in what changed, decide, and write what was decided."""
        self.follower.sync()
        now = self._cluster.now()
        usage = self._usage(now) if self._usage is not None else None
        snapshot = self.follower.snapshot
        decisions = self.scheduler.decide(
            snapshot, now, usage, only_changes=True, observer=observer
        )
        waiting = {group: _waiting_pods(snapshot, group) for group in decisions.unschedulable}
        if self._assume:
            for pod, node in decisions.binds.items():
                self.follower.assume(pod, node)
        applied = self.binder.apply(decisions, waiting)
        for pod in applied.failed:
            self.follower.undo(pod)
        return Cycle(now, decisions, applied)


def _waiting_pods(snapshot: Snapshot, group: str) -> list[str]:
    jobs, tasks = snapshot.jobs, snapshot.tasks
    rows = np.asarray(jobs.tasks[jobs.row_of[group]], dtype=np.int64)
    return [tasks.keys[row] for row in rows[tasks.status[rows] == Status.PENDING].tolist()]


def _seeded_bits(seed: int) -> Callable[[int], int]:
    """Give a source of random bits that is the same for the same seed."""
    generator = np.random.default_rng(seed)
    return lambda bits: int.from_bytes(generator.bytes(-(-bits // 8))) >> (-bits % 8)


def make_queues(cluster: Cluster) -> None:
    """Create the queues ``root`` and ``default`` unless they are there, as a scheduler does."""
    for manifest in _QUEUES:
        try:
            queue = cluster.create(manifest)
        except AlreadyExistsError:
            continue
        cluster.update_status({**queue, "status": {"state": "Open"}})


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
    ) -> None:
        """Make one, by default with all controllers.

        ``period_s`` is the time between cycles while something changes, ``idle_period_s`` the
        longest time between two if nothing does, for policies that look at the clock.
        """
        if cluster is None:
            cluster = EmbeddedCluster(clock or VirtualClock(), seed=seed)
        self.cluster = cluster
        self.clock = cluster.clock
        self.kubelet = kubelet or Kubelet(cluster)
        if controllers is None:
            controllers = all_controllers(bits=_seeded_bits(seed))
        self.controllers = ControllerLoop(cluster, controllers, self.clock)
        self.scheduler = LiveScheduler(
            cluster,
            scheduler or Scheduler(conf or parse_conf(DEFAULT_CONF), seed=seed),
            usage=usage,
            write_conditions=write_conditions,
        )
        self.period_s = period_s
        self.idle_period_s = idle_period_s
        self.on_cycle: list[Callable[[Cycle], None]] = []
        """Called after each cycle."""
        make_queues(cluster)

    def step(self) -> bool:
        """Run controllers, one scheduling cycle and the kubelet; says whether anything changed."""
        with self.cluster.lock:
            before = self.cluster.version
            self.settle()
            cycle = self.scheduler.cycle()
            self.settle()
            for listener in self.on_cycle:
                listener(cycle)
            return self.cluster.version != before

    def settle(self) -> None:
        """Let controllers and kubelet react until nothing changes but by the scheduler."""
        while True:
            before = self.cluster.version
            self.kubelet.sync()
            self.cluster.collect_garbage()
            self.controllers.run_until_quiet()
            if self.cluster.version == before:
                return

    def run(self, until: float | None = None, *, max_cycles: int = 1_000_000) -> int:
        """Run in virtual time until a time, or until nothing is left to happen; gives the cycles.

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
        """Run in real time until told to stop: a cycle each ``period_s``."""
        while not stop.is_set():
            started = self.clock.now()
            with self.cluster.lock:
                self.clock.run_due()
            self.step()
            stop.wait(max(0.0, self.period_s - (self.clock.now() - started)))

    def _next_cycle(self, *, changed: bool) -> float | None:
        """Say when to decide again, None if nothing will happen."""
        now, timer = self.clock.now(), self.clock.next_at()
        if changed:
            return now + self.period_s
        if timer is None or self.idle_period_s is None:
            return timer
        return min(timer, now + self.idle_period_s)
