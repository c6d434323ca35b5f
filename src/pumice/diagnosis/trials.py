"""Cycles on a copy of a world, and their result for one job."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pumice.actions import ACTIONS
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.replay import Replay
from pumice.diagnosis.story import Moved, Story
from pumice.diagnosis.timeline import Timeline
from pumice.examine.job_outcome import JobOutcome, Watcher

MOST_CYCLES: Final = 60
"""Cycles after which a cluster that does not come to rest is left."""


_EVICTING: Final = frozenset(name for name, each in ACTIONS.items() if each.evicts)


def look(world: ClusterState, job: str, cycles: int) -> Watcher:
    """Play cycles; return the observer of the one that started the job, else of the last."""
    watcher = Watcher(job, 1)
    for _, watcher in _cycles(world, job, cycles):
        if watcher.outcome.started:
            break
    return watcher


def look_once(replay: Replay, job: str, *, alone: bool = False, evicting: bool = True) -> Watcher:
    """Run the next cycle of a replay; ``alone``: as if no other job waited."""
    watcher = Watcher(job, 1, alone=alone)
    replay.decide(watcher, idle=() if evicting else _EVICTING)
    return watcher


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """What happened in a world while it was played."""

    outcome: JobOutcome
    """The cycle that started the job in question, else the last one."""
    in_s: float
    """Seconds until that cycle."""
    story: Story

    @property
    def started(self) -> bool:
        """Whether the job in question started."""
        return self.outcome.started

    @cached_property
    def bound(self) -> Mapping[str, frozenset[str]]:
        """Job to its pods that got a node."""
        return _by_job(self.story.binds)

    @cached_property
    def evicted(self) -> Mapping[str, frozenset[str]]:
        """Job to its pods that were evicted."""
        return _by_job(self.story.evictions)


def played(
    world: ClusterState, job: str, *, until_started: bool = False, alone: bool = False
) -> TrialResult:
    """Play until the cluster is at rest, as what-if does, or only until the job starts.

    Time does not pass until other jobs end: only leaving pods are waited for.  ``alone``: no other
    job that waits is placed meanwhile.
    """
    outcome, in_s, story = Watcher(job, 1).outcome, 0.0, Story()
    for timeline, watcher in _cycles(world, job, MOST_CYCLES, alone=alone):
        story = timeline.story
        if not outcome.started:
            outcome, in_s = watcher.outcome, timeline.now - timeline.start
        if timeline.is_at_rest or (until_started and outcome.started):
            break
    return TrialResult(outcome=outcome, in_s=in_s, story=story)


def _cycles(
    world: ClusterState, job: str, most: int, *, alone: bool = False
) -> Iterator[tuple[Timeline, Watcher]]:
    """Play cycle after cycle, each with an observer of the job, while anything is to come."""
    timeline = Timeline(world)
    for cycle in range(1, most + 1):
        watcher = Watcher(timeline.group(job), cycle, alone=alone)
        timeline.step(watcher)
        yield timeline, watcher
        if timeline.next_at is None:
            return


def _by_job(moves: Iterable[Moved]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for move in moves:
        found.setdefault(move.job, set()).add(move.pod)
    return {job: frozenset(pods) for job, pods in found.items()}
