"""sla: the maximum wait of a job, and its rights once it has waited that long."""

from dataclasses import dataclass

import numpy as np

from pumice.api.duration import parse_duration
from pumice.core.resources import Column
from pumice.core.views import Job
from pumice.errors import InputError
from pumice.framework.arguments import Duration, arg
from pumice.framework.columns import Jobs
from pumice.framework.plugin import ABSTAIN, PERMIT, Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession

_MARKS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
"""Annotations of a pod group that state its own waiting time, the first usable one counts."""
_NEVER = 2.0**62
"""The deadline of a job without a waiting time; keys must be finite."""


@dataclass(kw_only=True)
class Sla(Plugin, name="sla"):
    """Order jobs by deadline; admit an overdue one, and keep its place while it waits."""

    foreseeable = True
    simulator = SimulatorAssumptions(all_jobs=True)
    waiting_time: Duration | None = arg(
        "sla-waiting-time",
        default=None,
        above=0,
        doc="how long a job may wait, unless its own annotation says otherwise",
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Compute every job's deadline."""
        jobs = ssn.snapshot.jobs
        self._now = ssn.now
        self._deadline = np.full(jobs.n, _NEVER)
        for row in ssn.jobs():
            waiting = self._waiting_time(jobs.groups[row])
            if waiting is not None:
                self._deadline[row] = jobs.created[row] + waiting

    def _waiting_time(self, group: object) -> float | None:
        marks = group.metadata.annotations  # type: ignore[attr-defined]
        for mark in _MARKS:
            waiting = _positive_duration(marks.get(mark, ""))
            if waiting is not None:
                return waiting
        return self.waiting_time

    def order_jobs(self, jobs: Jobs) -> Column:
        """Put the earlier deadline first, and jobs without one last."""
        return self._deadline[jobs.rows]

    def job_enqueueable(self, job: Job) -> int:
        """Permit an overdue job."""
        return self._vote(job)

    def job_pipelined(self, job: Job) -> int:
        """Keep the place of an overdue job."""
        return self._vote(job)

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return when the next job has waited as long as it may."""
        deadlines = [float(self._deadline[row]) for row in ssn.jobs()]
        return min((each for each in deadlines if ssn.now < each < _NEVER), default=None)

    def _vote(self, job: Job) -> int:
        return PERMIT if self._now >= self._deadline[job.row] else ABSTAIN


def _positive_duration(text: str) -> float | None:
    """Read a waiting time; None if missing or invalid."""
    try:
        seconds = parse_duration(text)
    except InputError:
        return None
    return seconds if seconds > 0 else None
