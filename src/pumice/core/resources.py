"""Resource names as row numbers, and the comparisons every layer shares.

Amounts are float64: cpu in milli-units, memory in bytes, ``pods`` counted, every other scalar in
milli-units.  All tolerances live here; nothing else in Pumice compares amounts on its own.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.quantity import milli_value, value

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]

CPU, MEMORY, PODS = 0, 1, 2
STEP = 0.1
"""The smallest amount that counts: below it two amounts are equal, or an amount is nothing."""


def is_schedulable_name(name: str) -> bool:
    """Say whether a resource name takes part in scheduling at all.

    Quota keys such as ``requests.cpu`` or ``count/pods`` do not.
    """
    if name in ("cpu", "memory", "pods", "ephemeral-storage"):
        return True
    if name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "/" in name and not name.startswith(("requests.", "limits.", "count/"))


class Resources:
    """Resource name to row number; grows, never shrinks, so a row number stays valid."""

    def __init__(self) -> None:
        self.names: list[str] = ["cpu", "memory", "pods"]
        self._rows: dict[str, int] = {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def row(self, name: str) -> int | None:
        """Give the row of a known resource, None for one never seen."""
        return self._rows.get(name)

    def learn(self, names: Iterable[str]) -> bool:
        """Give every schedulable name a row; say whether there was a new one."""
        before = len(self.names)
        for name in names:
            if name not in self._rows and is_schedulable_name(name):
                self._rows[name] = len(self.names)
                self.names.append(name)
        return len(self.names) > before

    def amount(self, name: str, quantity: str | float) -> float:
        """Convert one quantity into the unit of its row."""
        return float(value(quantity) if name in ("memory", "pods") else milli_value(quantity))

    def vector(self, amounts: Mapping[str, str | int | float], missing: float = 0.0) -> Column:
        """Turn a resource list into a column (R,); unknown names must have been learnt before."""
        out = np.full(len(self.names), missing)
        for name, quantity in amounts.items():
            row = self._rows.get(name)
            if row is not None:
                out[row] = self.amount(name, quantity)
        return out

    def mask(self, names: Iterable[str]) -> Mask:
        """Mark the rows of the given names."""
        out = np.zeros(len(self.names), dtype=bool)
        for name in names:
            row = self._rows.get(name)
            if row is not None:
                out[row] = True
        return out


def fits(need: Column, room: Column) -> Mask:
    """Compare dimension by dimension: ``need`` is below ``room`` or equal within the step.

    ``need`` (R, 1) or (R,) against ``room`` (R, N) or (R,): the answer is one boolean a column.
    """
    return np.asarray(np.all(need - room < STEP, axis=0))


def is_empty(amounts: Column) -> bool:
    """Say whether nothing but ``pods`` is asked for."""
    return not bool(np.any(amounts[:PODS] >= STEP) or np.any(amounts[PODS + 1 :] >= STEP))


def within_requested(used: Column, limit: Column, request: Column) -> bool:
    """Compare only the dimensions a request names, ``pods`` left out, strictly as floats.

    This is the queue-level test (quota, admission): no tolerance.
    """
    over = (used > limit) & (request > 0)
    over[PODS] = False
    return not over.any()


def share(allocated: Column, total: Column) -> Column:
    """Divide amounts: nothing of nothing is 0, something of nothing is 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = allocated / total
    return np.where(total == 0, np.where(allocated == 0, 0.0, 1.0), ratio)


def dominant_share(amounts: Column, whole: Column) -> Column:
    """Give the largest share (n,) that (R, n) amounts have of any resource of a whole.

    Resources of which the whole has less than a step do not count.
    """
    if amounts.shape[-1] == 1:  # plain floats are three times faster than columns of one
        pairs = zip(amounts[:, 0].tolist(), whole[:, 0].tolist(), strict=True)
        return np.array(
            [max((part / all_of_it for part, all_of_it in pairs if all_of_it >= STEP), default=0.0)]
        )
    counts = whole >= STEP
    return np.asarray(np.max(np.where(counts, amounts / np.where(counts, whole, 1.0), 0.0), axis=0))


def sum_by(amounts: Column, owners: NDArray[np.integer[Any]], n_owners: int) -> Column:
    """Add (R, k) amounts up by the row that each belongs to (R, n_owners)."""
    sums = [np.bincount(owners, weights=row, minlength=n_owners) for row in amounts]
    return np.stack(sums).astype(np.float64, copy=False)


def weighted_sum(weights: Column, rows: Column) -> Column:
    """Add (R, N) rows with (R, 1) weights, always in row order.

    NumPy's own reductions round differently for one column and for many; this one does not, so an
    answer for one row equals the same row of an answer for all.
    """
    total: Column = weights[0] * rows[0]
    for k in range(1, len(rows)):
        total = total + weights[k] * rows[k]
    return total
