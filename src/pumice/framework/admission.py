"""The sums behind admitting jobs: what is reserved, what is elastic, how far a queue may grow.

Shared by the plugins that vote on enqueue.  Everything here reads the snapshot as it is when a
session opens and works on whole columns; only jobs with gated tasks are looked at one by one.
"""

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import CPU, MEMORY, Column, fits, is_empty, sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, PHASE_CODE, Status
from pumice.core.tables import JobTable
from pumice.core.views import Task

_ALLOCATED = sorted(ALLOCATED_CLASS)
_QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"
"""The one scheduling gate that does not give a job's reservation back."""


class Reservations:
    """What jobs that were admitted still hold back for themselves, gated tasks taken off."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._gated = _gated_requests(snapshot)

    def of_job(self, job: int) -> Column:
        """Give what a job reserves when it is admitted (R,): all it needs to start."""
        return self._without_gated(job, self._snapshot.jobs.min_resources[:, job])

    def total(self) -> Column:
        """Sum over all jobs (R,); jobs in phase Inqueue count with all they need to start."""
        jobs = self._snapshot.jobs
        inqueue, running = self._holders()
        amounts = np.concatenate(
            [self._amounts(inqueue, jobs.min_resources), self._amounts(running, _remainder(jobs))],
            axis=1,
        )
        return np.asarray(amounts.sum(axis=1))

    def by_queue(self) -> Column:
        """Sum by queue (R, Q); what a job already holds is not reserved again."""
        jobs = self._snapshot.jobs
        rows = np.concatenate(self._holders())
        amounts = self._amounts(rows, _remainder(jobs))
        return sum_by(amounts, jobs.queue[rows], self._snapshot.queues.capacity)

    def _holders(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Find jobs in phase Inqueue, and running ones with their least number of tasks placed.

        Volcano: a running job below that number has finished tasks; it will not ask again.
        """
        jobs = self._snapshot.jobs
        asks = jobs.listed & jobs.has_min_resources
        complete = jobs.counts[_ALLOCATED].sum(axis=0) >= jobs.min_member
        inqueue = asks & (jobs.phase == PHASE_CODE["Inqueue"])
        running = asks & (jobs.phase == PHASE_CODE["Running"]) & complete
        return np.flatnonzero(inqueue), np.flatnonzero(running)

    def _amounts(self, rows: NDArray[np.intp], column: Column) -> Column:
        out = column[:, rows]
        if self._gated:
            for i, job in enumerate(rows.tolist()):
                out[:, i] = self._without_gated(job, out[:, i])
        return out

    def _without_gated(self, job: int, amounts: Column) -> Column:
        gated = self._gated.get(job)
        if gated is None or is_empty(gated):
            return amounts
        return np.maximum(amounts - gated, 0.0)


def elastic_by_queue(snapshot: Snapshot) -> Column:
    """Sum by queue what jobs hold beyond what they need to start (R, Q)."""
    jobs = snapshot.jobs
    rows = np.flatnonzero(jobs.listed)
    beyond = np.maximum(jobs.allocated[:, rows] - jobs.min_resources[:, rows], 0.0)
    return sum_by(beyond, jobs.queue[rows], snapshot.queues.capacity)


def real_capability(snapshot: Snapshot, total: Column) -> Column:
    """Say how far each queue may grow beside the others (R, Q), all queues side by side.

    That is the total without what other queues are guaranteed, cut to the queue's own capability;
    cpu or memory of zero in a capability stands for no limit.
    """
    queues = snapshot.queues
    guarantee = np.where(queues.listed, queues.guarantee, 0.0)
    free = np.maximum(total - guarantee.sum(axis=1), 0.0)
    limit = queues.capability.copy()
    basics = limit[[CPU, MEMORY]]
    limit[[CPU, MEMORY]] = np.where(basics <= 0, np.inf, basics)
    return np.minimum(free[:, None] + guarantee, limit)


def divide_by_weight(snapshot: Snapshot, total: Column, limit: Column) -> Column:
    """Pour the cluster out over the queues that have jobs, round by round (R, Q).

    A part is never more than the queue asks for or its ``limit``, nor less than it is guaranteed;
    what one queue leaves goes to the others.
    """
    queues, remaining, n_rounds = snapshot.queues, total, 0
    rows = queues_with_jobs(snapshot)
    rows = rows[np.argsort(np.array([queues.names[row] for row in rows.tolist()]))]
    deserved = np.zeros_like(limit)  # sums in one order, whatever queue came first
    request = queues.allocated_or_pipelined + queues.pending
    while True:
        weight = queues.weight[rows].sum()
        if weight == 0:
            return deserved
        old = deserved[:, rows]
        new = old + remaining[:, None] * (queues.weight[rows] / weight)
        new = np.minimum(np.minimum(new, limit[:, rows]), request[:, rows])
        new = np.maximum(new, queues.guarantee[:, rows])
        deserved[:, rows] = new
        met = fits(request[:, rows], new)
        if n_rounds:  # Volcano: the first part is a change even if it is nothing
            met |= (new == old).all(axis=0)
        more, less = np.maximum(new - old, 0.0), np.maximum(old - new, 0.0)
        before = remaining
        remaining = np.maximum(before + less.sum(axis=1) - more.sum(axis=1), 0.0)
        if is_empty(remaining) or np.array_equal(remaining, before):
            return deserved
        rows = rows[~met]
        n_rounds += 1


def queues_with_jobs(snapshot: Snapshot) -> NDArray[np.intp]:
    """Give the rows of queues that have a job in this session."""
    jobs = snapshot.jobs
    return np.unique(jobs.queue[jobs.listed]).astype(np.intp)


def _remainder(jobs: JobTable) -> Column:
    return np.maximum(jobs.min_resources - jobs.allocated, 0.0)


def _gated_requests(snapshot: Snapshot) -> dict[int, Column]:
    """Sum the requests of gated tasks by job."""
    tasks = snapshot.tasks
    if not tasks.gated.any():
        return {}
    held = tasks.gated & (tasks.status == Status.PENDING) & (tasks.job >= 0)
    out: dict[int, Column] = {}
    for row in np.flatnonzero(held).tolist():
        gates = [gate.name for gate in Task(snapshot, row).pod.spec.scheduling_gates]
        if gates == [_QUEUE_GATE]:
            continue
        job = int(tasks.job[row])
        request = snapshot.request(row)
        out[job] = out[job] + request if job in out else request
    return out
