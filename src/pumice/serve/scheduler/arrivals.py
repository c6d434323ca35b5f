"""Whether changes may let something start, and which jobs are still being created.

Used by the live scheduler.  Jobs whose pods are still being created begin no cycle, and nothing is
written about them.  With cycles a few milliseconds apart most gangs are seen before they
are whole, and a status that says so would be outdated before it is read.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from pumice.api.decisions import Decisions
from pumice.api.groups import PodGroup
from pumice.api.kinds import JOB, kind_of
from pumice.cache.news import News
from pumice.core.snapshot import Snapshot
from pumice.core.status import PENDING, PHASE_CODE
from pumice.core.tables import NOWHERE

PATIENCE_S: Final = 0.5
"""How long the next pod of a job may take to appear, after its group or another pod."""
_LONGEST: Final = 10
"""How many times as long all of them may take."""


class Arrivals:
    """Remembers since when jobs are known that may not be complete."""

    def __init__(self, clock: Callable[[], float], patience_s: float = PATIENCE_S) -> None:
        self._clock = clock
        self._patience_s = patience_s
        self._since: dict[str, tuple[float, float]] = {}
        """Jobs, since when each is known, and when something of it last appeared."""
        self._figures_at = -math.inf
        """When the figures of queues were last written."""

    @property
    def next_due(self) -> float | None:
        """When the first of them has had its time."""
        return min((self._over_at(*times) for times in self._since.values()), default=None)

    def may_start(self, news: News, snapshot: Snapshot) -> bool:
        """Return whether changes may let something start, after what is arriving was noted."""
        jobs = {*_jobs_of(news.pods, snapshot), *news.groups}
        self._note(jobs, snapshot)
        return not self._since.keys() >= jobs or (news.others and _anything_waits(snapshot))

    def _note(self, jobs: Iterable[str], snapshot: Snapshot) -> None:
        """Note that jobs are new or have new pods, and forget those that have had their time."""
        now = self._clock()
        for key in jobs:
            first, _ = self._since.get(key, (now, now))
            self._since[key] = first, now
        self._since = {
            key: times
            for key, times in self._since.items()
            if now < self._over_at(*times) and _is_incomplete(snapshot, key)
        }

    def _over_at(self, first: float, last: float) -> float:
        """Return when a job has had its time."""
        return min(last, first + _LONGEST * self._patience_s) + self._patience_s

    def withheld(self, decisions: Decisions) -> "Withheld":
        """Return of which decisions nothing is to be written yet.

        The figures of queues change with every bind: they are written once in a while.
        """
        is_soon = self._clock() - self._figures_at < self._patience_s
        if decisions.queues and not is_soon:
            self._figures_at = self._clock()
        return Withheld(tuple(self._since), bool(decisions.queues) and is_soon)


class Withheld(NamedTuple):
    """What is not written about a cycle."""

    jobs: tuple[str, ...] = ()
    """Those that are arriving; none of them is placed."""
    figures: bool = False
    """Those of queues."""

    def remove(self, decisions: Decisions, snapshot: Snapshot) -> None:
        """Remove it from what is written."""
        if self.figures:
            decisions.queues.clear()
        jobs, tasks = snapshot.jobs, snapshot.tasks
        for key in self.jobs:
            row = jobs.row_of.get(key)
            if row is None:
                continue
            decisions.pod_groups.pop(key, None)
            for task in jobs.tasks[row]:
                decisions.waiting_pods.pop(tasks.keys[task], None)


NOTHING: Final = Withheld()


def _is_incomplete(snapshot: Snapshot, key: str) -> bool:
    """Return whether pods are missing that somebody creates without waiting for the scheduler.

    The pods of a Volcano job are created once its group is admitted.
    """
    jobs = snapshot.jobs
    row = jobs.row_of.get(key)
    if row is None or not jobs.listed[row]:
        return True
    group = jobs.groups[row]
    if isinstance(group, PodGroup) and not int(jobs.n_tasks[row]):
        owners = group.metadata.owner_references
        if any(kind_of({"apiVersion": o.api_version, "kind": o.kind}) == JOB for o in owners):
            return False
    return int(jobs.n_tasks[row]) < int(jobs.min_member[row])


def _jobs_of(pods: Iterable[str], snapshot: Snapshot) -> Iterator[str]:
    """Return the jobs of pods, of those that this scheduler places."""
    tasks, jobs = snapshot.tasks, snapshot.jobs
    for pod in pods:
        row = tasks.row_of.get(pod)
        if row is not None and tasks.job[row] != NOWHERE:
            yield jobs.keys[tasks.job[row]]


def _anything_waits(snapshot: Snapshot) -> bool:
    jobs = snapshot.jobs
    waits = (jobs.counts[PENDING] > 0) | (jobs.phase <= PHASE_CODE["Pending"])
    return bool((waits & jobs.listed).any())
