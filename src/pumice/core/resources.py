"""Resource names as row numbers, and the comparisons every layer shares.

Amounts are float64: cpu in milli-units, memory in bytes, ``pods`` counted, every other scalar in
milli-units.  All tolerances live here; nothing else in Pumice compares amounts on its own.
Beyond ``saturate`` an amount is practically infinite: no machine has as much.
"""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.quantity import milli_value, value
from pumice.errors import InputError

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]
IndexArray = NDArray[np.intp]

CPU, MEMORY, PODS = 0, 1, 2
STEP = 0.1
"""The smallest amount that counts: below it two amounts are equal, or an amount is nothing."""
_MOST = 2.0**50
_MOST_OF_SCALAR = 2.0**60
"""The largest amounts; a scalar may count thousandths of bytes."""
_MOST_EXACT = 2.0**53
"""Sums of whole numbers below this are exact."""
_COARSE = (2.0**32, 2.0**46, 2.0**50)
"""From here on an amount is coarse: of cpu, of memory, of anything else."""


def is_schedulable_name(name: str) -> bool:
    """Return whether a resource name takes part in scheduling at all.

    Quota keys such as ``requests.cpu`` or ``count/pods`` do not, nor do memory and cores of an
    Ascend card: no node offers them, and only the allocator of cards can compare them.
    """
    if name in ("cpu", "memory", "pods", "ephemeral-storage"):
        return True
    if name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    if name.startswith("huawei.com/Ascend") and name.endswith(("-memory", "-core")):
        return False
    return "/" in name and not name.startswith(("requests.", "limits.", "count/"))


class Resources:
    """Resource name to row number; grows, never shrinks, so a row number stays valid."""

    def __init__(self) -> None:
        self.names: list[str] = ["cpu", "memory", "pods"]
        self._rows: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        self._asked: set[str] = set()
        self.most_asked = sys.maxsize
        """How many names may be known from requests alone: each costs a row in every table."""
        self.refused = False
        """Whether that was too few."""

    def __len__(self) -> int:
        return len(self.names)

    def row(self, name: str) -> int | None:
        """Return the row of a known resource, None for one never seen."""
        return self._rows.get(name)

    def learn(self, names: Collection[str], *, asked: bool = False) -> bool:
        """Add a row for every schedulable name; return whether there was a new one.

        ``asked`` means that they are requested, not that any object offers them.

        Raises:
            InputError: more names are asked for than ``most_asked``; none is learnt.
        """
        if not asked and self._asked:
            self._asked.difference_update(names)
        unheard = [name for name in names if name not in self._rows]
        if not unheard:
            return False
        new = [name for name in unheard if is_schedulable_name(name)]
        if asked and new:
            self._count_asked(new)
        for name in new:
            self._rows[name] = len(self.names)
            self.names.append(name)
        return bool(new)

    def _count_asked(self, new: list[str]) -> None:
        if len(self._asked) + len(new) > self.most_asked:
            self.refused = True
            raise InputError(
                wanted=f"at most {self.most_asked} resources that no node and no queue has",
                found=new[0],
                hint="other pods already request that many",
            )
        self._asked.update(new)

    def amount(self, name: str, quantity: str | float) -> float:
        """Convert one quantity into the unit of its row."""
        if name in ("memory", "pods"):
            return min(float(value(quantity)), _MOST)
        return min(float(milli_value(quantity)), _MOST if name == "cpu" else _MOST_OF_SCALAR)

    def vector(self, amounts: Mapping[str, str | int | float], missing: float = 0.0) -> Column:
        """Turn a resource list into a column (R,); names that were not learnt do not count."""
        out = np.full(len(self.names), missing) if missing else np.zeros(len(self.names))
        for name, quantity in amounts.items():
            row = self._rows.get(name)
            if row is not None:
                out[row] = self.amount(name, quantity)
        return out

    def vectors(self, lists: Iterable[Mapping[str, str | int | float]]) -> Column:
        """Turn resource lists into columns (R, n); equal ones, of which there are many, once."""
        distinct: dict[tuple[tuple[str, str | int | float], ...], int] = {}
        which = [distinct.setdefault((*each.items(),), len(distinct)) for each in lists]
        columns = [self.vector(dict(each)) for each in distinct]
        return np.array(columns).reshape(-1, len(self.names)).T[:, which]

    def mask(self, names: Iterable[str]) -> Mask:
        """Mark the rows of the given names."""
        out = np.zeros(len(self.names), dtype=bool)
        for name in names:
            row = self._rows.get(name)
            if row is not None:
                out[row] = True
        return out


def saturate(amounts: Column) -> Column:
    """Cut (R,) amounts to the largest allowed."""
    out = np.minimum(amounts, _MOST_OF_SCALAR)
    out[: PODS + 1] = np.minimum(out[: PODS + 1], _MOST)
    return out


def is_coarse(amounts: Column) -> bool:
    """Return whether (R,) amounts are so large that sums with them may be rounded.

    The rest after subtracting them is not exact; it must be added up again.
    """
    cpu, memory, other = _COARSE
    return bool(amounts[CPU] >= cpu or amounts[MEMORY] >= memory or np.any(amounts[PODS:] >= other))


def has_exact_sums(amounts: Column) -> bool:
    """Return whether these very amounts (R, N) are whole and add up without rounding.

    ``is_coarse`` judges an amount that is yet to be added to any number of others.
    """
    return bool((amounts % 1.0 == 0.0).all() and (amounts.sum(axis=1) < _MOST_EXACT).all())


def holds_any(few: Mask) -> bool:
    """Return whether one of a few booleans is true, a row for each resource.

    For so few a list is several times faster than ``any`` of the array.
    """
    return True in few.tolist()


def fits(need: Column, room: Column) -> Mask:
    """Compare dimension by dimension: ``need`` is below ``room`` or equal within the step.

    ``need`` (R, 1) or (R,) against ``room`` (R, N) or (R,): the answer is one boolean a column.
    """
    return np.asarray((need - room < STEP).all(axis=0))


def fits_one(need: Column, room: Column) -> bool:
    """Return whether a need (R, 1) fits into one room (R,), as ``fits`` does."""
    return False not in (need[:, 0] - room < STEP).tolist()


def need_of(request: Column) -> Column:
    """Return what must be left for a request: a scalar that is not requested fits any room.

    Cpu and memory must be available even for zero; a node may have less than none of a device.
    """
    need = request.copy()
    scalars = need[PODS:]
    scalars[scalars == 0] = -np.inf
    return need


def is_empty(amounts: Column) -> bool:
    """Return whether nothing but ``pods`` is requested."""
    return not bool(np.any(amounts[:PODS] >= STEP) or np.any(amounts[PODS + 1 :] >= STEP))


def within_requested(used: Column, limit: Column, request: Column) -> bool:
    """Compare only the dimensions a request names, ``pods`` left out, strictly as floats.

    This is the queue-level test (quota, admission): no tolerance.
    """
    over = (used > limit) & (request > 0)
    over[PODS] = False
    return not holds_any(over)


def share(allocated: Column, total: Column) -> Column:
    """Divide amounts: nothing of nothing is 0, something of nothing is 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = allocated / total
    return np.where(total == 0, np.where(allocated == 0, 0.0, 1.0), ratio)


def dominant_share(amounts: Column, whole: Column) -> Column:
    """Return the largest share (n,) that (R, n) amounts have of any resource of a whole.

    Resources of which the whole has less than a step do not count.
    """
    if amounts.shape[-1] == 1:  # plain floats are three times faster than columns of one
        return np.array([dominant_share_of_one(amounts[:, 0].tolist(), whole[:, 0].tolist())])
    counts = whole >= STEP
    return np.asarray(np.max(np.where(counts, amounts / np.where(counts, whole, 1.0), 0.0), axis=0))


def dominant_share_of_one(amounts: Sequence[float], whole: Sequence[float]) -> float:
    """Return the same for the amounts of one."""
    shares = [
        part / all_of_it
        for part, all_of_it in zip(amounts, whole, strict=True)
        if all_of_it >= STEP
    ]
    return max(shares, default=0.0)


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
