"""What papers ask of simulations besides means: classes of jobs, users, fragments, intervals.

Everything is computed from finished measurements; no decision depends on it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np

from pumice.core.resources import Column
from pumice.sim.job_run import JobRun
from pumice.sim.measure import SHORTEST_RUN_S, Measures

WIDTHS: Final = ((1, "1"), (7, "2-7"), (31, "8-31"), (127, "32-127"), (math.inf, "128+"))
"""Classes of jobs by the number of their pods: the largest of each, and its name."""
LENGTHS: Final = (
    (600.0, "to 10 min"),
    (3600.0, "to 1 h"),
    (8 * 3600.0, "to 8 h"),
    (math.inf, "above 8 h"),
)
"""Classes of jobs by how long they run."""
CLASS_COLUMNS: Final = ("width", "length", "jobs", "mean_wait", "p95_wait", "mean_bounded_slowdown")
USER_COLUMNS: Final = ("user", "jobs", "mean_wait", "mean_bounded_slowdown")
_T975: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's quantiles at 97.5 % for 1 to 30 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the interval that holds the true one with 95 %, if values are independent."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.6g} [{self.low:.6g}, {self.high:.6g}], n = {self.n}"

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves zero out: a difference that chance hardly makes."""
        return self.low > 0 or self.high < 0


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of values and its interval by Student's distribution."""
    found = np.asarray(values, dtype=float)
    n = len(found)
    if n < 2:
        mean = float(found[0]) if n else math.nan
        return Interval(mean, math.nan, math.nan, n)
    mean, error = float(found.mean()), float(found.std(ddof=1)) / math.sqrt(n)
    half = _quantile(n - 1) * error
    return Interval(mean, mean - half, mean + half, n)


def _quantile(freedom: int) -> float:
    if freedom <= len(_T975):
        return _T975[freedom - 1]
    z = NormalDist().inv_cdf(0.975)
    return z + (z**3 + z) / (4 * freedom)


class Paired(NamedTuple):
    """Two configurations compared job by job: what each job gains or loses."""

    wait: Interval
    """Seconds that a job waits longer under the second."""
    bounded_slowdown: Interval
    earlier: int
    """Jobs that start earlier under the second."""
    later: int
    same: int


def paired(before: Measures, after: Measures) -> Paired:
    """Compare the jobs that finish under both configurations.

    Jobs of one trace depend on each other, so the intervals are those of a sample of jobs, not of
    traces; repeat with seeds for the latter.
    """
    first = {run.key: run for run in before.outcome.runs if run.is_finished}
    pairs = [
        (first[run.key], run) for run in after.outcome.runs if run.is_finished and run.key in first
    ]
    waits = [new.started - old.started for old, new in pairs]
    slower = [_slowdown(new) - _slowdown(old) for old, new in pairs]
    return Paired(
        interval(waits),
        interval(slower),
        earlier=sum(each < 0 for each in waits),
        later=sum(each > 0 for each in waits),
        same=sum(each == 0 for each in waits),
    )


def by_class(measures: Measures) -> Iterator[tuple[object, ...]]:
    """Yield a row for each class of finished jobs by width and length, as ``CLASS_COLUMNS``."""
    yield from _rows(measures, lambda run: (_class(WIDTHS, run.kind.size), _length(run)))


def by_user(measures: Measures) -> Iterator[tuple[object, ...]]:
    """Yield a row for each user with finished jobs, as ``USER_COLUMNS``."""
    for user, jobs, wait, _, slowdown in _rows(measures, lambda run: (run.spec.user,)):
        yield user, jobs, wait, slowdown


def user_fairness(measures: Measures) -> float | None:
    """Return Jain's index over the mean bounded slowdowns of users; None for fewer than two.

    1 if all users are slowed down alike, 1/k if one of k bears everything.
    """
    means = np.array([row[-1] for row in by_user(measures)], dtype=float)
    return float(means.sum() ** 2 / (len(means) * (means**2).sum())) if len(means) > 1 else None


def _rows(
    measures: Measures, group: Callable[[JobRun], tuple[str, ...]]
) -> Iterator[tuple[object, ...]]:
    found: dict[tuple[str, ...], list[JobRun]] = {}
    for run in measures.outcome.runs:
        if run.is_finished:
            found.setdefault(group(run), []).append(run)
    order = [name for _, name in (*WIDTHS, *LENGTHS)]
    place = {name: i for i, name in enumerate(order)}
    for names in sorted(found, key=lambda names: [(place.get(name, 0), name) for name in names]):
        runs = found[names]
        waits = np.array([run.started - run.spec.arrival for run in runs])
        slow = np.array([_slowdown(run) for run in runs])
        row = (float(waits.mean()), float(np.percentile(waits, 95)), float(slow.mean()))
        yield (*names, len(runs), *(round(each, 6) for each in row))


def _class(classes: Sequence[tuple[float, str]], value: float) -> str:
    return next(name for most, name in classes if value <= most)


def _length(run: JobRun) -> str:
    return _class(LENGTHS, run.spec.run_seconds)


def _slowdown(run: JobRun) -> float:
    seconds = max(run.spec.run_seconds, SHORTEST_RUN_S)
    return max((run.ended - run.spec.arrival) / seconds, 1.0)


def fragmentation(measures: Measures) -> Column:
    """Return the part of the free main resource that is too scattered for a usual pod (bins,).

    Free amounts count as scattered on a node that has less left than a pod asks for on average,
    weighted by how long pods run.  NaN where nothing is free.
    """
    resource = measures.main_resource
    nodes = measures.outcome.snapshot.nodes
    offered = nodes.allocatable[resource, : nodes.n]
    free = offered[:, None] * (1.0 - measures.node_use(resource))
    small = np.where(free < _usual_pod(measures, resource) * (1 - 1e-9), free, 0.0)
    total = free.sum(axis=0)
    return np.where(
        total > 1e-9 * offered.sum(), small.sum(axis=0) / np.maximum(total, 1e-12), np.nan
    )


def _usual_pod(measures: Measures, resource: int) -> float:
    """Return what a pod asks for on average, weighted by its run time."""
    sizes = np.array([run.kind.size for run in measures.outcome.runs], dtype=float)
    amounts = measures.job_requests[:, resource]
    weight = measures.run_seconds
    whole = float((sizes * weight).sum())
    return float((amounts * weight).sum()) / whole if whole > 0 else 0.0
