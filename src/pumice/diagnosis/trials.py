"""Cycles on a copy of a world, and what they do with one job."""

from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.replay import Replay
from pumice.examine.job_outcome import JobOutcome, Watcher


def look(
    world: ClusterState, job: str, cycles: int = 1, replay: Replay | None = None
) -> JobOutcome:
    """Play cycles and tell what the last one did with a job, or the first one that started it.

    A replay that is at hand is turned into the world, which is faster than making one.
    """
    cycle = 1
    if replay is None:
        replay = Replay(world)
    else:
        replay.become(world)
    while True:
        watcher = Watcher(job, cycle)
        decisions = replay.decide(watcher)
        if watcher.outcome.started or cycle >= cycles:
            return watcher.outcome
        replay.apply(decisions)
        cycle += 1
