"""The plugin's hooks."""

from dataclasses import dataclass

import numpy as np

from pumice.core.resources import Column
from pumice.core.status import Status
from pumice.core.views import Nodes, Task
from pumice.framework.arguments import arg
from pumice.framework.columns import Tasks
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.plugins.task_topology.buckets import JobTopology
from pumice.plugins.task_topology.wishes import read_wishes

_MAX_SCORE = 100


@dataclass(kw_only=True)
class TaskTopology(Plugin, name="task-topology"):
    """Order tasks by bucket and prefer the node that can take most of a task's bucket."""

    simulator = SimulatorAssumptions()
    weight: int = arg("task-topology.weight", default=1, doc="weight of this plugin's score")

    def on_open(self, ssn: PluginSession) -> None:
        """Build the buckets of jobs that wait for nodes and state preferences."""
        self._journal = ssn.journal
        self._snapshot = ssn.snapshot
        self._jobs: dict[int, JobTopology] = {}
        for row in ssn.jobs():
            job = ssn.job(row)
            wishes = read_wishes(job) if job.counts[Status.PENDING] else None
            if wishes is not None:
                self._jobs[row] = JobTopology(job, wishes)
        # the order of tasks in a single bucket stays the same
        several = (row for row, topology in self._jobs.items() if len(topology.buckets) > 1)
        self.moving_jobs = frozenset(several)

    def order_tasks(self, tasks: Tasks) -> Column:
        """Put tasks in buckets first, and inside a job those of big buckets."""
        keys = np.full((2, len(tasks)), np.nan)
        for i, (row, job) in enumerate(zip(tasks.rows.tolist(), tasks.job.tolist(), strict=True)):
            topology = self._jobs.get(job)
            if topology is not None:
                keys[:, i] = row not in topology.bucket_of, topology.key(row)
        return keys

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Count members of the bucket that are, or could be, on each node."""
        topology = self._jobs.get(task.job)
        bucket = None if topology is None else topology.bucket_of.get(task.row)
        if topology is None or bucket is None or task.row not in bucket:
            return None
        members = bucket.fitting(task, self._snapshot)
        best = self.weight * float(_MAX_SCORE)
        score: Column = members * best / topology.largest
        for row, wish in topology.near(task, bucket).items():
            there = int(members[row])
            score[row] = (there + wish) * best / topology.largest if there else 0.0
        return score[nodes.rows]

    def on_place(self, task: Task, node: int) -> None:
        """Remove the task from the waiting tasks of its bucket."""
        self._move(task, node, 1)

    def on_evict(self, task: Task, node: int) -> None:
        """Make a task that was pipelined wait again; one that is leaving still counts."""
        if task.status is Status.PENDING:
            self._move(task, node, -1)

    def _move(self, task: Task, node: int, sign: int) -> None:
        topology = self._jobs.get(task.job)
        if topology is not None:
            topology.move(task, node, sign)
            self._journal.on_rollback(self._take_back, topology, task, node, -sign)

    def _take_back(self, topology: JobTopology, task: Task, node: int, sign: int) -> None:
        if not self._journal.is_ending:  # else nobody reads the buckets again
            topology.move(task, node, sign)
