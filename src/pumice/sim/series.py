"""Amounts over time: from changes to means over equal spans of time.

Pure arithmetic on columns; used by the measures.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column

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
