"""Jobs whose pods are still being created: they begin no cycle, and nothing is written about them.

Used by the live scheduler.  With cycles a few milliseconds apart most gangs are seen before they
are whole, and a status that says so would be outdated before it is read.
"""

from collections.abc import Callable, Iterable
from typing import Final

from pumice.api.decisions import Decisions
from pumice.api.groups import PodGroup
from pumice.api.kinds import JOB, kind_of
from pumice.core.snapshot import Snapshot

PATIENCE_S: Final = 0.5
"""How long the pods of a job may take to appear, from the first of them or from its group on."""


class Arrivals:
    """Remembers since when jobs are known that may not be complete."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    @property
    def next_due(self) -> float | None:
        """When the first of them has had its time."""
        return min(self._since.values()) + PATIENCE_S if self._since else None

    def note(self, jobs: Iterable[str], snapshot: Snapshot) -> None:
        """Note that jobs are new or have new pods, and forget those that have had their time."""
        now = self._clock()
        for key in jobs:
            self._since.setdefault(key, now)
        self._since = {
            key: since
            for key, since in self._since.items()
            if now - since < PATIENCE_S and _is_incomplete(snapshot, key)
        }

    def __contains__(self, job: object) -> bool:
        return job in self._since

    def hide(self, decisions: Decisions, snapshot: Snapshot) -> None:
        """Remove what decisions say about jobs that are arriving; none of them is placed."""
        jobs, tasks = snapshot.jobs, snapshot.tasks
        for key in self._since:
            row = jobs.row_of.get(key)
            if row is None:
                continue
            decisions.pod_groups.pop(key, None)
            for task in jobs.tasks[row]:
                decisions.waiting_pods.pop(tasks.keys[task], None)


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
