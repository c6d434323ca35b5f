"""Amounts over time: from events that add and take away to means over equal spans of time.

Pure arithmetic on columns; used by the measures.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column

Ints = NDArray[np.int32]


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
        """Return the mean of what changes add up to in each span; times in rising order."""
        if not len(times):
            return np.zeros(len(self))
        return np.diff(_integral(times, changes, self.edges)) / self.width

    def means_by(self, owner: Ints, n: int, times: Column, changes: Column) -> NDArray[np.float64]:
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
    """Integrate what changes add up to, from the beginning to some moments."""
    values = changes.cumsum()
    steps = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    last = np.clip(np.searchsorted(times, at, side="right") - 1, 0, None)
    passed = np.maximum(at - times[last], 0.0)
    return np.where(at >= times[0], steps[last] + values[last] * passed, 0.0)


def water_fill(demand: Column, weight: Column, limit: Column, whole: float) -> Column:
    """Divide a whole by weight; nobody gets more than it demands or may have (n,)."""
    wanted = np.minimum(demand, limit)
    part = np.zeros(len(demand))
    left, open_ = whole, wanted > 0
    while left > 1e-12 and open_.any():
        total = weight[open_].sum()
        if total <= 0:
            break
        step = np.minimum(wanted[open_] - part[open_], left * weight[open_] / total)
        part[open_] += step
        left -= step.sum()
        full = wanted - part <= 1e-12 * np.maximum(wanted, 1.0)
        if not (full & open_).any():
            break
        open_ &= ~full
    return part


def jain(shares: Column) -> float:
    """Return Jain's index of fairness: 1 if all are equal, 1/n if one has everything."""
    squares = float((shares**2).sum())
    return 1.0 if squares == 0 else float(shares.sum()) ** 2 / (len(shares) * squares)
