"""Cycles on a copy of a world, and their result for one job."""

from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.replay import Replay
from pumice.diagnosis.timeline import Timeline
from pumice.examine.job_outcome import JobOutcome, Watcher


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
