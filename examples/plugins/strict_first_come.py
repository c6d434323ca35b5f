"""Strict first come, first served: no job starts before one that came earlier."""

from dataclasses import dataclass

import numpy as np

from pumice.plugin import (
    Cause,
    Column,
    Jobs,
    Plugin,
    PluginSession,
    Queue,
    Refusal,
    SimulatorAssumptions,
    Task,
    Verdict,
    Why,
)


@dataclass(kw_only=True)
class StrictFirstCome(Plugin, name="strict-first-come"):
    """Start jobs in the order of their arrival; one that finds no room holds up all behind it.

    A job that is not admitted to its queue holds up nobody. Made for one queue: other plugins
    decide which queue goes first.
    """

    simulator = SimulatorAssumptions(all_jobs=True)

    def on_open(self, ssn: PluginSession) -> None:
        """List the jobs that wait, in the order of their arrival."""
        jobs = (ssn.job(row) for row in ssn.jobs())
        waiting = [job for job in jobs if job.ready < job.min_member]
        self._line = sorted(waiting, key=lambda job: (job.created, job.key))
        self._place = {job.row: place for place, job in enumerate(self._line)}

    def order_jobs(self, jobs: Jobs) -> Column:
        """Put further pods of running jobs first, then the job that came first."""
        return np.array([self._place.get(row, -1) for row in jobs.index.tolist()], dtype=float)

    def allocatable(self, queue: Queue, task: Task) -> Verdict:
        """Allow no pod of a job behind the first one that waits at this moment."""
        if self._place.get(task.job, -1) <= self._first():
            return True
        return Refusal(Why.QUEUE_POSITION, {"queue": queue.row}, Cause.JOB_AHEAD)

    def _first(self) -> int:
        waiting = (
            place
            for place, job in enumerate(self._line)
            if job.phase != "Pending" and job.ready < job.min_member
        )
        return next(waiting, len(self._line))
