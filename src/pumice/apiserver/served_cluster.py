"""A whole embedded cluster, served: store, control plane, kubelet, API; for `pumice up`."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pumice import logs
from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.kinds import JOB, Manifest, kind_of
from pumice.api.wording import counted, crash_text
from pumice.apiserver.rest import RestApi
from pumice.apiserver.server import ApiServer
from pumice.clock import RealClock, wall_time
from pumice.cluster.embedded.custom_kinds import CustomKinds
from pumice.cluster.embedded.data_directory import DataDirectory
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.quotas import PodQuotas
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.services import SERVICES
from pumice.controllers import all_controllers
from pumice.controllers.foreign_pods import ForeignPodController
from pumice.controllers.workloads import WorkloadController
from pumice.errors import AlreadyExistsError, PumiceError, UnavailableError
from pumice.framework.session_state import ProcessMemory
from pumice.records.entries import Settings
from pumice.scheduler import Scheduler
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.recording import Recording
from pumice.serve.scheduler.live_scheduler import Usage
from pumice.webhooks.embedded import EmbeddedAdmission

_log = logs.get("up")
NAMESPACE: Final = "volcano-system"
NAME: Final = "volcano-scheduler-configmap"
KEY: Final = "volcano-scheduler.conf"
_SOURCE: Final = "pumice"


class SchedulerConfigMap:
    """Keeps the scheduler of a control plane in step with its ConfigMap."""

    def __init__(self, cluster: EmbeddedCluster, plane: EmbeddedControlPlane, text: str) -> None:
        self._cluster = cluster
        self._plane = plane
        self._seen = self.text = text
        """``text`` is the last good one."""

    def publish(self, *, replace: bool = False) -> None:
        """Write the ConfigMap, unless one exists, which then counts if it is to be kept."""
        metadata = {"name": NAME, "namespace": NAMESPACE}
        data = {KEY: self._seen}
        try:
            self._cluster.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            )
        except AlreadyExistsError:
            if replace:
                self._cluster.patch("ConfigMap", NAMESPACE, NAME, {"data": data})
            self.follow()

    def follow(self, _cycle: object = None) -> None:
        """Apply an edited configuration; for ``on_cycle`` of the control plane."""
        found = self._cluster.peek("ConfigMap", NAMESPACE, NAME)
        text = ((found or {}).get("data") or {}).get(KEY)
        if found is None or not isinstance(text, str) or text == self._seen:
            return
        self._seen = text
        live = self._plane.scheduler
        try:
            conf = parse_conf(text, source=NAME)
            live.scheduler = Scheduler(conf, seed=live.scheduler.seed, services=SERVICES)
        except PumiceError as error:
            self._record(found, "Warning", "InvalidConfiguration", f"{error}; the last one is kept")
        else:
            self.text = text
            actions = f"actions: {', '.join(live.scheduler.conf.actions)}"
            lines = [actions, *map(str, live.scheduler.warnings)]
            self._record(found, "Normal", "Reloaded", "; ".join(lines))

    def _record(self, about: Manifest, event_type: str, reason: str, message: str) -> None:
        self._cluster.record(about, event_type, reason, message, _SOURCE)


_BREATH_S: Final = 0.02
"""The least time between two cycles, in which clients are served."""
_CLIENTS_SHARE: Final = 3.0
"""How many times the length of a cycle clients that keep writing get between two."""
_ENOUGH: Final = 8
"""Writes from which on the length of a cycle shows what one of them costs."""


class FastClock(RealClock):
    """The machine's time, sped up from the moment it is made."""

    def __init__(
        self,
        speed: float = 1.0,
        timer: Callable[[], float] = time.monotonic,
        *,
        start: float = 0.0,
    ) -> None:
        """Make one that starts now, or at ``start`` if that is later."""
        super().__init__()
        self.speed = speed
        self._timer = timer
        self._start = max(wall_time(), start)
        self._started = timer()

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self._start + (self._timer() - self._started) * self.speed


class RunningPlane:
    """Runs a control plane in a thread until it is stopped."""

    def __init__(self, plane: EmbeddedControlPlane, clock: FastClock) -> None:
        self.plane = plane
        self.cycles = 0
        self.failure: Exception | None = None
        """The last failure; the plane continues anyway."""
        self._clock = clock
        self._writes = 0
        """Writes of clients since the last cycle began; about, since no lock is held."""
        self._write_s = 0.0
        """What a write has cost a cycle."""
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pumice-plane", daemon=True)

    def start(self) -> None:
        """Begin to run."""
        self._thread.start()

    def wake(self) -> None:
        """Run a cycle at once: a client has written something."""
        self._writes += 1
        if not self._woken.is_set():
            self._woken.set()

    def stop(self) -> None:
        """Finish the cycle and end."""
        self._stop.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        in_a_row = 0
        while not self._stop.is_set():
            self._woken.clear()
            writes, self._writes = self._writes, 0
            started = time.monotonic()
            changed = self._step()
            in_a_row = in_a_row + 1 if changed else 0
            step_s = time.monotonic() - started
            if writes >= _ENOUGH:
                self._write_s = step_s / writes
            self._serve_clients(step_s)
            self._wait(in_a_row)

    def _step(self) -> bool:
        """Run what is due and one cycle; a failure is logged and retried in the next."""
        try:
            with self.plane.cluster.lock:
                self._clock.run_due()
            changed = self.plane.step()
        except Exception as error:  # noqa: BLE001  # one bad object must not end the cluster
            if repr(error) != repr(self.failure):
                _log.error("a cycle failed; the cluster keeps running", error=crash_text(error))
            self.failure = error
            changed = False
        self.cycles += 1
        return changed

    def _serve_clients(self, step_s: float) -> None:
        """Serve clients that keep writing for three times as long as a cycle takes."""
        start = time.monotonic()
        heard = False
        while not self._stop.wait(_BREATH_S) and self._woken.is_set():
            if time.monotonic() - start >= self._clients_s(step_s):
                break
            heard = True
            self._woken.clear()
        if heard:
            self._woken.set()

    def _clients_s(self, step_s: float) -> float:
        """Return how long clients may go on: by the last cycle, or by the next if it is longer."""
        longer_s = max(step_s, self._writes * self._write_s)
        return min(_CLIENTS_SHARE * longer_s, self.plane.period_s)

    def _wait(self, in_a_row: int) -> None:
        """Wait for a client, a timer or the next cycle; endless changes slow down."""
        period = self.plane.period_s
        due_s = period
        if in_a_row:
            due_s = min(period, _BREATH_S * 2 ** min(in_a_row - 1, 10))
        with self.plane.cluster.lock:
            timer = self._clock.next_at()
        if timer is not None:
            due_s = min(due_s, (timer - self._clock.now()) / self._clock.speed)
        self._woken.wait(max(0.0, due_s - _BREATH_S))


_NAMES_OF_A_START: Final = 1_000_000
"""Generated names and uids of one start; the next start has different ones."""
_GRACE_S = 1.0
"""How long simulated pods take to end."""


class ServedCluster:
    """A cluster that holds its port once created; ``start`` runs it, ``stop`` ends it."""

    def __init__(
        self,
        conf: str = DEFAULT_CONF,
        *,
        port: int = 0,
        speed: float = 1.0,
        period_s: float = 1.0,
        seed: int = 0,
        data: DataDirectory | None = None,
        clock: FastClock | None = None,
        usage: Usage | None = None,
        is_default_scheduler: bool = False,
        record: Path | None = None,
    ) -> None:
        """Make one; ``conf`` is the text of the scheduler configuration, ``data`` its disk.

        ``record`` is a folder in which all that happens is recorded.
        With ``is_default_scheduler`` pods that name no scheduler, or the default one, are placed.
        """
        if clock is None:
            clock = FastClock(speed, start=data.now if data is not None else 0.0)
        self._data = data
        if data is None:
            self.cluster = EmbeddedCluster(clock, seed=seed)
        else:
            data.record(clock.now)
            self.cluster = EmbeddedCluster(
                clock, seed=data.starts * _NAMES_OF_A_START, tables=data.tables
            )
        self._started_at = self.cluster.now()
        self._recording = None if record is None else self._record(record)
        self.plane = plane = EmbeddedControlPlane(
            parse_conf(conf),
            (*all_controllers(), WorkloadController(), ForeignPodController()),
            cluster=self.cluster,
            write_causes=True,
            kubelet=Kubelet(self.cluster, grace_s=_GRACE_S),
            seed=seed,
            period_s=period_s,
            usage=usage,
            process=ProcessMemory(started_at=self._started_at),
            observed=None if self._recording is None else self._recording.observed,
        )
        self._conf = SchedulerConfigMap(self.cluster, plane, conf)
        self._listen()
        self.cluster.admission = EmbeddedAdmission(
            self.cluster, is_default_scheduler=is_default_scheduler
        )
        self.cluster.quotas = PodQuotas(self.cluster)
        self._running = RunningPlane(plane, clock)
        self.api = RestApi(self.cluster, self._written)
        self._server = ApiServer(self.api, port=port)

    def _listen(self) -> None:
        """Register all that is called after each cycle."""
        plane, data = self.plane, self._data
        if self._recording is not None:  # with the configuration that the cycle had
            plane.on_cycle.append(self._recording.finished)
        plane.on_cycle.append(self._conf.follow)
        if data is not None:
            plane.on_cycle.append(lambda _: data.sync())
        custom_kinds = CustomKinds(self.cluster)
        plane.on_cycle.append(custom_kinds.sync)

    def _record(self, folder: Path) -> Recording:
        """Make a record of the scheduler, with the configuration that it has."""

        def current() -> tuple[str, str]:
            return self._conf.text, f"ConfigMap {NAMESPACE}/{NAME}"

        return Recording(folder, self.cluster.now, conf=current, beside=self.cluster)

    @property
    def url(self) -> str:
        """The address for clients."""
        return self._server.url

    @property
    def failure(self) -> Exception | None:
        """The last failure; it continues anyway."""
        return self._running.failure

    def add_nodes(self, count: int, resources: Mapping[str, str]) -> None:
        """Add equal nodes, named ``node-1`` and so on."""
        for number in range(1, count + 1):
            add_node(self.cluster, f"node-{number}", resources)

    def load(self, manifests: Iterable[Manifest]) -> None:
        """Add objects; existing ones, such as the first queues, are updated."""
        for manifest in manifests:
            try:
                self.cluster.create(manifest)
            except AlreadyExistsError:
                metadata = manifest["metadata"]
                kind = self.cluster.kinds.of(manifest)
                home = metadata.get("namespace") or "default" if kind.namespaced else ""
                name = metadata["name"]
                self.cluster.patch(kind_of(manifest), home, name, manifest, patch_type="apply")

    def start(self, *, new_conf: bool = False) -> None:
        """Start the clock and serve clients; ``new_conf`` replaces a stored configuration.

        Raises:
            OutputError: its disk is full or broken; nothing was kept.
        """
        self.publish_conf(replace=new_conf)
        if self._data is not None:
            with self.cluster.lock:
                self._data.begin()
        if self._recording is not None:
            seed = self.plane.scheduler.scheduler.seed
            self._recording.start(Settings(seed=seed, started_at=self._started_at))
        self._running.start()
        self._server.start()

    def publish_conf(self, *, replace: bool = False) -> None:
        """Write the configuration into the cluster, where an edit takes effect."""
        self._conf.publish(replace=replace)

    def stop(self) -> None:
        """Stop serving clients and end."""
        self._server.stop()
        self._running.stop()
        if self._recording is not None:
            self._recording.close()
        if self._data is not None:
            with self.cluster.lock, suppress(UnavailableError):
                self._data.sync()
            self._data.close()

    def _written(self) -> None:
        """Write what a client wrote to the disk before it gets its answer, and run a cycle."""
        if self._data is not None:
            with self.cluster.lock:
                self._data.sync()
        self._running.wake()

    def summary(self) -> str:
        """Summarise the cluster in one line."""
        pods = self.cluster.list("Pod")[0]
        phases = Counter((pod.get("status") or {}).get("phase", "") for pod in pods)
        counts = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(phases.items()))
        nodes = len(self.cluster.list("Node")[0])
        jobs = len(self.cluster.list(JOB)[0])
        size = f"{counted(nodes, 'node')}, {counted(jobs, 'job')}"
        return f"{size}, pods: {counts or 'none'}; cycle {self._running.cycles}"
