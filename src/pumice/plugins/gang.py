"""gang: all tasks a job needs, or none of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pumice.api.codes import Spared
from pumice.core.resources import Column, IndexArray, Mask
from pumice.core.status import ALLOCATED_CLASS, Status
from pumice.core.views import Job, Task, count_roles, meets_minima, minima, roles_ready
from pumice.framework.columns import Jobs, all_jobs
from pumice.framework.plugin import PERMIT, REJECT, Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.framework.topology.domains import GangEviction, SubGroup

_VALID = ALLOCATED_CLASS | {Status.SUCCEEDED, Status.PIPELINED, Status.PENDING}
NOT_READY_REASON = "NotEnoughResources"


@dataclass(kw_only=True)
class Gang(Plugin, name="gang"):
    """Start a job only when ``minMember`` tasks (and each role's minimum number) have a place.

    Also keeps running gangs whole: tasks beyond ``minMember`` may be evicted, no others.
    """

    foreseeable = True
    simulator = SimulatorAssumptions()
    judges_alone = frozenset({"gang_evictable"})
    spares = Spared.VICTIM_GANG
    protects = "running gangs"
    protects_in = frozenset({"preempt", "reclaim"})

    def on_open(self, ssn: PluginSession) -> None:
        """Store the snapshot for questions about other jobs."""
        self._snapshot = ssn.snapshot
        self._topology = ssn.topology

    def job_valid(self, job: Job) -> str:
        """Refuse a job that lacks the pods it needs."""
        wanted = minima(job)
        if wanted and not meets_minima(count_roles(job, _VALID), wanted):
            return "not enough pods of each task for gang-scheduling"
        if not self._topology.has_enough_subgroups(job.row, lambda part: part.n_tasks > 0):
            return "not enough sub-groups for gang-scheduling"
        counts = job.counts
        valid = sum([counts[status] for status in _VALID])
        if valid < job.min_member:
            return f"not enough pods for gang-scheduling: {valid} of {job.min_member}"
        return ""

    def order_jobs(self, jobs: Jobs) -> Column:
        """Put jobs that are not ready first."""
        return np.asarray(jobs.ready + jobs.pending_best_effort >= jobs.min_member, dtype=float)

    def job_ready(self, job: Job) -> bool:
        """Count placed tasks; pending ones without requests count as placed."""
        enough = job.ready + job.pending_best_effort >= job.min_member
        return (
            enough
            and roles_ready(job)
            and self._topology.has_enough_subgroups(job.row, lambda part: part.is_ready)
        )

    def job_pipelined(self, job: Job) -> int:
        """Count placed and pipelined tasks."""
        enough = job.ready + job.waiting + job.pending_best_effort >= job.min_member
        kept = (
            enough
            and roles_ready(job, pipelined=True)
            and self._topology.has_enough_subgroups(job.row, lambda part: part.is_pipelined)
        )
        return PERMIT if kept else REJECT

    def order_subgroups(self, left: SubGroup, right: SubGroup) -> float:
        """Put parts of a job that are not ready first."""
        return float(left.is_ready) - float(right.is_ready)

    def subgroup_ready(self, subgroup: SubGroup) -> bool:
        """Count placed tasks of a part of a job."""
        return subgroup.is_ready

    def subgroup_pipelined(self, subgroup: SubGroup) -> int:
        """Count placed and pipelined tasks of a part of a job."""
        return PERMIT if subgroup.is_pipelined else REJECT

    def job_starving(self, job: Job) -> bool:
        """Allow a job below its minimum number to evict others."""
        return job.ready + job.waiting < job.min_member

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        """Offer tasks of jobs beyond their minimum number."""
        return self._surplus(candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask:
        """Offer tasks of jobs beyond their minimum number."""
        return self._surplus(candidates)

    def gang_evictable(self, eviction: GangEviction, candidates: list[int]) -> Mask:
        """Offer everything: bundles keep gangs whole by themselves."""
        return np.ones(len(candidates), dtype=bool)

    def _surplus(self, candidates: list[int]) -> Mask:
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        left: dict[int, int] = {}
        out = np.zeros(len(candidates), dtype=bool)
        for i, row in enumerate(candidates):
            job = int(tasks.job[row])
            if job not in left:
                left[job] = Job(self._snapshot, job).ready - int(jobs.min_member[job])
            out[i] = left[job] > 0
            left[job] -= 1
        return out

    def bound_victims(self, hook: str, asker: Task, candidates: NDArray[np.intp]) -> Mask:
        """Mark tasks of jobs that have more than their minimum number."""
        owners = self._snapshot.tasks.job[candidates].astype(np.intp)
        if len(owners) < len(self._snapshot.jobs.min_member):
            return self._has_surplus(Jobs(self._snapshot, owners))
        return self._has_surplus(all_jobs(self._snapshot))[owners]

    def _has_surplus(self, jobs: Jobs) -> Mask:
        return np.asarray(jobs.ready > jobs.min_member)

    def on_close(self, ssn: PluginSession) -> None:
        """Set for every job with tasks the condition whether its gang is ready.

        A gang that is ending, with nothing left to place, gets none.
        """
        table, jobs = self._snapshot.jobs, all_jobs(self._snapshot)
        ready = jobs.ready + jobs.pending_best_effort >= jobs.min_member
        with_tasks = table.listed & (table.n_tasks > 0)
        ssn.mark_scheduled(with_tasks & ready)
        rows = (with_tasks & ~ready & ~ssn.left_out).nonzero()[0]
        for row in rows[~self._is_ending(rows)].tolist() if len(rows) else ():
            ssn.mark_unschedulable(row, NOT_READY_REASON, ssn.gang_message(ssn.job(row)))

    def _is_ending(self, rows: IndexArray) -> Mask:
        """Mark gangs that are leaving their nodes, with nothing left to place (n,)."""
        jobs, counts = Jobs(self._snapshot, rows), self._snapshot.jobs.counts
        leaving = jobs.leaving
        is_ending = (leaving > 0) & (jobs.settled + leaving >= jobs.min_member)
        for status in (Status.PENDING, Status.PIPELINED):
            is_ending &= counts[status, rows] == 0
        return is_ending
