"""priority: higher priority first, and at the cost of lower priority."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pumice.api.codes import Spared
from pumice.core.resources import Column, Mask
from pumice.core.views import Job, Task
from pumice.framework.columns import Jobs, Tasks
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.framework.topology.domains import GangEviction, SubGroup


@dataclass(kw_only=True)
class Priority(Plugin, name="priority"):
    """Order jobs by the value of their priority class and tasks by their own priority.

    A task may preempt tasks of jobs with a lower priority, and inside its job tasks of lower
    priority.
    """

    foreseeable = True
    simulator = SimulatorAssumptions()
    judges_alone = frozenset({"preemptable", "gang_evictable"})
    spares = Spared.NO_LOWER_PRIORITY
    protects = "pods of equal or higher priority"
    protects_in = frozenset({"preempt", "gangpreempt"})

    def on_open(self, ssn: PluginSession) -> None:
        """Store the snapshot for questions about victims."""
        self._snapshot = ssn.snapshot

    def order_jobs(self, jobs: Jobs) -> Column:
        """Put jobs of high priority first."""
        return -jobs.priority.astype(float)

    def order_tasks(self, tasks: Tasks) -> Column:
        """Put tasks of high priority first."""
        return -tasks.priority.astype(float)

    def order_subgroups(self, left: SubGroup, right: SubGroup) -> float:
        """Put parts of a job with a task of high priority first."""
        return right.priority - left.priority

    def job_starving(self, job: Job) -> bool:
        """Allow a job to evict others while any of its tasks has no place."""
        return job.ready + job.waiting < len(job.tasks)

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        """Offer tasks of lower priority."""
        return self._lower(preemptor, np.asarray(candidates, dtype=np.intp))

    def bound_victims(self, hook: str, asker: Task, candidates: NDArray[np.intp]) -> Mask:
        """Mark tasks of lower priority."""
        return self._lower(asker, candidates)

    def gang_evictable(self, eviction: GangEviction, candidates: list[int]) -> Mask:
        """Offer tasks of jobs of lower priority; between queues priority does not matter."""
        rows = np.asarray(candidates, dtype=np.intp)
        if eviction.reclaims:
            return np.ones(len(rows), dtype=bool)
        priority = self._snapshot.jobs.priority[self._snapshot.tasks.job[rows]]
        return np.asarray(priority < eviction.job.priority)

    def _lower(self, preemptor: Task, rows: NDArray[np.intp]) -> Mask:
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        their_jobs = tasks.job[rows]
        lower_job = jobs.priority[their_jobs] < jobs.priority[preemptor.job]
        lower_task = tasks.priority[rows] < preemptor.priority
        return np.asarray(np.where(their_jobs == preemptor.job, lower_task, lower_job))
