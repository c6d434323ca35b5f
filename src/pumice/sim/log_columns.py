"""The log of a simulation as columns: requests by queue, place and time."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pumice.api.objects import Queue
from pumice.cache.requests import pod_request
from pumice.core.resources import PODS, Column
from pumice.sim.event_log import EventKind
from pumice.sim.job_run import Outcome

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class QueueFacts:
    """Facts about the queues: columns in the order of their names (R, Q)."""

    names: list[str]
    weight: Column
    deserved: Matrix
    guarantee: Matrix
    capability: Matrix


class LogColumns:
    """A finished simulation in columns; figures are sums and integrals over them."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        log = outcome.log
        self.time, self.kind, self.job = log.time, log.kind, log.job
        self.task, self.node = log.task, log.node
        self.resources = outcome.snapshot.resources.names
        self.total = outcome.snapshot.total() if outcome.offered is None else outcome.offered

    @cached_property
    def queues(self) -> QueueFacts:
        """Queues with jobs, in the order of their names."""
        table = self.outcome.snapshot.queues
        names = sorted({run.spec.queue for run in self.outcome.runs})
        rows = [table.row_of[name] for name in names]
        weights = [
            thing.spec.weight or 1 if isinstance(thing, Queue) else 1
            for thing in (table.objects[row] for row in rows)
        ]
        return QueueFacts(
            names=names,
            weight=np.array(weights, dtype=float),
            deserved=table.deserved[:, rows],
            guarantee=table.guarantee[:, rows],
            capability=table.capability[:, rows],
        )

    @cached_property
    def queue_of_job(self) -> NDArray[np.int32]:
        """The queue of each job, by its place among the names."""
        place = {name: i for i, name in enumerate(self.queues.names)}
        runs = self.outcome.runs
        return np.fromiter((place[run.spec.queue] for run in runs), np.int32, len(runs))

    @cached_property
    def _pods(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Matrix]:
        """The first pod of each job, the number of each pod's request, and the requests."""
        known: dict[int, int] = {}
        requests: list[Column] = []
        numbers: list[int] = []
        counts: list[int] = []
        sizes: list[int] = []
        for run in self.outcome.runs:
            size = 0
            for task in run.spec.tasks:
                key = id(task.spec)
                if key not in known:
                    known[key] = len(requests)
                    requests.append(pod_request(task.spec, self.outcome.snapshot.resources))
                numbers.append(known[key])
                counts.append(task.count)
                size += task.count
            sizes.append(size)
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        return first, np.repeat(numbers, counts).astype(np.intp), np.array(requests)

    def amounts(self, rows: NDArray[np.intp]) -> Matrix:
        """Return the requests of the pods of some rows of the log (n, R)."""
        first, shape, requests = self._pods
        return requests[shape[first[self.job[rows]] + self.task[rows]]]

    @cached_property
    def job_requests(self) -> Matrix:
        """The total request of each job (jobs, R)."""
        first, shape, requests = self._pods
        return np.add.reduceat(requests[shape], first, axis=0)

    def rows(self, *kinds: EventKind) -> NDArray[np.intp]:
        """Find the rows of the log of some kinds."""
        return np.flatnonzero(np.isin(self.kind, kinds))

    @cached_property
    def held(self) -> tuple[NDArray[np.intp], Column]:
        """Rows at which pods take or leave nodes, and +1 or -1."""
        rows = self.rows(EventKind.BIND, EventKind.FINISH, EventKind.EVICT)
        return rows, np.where(self.kind[rows] == EventKind.BIND, 1.0, -1.0)

    @cached_property
    def shown(self) -> list[int]:
        """Resources worth a figure: offered by the cluster and asked for by some job.

        If jobs request nothing, their pod slots.
        """
        asked = self.job_requests.sum(axis=0)
        found = [i for i in range(len(self.total)) if i != PODS and self.total[i] > 0 < asked[i]]
        return found or [PODS]

    @cached_property
    def run_seconds(self) -> Column:
        """How long each job ran: the time in which it had as many pods as it needs (jobs,)."""
        rows, sign = self.held
        rows, sign = rows[order := np.argsort(self.job[rows], kind="stable")], sign[order]
        job, time = self.job[rows], self.time[rows]
        first = np.searchsorted(job, job)
        running = _sums_since(first, sign)
        over = _sums_since(first, (self.kind[rows] == EventKind.FINISH).astype(float))
        runs = self.outcome.runs
        needed = np.array([run.spec.min_member for run in runs], dtype=float)
        enough = (running > 0) & (running + over >= needed[job])
        is_last = np.append(job[1:] != job[:-1], True)[: len(job)]
        until = np.where(is_last, np.where(running > 0, self.outcome.end, time), np.roll(time, -1))
        seconds = np.where(enough, until - time, 0.0)
        return np.bincount(job, seconds, minlength=len(runs)).astype(float)

    @cached_property
    def wasted(self) -> NDArray[np.float64]:
        """Amounts held by evicted pods, times the seconds they were held (R,)."""
        rows, _ = self.held
        first, _, _ = self._pods
        pod = first[self.job[rows]] + self.task[rows]
        rows = rows[np.argsort(pod, kind="stable")]
        is_evicted = self.kind[rows] == EventKind.EVICT  # the row before is that pod's bind
        held_for = np.where(is_evicted, self.time[rows] - np.roll(self.time[rows], 1), 0.0)
        return np.asarray((self.amounts(rows) * held_for[:, None]).sum(axis=0))


def _sums_since(first: NDArray[np.intp], changes: Column) -> Column:
    """Add changes up from the first row of each group (n,)."""
    sums = np.concatenate([[0.0], changes.cumsum()])
    return sums[1:] - sums[first]
