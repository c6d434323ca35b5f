"""Cycles on a copy of a world, and their result for one job."""

from typing import Final

from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.replay import Replay
from pumice.diagnosis.timeline import Timeline
from pumice.examine.job_outcome import JobOutcome, Watcher

_MOST_CYCLES: Final = 60
"""Cycles after which a cluster that does not come to rest is left."""


def look(
    world: ClusterState, job: str, cycles: int = 1, replay: Replay | None = None
) -> JobOutcome:
    """Play cycles; return what the last one did with a job, or the first one that started it.

    A replay that is at hand is turned into the world, which is faster than making one.
    """
    watcher = Watcher(job, 1)
    if cycles <= 1:
        if replay is None:
            replay = Replay(world)
        else:
            replay.become(world)
        replay.decide(watcher)
        return watcher.outcome
    timeline = Timeline(world)
    for cycle in range(1, cycles + 1):
        watcher = Watcher(timeline.group(job), cycle)
        timeline.step(watcher)
        if watcher.outcome.started or timeline.next_at is None:
            break
    return watcher.outcome


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
