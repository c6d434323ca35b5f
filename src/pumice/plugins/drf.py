"""drf: the job with the smallest dominant share goes first."""

from dataclasses import dataclass

import numpy as np

from pumice.core.resources import Column, Mask, dominant_share
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.columns import Jobs
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session

SHARE_DELTA = 1e-6
"""Shares that differ by no more are equal when a task looks for victims."""


@dataclass(kw_only=True)
class Drf(Plugin, name="drf"):
    """Order jobs by their largest share of any resource of the cluster.

    A task may take the place of one whose job would still have the larger share without it.
    """

    def on_open(self, ssn: Session) -> None:
        """Keep the cluster's total, the whole that shares are taken of."""
        self._snapshot = ssn.snapshot
        self._total = ssn.total[:, None]

    def order_jobs(self, jobs: Jobs) -> Column:
        """Put jobs with a small share first."""
        return dominant_share(jobs.booked, self._total)

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        """Offer tasks of jobs that keep at least the share the preemptor's job would have."""
        snapshot = self._snapshot
        booked = snapshot.jobs.booked
        mine = self._share(booked[:, preemptor.job] + preemptor.request[:, 0])
        held: dict[int, Column] = {}
        out = np.zeros(len(candidates), dtype=bool)
        for i, row in enumerate(candidates):
            job = int(snapshot.tasks.job[row])
            if job == NOWHERE:
                continue
            held[job] = held.get(job, booked[:, job]) - snapshot.request(row)
            theirs = self._share(held[job])
            out[i] = mine < theirs or abs(mine - theirs) <= SHARE_DELTA
        return out

    def _share(self, amounts: Column) -> float:
        return float(dominant_share(amounts[:, None], self._total)[0])
