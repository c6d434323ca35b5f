"""proportion: divide the cluster among queues by weight, and hold each to its part."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, Mask, dominant_share, fits, within_requested
from pumice.core.snapshot import Snapshot
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Queue, Task
from pumice.framework.columns import Queues
from pumice.framework.plugin import PERMIT, REJECT, Plugin
from pumice.framework.queue_limits.reservations import QueueCommitments
from pumice.framework.queue_limits.weighted import WeightedLimits
from pumice.framework.records import Why
from pumice.framework.session import Session
from pumice.framework.simulator_assumptions import SimulatorAssumptions


@dataclass(kw_only=True)
class Proportion(Plugin, name="proportion"):
    """Each queue deserves a part of the cluster by weight, and takes no task beyond it.

    A part is never more than the queue asks for or may have, nor less than it is guaranteed; what
    one queue leaves goes to the others.
    """

    simulator = SimulatorAssumptions(bounded=True)

    def on_open(self, ssn: Session) -> None:
        """Divide the cluster, and sum up what is reserved in each queue."""
        self._snapshot = snapshot = ssn.snapshot
        self._queues = snapshot.queues
        self._records = ssn.records
        limits = self.queue_limits(snapshot, ssn.total)
        self._deserved, self._limit = limits.deserved, limits.real_capability
        self._commitments = QueueCommitments(snapshot)

    def queue_limits(self, snapshot: Snapshot, total: Column) -> WeightedLimits:
        """Return the parts of the cluster that queues deserve by weight."""
        return WeightedLimits.of(snapshot, total)

    def order_queues(self, queues: Queues) -> Column:
        """Put high priority first, then the queue furthest below its part."""
        share = dominant_share(queues.allocated_or_pipelined, self._deserved[:, queues.rows])
        return np.stack([-queues.priority.astype(float), share])

    def overused(self, queue: Queue) -> bool:
        """Say whether a queue has all it deserves, of every resource."""
        return bool(fits(self._deserved[:, queue.row], queue.allocated_or_pipelined))

    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Let an open queue take a task that keeps it within its part."""
        request = task.request[:, 0]
        if self._within_part(queue, request):
            return True
        if not queue.is_open:
            self._records.refuse(task.job, Why.QUEUE_CLOSED)
        else:
            part = self._deserved[:, queue.row]
            self._records.quota(
                task.job,
                queue.allocated_or_pipelined,
                request,
                part,
                queue=queue.row,
                at=queue.name,
            )
        return False

    def preemptive(self, queue: Queue, request: Column) -> bool:
        """Let an open queue reclaim what keeps it within its part."""
        return self._within_part(queue, request)

    def _within_part(self, queue: Queue, request: Column) -> bool:
        part = self._deserved[:, queue.row]
        return queue.is_open and within_requested(
            queue.allocated_or_pipelined + request, part, request
        )

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask:
        """Offer tasks while their queue has more than its part of some resource."""
        snapshot = self._snapshot
        held: dict[int, Column] = {}
        out = np.zeros(len(candidates), dtype=bool)
        for i, row in enumerate(candidates):
            queue = Task(snapshot, row).queue
            if queue == NOWHERE:
                continue
            if queue not in held:
                held[queue] = snapshot.queues.allocated_or_pipelined[:, queue]
            if not fits(held[queue], self._deserved[:, queue]):
                held[queue] = held[queue] - snapshot.request(row)
                out[i] = True
        return out

    def bound_victims(self, hook: str, asker: Task, candidates: NDArray[np.intp]) -> Mask:
        """Mark the tasks of queues that now have more than their part."""
        jobs = self._snapshot.jobs
        beyond = ~fits(self._queues.allocated_or_pipelined, self._deserved)
        return np.asarray(beyond[jobs.queue[self._snapshot.tasks.job[candidates]]])

    def job_enqueueable(self, job: Job) -> int:
        """Permit a job that fits beside what its queue holds and has reserved."""
        queue, request = job.queue, job.min_resources
        if not self._queues.open[queue]:
            self._records.refuse(job.row, Why.QUEUE_CLOSED, queue=queue)
            return REJECT
        if request is None:
            return PERMIT
        limit = self._limit[:, queue]
        used = self._commitments.of_queue(queue)
        if within_requested(used + request, limit, request):
            return PERMIT
        self._records.quota(
            job.row, used, request, limit, queue=queue, at=self._queues.names[queue]
        )
        return REJECT

    def on_enqueued(self, job: Job) -> None:
        """Reserve what the job needs, whoever admitted it."""
        self._commitments.admit(job)
