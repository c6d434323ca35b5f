"""Scores by requests: least, most and balanced, in Kubernetes' whole numbers.

The formulas are written once and run on columns or, for a single node, on plain floats, which is
several times faster; both do the same operations in the same order, so the bits agree.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pumice.core.resources import CPU, MEMORY, Column, Mask
from pumice.core.shapes import Shape
from pumice.core.views import Nodes

Amount = Any
"""A float or a column of floats."""

_State = tuple[Any, Any, Any]
"""By resource: cpu and memory with the pod on the node and defaults for missing requests; what
is requested without it; what the node offers."""


@dataclass(frozen=True)
class _Maths:
    """The operations that differ between floats and columns."""

    floor: Callable[[Amount], Amount]
    least_of: Callable[[Amount, Amount], Amount]
    most_of: Callable[[Amount, Amount], Amount]
    root: Callable[[Amount], Amount]


_FLOATS: Final = _Maths(math.floor, min, max, math.sqrt)
_COLUMNS: Final = _Maths(np.floor, np.minimum, np.maximum, np.sqrt)


@dataclass(frozen=True)
class AmountScores:
    """Least, most and balanced with their weights; ``gpu`` is the row of that resource."""

    least: int
    most: int
    balanced: int
    gpu: int | None

    def of_few(self, shape: Shape, nodes: Nodes, rows: Iterable[int]) -> Column:
        """Score a few nodes, one by one."""
        table = nodes.snapshot.nodes
        request: list[float] = shape.request[:, 0].tolist()
        silent: list[float] = shape.waiting_nonzero[:, 0].tolist()
        kinds = self._kinds(request)
        found = []
        for row in rows:
            capacity = table.allocatable[:, row].tolist()
            assumed = table.view_nonzero[:, row].tolist()
            wanted = (assumed[CPU] + silent[CPU], assumed[MEMORY] + silent[MEMORY])
            state = (wanted, table.view_used[:, row].tolist(), capacity)
            kept = [kind for kind in kinds if capacity[kind] > 0]
            found.append(self._score(state, request, kept, _FLOATS))
        return np.array(found, dtype=np.float64)

    def of_rows(self, shape: Shape, nodes: Nodes) -> Column:
        """Score some nodes, imagined ones too."""
        capacity = nodes.allocatable
        wanted = nodes.view_nonzero + shape.waiting_nonzero
        used = nodes.view_used
        request = shape.request[:, 0].tolist()
        kinds = self._kinds(request)
        there = capacity[list(kinds)] > 0
        if there.all():
            found: Column = self._score((wanted, used, capacity), request, kinds, _COLUMNS)
            return found
        return self._score_by_offer((wanted, used, capacity), request, kinds, there)

    def _score_by_offer(
        self, state: _State, request: Sequence[float], kinds: Sequence[int], offers: Mask
    ) -> Column:
        """Score nodes some of which lack a resource; it does not count on those."""
        out = np.zeros(offers.shape[1])
        for offer in np.unique(offers, axis=1).T:
            here = (offers == offer[:, None]).all(axis=0)
            kept = [kind for kind, is_there in zip(kinds, offer.tolist(), strict=True) if is_there]
            parts = (state[0][:, here], state[1][:, here], state[2][:, here])
            out[here] = self._score(parts, request, kept, _COLUMNS)
        return out

    def _kinds(self, request: Sequence[float]) -> Sequence[int]:
        """List the resources that count: cpu, memory, and gpus for pods that request them."""
        if self.gpu is not None and request[self.gpu] > 0:
            return (CPU, MEMORY, self.gpu)
        return (CPU, MEMORY)

    def _score(
        self, state: _State, request: Sequence[float], kinds: Sequence[int], maths: _Maths
    ) -> Amount:
        wanted, used, capacity = state
        basic = [kind for kind in kinds if kind in (CPU, MEMORY)]
        total: Amount = 0.0 * wanted[CPU]
        if self.least and basic:
            parts = [_least(wanted[k], capacity[k], maths) for k in basic]
            total = total + self.least * maths.floor(sum(parts) / len(parts))
        if self.most and basic:
            parts = [_most(wanted[k], capacity[k], maths) for k in basic]
            total = total + self.most * maths.floor(sum(parts) / len(parts))
        if self.balanced and any(request[k] for k in self._kinds(request)):
            before = _balance([used[k] / capacity[k] for k in kinds], maths)
            after = _balance([(used[k] + request[k]) / capacity[k] for k in kinds], maths)
            total = total + self.balanced * (50 + maths.floor((50 + after - before) / 2))
        return total


def _least(wanted: Amount, capacity: Amount, maths: _Maths) -> Amount:
    """Return the free part in per cent, rounded down."""
    return maths.floor(maths.most_of(capacity - wanted, 0.0) * 100.0 / capacity)


def _most(wanted: Amount, capacity: Amount, maths: _Maths) -> Amount:
    """Return the used part in per cent, rounded down."""
    return maths.floor(maths.least_of(wanted, capacity) * 100.0 / capacity)


def _balance(parts: Sequence[Amount], maths: _Maths) -> Amount:
    """Return 100 for even use of all resources, less with larger differences of their shares."""
    shares = [maths.least_of(part, 1.0) for part in parts]
    if len(shares) < 2:
        return 100.0
    if len(shares) == 2:
        spread = abs((shares[0] - shares[1]) / 2.0)
    else:
        mean = sum(shares) / len(shares)
        squares = sum((share - mean) * (share - mean) for share in shares)
        spread = maths.root(squares / len(shares))
    return maths.floor((1.0 - spread) * 100.0)
