"""Cycles on a copy of a world, and their result for one job."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.replay import Replay
from pumice.diagnosis.story import Moved
from pumice.diagnosis.timeline import Timeline
from pumice.examine.job_outcome import JobOutcome, Watcher

_MOST_CYCLES: Final = 60
"""Cycles after which a cluster that does not come to rest is left."""


def look(world: ClusterState, job: str, cycles: int = 1, replay: Replay | None = None) -> Watcher:
    """Play cycles; return the observer of the last one, or of the first one that started the job.

    A replay that is at hand is turned into the world, which is faster than making one.
    """
    watcher = Watcher(job, 1)
    if cycles <= 1:
        if replay is None:
            replay = Replay(world)
        else:
            replay.become(world)
        replay.decide(watcher)
        return watcher
    timeline = Timeline(world)
    for cycle in range(1, cycles + 1):
        watcher = Watcher(timeline.group(job), cycle)
        timeline.step(watcher)
        if watcher.outcome.started or timeline.next_at is None:
            break
    return watcher


def settled(world: ClusterState, job: str) -> tuple[JobOutcome, float]:
    """Play until a job starts or the cluster comes to rest, as what-if does.

    Return the last cycle and the seconds until then.  Time does not pass until other jobs end:
    only leaving pods are waited for.
    """
    timeline, watcher = Timeline(world), Watcher(job, 1)
    for cycle in range(1, _MOST_CYCLES + 1):
        watcher = Watcher(timeline.group(job), cycle)
        timeline.step(watcher)
        if watcher.outcome.started or timeline.is_at_rest or timeline.next_at is None:
            break
    return watcher.outcome, timeline.now - timeline.start


@dataclass(frozen=True, kw_only=True)
class Played:
    """What happened in a world until it came to rest."""

    started: bool
    """Whether the job in question started."""
    outcome: JobOutcome
    """The cycle that started it, else the last one."""
    in_s: float
    """Seconds until that cycle."""
    bound: Mapping[str, frozenset[str]]
    """Job to its pods that got a node."""
    evicted: Mapping[str, frozenset[str]]
    """Job to its pods that were evicted."""


def played(world: ClusterState, job: str) -> Played:
    """Play until the cluster is at rest, also after the job has started."""
    timeline, watcher = Timeline(world), Watcher(job, 1)
    found: tuple[JobOutcome, float] | None = None
    for cycle in range(1, _MOST_CYCLES + 1):
        watcher = Watcher(timeline.group(job), cycle)
        timeline.step(watcher)
        if found is None and watcher.outcome.started:
            found = watcher.outcome, timeline.now - timeline.start
        if timeline.is_at_rest or timeline.next_at is None:
            break
    outcome, in_s = found or (watcher.outcome, timeline.now - timeline.start)
    return Played(
        started=found is not None,
        outcome=outcome,
        in_s=in_s,
        bound=_by_job(timeline.story.binds),
        evicted=_by_job(timeline.story.evictions),
    )


def _by_job(moves: Iterable[Moved]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for move in moves:
        found.setdefault(move.job, set()).add(move.pod)
    return {job: frozenset(pods) for job, pods in found.items()}
