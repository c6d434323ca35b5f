"""Figures of a finished simulation: totals, values over time, and their words.

Everything is computed from the log, so that it is the same for the same log.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column
from pumice.sim.event_log import EventKind
from pumice.sim.fairness import Fairness, TimeBins, fairness_of, water_fill
from pumice.sim.job_run import JobRun, Outcome, SimulationCost, State
from pumice.sim.log_columns import LogColumns, Matrix

NOTHING = "\N{EN DASH}"
"""Stands for a figure that could not be measured."""
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration(seconds: float) -> str:
    """Write a time in its largest unit."""
    for size, name in _UNITS:
        if abs(seconds) >= size:
            return f"{seconds / size:,.3g} {name}"
    return f"{seconds:.3g} s"


Summary = Mapping[str, Any]
"""The figures of one configuration, or of all."""


def are_comparable(before: Summary, after: Summary) -> bool:
    """Return whether the same jobs finished: only then are figures over jobs better or worse.

    A configuration that leaves long jobs waiting for ever has short waits and an early end.
    """
    return _unfinished(before) == _unfinished(after)


def _unfinished(found: Summary) -> set[str]:
    return {job["job"] for job in found["unfinished"]}


TIMES = 10
"""A job is in a storm if its pods were evicted more often than this, on average."""


@dataclass(frozen=True, slots=True)
class EvictionStorm:
    """The extent of a storm: its jobs, their evictions, its time, the worst job."""

    jobs: int
    evictions: int
    since: float
    until: float
    worst: str
    times: float
    """How often a pod of the worst job was evicted, on average."""

    def as_data(self) -> dict[str, Any]:
        """Return the figures, and a sentence."""
        return {**asdict(self), "text": str(self)}

    def __str__(self) -> str:
        return (
            f"storm of evictions: pods of {self.jobs:,} jobs were evicted more than {TIMES} times "
            f"each, {self.evictions:,} evictions in all from {duration(self.since)} to "
            f"{duration(self.until)}; those of {self.worst} {self.times:,.0f} times each. The "
            "policy does not settle on this workload, so the figures are of little use"
        )


def find_storm(log: LogColumns) -> EvictionStorm | None:
    """Find jobs whose pods were evicted again and again; None if there are none."""
    runs = log.outcome.runs
    often = np.array([run.evictions / run.kind.size for run in runs])
    stormy = np.flatnonzero(often > TIMES)
    if not len(stormy):
        return None
    rows = log.rows(EventKind.EVICT)
    times = log.time[rows[np.isin(log.job[rows], stormy)]]
    worst = int(np.argmax(often))
    return EvictionStorm(
        jobs=len(stormy),
        evictions=len(times),
        since=round(float(times[0]), 6),
        until=round(float(times[-1]), 6),
        worst=runs[worst].key,
        times=round(float(often[worst]), 1),
    )


N_SPANS = 240
PERCENTILES = (50, 90, 95, 99)
SHORTEST_RUN_S = 10.0
"""Shorter runs count as this long in bounded slowdowns, as in the literature."""


class Measures(LogColumns):
    """One simulation in figures.

    Totals divide by this simulation's own time.  Series over time go to ``end``,
    which several simulations may share.
    """

    def __init__(self, name: str, outcome: Outcome, end: float | None = None) -> None:
        super().__init__(outcome)
        self.name = name
        self.end = outcome.end if end is None else end
        self.bins = TimeBins.over(self.end, N_SPANS)

    # Over time

    @cached_property
    def allocated(self) -> Matrix:
        """Amounts in use by queue and resource (Q, R, bins)."""
        rows, sign = self.held
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
        """Jobs that wait for their start, by queue (Q, bins); a lost one no longer waits."""
        runs = self.outcome.runs
        arrivals = np.array([run.spec.arrival for run in runs])
        starts = np.fmin([run.started for run in runs], [run.ended for run in runs])
        began = ~np.isnan(starts)
        times = np.concatenate([arrivals, starts[began]])
        changes = np.concatenate([np.ones(len(runs)), -np.ones(int(began.sum()))])
        owner = np.concatenate([self.queue_of_job, self.queue_of_job[began]])
        order = np.argsort(times, kind="stable")
        n = len(self.queues.names)
        return self.bins.means_by(owner[order], n, times[order], changes[order])

    @cached_property
    def due(self) -> Matrix:
        """What each queue deserves: stated, or else its part by weight of the requests.

        By queue and resource (Q, R, bins).
        """
        facts, demand = self.queues, self.allocated + self.waiting
        out = np.zeros_like(demand)
        for i in self.shown:
            if facts.deserved[i].any():
                out[:, i] = facts.deserved[i][:, None]
                continue
            wanted = np.minimum(demand[:, i], facts.capability[i][:, None])
            out[:, i] = water_fill(wanted, facts.weight, float(self.total[i]))
        return out

    @cached_property
    def fairness(self) -> Fairness:
        """How fairly the queues shared the cluster, at every moment."""
        return fairness_of(self)

    def node_use(self, resource: int) -> Matrix:
        """Part of each node in use of one resource (N, bins)."""
        rows, sign = self.held
        nodes = self.outcome.snapshot.nodes
        changes = self.amounts(rows)[:, resource] * sign
        used = self.bins.means_by(self.node[rows], nodes.n, self.time[rows], changes)
        offered = nodes.allocatable[resource, : nodes.n]
        return np.asarray(used / np.where(offered > 0, offered, np.inf)[:, None])

    @cached_property
    def main_resource(self) -> int:
        """The resource with the highest use."""
        use = self.utilisation[self.shown].mean(axis=1)
        return self.shown[int(np.argmax(use))]

    def run_periods(self, runs: Sequence[JobRun]) -> Iterator[tuple[JobRun, list[list[float]]]]:
        """Yield, for some jobs, the times between which any of their pods ran."""
        rows, sign = self.held
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
        """When each job ended that finished."""
        return [run.ended for run in self.outcome.runs if run.is_finished]

    @cached_property
    def makespan(self) -> float:
        """When the last job finished; 0 if none did."""
        return max(self.ends, default=0.0)

    @cached_property
    def evictions(self) -> int:
        """How many pods were evicted."""
        return len(self.rows(EventKind.EVICT))

    @cached_property
    def mean_use(self) -> Column:
        """Part of each resource in use, from the first arrival to the last end (R,)."""
        return np.asarray(self.shares.sum(axis=0))

    @cached_property
    def shares(self) -> Matrix:
        """Part of each resource that each queue held, in the same time (Q, R)."""
        rows, sign = self.held
        left = np.maximum(self.makespan - self.time[rows], 0.0)
        used = np.zeros((len(self.queues.names), len(self.resources)))
        owner = self.queue_of_job[self.job[rows]]
        np.add.at(used, owner, self.amounts(rows) * (sign * left)[:, None])
        return used / self._offered

    @property
    def _offered(self) -> Column:
        """The cluster's capacity over its own time (R,); infinite where that is nothing."""
        offered = self.total * self.makespan
        return np.where(offered > 0, offered, np.inf)

    def waits(self, queue: str | None = None) -> Column:
        """Seconds from arrival to start of every job (of a queue) that started, sorted."""
        found = [
            run.started - run.spec.arrival
            for run in self.outcome.runs
            if not math.isnan(run.started) and queue in (None, run.spec.queue)
        ]
        return np.sort(np.array(found, dtype=float))

    @cached_property
    def bounded_slowdowns(self) -> Column:
        """(wait + run) / run of every job that finished, in the order of their arrival."""
        done = [run for run in self.outcome.runs if run.is_finished]
        spent = np.array([run.ended - run.spec.arrival for run in done], dtype=float)
        seconds = self.run_seconds[[run.number for run in done]]
        return np.maximum(spent / np.maximum(seconds, SHORTEST_RUN_S), 1.0)

    def summary(self) -> dict[str, Any]:
        """Sum up as plain data; nothing in it depends on how fast this machine is."""
        runs, cost = self.outcome.runs, self.outcome.cost
        storm = find_storm(self)
        return {
            "configuration": self.name,
            "jobs": len(runs),
            "pods": sum(run.kind.size for run in runs),
            "finished": len(self.ends),
            "unfinished": [
                {
                    "job": run.key,
                    "queue": run.spec.queue,
                    "started": not math.isnan(run.started),
                    "reason": run.reason,
                }
                for run in runs
                if not run.is_finished
            ],
            "makespan": _round(self.makespan) if self.ends else None,
            "utilisation": self._by_resource(self.mean_use),
            "wasted": self._by_resource(self.wasted / self._offered),
            "wait": spread(self.waits()),
            "bounded_slowdown": spread(np.sort(self.bounded_slowdowns)),
            "queues": {name: self._queue_summary(name) for name in self.queues.names},
            "evictions": self.evictions,
            "lost": sum(run.tally[State.LOST] for run in runs),
            "storm": None if storm is None else storm.as_data(),
            "fairness": self._fairness_summary(),
            "cycles": cost.cycles,
            "decisions": cost.decisions,
            "events": cost.events,
        }

    def _by_resource(self, parts: Column) -> dict[str, float]:
        """Name the parts of resources worth a figure; none if no time has passed."""
        shown = self.shown if self.makespan > 0 else ()
        return {self.resources[i]: _round(float(parts[i])) for i in shown}

    def _fairness_summary(self) -> dict[str, float | None]:
        """Return the mean over time, and the least mean over a 240th of it."""
        mean = self.fairness.mean
        if mean is None:
            return {"mean": None, "least": None}
        spans = self.fairness.means(TimeBins.over(self.outcome.end, N_SPANS))
        return {"mean": _round(mean), "least": _round(float(np.nanmin(spans)))}

    def _queue_summary(self, name: str) -> dict[str, Any]:
        at = self.queues.names.index(name)
        return {
            "jobs": int((self.queue_of_job == at).sum()),
            "weight": float(self.queues.weight[at]),
            "wait": spread(self.waits(name)),
            "share": {self.resources[i]: _round(float(self.shares[at, i])) for i in self.shown},
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
    """Return the cost of a simulation on this machine."""
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
