"""A scheduler on a cluster, one cycle at a time.

Used by the loop of a served scheduler and by the embedded control plane.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pumice import logs
from pumice.api.decisions import Decisions
from pumice.api.kinds import CONFIG_MAP, DEFAULT_QUEUE
from pumice.api.meta import ConfigMap
from pumice.api.nodes import Node
from pumice.api.objects import from_manifest
from pumice.binder import Binder, WriteResult, WriteResults
from pumice.cache.informer import Informer
from pumice.cache.ingest import Ingest
from pumice.cluster.base import Cluster, Writer
from pumice.core.snapshot import Snapshot
from pumice.core.status import PENDING
from pumice.errors import ClusterError, InputError, NotFoundError
from pumice.framework.session_state import ProcessMemory
from pumice.scheduler import Observer, Scheduler
from pumice.serve.scheduler.arrivals import NOTHING, PATIENCE_S, Arrivals, Withheld
from pumice.serve.scheduler.recovery import Read, Recovery
from pumice.serve.scheduler.volume_binding import VolumeBinding

_EACH_S: Final = 60.0
_AFTER_FAILURE_S: Final = 5.0
_READ_S: Final = 1.0
_log = logs.get("config-maps")


class ConfigMaps:
    """Looks ConfigMaps up and shows them to the scheduler."""

    def __init__(self, read: Read, clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._known: dict[str, ConfigMap] = {}
        self._due: dict[str, float] = {}

    def show(self, wanted: Iterable[str], snapshot: Snapshot) -> None:
        """Put the wanted ones ("namespace/name") into a snapshot, if they exist."""
        shown = snapshot.kind(CONFIG_MAP)
        for key in wanted:
            if self._due.get(key, 0.0) <= self._clock():
                self._look_up(key)
            if key in self._known:
                shown[key] = self._known[key]
            else:
                shown.pop(key, None)

    def _look_up(self, key: str) -> None:
        """Read one; if that fails, the last version stays."""
        namespace, _, name = key.partition("/")
        again = _EACH_S
        try:
            found = from_manifest(self._read(CONFIG_MAP, namespace, name, _READ_S))
        except NotFoundError:
            self._known.pop(key, None)
        except (ClusterError, InputError) as error:
            _log.warning("ConfigMap cannot be read", key=key, why=error)
            again = _AFTER_FAILURE_S
        else:
            if isinstance(found, ConfigMap):
                self._known[key] = found
        self._due[key] = self._clock() + again


Usage = Callable[[float], Mapping[str, Any]]
"""Measured use of nodes at a time, as an argument of ``Scheduler.decide``."""
_ONE_OF_MANY: Final = "volcano"
"""The name in events of a scheduler with several names."""


@dataclass(slots=True)
class Cycle:
    """One scheduling cycle: time, decisions, results of this and earlier ones."""

    at: float
    decisions: Decisions
    writes: WriteResults
    dropped: bool = False
    """Whether nothing of it was written, because another scheduler leads by now."""
    usage: Mapping[str, Any] | None = None
    """The measured use of nodes that it saw."""
    withheld: Withheld = NOTHING
    """What was not written about it."""


class LiveScheduler:
    """Watches a cluster, decides, writes: one ``cycle`` at a time.

    With ``assume`` writes count before the cluster confirms them, and failed ones are
    recovered, as a slow cluster needs.
    """

    def __init__(
        self,
        cluster: Cluster,
        scheduler: Scheduler,
        *,
        names: Sequence[str] = ("volcano",),
        agents: Sequence[str] = (),
        usage: Usage | None = None,
        write_conditions: bool = True,
        assume: bool = False,
        writer: Writer | None = None,
        default_queue: str = DEFAULT_QUEUE,
        node_selector: Sequence[str] = (),
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] | None = None,
        read: Read | None = None,
        confirm_s: float = 30.0,
        look_s: float = 1.0,
        process: ProcessMemory | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        """Make one.

        Pods of the schedulers ``agents`` need no group.  ``node_selector`` are labels
        ("name:value") one of which a node must have; ``may_write`` is checked after deciding;
        ``clock`` measures how long answers take; ``read`` returns objects as they are now.
        ``process`` outlives every scheduler that replaces another.  With ``wake``, called on any
        thread when a write failed, cycles begin by event: jobs are seen before they are whole.
        """
        self._cluster = cluster
        self.scheduler = scheduler
        self._process = process or ProcessMemory()
        self._names, self._agents = names, agents
        self._default_queue = default_queue
        self._wants_node = _selected(node_selector)
        self._usage = usage
        self._assume = assume
        self._may_write = may_write
        self._clock = clock or cluster.now
        self.arrivals = Arrivals(self._clock, PATIENCE_S if wake is not None else 0.0)
        self._results: list[WriteResult] = []  # those that came between cycles
        self._undone = 0
        self.informer = self._new_informer()
        self.binder = self._new_binder(writer, wake, write_conditions=write_conditions)
        read = read or (lambda kind, namespace, name, _: cluster.get(kind, namespace, name))
        self.recovery = Recovery(
            self.informer, self.binder, read, clock=self._clock, confirm_s=confirm_s, look_s=look_s
        )
        self._config_maps = ConfigMaps(read, self._clock)
        self.volumes = VolumeBinding(self.informer, self.binder, self.recovery)
        self._recovers = assume
        """Whether writes are tracked: always if all are assumed, else once pods had to wait."""
        self.stale = False
        """Whether the tables must be rebuilt before the next cycle: the last one failed, or
        another scheduler was active meanwhile.  Writes in flight are not forgotten."""

    def _new_informer(self) -> Informer:
        return Informer(
            self._cluster,
            Ingest(Snapshot(), (*self._names, *self._agents), self._default_queue),
            wants_node=self._wants_node,
            agents=self._agents,
        )

    def _new_binder(
        self, writer: Writer | None, wake: Callable[[], None] | None, *, write_conditions: bool
    ) -> Binder:
        return Binder(
            self._cluster,
            writer=writer,
            known=lambda kind, key: self.informer.known(kind, key),  # noqa: PLW0108  # of today
            waits=self._waits,
            source=self._names[0] if len(self._names) == 1 else _ONE_OF_MANY,
            write_conditions=write_conditions,
            clock=self._clock,
            on_failure=wake,
            hold_s=PATIENCE_S if self._assume else 0.0,
        )

    def look(self) -> bool:
        """Apply changes and results of writes; return whether they may let something start."""
        if self.stale:
            return True
        self.stale = True
        self._results += self.catch_up().results
        self.stale = False
        undone, self._undone = self._undone, self.recovery.undone
        news = self.informer.take_news()
        return self.arrivals.may_start(news, self.informer.snapshot) or undone != self._undone

    def cycle(self, observer: Observer | None = None) -> Cycle:
        """Apply changes, decide, and write the decisions."""
        if self.stale:
            self._start_over()
        self.stale = True
        writes = self.catch_up()
        writes.results[:0], self._results = self._results, []
        self.arrivals.may_start(self.informer.take_news(), self.informer.snapshot)
        self._config_maps.show(self.scheduler.config_maps, self.informer.snapshot)
        now = self._cluster.now()
        usage = self._usage(now) if self._usage is not None else None
        if observer is not None:
            observer.synced()
        decisions = self.scheduler.decide(
            self.informer.snapshot,
            now,
            usage,
            only_changes=True,
            observer=observer,
            process=self._process,
            repeats=True,
        )
        dropped, withheld = not self._may_write(), NOTHING
        if not dropped:
            withheld = self.arrivals.withheld(decisions)
            writes.results += self._write(decisions, withheld, now).results
        self.stale = False
        return Cycle(now, decisions, writes, dropped, usage, withheld)

    def catch_up(self) -> WriteResults:
        """Apply changes and results of writes; return the latter."""
        self.informer.sync()
        writes = self.binder.drain()
        if self._recovers:
            now = self._clock()
            self._learn(writes, now)
            self.volumes.step(now)
            self.recovery.step(now)
            self.informer.settle()
        return writes

    def _learn(self, writes: WriteResults, now: float) -> None:
        self.volumes.learn(writes.results)
        self.recovery.learn(writes.results, now)

    @property
    def next_due(self) -> float | None:
        """When something is due by the clock alone; None: nothing is."""
        due = (self.volumes.next_deadline, self.recovery.next_release, self.arrivals.next_due)
        return min((at for at in due if at is not None), default=None)

    def _start_over(self) -> None:
        """Rebuild the tables from the cluster and from what is still in flight."""
        self.informer = self._new_informer()
        self.informer.sync()
        self.recovery.move_to(self.informer, self._clock())
        self.binder.forget_held()
        self.volumes.move_to(self.informer)

    def _write(self, decisions: Decisions, withheld: Withheld, at: float) -> WriteResults:
        self._recovers |= bool(decisions.volumes)
        withheld.remove(decisions, self.informer.snapshot)
        self.informer.state_groups(decisions.pod_groups)
        decisions = self.volumes.begin(decisions, self._clock())
        if self._assume:
            self.recovery.assume(decisions, self._clock())
        writes = self.binder.apply(decisions, at)
        for result in writes.results if not self._assume else ():
            if result.what == "bind" and result.error is not None:  # answered at once: it is final
                self.binder.unreserve(result.key, result.uid)
        now = self._clock()
        if self._assume:
            self.recovery.assume_groups(now)
        if self._recovers:
            self._learn(writes, now)
        return writes

    def _waits(self, pod: str) -> bool:
        tasks = self.informer.snapshot.tasks
        row = tasks.row_of.get(pod)
        return row is not None and int(tasks.status[row]) == PENDING


def _selected(node_selector: Sequence[str]) -> Callable[[Node], bool]:
    """Return a test whether a node has one of some labels; without any all do."""
    wanted = {
        (name.strip(), value.strip())
        for name, colon, value in (each.partition(":") for each in node_selector)
        if colon
    }
    if not wanted:
        return lambda _: True
    return lambda node: not wanted.isdisjoint(node.metadata.labels.items())
