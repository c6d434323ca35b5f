"""drf: the job with the smallest dominant share goes first; in a tree of queues, queues too."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, Mask, dominant_share
from pumice.core.tables import NOWHERE
from pumice.core.views import Queue, Task
from pumice.framework.columns import Jobs
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_session import PluginSession
from pumice.framework.simulator_assumptions import SimulatorAssumptions
from pumice.plugins.drf.hierarchy import Hierarchy, Standing

SHARE_DELTA = 1e-6
"""Shares that differ by no more are equal when a task looks for victims."""


@dataclass(kw_only=True)
class Drf(Plugin, name="drf"):
    """Order jobs by their largest share of any resource of the cluster.

    A task may take the place of one whose job would still have the larger share without it.  With
    ``enableHierarchy`` queues are compared by the shares of a tree that their annotations draw, and
    a task may reclaim from queues that would still come after its own.
    """

    simulator = SimulatorAssumptions(bounded=True)
    hierarchy_hooks: ClassVar[Mapping[str, bool]] = {"compare_queues": True, "reclaimable": True}

    def on_open(self, ssn: PluginSession) -> None:
        """Keep the cluster's total, the whole that shares are taken of."""
        self._snapshot = ssn.snapshot
        self._total = ssn.total[:, None]
        self._moved = ssn.journal.moved
        self._standing: tuple[int, Standing] | None = None

    @cached_property
    def _tree(self) -> Hierarchy:
        """The tree, drawn when a queue is first compared: a cycle with nothing to do needs none."""
        return Hierarchy(self._snapshot, self._total)

    def order_jobs(self, jobs: Jobs) -> Column:
        """Put jobs with a small share first."""
        return dominant_share(jobs.allocated_or_pipelined, self._total)

    def compare_queues(self, left: Queue, right: Queue) -> float:
        """Compare the branches of two queues in the tree as it stands now."""
        now = len(self._moved)  # grows with every move and with every move taken back
        if self._standing is None or self._standing[0] != now:
            self._standing = (now, self._tree.settle(self._tree.holdings()))
        return self._tree.compare(left.row, right.row, self._standing[1])

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        """Offer tasks of jobs that keep at least the share the preemptor's job would have."""
        snapshot = self._snapshot
        allocated_or_pipelined = snapshot.jobs.allocated_or_pipelined
        mine = self._share(allocated_or_pipelined[:, preemptor.job] + preemptor.request[:, 0])
        held: dict[int, Column] = {}
        out = np.zeros(len(candidates), dtype=bool)
        for i, row in enumerate(candidates):
            job = int(snapshot.tasks.job[row])
            if job == NOWHERE:
                continue
            held[job] = held.get(job, allocated_or_pipelined[:, job]) - snapshot.request(row)
            theirs = self._share(held[job])
            out[i] = mine < theirs or abs(mine - theirs) <= SHARE_DELTA
        return out

    def bound_victims(self, hook: str, asker: Task, candidates: NDArray[np.intp]) -> Mask | None:
        """Judge each task as if it were the first of its job to go."""
        if hook != "preemptable":
            return None
        snapshot = self._snapshot
        allocated_or_pipelined = snapshot.jobs.allocated_or_pipelined
        mine = self._share(allocated_or_pipelined[:, asker.job] + asker.request[:, 0])
        left = allocated_or_pipelined[:, snapshot.tasks.job[candidates]] - snapshot.requests(
            candidates
        )
        return np.asarray(dominant_share(left, self._total) >= mine - SHARE_DELTA)

    def _share(self, amounts: Column) -> float:
        return float(dominant_share(amounts[:, None], self._total)[0])

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask:
        """Offer tasks whose queue, without the task, would still come after the reclaimer's.

        Each task is looked at alone, with the reclaimer in place.
        """
        snapshot, tree = self._snapshot, self._tree
        before = tree.holdings()
        before[:, tree.leaf_of[reclaimer.job]] += reclaimer.request[:, 0]
        answers: dict[tuple[int, int], bool] = {}
        out = np.zeros(len(candidates), dtype=bool)
        for i, row in enumerate(candidates):
            task = Task(snapshot, row)
            if task.job not in tree.leaf_of:
                continue
            key = (task.job, task.shape.id)
            if key not in answers:
                after = before.copy()
                after[:, tree.leaf_of[task.job]] -= task.request[:, 0]
                order = tree.compare(reclaimer.queue, task.queue, tree.settle(after))
                answers[key] = order < 0
            out[i] = answers[key]
        return out
