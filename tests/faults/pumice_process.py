"""A process of Pumice in a simulation: production's own wiring, on simulated threads and time."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from types import MappingProxyType
from typing import Any, Final, cast
from unittest.mock import patch

from pumice.api.conf import read_conf
from pumice.cluster.kube import cluster as kube_cluster
from pumice.cluster.kube import write_queue
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.rate_limit import Timing
from pumice.controllers import threaded_loop
from pumice.framework import registry
from pumice.serve import process as serve_process
from pumice.serve import start
from pumice.serve.early import connect
from pumice.serve.options import ControllerOptions, ProcessOptions, SchedulerOptions
from pumice.serve.process import Process
from pumice.serve.scheduler import conf_reload
from pumice.serve.scheduler.live_scheduler import Cycle, LiveScheduler
from pumice.serve.scheduler.loop import SchedulerLoop
from pumice.serve.start import Machine, assemble
from tests.faults import threads
from tests.faults.faults import Chance
from tests.faults.simulation import SimulatedProcess, Simulation, enter, leave

_ADDRESS: Final = "http://10.0.0.1:80"
SHORT_LEASE: Final = {
    "leader_elect_lease_duration_s": 7.0,
    "leader_elect_renew_deadline_s": 4.0,
    "leader_elect_retry_period_s": 1.0,
}
_REPLACED: Final = (
    (registry, "installed_plugins", cache(registry.installed_plugins)),
    (conf_reload, "read_conf", cache(read_conf)),
    (start, "Metrics", threads.Unmeasured),
    (kube_cluster, "threading", threads.Threading),
    (kube_cluster, "LoopThread", threads.LoopThread),
    (kube_cluster, "FirstLoad", threads.FirstLoad),
    (write_queue, "threading", threads.Threading),
    (threaded_loop, "threading", threads.Threading),
    (threaded_loop, "ThreadPoolExecutor", threads.ThreadPoolExecutor),
    (serve_process, "threading", threads.Threading),
)
"""What of production code is another in a simulation: threads and what waits for them.

Plugins that are installed are looked for once, configurations are read once, and not for each
process; metrics, which no rule is about, are not kept.  All that takes long.
"""


@contextmanager
def simulated(simulation: Simulation) -> Iterator[None]:
    """Have threads, locks and event loops of production code be those of a simulation."""
    with ExitStack() as stack:
        for module, name, stand_in in _REPLACED:
            stack.enter_context(patch.object(module, name, stand_in))
        enter(simulation)
        try:
            yield
        finally:
            leave(simulation)


def options(
    conf: str,
    parts: str,
    period_s: float,
    cycle: str = "event",
    *,
    shard: str = "",
    lease: Mapping[str, float] = MappingProxyType({}),
) -> ProcessOptions:
    """Return the options of a process: "all", "scheduler", "second" or "controllers".

    With a ``shard`` its scheduler takes the nodes and pods of that name.
    """
    common: dict[str, Any] = {"master": _ADDRESS, **lease}
    own: dict[str, Any] = {
        "scheduler_name": (shard,),
        "leader_elect_resource_name": shard,
        "scheduler_sharding_mode": "hard",
        "scheduler_sharding_name": shard,
    }
    scheduler = SchedulerOptions(
        **common,
        **(own if shard else {}),
        scheduler_conf=conf,
        schedule_period_s=period_s,
        cycle=cycle,
        cache_dumper=False,
    )
    controllers = ControllerOptions(
        **common, kube_api_qps=2000.0, kube_api_burst=2000, leader_elect_resource_name="volcano"
    )
    if parts == "controllers":
        separate = ControllerOptions(**common, kube_api_qps=2000.0, kube_api_burst=2000)
        return ProcessOptions(controllers=separate)
    return ProcessOptions(scheduler=scheduler, controllers=controllers if parts == "all" else None)


class PumiceProcess:
    """One life of a process: from its start until it ends or is killed."""

    def __init__(
        self, simulation: Simulation, name: str, given: ProcessOptions, chance: Chance
    ) -> None:
        self.host = SimulatedProcess(simulation, name)
        self.given = given
        self.exit_code: int | None = None
        self.was_killed = False
        self.problem: BaseException | None = None
        self._process: Process | None = None
        self._cluster: KubeCluster | None = None
        self._timing = Timing(clock=self.host.monotonic, wall=self.host.wall, jitter=chance.number)
        self.on_cycle: Callable[[PumiceProcess, Cycle], None] = lambda *_: None
        self.on_end: Callable[[], None] = lambda: None
        self._main = self.host.spawn(self._run, "main")
        self._main.on_end.append(lambda: simulation.soon(self._end))

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def ended(self) -> bool:
        return not self.host.alive or self._main.ended

    @property
    def leads(self) -> bool:
        """Return whether it may work now."""
        return not self.ended and self._process is not None and self._process.is_leader()

    @property
    def cluster(self) -> KubeCluster | None:
        """The cluster as it follows it, once it does."""
        return self._cluster

    @property
    def troubles(self) -> dict[str, str]:
        """The kinds that it does not follow just now, with the reason."""
        return {} if self._cluster is None else self._cluster.troubles()

    @property
    def loop(self) -> SchedulerLoop | None:
        """Its scheduler's loop, once there is one."""
        return self._part("scheduler")

    @property
    def live(self) -> LiveScheduler | None:
        """Its scheduler, once it has led."""
        loop = self.loop
        return None if loop is None else loop._live

    def stop(self) -> None:
        """Ask it to end, as a signal does."""
        if self._process is not None:
            self._process.stop.set()

    def _end(self) -> None:
        self.was_killed = not self.host.alive
        self.host.kill()
        self.on_end()

    def _part(self, name: str) -> Any:
        parts = [] if self._process is None else self._process.parts
        for part in parts:
            if part.name == name:
                return getattr(part.run, "__self__", None)
        return None

    def _run(self) -> None:
        machine = Machine(self._timing, self.name)
        try:
            with ExitStack() as stack:
                self._cluster = connect(self.given, stack, machine.timing)
                process = assemble(self.given, self._cluster, stack, machine)
                process.stop = cast("Any", threads.Event())
                self._process = process
                if self.loop is not None:
                    self.loop._on_cycle = lambda cycle: self.on_cycle(self, cycle)
                self.exit_code = process.run()
        except Exception as error:  # noqa: BLE001  # the world looks at it
            self.problem = error
