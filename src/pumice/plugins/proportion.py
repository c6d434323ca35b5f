"""proportion: divide the cluster among queues by weight, and hold each to its part."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pumice.api.codes import Cause, Spared
from pumice.core.resources import Column, Mask, fits
from pumice.core.snapshot import Snapshot
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Queue, Task
from pumice.framework.columns import Queues
from pumice.framework.plugin import PERMIT, Plugin, Verdict, Vote
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.framework.queue_limits.limits import QueueCommitments, Reservations
from pumice.framework.queue_limits.weighted import WeightedLimits
from pumice.framework.refusals import queue_closed, within_quota


@dataclass(kw_only=True)
class Proportion(Plugin, name="proportion"):
    """Each queue deserves a part of the cluster by weight, and takes no task beyond it.

    A part is never more than the queue asks for or may have, nor less than it is guaranteed; what
    one queue leaves goes to the others.
    """

    foreseeable = True
    simulator = SimulatorAssumptions()
    spares = Spared.QUEUE_WITHIN_DESERVED
    protects = "pods of queues within what they deserve"
    protects_in = frozenset({"reclaim"})

    def on_open(self, ssn: PluginSession) -> None:
        """Divide the cluster as it is now, and sum up what is reserved in each queue."""
        self._snapshot, self._queues, self._total = ssn.snapshot, ssn.snapshot.queues, ssn.total
        ssn.journal.defer(lambda: self._limits, lambda: self._commitments)

    @cached_property
    def _limits(self) -> WeightedLimits:
        return self.queue_limits(self._snapshot, self._total)

    @property
    def _deserved(self) -> Column:
        return self._limits.deserved

    @cached_property
    def _commitments(self) -> QueueCommitments:
        return QueueCommitments(self._snapshot, Reservations.at_opening(self._snapshot))

    def queue_limits(self, snapshot: Snapshot, total: Column) -> WeightedLimits:
        """Return the parts of the cluster that queues deserve by weight."""
        return WeightedLimits.of(snapshot, total)

    def order_queues(self, queues: Queues) -> Column:
        """Put high priority first, then the queue furthest below its part."""
        return self._limits.order(queues.allocated_or_pipelined, queues.rows)

    def overused(self, queue: Queue) -> bool:
        """Return whether a queue has all it deserves, of every resource."""
        return bool(fits(self._deserved[:, queue.row], queue.allocated_or_pipelined))

    def allocatable(self, queue: Queue, task: Task) -> Verdict:
        """Allow an open queue a task that keeps it within its part."""
        return self._within_part(queue, task.request[:, 0])

    def preemptive(self, queue: Queue, request: Column) -> Verdict:
        """Allow an open queue to reclaim what keeps it within its part."""
        return self._within_part(queue, request)

    def _within_part(self, queue: Queue, request: Column) -> Verdict:
        if not queue.is_open:
            return queue_closed(queue.row)
        part = self._deserved[:, queue.row]
        used, code = queue.allocated_or_pipelined, Cause.QUEUE_OVER_DESERVED
        return self._fits(queue.row, used, request, part, code)

    def _fits(
        self, queue: int, used: Column, request: Column, limit: Column, code: Cause
    ) -> Verdict:
        names, at = self._snapshot.resources.names, self._queues.names[queue]
        return within_quota(names, used, request, limit, queue=queue, at=at, code=code)

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

    def job_enqueueable(self, job: Job) -> Vote:
        """Permit a job that fits beside what its queue holds and has reserved."""
        queue, request = job.queue, job.min_resources
        if not self._queues.open[queue]:
            return queue_closed(queue)
        if request is None:
            return PERMIT
        used = self._commitments.of_queue(queue)
        limit, code = self._limits.real_capability[:, queue], Cause.QUEUE_OVER_CAPABILITY
        return self._fits(queue, used, request, limit, code)

    def on_enqueued(self, job: Job) -> None:
        """Reserve what the job needs, whichever plugin admitted it."""
        self._commitments.admit(job)
