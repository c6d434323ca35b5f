"""The same scheduler on the same inputs: whether it decides as it did, cycle by cycle."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from pumice.api.conf import parse_conf
from pumice.api.decisions import Decisions
from pumice.api.times import rfc3339
from pumice.cluster.base import Cluster, Writer
from pumice.cluster.services import SERVICES
from pumice.errors import InputError, Words
from pumice.framework.session_state import ProcessMemory
from pumice.records.entries import CycleEntry, Settings
from pumice.records.history import History, Moment
from pumice.replay.recorded_cluster import RecordedCluster
from pumice.scheduler import Scheduler
from pumice.serve.recording import cycle_entry
from pumice.serve.scheduler.arrivals import Arrivals, Withheld
from pumice.serve.scheduler.live_scheduler import Cycle, LiveScheduler

_SHOWN: Final = 20
"""Differences that are kept."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A cycle that decides otherwise than it did."""

    at: str
    cycle: int
    binds: dict[str, tuple[str, str]]
    """Pod to node then and now, where they differ."""
    evictions: dict[str, tuple[str, str]]
    phases: dict[str, tuple[str, str]]


@dataclass(kw_only=True)
class Fidelity:
    """How much of a record the same scheduler decides again."""

    cycles: int = 0
    same: int = 0
    binds: int = 0
    same_binds: int = 0
    evictions: int = 0
    same_evictions: int = 0
    gaps: int = 0
    """Places after which the scheduler had to begin again, from a checkpoint."""
    differences: list[Difference] = field(default_factory=list)
    """The first ones."""

    @property
    def is_exact(self) -> bool:
        """Whether every decision is the same."""
        return self.same == self.cycles

    @property
    def share(self) -> float:
        """The part of binds and evictions that is the same; 1 without any."""
        total = self.binds + self.evictions
        return (self.same_binds + self.same_evictions) / total if total else 1.0


class _RecordedArrivals(Arrivals):
    """Withholds what was withheld then, which real time decided."""

    def __init__(self, cluster: RecordedCluster) -> None:
        super().__init__(cluster.steady, 0.0)
        self._cluster = cluster

    def withheld(self, decisions: Decisions) -> Withheld:
        """Return what the record says."""
        del decisions
        cycle = self._cluster.cycle
        return Withheld(tuple(cycle.arriving), not cycle.figures)


class _Player:
    """One scheduler, fed from a record until a gap."""

    def __init__(self, moment: Moment) -> None:
        self.cluster = RecordedCluster()
        self._conf = ""
        self._usage: Mapping[str, Any] = {}
        self._live = self._new_live(moment)

    def _new_live(self, moment: Moment) -> LiveScheduler | None:
        if moment.conf is None:
            return None
        known = moment.settings
        self._conf = moment.conf.text
        cluster = cast("Cluster", self.cluster)
        live = LiveScheduler(
            cluster,
            _scheduler(self._conf, known),
            names=known.names,
            agents=known.agents,
            usage=lambda _: self._usage,
            assume=known.assume,
            writer=cast("Writer", self.cluster),
            default_queue=known.default_queue,
            node_selector=known.node_selector,
            may_write=lambda: not self.cluster.cycle.dropped,
            clock=self.cluster.steady,
            process=ProcessMemory(started_at=known.started_at),
        )
        live.arrivals = _RecordedArrivals(self.cluster)
        return live

    def decide(self, entry: CycleEntry, moment: Moment) -> Cycle:
        """Run the cycle again."""
        if self._live is None:
            self._live = self._new_live(moment)
        if self._live is None:
            raise InputError(wanted="a configuration in the record", found=Words("none"))
        if moment.conf is not None and moment.conf.text != self._conf:
            self._conf = moment.conf.text
            self._live.scheduler = _scheduler(self._conf, moment.settings)
        self._usage = moment.usage
        self.cluster.begin(entry)
        return self._live.cycle()


def _scheduler(conf: str, settings: Settings) -> Scheduler:
    parsed = replace(parse_conf(conf), queue_gates=settings.queue_gates)
    return Scheduler(parsed, seed=settings.seed, services=SERVICES)


def replay_exactly(
    history: History,
    since: float | None = None,
    until: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Fidelity:
    """Decide every recorded cycle again and compare.

    Raises:
        InputError: the record has no cycles: it was made beside another scheduler.
    """
    found = Fidelity()
    for then, now, at in _cycles(history, since, until, found):
        _count(found, then, now, at)
        if progress is not None:
            progress(at)
    if not found.cycles:
        raise InputError(
            wanted="a record with the cycles of a scheduler",
            found=Words(f"one made by an {history.by}" if history.by != "scheduler" else "none"),
            file=str(history.folder),
            hint="record with 'pumice serve scheduler --record' or 'pumice up --record'",
        )
    return found


def _cycles(
    history: History, since: float | None, until: float | None, found: Fidelity
) -> Iterator[tuple[CycleEntry, CycleEntry, float]]:
    player: _Player | None = None
    for step in history.steps(since, until):
        if step.is_first or player is None:
            found.gaps += player is not None
            player = _Player(step.moment)
        if step.entry.cycle is None:
            player.cluster.happen(step.entry, step.moment)
            continue
        made = cycle_entry(player.decide(step.entry.cycle, step.moment))
        if since is None or step.entry.at >= since:
            yield step.entry.cycle, made, step.entry.at


def _count(found: Fidelity, then: CycleEntry, now: CycleEntry, at: float) -> None:
    found.cycles += 1
    found.binds += len(then.binds)
    found.evictions += len(then.evictions)
    found.same_binds += sum(now.binds.get(pod) == node for pod, node in then.binds.items())
    found.same_evictions += len(then.evictions.keys() & now.evictions.keys())
    if then.digest == now.digest:
        found.same += 1
    elif len(found.differences) < _SHOWN:
        found.differences.append(
            Difference(
                at=rfc3339(at),
                cycle=found.cycles,
                binds=_differing(then.binds, now.binds),
                evictions=_differing(then.evictions, now.evictions),
                phases=_differing(then.phases, now.phases),
            )
        )


def _differing(then: Mapping[str, str], now: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {
        key: (then.get(key, ""), now.get(key, ""))
        for key in sorted({*then, *now})
        if then.get(key, "") != now.get(key, "")
    }
