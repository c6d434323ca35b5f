"""The source of a dashboard's cluster: files, an embedded cluster, a watched one."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from pumice import logs
from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.kinds import SCHEDULER_NAME, Manifest
from pumice.api.objects import FOLLOWED
from pumice.cache.informer import Informer
from pumice.cache.ingest import Ingest
from pumice.clock import SPEED_WINDOW_S, clock_speed
from pumice.cluster.base import Cluster, LiveCluster
from pumice.cluster.stored_conf import scheduler_configuration
from pumice.core.snapshot import Snapshot
from pumice.dashboard.feed import Feed
from pumice.dashboard.material import ALL_KINDS, Material, gather
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.runner import Replay
from pumice.errors import ClusterError, ConfError, InputError
from pumice.framework.registry import load_plugins
from pumice.scheduler import Scheduler
from pumice.serve.embedded import EmbeddedControlPlane

_log = logs.get("dashboard")
_EVENTS: Final = 50
_MEASURABLE_S: Final = 2.0
"""How long a clock is watched before its speed is told."""


@dataclass(frozen=True, kw_only=True)
class About:
    """Facts about the cluster that a page shows."""

    title: str
    kind: str
    """embedded, files, record, cluster or scheduler."""
    decides: bool
    """Whether the cycles shown were carried out; if not, they were only computed here."""
    speed: float = 1.0
    """How fast its time runs; 0: it is stopped."""
    hint: str = ""
    """How a first job is submitted."""
    past: Material | None = None
    """The record of this cluster, at any time; None if there is none."""


class Source(Protocol):
    """A cluster to be shown."""

    about: About
    feed: Feed

    def material(self) -> Material:
        """Return the cluster's objects as they are now."""

    def events(self, namespace: str) -> Sequence[Manifest]:
        """Return the events of a namespace; none if unknown."""

    @property
    def cluster(self) -> Cluster | None:
        """The cluster for actions; None if there is none."""

    @property
    def problem(self) -> str:
        """Why there is nothing new; empty if all is well."""


@dataclass
class StaticSource:
    """A world that does not change, such as that of files."""

    world: ClusterState
    title: str
    plugins: tuple[str, ...] = ()
    """Where plugins of the user's own come from."""
    past: Material | None = None
    """The record that the world is a moment of."""
    about: About = field(init=False)
    feed: Feed = field(init=False)
    cluster: None = None
    problem: str = ""

    def __post_init__(self) -> None:
        """Decide one cycle and take a picture of it."""
        kind = "files" if self.past is None else "record"
        self.about = About(title=self.title, kind=kind, decides=False, speed=0.0, past=self.past)
        self.feed = Feed()
        Replay(self.world).decide(self.feed)

    def material(self) -> Material:
        """Return the world."""
        world = replace(self.world, plugins={})
        return Material(now=self.world.now, world=world, plugins=self.plugins)

    def events(self, namespace: str) -> Sequence[Manifest]:
        """Return nothing: files rarely hold events, and scheduling does not read them."""
        del namespace
        return ()


class EmbeddedSource:
    """An embedded cluster in this process."""

    problem = ""

    def __init__(self, plane: EmbeddedControlPlane, about: About) -> None:
        """Observe each session of a control plane."""
        self.about = about
        self.cluster = plane.cluster
        self.feed = Feed(self.material)
        plane.observers.append(self.feed)
        plane.on_cycle.append(self.feed.finished)

    def material(self) -> Material:
        """List the cluster at one moment."""
        with self.cluster.lock:
            return gather(self.cluster, ALL_KINDS, now=self.cluster.now())

    def events(self, namespace: str) -> Sequence[Manifest]:
        """List the events of a namespace."""
        return self.cluster.list("Event", namespace)[0]


class SchedulerSource:
    """The cluster of a scheduler that serves in this process."""

    def __init__(
        self,
        cluster: LiveCluster,
        title: str,
        conf: Callable[[], str],
        *,
        decides: bool,
        past: Material | None = None,
    ) -> None:
        """Show a watched cluster; ``feed`` must be an observer of the loop."""
        self.about = About(title=title, kind="scheduler", decides=decides, past=past)
        self.cluster = cluster
        self._conf = conf
        self.feed = Feed(self.material)

    @property
    def problem(self) -> str:
        """Why there is nothing to show; empty once there is."""
        if self.feed.picture is not None:
            return ""
        return "this scheduler has run no cycle yet; of several replicas only the leader runs any"

    def material(self) -> Material:
        """List the scheduler's objects, from its own caches."""
        now, conf = self.cluster.now(), self._conf()
        return gather(self.cluster, FOLLOWED, now=now, conf=conf)

    def events(self, namespace: str) -> Sequence[Manifest]:
        """Ask the cluster for the events of a namespace."""
        return _events(self.cluster, namespace)


class FollowedSource:
    """A cluster that is watched from outside; cycles are computed here, and nothing is written."""

    def __init__(
        self,
        cluster: LiveCluster,
        title: str,
        *,
        plugins: tuple[str, ...] = (),
        period_s: float = 1.0,
    ) -> None:
        """Watch a cluster from ``start`` to ``stop``; ``plugins`` are of the user's own."""
        self.about = About(title=title, kind="cluster", decides=False)
        self.cluster = cluster
        self.feed = Feed()
        self.problem = "waiting for the first complete list of the cluster's objects"
        self._period_s = period_s
        self._informer = Informer(cluster, Ingest(Snapshot(), (SCHEDULER_NAME,)))
        self._began: tuple[float, float] | None = None
        """Time here and in the cluster at the first look."""
        self._conf = ""
        self._plugins = plugins
        self._scheduler = self._made(DEFAULT_CONF, "the built-in configuration")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dashboard-follow", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        self._thread.join()

    def material(self) -> Material:
        """List the cluster: watched kinds from memory, Volcano jobs by a request."""
        found = gather(self.cluster, ALL_KINDS, now=self.cluster.now(), conf=self._conf)
        return replace(found, plugins=self._plugins)

    def events(self, namespace: str) -> Sequence[Manifest]:
        """Ask the cluster for the events of a namespace."""
        return _events(self.cluster, namespace)

    def _run(self) -> None:
        wake = self.cluster.new_wake()
        while self.cluster.wait_synced(self._period_s):
            if self._stop.is_set():
                return
        while not self._stop.is_set():
            wake.clear()
            try:
                self._look()
            except Exception as error:  # noqa: BLE001  # shown on every page; the next may do better
                self.problem = f"a cycle could not be computed: {error}"
                _log.error("cannot read the cluster", error=error)
            self._stop.wait(self._period_s)
            wake.wait(10.0)

    def _look(self) -> None:
        self._reload()
        self._measure_speed()
        self._informer.sync()
        self._scheduler.decide(self._informer.snapshot, self.cluster.now(), observer=self.feed)
        troubles = self.cluster.troubles()
        self.problem = "; ".join(f"{kind}: {why}" for kind, why in troubles.items())

    def _measure_speed(self) -> None:
        """Compare the cluster's clock with the one here: that of `pumice up --speed` runs ahead."""
        here, there = time.monotonic(), self.cluster.now()
        if self._began is None:
            self._began = here, there
        passed_s = here - self._began[0]
        if passed_s < _MEASURABLE_S:
            return
        speed = clock_speed(passed_s, there - self._began[1])
        self.about = replace(self.about, speed=round(speed, 1))
        if passed_s > SPEED_WINDOW_S:
            self._began = here, there

    def _reload(self) -> None:
        """Use the configuration that the cluster's scheduler has, if it can be used."""
        found = scheduler_configuration(self.cluster)
        if found is None or found[0] == self._conf:
            return
        self._conf, source = found
        try:
            self._scheduler = self._made(self._conf, source)
        except (ConfError, InputError) as error:
            _log.warning("configuration cannot be used", problem=error)

    def _made(self, conf: str, source: str) -> Scheduler:
        return Scheduler(parse_conf(conf, source=source), plugins=load_plugins(self._plugins))


def _events(cluster: Cluster, namespace: str) -> Sequence[Manifest]:
    try:
        return cluster.list("Event", namespace)[0]
    except ClusterError:
        return ()
