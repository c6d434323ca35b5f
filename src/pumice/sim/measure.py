"""Figures of a finished simulation: what it came to in all, and how it went over time.

Everything is worked out from the log, so that it is the same for the same log.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.objects import Queue
from pumice.cache.requests import pod_request
from pumice.core.resources import PODS, Column
from pumice.sim.engine import Outcome, SimulationCost
from pumice.sim.event_log import EventKind
from pumice.sim.job_run import JobRun, State
from pumice.sim.series import TimeBins, jain, water_fill

N_SPANS = 240
PERCENTILES = (50, 90, 95, 99)
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class QueueFacts:
    """What is stated of the queues: columns in the order of their names (R, Q)."""

    names: list[str]
    weight: Column
    deserved: Matrix
    guarantee: Matrix
    capability: Matrix


class Measures:
    """One simulation in figures."""

    def __init__(self, name: str, outcome: Outcome, end: float | None = None) -> None:
        self.name = name
        self.outcome = outcome
        self.end = outcome.end if end is None else end
        self.bins = TimeBins.over(self.end, N_SPANS)
        log = outcome.log
        self.time, self.kind, self.job = log.time, log.kind, log.job
        self.task, self.node = log.task, log.node
        self.resources = outcome.snapshot.resources.names
        self.total = outcome.snapshot.total()

    # Tables behind the figures

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
        """Return the first pod of each job, the number of each pod's request, and the requests."""
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
        """Return what each job asks for in all (jobs, R)."""
        first, shape, requests = self._pods
        return np.add.reduceat(requests[shape], first, axis=0)

    def rows(self, *kinds: EventKind) -> NDArray[np.intp]:
        """Find the rows of the log of some kinds."""
        return np.flatnonzero(np.isin(self.kind, kinds))

    @cached_property
    def _held(self) -> tuple[NDArray[np.intp], Column]:
        """Rows at which pods take or leave nodes, and +1 or -1."""
        rows = self.rows(EventKind.BIND, EventKind.FINISH, EventKind.EVICT)
        return rows, np.where(self.kind[rows] == EventKind.BIND, 1.0, -1.0)

    @cached_property
    def shown(self) -> list[int]:
        """Resources worth a figure: offered by the cluster and asked for by some job."""
        asked = self.job_requests.sum(axis=0)
        return [i for i in range(len(self.total)) if i != PODS and self.total[i] > 0 < asked[i]]

    # Over time

    @cached_property
    def allocated(self) -> Matrix:
        """Amounts in use by queue and resource (Q, R, bins)."""
        rows, sign = self._held
        return self._by_queue(rows, self.amounts(rows) * sign[:, None])

    @cached_property
    def waiting(self) -> Matrix:
        """Amounts asked for by pods without a node, by queue and resource (Q, R, bins)."""
        rows = self.rows(EventKind.ARRIVE, EventKind.BIND, EventKind.EVICT, EventKind.LOSE)
        what = self.kind[rows]
        come = what == EventKind.ARRIVE
        changes = np.empty((len(rows), len(self.resources)))
        changes[come] = self.job_requests[self.job[rows[come]]]
        sign = np.where(what[~come] == EventKind.EVICT, 1.0, -1.0)
        changes[~come] = self.amounts(rows[~come]) * sign[:, None]
        return self._by_queue(rows, changes)

    def _by_queue(self, rows: NDArray[np.intp], changes: Matrix) -> Matrix:
        owner, times = self.queue_of_job[self.job[rows]], self.time[rows]
        n = len(self.queues.names)
        columns = [
            self.bins.means_by(owner, n, times, changes[:, i]) for i in range(changes.shape[1])
        ]
        return np.stack(columns, axis=1)

    @cached_property
    def utilisation(self) -> Matrix:
        """Part of the cluster in use by resource (R, bins)."""
        whole = np.where(self.total > 0, self.total, np.inf)
        return np.asarray(self.allocated.sum(axis=0) / whole[:, None])

    @cached_property
    def queue_lengths(self) -> Matrix:
        """Jobs that have not started by queue (Q, bins)."""
        runs = self.outcome.runs
        arrivals = np.array([run.spec.arrival for run in runs])
        starts = np.array([run.started for run in runs])
        began = ~np.isnan(starts)
        times = np.concatenate([arrivals, starts[began]])
        changes = np.concatenate([np.ones(len(runs)), -np.ones(int(began.sum()))])
        owner = np.concatenate([self.queue_of_job, self.queue_of_job[began]])
        order = np.argsort(times, kind="stable")
        n = len(self.queues.names)
        return self.bins.means_by(owner[order], n, times[order], changes[order])

    @cached_property
    def due(self) -> Matrix:
        """What each queue deserves: stated, or else its part by weight of what is asked for.

        By queue and resource (Q, R, bins).
        """
        facts, demand = self.queues, self.allocated + self.waiting
        out = np.zeros_like(demand)
        for i in self.shown:
            if facts.deserved[i].any():
                out[:, i] = facts.deserved[i][:, None]
                continue
            for at in range(len(self.bins)):
                out[:, i, at] = water_fill(
                    demand[:, i, at], facts.weight, facts.capability[i], float(self.total[i])
                )
        return out

    @cached_property
    def fairness(self) -> Column:
        """Jain's index over what queues get of their due (bins,); NaN where fewer than two ask."""
        whole = self.total[self.shown][None, :, None]
        has = (self.allocated[:, self.shown] / whole).max(axis=1)
        asks = ((self.allocated + self.waiting)[:, self.shown] / whole).max(axis=1)
        n, out = len(self.queues.names), np.full(len(self.bins), np.nan)
        for at in range(len(self.bins)):
            asking = asks[:, at] > 1e-9
            if asking.sum() > 1:
                due = water_fill(asks[:, at], self.queues.weight, np.full(n, np.inf), 1.0)[asking]
                out[at] = jain(has[asking, at] / np.maximum(due, 1e-12))
        return out

    def node_use(self, resource: int) -> Matrix:
        """Part of each node in use of one resource (N, bins)."""
        rows, sign = self._held
        nodes = self.outcome.snapshot.nodes
        changes = self.amounts(rows)[:, resource] * sign
        used = self.bins.means_by(self.node[rows], nodes.n, self.time[rows], changes)
        offered = nodes.allocatable[resource, : nodes.n]
        return np.asarray(used / np.where(offered > 0, offered, np.inf)[:, None])

    @cached_property
    def main_resource(self) -> int:
        """The resource of which most is in use."""
        use = self.utilisation[self.shown].mean(axis=1)
        return self.shown[int(np.argmax(use))]

    def run_periods(self, runs: Sequence[JobRun]) -> Iterator[tuple[JobRun, list[list[float]]]]:
        """Yield, for some jobs, the times between which any of their pods ran."""
        rows, sign = self._held
        keep = np.isin(self.job[rows], [run.number for run in runs])
        rows, sign = rows[keep], sign[keep]
        for run in runs:
            mine = self.job[rows] == run.number
            times, level = self.time[rows[mine]], sign[mine].cumsum()
            periods: list[list[float]] = []
            since: float | None = None
            for time, n in zip(times.tolist(), level.tolist(), strict=True):
                if n > 0 and since is None:
                    since = time
                elif n <= 0 and since is not None:
                    periods.append([since, time])
                    since = None
            if since is not None:
                periods.append([since, self.end])
            yield run, periods

    # In all

    @cached_property
    def ends(self) -> list[float]:
        """When each job ended that did."""
        return [run.ended for run in self.outcome.runs if not math.isnan(run.ended)]

    @cached_property
    def makespan(self) -> float:
        """When the last job ended; 0 if none did."""
        return max(self.ends, default=0.0)

    @cached_property
    def evictions(self) -> int:
        """How many pods were evicted."""
        return len(self.rows(EventKind.EVICT))

    @cached_property
    def mean_use(self) -> Column:
        """Part of each resource in use, from the first arrival to the last end (R,)."""
        rows, sign = self._held
        left = np.maximum(self.makespan - self.time[rows], 0.0)
        used = (self.amounts(rows) * (sign * left)[:, None]).sum(axis=0)
        offered = self.total * self.makespan
        return np.asarray(used / np.where(offered > 0, offered, np.inf))

    def waits(self, queue: str | None = None) -> Column:
        """Seconds from arrival to start of every job (of a queue) that started, sorted."""
        found = [
            run.started - run.spec.arrival
            for run in self.outcome.runs
            if not math.isnan(run.started) and queue in (None, run.spec.queue)
        ]
        return np.sort(np.array(found, dtype=float))

    def summary(self) -> dict[str, Any]:
        """Sum up as plain data; nothing in it depends on how fast this machine is."""
        runs, cost = self.outcome.runs, self.outcome.cost
        fair = self.fairness[~np.isnan(self.fairness)]
        return {
            "configuration": self.name,
            "jobs": len(runs),
            "pods": sum(run.kind.size for run in runs),
            "finished": len(self.ends),
            "unfinished": [
                {"job": run.key, "queue": run.spec.queue, "reason": run.reason}
                for run in runs
                if math.isnan(run.ended)
            ],
            "makespan": _round(self.makespan),
            "utilisation": {
                self.resources[i]: _round(float(self.mean_use[i]))
                for i in self.shown
                if self.makespan > 0
            },
            "wait": spread(self.waits()),
            "queues": {name: self._queue_summary(name) for name in self.queues.names},
            "evictions": self.evictions,
            "lost": sum(run.tally[State.LOST] for run in runs),
            "fairness": {
                "mean": _round(float(fair.mean())) if len(fair) else None,
                "least": _round(float(fair.min())) if len(fair) else None,
            },
            "cycles": cost.cycles,
            "decisions": cost.decisions,
            "events": cost.events,
        }

    def _queue_summary(self, name: str) -> dict[str, Any]:
        at = self.queues.names.index(name)
        share = self.allocated[at].mean(axis=1) / np.where(self.total > 0, self.total, np.inf)
        return {
            "jobs": int((self.queue_of_job == at).sum()),
            "weight": float(self.queues.weight[at]),
            "wait": spread(self.waits(name)),
            "share": {self.resources[i]: _round(float(share[i])) for i in self.shown},
            "evictions": sum(run.evictions for run in self.outcome.runs if run.spec.queue == name),
        }


def spread(values: Column) -> dict[str, float | None]:
    """Describe how values are spread."""
    if not len(values):
        return {"mean": None, **{f"p{p}": None for p in PERCENTILES}, "max": None}
    found = np.percentile(values, PERCENTILES).tolist()
    return {
        "mean": _round(float(values.mean())),
        **{f"p{p}": _round(value) for p, value in zip(PERCENTILES, found, strict=True)},
        "max": _round(float(values[-1])),
    }


def timing(cost: SimulationCost) -> dict[str, float]:
    """Return what a simulation cost on this machine."""
    seconds = max(cost.seconds, 1e-9)
    return {
        "seconds": round(cost.seconds, 3),
        "deciding_seconds": round(cost.deciding_seconds, 3),
        "events_per_second": round(cost.events / seconds, 1),
        "milliseconds_per_decision": round(
            1000 * cost.deciding_seconds / max(cost.decisions, 1), 4
        ),
        "milliseconds_per_cycle": round(1000 * cost.deciding_seconds / max(cost.cycles, 1), 4),
    }


def _round(value: float) -> float:
    return round(value, 6)
