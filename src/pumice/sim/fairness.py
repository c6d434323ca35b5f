"""How fairly a cluster was divided among its queues, and means of amounts over time.

The one definition of fairness, for `pumice sim` and `pumice sweep`: Jain's index over what queues
hold of their share.  Amounts are dominant shares; the share is the cluster divided by weight, for
no queue more than it asks for.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column
from pumice.sim.event_log import EventKind
from pumice.sim.log_columns import LogColumns

Ints = NDArray[np.int32]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TimeBins:
    """Equal spans that cover a simulation."""

    edges: Column

    @classmethod
    def over(cls, end: float, n: int) -> "TimeBins":
        """Divide the time from 0 to an end."""
        return cls(np.linspace(0.0, max(end, 1.0), n + 1))

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def width(self) -> float:
        """Seconds of one span."""
        return float(self.edges[1] - self.edges[0])

    def means(self, times: Column, changes: Column) -> Column:
        """Return the mean of the accumulated changes in each span; times in rising order."""
        if not len(times):
            return np.zeros(len(self))
        return np.diff(_integral(times, changes, self.edges)) / self.width

    def means_by(self, owner: Ints, n: int, times: Column, changes: Column) -> Matrix:
        """Return the means of n owners at once (n, spans); the order of times is kept for each."""
        out = np.zeros((n, len(self)))
        order = np.argsort(owner, kind="stable")
        bounds = np.searchsorted(owner[order], np.arange(n + 1))
        for i in range(n):
            rows = order[bounds[i] : bounds[i + 1]]
            if len(rows):
                out[i] = self.means(times[rows], changes[rows])
        return out


def _integral(times: Column, changes: Column, at: Column) -> Column:
    """Integrate the accumulated changes, from the beginning to some moments."""
    values = changes.cumsum()
    steps = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    last = np.clip(np.searchsorted(times, at, side="right") - 1, 0, None)
    passed = np.maximum(at - times[last], 0.0)
    return np.where(at >= times[0], steps[last] + values[last] * passed, 0.0)


def water_fill(demand: Matrix, weight: Column, whole: float) -> Matrix:
    """Divide a whole by weight at each moment; none gets more than it demands (Q, n)."""
    part = np.zeros_like(demand)
    left = np.full(demand.shape[1], whole)
    is_open = (demand > 0) & (weight[:, None] > 0)
    while (is_open.any(axis=0) & (left > 1e-12)).any():
        weights = (weight[:, None] * is_open).sum(axis=0)
        offer = left / np.where(weights > 0, weights, 1.0) * weight[:, None]
        step = np.where(is_open, np.minimum(demand - part, offer), 0.0)
        part += step
        left = left - step.sum(axis=0)
        is_full = is_open & (demand - part <= 1e-12 * np.maximum(demand, 1.0))
        left[~is_full.any(axis=0)] = 0.0  # all open queues took their offer
        is_open &= ~is_full
    return part


_CELLS = 1 << 21
"""Cells that are processed at once, so that memory does not grow with the log."""
_NOTHING = 1e-9
"""Part of the cluster below which a queue asks for nothing: the rest of a sum."""


@dataclass(frozen=True, slots=True)
class Fairness:
    """The index as steps: ``index[i]`` holds from ``edges[i]`` on; NaN: fewer than two ask."""

    edges: Column
    index: Column

    @property
    def mean(self) -> float | None:
        """The mean over the time in which two queues or more ask; None if there is none."""
        index, counted = self._integrals()
        return float(index[-1] / counted[-1]) if counted[-1] > 0 else None

    def means(self, bins: TimeBins) -> Column:
        """Return the means over spans of time (bins,); NaN where fewer than two queues ask."""
        index, counted = (
            np.diff(np.interp(bins.edges, self.edges, integral)) for integral in self._integrals()
        )
        return np.where(counted > 0, index / np.where(counted > 0, counted, 1.0), np.nan)

    def _integrals(self) -> tuple[Column, Column]:
        """Integrate the index, and the time for which there is one, up to each edge."""
        seconds = np.diff(self.edges)
        is_known = ~np.isnan(self.index)
        return (
            _sums(np.where(is_known, self.index, 0.0) * seconds),
            _sums(np.where(is_known, seconds, 0.0)),
        )


def _sums(values: Column) -> Column:
    return np.concatenate([[0.0], values.cumsum()])


def fairness_of(log: LogColumns) -> Fairness:
    """Compute the index from a log, moment by moment; unknown throughout if nothing ever ran."""
    moments, step = np.unique(log.time, return_inverse=True)
    edges = np.append(moments, max(log.outcome.end, moments[-1]))
    index = np.full(len(moments), np.nan)
    if not len(log.held[0]):
        return Fairness(edges, index)
    held, asked = _changes(log)
    n_queues, n_resources = len(log.queues.names), len(log.shown)
    at_once = max(1, _CELLS // (n_queues * n_resources))
    owner = log.queue_of_job[log.job]
    levels = np.zeros((2, n_resources, n_queues))
    for first in range(0, len(moments), at_once):
        n = min(at_once, len(moments) - first)
        rows = slice(*np.searchsorted(step, [first, first + n]))
        cells = owner[rows] * n + step[rows] - first
        has, asks = (
            _dominant(levels[i], cells, changes[rows], n) for i, changes in enumerate((held, asked))
        )
        index[first : first + n] = jain_indices(has, asks, log.queues.weight)
    return Fairness(edges, index)


def _changes(log: LogColumns) -> tuple[Matrix, Matrix]:
    """Return the change of held and requested amounts by each row of the log, in parts of all."""
    whole = np.where(log.total > 0, log.total, np.inf)[log.shown]
    held, asked = (np.zeros((len(log.time), len(log.shown))) for _ in range(2))
    rows, sign = log.held
    held[rows] = log.amounts(rows)[:, log.shown] * sign[:, None] / whole
    come, gone = log.rows(EventKind.ARRIVE), log.rows(EventKind.FINISH, EventKind.LOSE)
    asked[come] = log.job_requests[log.job[come]][:, log.shown] / whole
    asked[gone] = -log.amounts(gone)[:, log.shown] / whole
    return held, asked


def _dominant(levels: Matrix, cells: NDArray[np.intp], changes: Matrix, n: int) -> Matrix:
    """Return the largest share of each queue after each of n moments (Q, n); ``levels`` move on."""
    n_queues = levels.shape[1]
    largest = np.zeros((n_queues, n))
    for resource, level in enumerate(levels):
        added = np.bincount(cells, changes[:, resource], n_queues * n).reshape(n_queues, n)
        amounts = level[:, None] + added.cumsum(axis=1)
        level[:] = amounts[:, -1]
        np.maximum(largest, amounts, out=largest)
    return largest


def jain_indices(has: Matrix, asks: Matrix, weight: Column) -> Column:
    """Return Jain's index over what queues have of their share (n,); NaN where fewer than two ask.

    1 if all that ask get the same part of their share, 1/k if one of k has everything.
    """
    is_asking = asks > _NOTHING
    due = water_fill(np.where(is_asking, asks, 0.0), weight, 1.0)
    part = np.where(is_asking, has, 0.0) / np.where(is_asking, np.maximum(due, 1e-12), 1.0)
    total, squares, n = part.sum(axis=0), (part**2).sum(axis=0), is_asking.sum(axis=0)
    index = np.where(squares > 0, total**2 / np.where(squares > 0, n * squares, 1.0), 1.0)
    return np.where(n > 1, index, np.nan)
