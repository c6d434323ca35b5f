"""Figures about queues and jobs, taken from a session once everything is decided.

An observer of the scheduler for processes that serve metrics.  No decision depends on these
figures; the sums are those of the plugins that divide the cluster.
"""

import numpy as np

from pumice.api.decisions import Decisions
from pumice.core.resources import CPU, MEMORY, PODS, Column, dominant_share
from pumice.framework.fit_errors import lacking_tasks
from pumice.framework.queue_limits.limits import QueueLimits
from pumice.framework.queue_limits.reservations import Reservations
from pumice.framework.session import Session
from pumice.metrics import Metrics
from pumice.scheduler import Observer


class QueueMetrics(Observer):
    """Updates metrics from a session, at most each ``every_s`` seconds."""

    def __init__(self, metrics: Metrics, *, every_s: float = 5.0) -> None:
        self._metrics = metrics
        self._every_s = every_s
        self._told_at: float | None = None
        self._queues: set[str] = set()
        self._jobs: dict[str, tuple[str, str, str]] = {}
        self._namespaces: set[str] = set()

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Record the causes of waiting jobs and, now and then, the state of queues and jobs."""
        del decisions
        self._report_waiting(ssn)
        if self._told_at is not None and 0 <= ssn.now - self._told_at < self._every_s:
            return
        self._told_at = ssn.now
        self._report_queues(ssn)
        self._report_jobs(ssn)
        self._report_namespaces(ssn)

    def _report_waiting(self, ssn: Session) -> None:
        jobs = ssn.snapshot.jobs
        waiting: dict[str, int] = {}
        for row in ssn.unschedulable:
            name = jobs.keys[row].rpartition("/")[2]
            waiting[name] = waiting.get(name, 0) + lacking_tasks(ssn, ssn.job(row))
        self._metrics.unschedulable(waiting)

    # Queues

    def _report_queues(self, ssn: Session) -> None:
        queues = ssn.snapshot.queues
        rows = np.flatnonzero(queues.listed).tolist()
        limits = limits_of(ssn)
        if limits is not None:
            self._report_limited(ssn, limits, rows)
        present = {queues.names[row] for row in rows}
        for name in self._queues - present:
            self._metrics.forget_queue(name)
        self._queues = present

    def _report_limited(self, ssn: Session, limits: QueueLimits, rows: list[int]) -> None:
        queues, amounts = ssn.snapshot.queues, _amounts(limits)
        shares = limits.shares(amounts["allocated"])
        overused = limits.overused(amounts["allocated"])
        for row in rows:
            name = queues.names[row]
            for amount, columns in amounts.items():
                self._report_amounts(ssn, name, amount, columns[:, row])
            self._metrics.queue_state(
                name,
                share=float(shares[row]),
                weight=int(queues.weight[row]),
                overused=bool(overused[row]),
            )

    def _report_amounts(self, ssn: Session, queue: str, amount: str, column: Column) -> None:
        """Set amounts; a queue without any limit has none."""
        if not np.isfinite(column).any():
            return
        names = ssn.snapshot.resources.names
        values = np.where(np.isfinite(column), column, 0.0).tolist()
        scalars = {
            names[row]: value
            for row, value in enumerate(values)
            if row not in (CPU, MEMORY, PODS) and value
        }
        self._metrics.queue_amounts(queue, amount, values[CPU], values[MEMORY], scalars)

    # Jobs

    def _report_jobs(self, ssn: Session) -> None:
        jobs = ssn.snapshot.jobs
        rows = np.flatnonzero(jobs.listed)
        if ssn.has_plugin("drf") and len(rows):
            shares = dominant_share(jobs.allocated_or_pipelined[:, rows], ssn.total[:, None])
            for row, share in zip(rows.tolist(), shares.tolist(), strict=True):
                namespace, _, name = jobs.keys[row].partition("/")
                self._metrics.job_share(namespace, name, share)
        present: dict[str, tuple[str, str, str]] = {}
        for row in rows.tolist():
            namespace, _, name = jobs.keys[row].partition("/")
            queue = ssn.snapshot.queues.names[int(jobs.queue[row])]
            present[jobs.keys[row]] = (name, queue, namespace)
        for key, job in self._jobs.items():
            if present.get(key) != job:
                self._metrics.forget_job(*job)
        for key, job in present.items():
            if self._jobs.get(key) != job:
                self._metrics.job_seen(*job, now=ssn.now)
        self._jobs = present

    # Namespaces

    def _report_namespaces(self, ssn: Session) -> None:
        """Set the shares of namespaces that have jobs; there are no weights, so each counts 1."""
        namespaces = ssn.snapshot.namespaces
        shares = dominant_share(namespaces.allocated_or_pipelined, ssn.total[:, None]).tolist()
        present = {namespace for _, _, namespace in self._jobs.values()}
        for row, name in enumerate(namespaces.names):
            if name in present:
                self._metrics.namespace_state(name, shares[row], 1, shares[row])
        for name in self._namespaces - present:
            self._metrics.forget_namespace(name)
        self._namespaces = present


def limits_of(ssn: Session) -> QueueLimits | None:
    """Return the limits of queues, stated ones before parts by weight."""
    limits = [plugin.queue_limits(ssn.snapshot, ssn.total) for plugin in ssn.plugins]
    known = [each for each in limits if each is not None]
    return min(known, key=lambda each: each.follows_demand, default=None)


def _amounts(limits: QueueLimits) -> dict[str, Column]:
    """Return amounts (R, Q) by the name of their figure; a queue includes all queues under it."""
    queues, sum_up = limits.snapshot.queues, limits.tree.sum_up
    return {
        "allocated": sum_up(queues.allocated_or_pipelined),
        "request": sum_up(queues.allocated_or_pipelined + queues.pending),
        "inqueue": sum_up(Reservations(limits.snapshot).by_queue()),
        "deserved": limits.deserved,
        "capacity": limits.capability,
        "real_capacity": limits.real_capability,
    }
