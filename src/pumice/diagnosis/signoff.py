"""What a change costs, in the figures by which a careful person accepts it or not.

Totals of both sides first: evictions, broken gangs, failed jobs, queues below their due, and when
jobs start; then what the answer cannot know.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from pumice.api.annotations import RUN_SECONDS
from pumice.api.kinds import ENDED_PHASES, JOB, POD_GROUP, Manifest
from pumice.api.wording import counted, span
from pumice.controllers.base import controller_of
from pumice.diagnosis.cluster_state import ClusterState, key_of, title_of
from pumice.diagnosis.played import Played, Terms
from pumice.diagnosis.runner import unknown_votes

_FAILED: Final = frozenset({"Failed", "Aborted", "Terminated"})
"""Phases of Volcano jobs that did not end well."""
_PARTS: Final = {"mean": None, "p50": 50, "p95": 95, "p99": 99, "max": 100}
"""Figures of waiting times, and the percentile that each one is."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What happens to the cluster on one side."""

    evictions: int
    evicted: dict[str, int]
    """Pod to how often it is evicted."""
    by_queue: dict[str, int]
    by_priority: dict[str, int]
    gangs_broken: list[str]
    """Running gangs that lose pods that they need, and keep others."""
    gangs_evicted: list[str]
    """Running gangs that lose all their pods at once."""
    jobs_failed: list[str]
    """Volcano jobs that fail, or have no retries left."""
    jobs_lost: list[str]
    """Jobs all of whose pods are gone, and made again by no controller."""
    below_due: dict[str, dict[str, tuple[str, str]]]
    """Queue to resource to what it has and what is due to it, while its jobs wait."""
    settled_in_s: float | None
    """Seconds until nothing changes any more; None if it does not come to rest."""
    waits: dict[str, float | None]
    """Job to seconds until it starts, or starts again; None: not within sight."""

    def figures(self) -> dict[str, float]:
        """Return the numbers that conditions name; a job that does not start waits for ever."""
        waits = [math.inf if each is None else each for each in self.waits.values()]
        settled = math.inf if self.settled_in_s is None else self.settled_in_s
        lengths = {name: float(len(getattr(self, field))) for name, field in _COUNTED.items()}
        times = {f"wait.{part}": _figure(waits, part) for part in _PARTS}
        return {"evictions": float(self.evictions), **lengths, "settles": settled, **times}


_COUNTED: Final = {
    "pods-evicted": "evicted",
    "gangs-broken": "gangs_broken",
    "gangs-evicted": "gangs_evicted",
    "jobs-failed": "jobs_failed",
    "jobs-lost": "jobs_lost",
    "queues-below-due": "below_due",
}
"""Figures that count something, and the field that lists it."""


def _figure(waits: Sequence[float], part: str) -> float:
    if not waits:
        return 0.0
    percent = _PARTS[part]
    if percent is None:
        return float(np.mean(waits))
    ordered = sorted(waits)  # a percentile between two jobs, of which one never starts, is neither
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


@dataclass(frozen=True, kw_only=True)
class Start:
    """When a job starts on both sides, in seconds; None: not within sight."""

    job: str
    before_s: float | None
    after_s: float | None

    @property
    def later_by(self) -> float:
        """By how many seconds it starts later after the change."""
        left, right = (math.inf if each is None else each for each in (self.before_s, self.after_s))
        return 0.0 if left == right else right - left


@dataclass(frozen=True, kw_only=True)
class SignOff:
    """Both sides in figures, and what is not known."""

    before: Costs
    after: Costs
    starts: list[Start]
    """Jobs that start earlier or later, the latest first."""
    evicted: str
    """What becomes of evicted pods that no controller makes again: gone, or requeue."""
    unknown: list[str]

    @property
    def earlier(self) -> int:
        """How many jobs start earlier."""
        return sum(each.later_by < 0 for each in self.starts)

    @property
    def later(self) -> int:
        """How many jobs start later, or no longer."""
        return sum(each.later_by > 0 for each in self.starts)

    def figures(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the numbers that conditions name, of both sides."""
        moved = {"jobs-later": float(self.later), "jobs-earlier": float(self.earlier)}
        return {**self.before.figures(), **dict.fromkeys(moved, 0.0)}, {
            **self.after.figures(),
            **moved,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        return {**asdict(self), "jobs_earlier": self.earlier, "jobs_later": self.later}


def sign_off(before: Played, after: Played, terms: Terms) -> SignOff:
    """Compare both sides; they are played on until all jobs have started that will."""
    sides = before, after
    _note_stopped(before.timeline.beginning, after)
    costs = [_costs(side, before) for side in sides]
    named = (*before.first_waiting(), *after.first_waiting())
    stopped = (job for side in sides for job in _titles(side, side.losses.stopped))
    known = [job for job in dict.fromkeys((*named, *stopped)) if job in before.jobs]
    known = [job for job in known if job in after.jobs]
    for side in sides:
        side.course.play(known)
    waits = {job: (_starts_in(before, job), _starts_in(after, job)) for job in known}
    waits = {job: times for job, times in waits.items() if times != (None, None)}
    for place, each in enumerate(costs):
        each.waits.update({job: times[place] for job, times in waits.items()})
    starts = [Start(job=job, before_s=a, after_s=b) for job, (a, b) in waits.items()]
    return SignOff(
        before=costs[0],
        after=costs[1],
        starts=sorted(filter(_differs, starts), key=lambda each: -each.later_by),
        evicted="requeue" if terms.requeues else "gone",
        unknown=_unknown(before, after, terms),
    )


def _differs(start: Start) -> bool:
    return start.later_by != 0


# One side


def _costs(side: Played, earlier: Played) -> Costs:
    lost = side.losses
    failed = {job for job, phase in _phases(side).items() if phase in _FAILED}
    failed_before = {
        key for key, job in side.timeline.beginning.jobs.items() if _job_phase(job) in _FAILED
    }
    return Costs(
        evictions=lost.evicted.total(),
        evicted=dict(lost.evicted.most_common()),
        by_queue=dict(lost.by_queue.most_common()),
        by_priority=dict(lost.by_priority.most_common()),
        gangs_broken=_titles(side, lost.broken),
        gangs_evicted=_titles(side, lost.whole),
        jobs_failed=sorted(failed - failed_before),
        jobs_lost=[
            job
            for job in side.jobs
            if not side.has_pods(job) and (job in side.had_pods or job in earlier.had_pods)
        ],
        below_due=side.below_due,
        settled_in_s=side.settled_in_s,
        waits={},
    )


def _note_stopped(first: ClusterState, side: Played) -> None:
    """Note the jobs that a change itself stops: a drain takes their pods, not a cycle."""
    world, lost = side.timeline.beginning, side.losses
    nodes, first_nodes = world.of_kind("Node"), first.of_kind("Node")
    pods = world.of_kind("Pod")

    def stays(key: str, pod: Manifest) -> bool:
        found, node = pods.get(key), pod["spec"]["nodeName"]
        there = found is not None and (found.get("spec") or {}).get("nodeName") == node
        return there and (node in nodes or node not in first_nodes)

    for group, all_pods in first.pods_by_group.items():
        placed = {key_of(pod): pod for pod in all_pods if _is_placed(pod)}
        gone = [pod for key, pod in placed.items() if not stays(key, pod)]
        stated = world.groups.get(group)
        if not gone or stated is None:
            continue
        needed = int((stated.get("spec") or {}).get("minMember") or 0)
        left = len(placed) - len(gone)
        if left < needed <= len(placed):
            lost.stop(group, is_gang=needed > 1, keeps_some=left > 0)


def _is_placed(pod: Manifest) -> bool:
    is_over = (pod.get("status") or {}).get("phase") in ENDED_PHASES
    return bool((pod.get("spec") or {}).get("nodeName")) and not is_over


def _titles(side: Played, groups: Iterable[str]) -> list[str]:
    """Name the jobs of pod groups, also of those that are gone."""
    known = (*side.first_groups, *side.timeline.cluster.list(POD_GROUP)[0])
    titles = {key_of(group): title_of(group) for group in known}
    return [titles.get(group, group) for group in groups]


def _phases(side: Played) -> dict[str, str]:
    jobs = side.timeline.cluster.list(JOB)[0]
    return {key_of(job): _job_phase(job) for job in jobs}


def _job_phase(job: Manifest) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def _starts_in(side: Played, job: str) -> float | None:
    """Return the seconds until a job starts; one that runs, until it runs again if it stops."""
    start, story = side.timeline.start, side.timeline.story
    since = start
    if job in side.course.running:
        evicted = [each.at for each in story.evictions if each.job == job]
        if not evicted and job not in _titles(side, side.losses.stopped):
            return 0.0
        since = evicted[0] if evicted else start
    return next((e.at - start for e in story.binds if e.job == job and e.at >= since), None)


def _unknown(before: Played, after: Played, terms: Terms) -> list[str]:
    """List what the answer leaves open."""
    found = unknown_votes(after.timeline.beginning)
    endless = max(side.timeline.endless() for side in (before, after))
    if endless:
        found.append(
            f"run times: {counted(endless, 'running pod')} taken to run for ever "
            f"(annotation {RUN_SECONDS}, or --default-runtime)"
        )
    bare = {pod for side in (before, after) for pod in side.evicted if _is_bare(side, pod)}
    if bare:
        fate = "made again" if terms.requeues else "gone"
        other = "gone" if terms.requeues else "requeue"
        found.append(
            f"what becomes of {counted(len(bare), 'evicted pod')} without a controller: "
            f"taken to be {fate} (--evicted {other} assumes the other)"
        )
    if before.course.is_cut or after.course.is_cut:
        found.append(
            f"what happens later than could be played within {span(terms.deadline.within_s)}"
        )
    return found


def _is_bare(side: Played, pod: str) -> bool:
    found = side.first_pods.get(pod)
    return found is not None and controller_of(found) is None


# Conditions


FIGURES: Final = (
    "evictions",
    *_COUNTED,
    "jobs-later",
    "jobs-earlier",
    "settles",
    *(f"wait.{part}" for part in _PARTS),
)
"""What a condition may name."""
