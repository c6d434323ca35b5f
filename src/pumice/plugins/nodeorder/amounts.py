"""Scores by requests: least, most and balanced, in Kubernetes' whole numbers.

Columns are computed in place and all resources together, because most of their cost is the number
of steps; a few nodes are scored in plain floats, which is several times faster.  Both do the same
operations in the same order, so the bits agree.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pumice.core.resources import CPU, MEMORY, Column, Mask
from pumice.core.shapes import Shape
from pumice.core.views import Nodes

_State = tuple[Column, Column, Column]
"""Cpu and memory with the pod on the node and defaults for missing requests; what is requested
without it; what the node offers.  Each as far as it counts (k, n)."""
_BASIC: Final = (CPU, MEMORY)


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
        kinds, balanced = self._kinds(request)
        found = []
        for row in rows:
            offer = table.allocatable[:, row].tolist()
            assumed = table.view_nonzero[:, row].tolist()
            used = table.view_used[:, row].tolist()
            kept = [kind for kind in kinds if offer[kind] > 0]
            basic = [(assumed[k] + silent[k], offer[k]) for k in kept if k in _BASIC]
            total = 0.0
            if self.least and basic:
                total += self.least * math.floor(_mean([_free(*each) for each in basic]))
            if self.most and basic:
                total += self.most * math.floor(_mean([_filled(*each) for each in basic]))
            if balanced:
                before = _balance([used[k] / offer[k] for k in kept])
                after = _balance([(used[k] + request[k]) / offer[k] for k in kept])
                total += balanced * (50 + math.floor((50 + after - before) / 2))
            found.append(total)
        return np.array(found, dtype=np.float64)

    def of_rows(self, shape: Shape, nodes: Nodes) -> Column:
        """Score some nodes, imagined ones too."""
        amounts = shape.request[:, 0].tolist()
        kinds, balanced = self._kinds(amounts)
        counted = slice(len(_BASIC)) if kinds is _BASIC else list(kinds)
        wanted = nodes.view_nonzero + shape.waiting_nonzero
        state = wanted, nodes.view_used[counted], nodes.allocatable[counted]
        request = [amounts[kind] for kind in kinds]
        offers = state[2] > 0
        if np.count_nonzero(offers) == offers.size:  # faster than asking whether all do
            return self._score(state, request, balanced)
        return self._score_by_offer(state, request, balanced, offers)

    def _score_by_offer(
        self, state: _State, request: Sequence[float], balanced: int, offers: Mask
    ) -> Column:
        """Score nodes some of which lack a resource; it does not count on those."""
        out = np.zeros(offers.shape[1])
        for offer in np.unique(offers, axis=1).T:
            here = (offers == offer[:, None]).all(axis=0)
            kept = offer.nonzero()[0]
            basic = kept[kept < len(_BASIC)]
            wanted, used, offered = (column[:, here] for column in state)
            asked = [request[kind] for kind in kept.tolist()]
            out[here] = self._score((wanted[basic], used[kept], offered[kept]), asked, balanced)
        return out

    def _kinds(self, request: Sequence[float]) -> tuple[tuple[int, ...], int]:
        """Return the resources that count, and the weight of balance, which needs a request.

        They are cpu, memory, and gpus for pods that request them.
        """
        kinds: tuple[int, ...] = _BASIC
        if self.gpu is not None and request[self.gpu] > 0:
            kinds = (*_BASIC, self.gpu)
        return kinds, self.balanced if any(request[kind] for kind in kinds) else 0

    def _score(self, state: _State, request: Sequence[float], balanced: int) -> Column:
        wanted, used, offer = state
        basic, total = offer[: len(wanted)], np.zeros(offer.shape[1])
        if self.least and len(wanted):
            total += _weighted(self.least, _mean_per_cent(_free_amounts(wanted, basic), basic))
        if self.most and len(wanted):
            total += _weighted(self.most, _mean_per_cent(np.minimum(wanted, basic), basic))
        if balanced:
            total += _weighted(balanced, _balance_change(used, request, offer))
        return total


def _mean(parts: Sequence[float]) -> float:
    return sum(parts) / len(parts)


def _free(wanted: float, offer: float) -> float:
    """Return the free part in per cent, rounded down."""
    return math.floor(max(offer - wanted, 0.0) * 100.0 / offer)


def _filled(wanted: float, offer: float) -> float:
    """Return the used part in per cent, rounded down."""
    return math.floor(min(wanted, offer) * 100.0 / offer)


def _balance(parts: Sequence[float]) -> float:
    """Return 100 for even use of all resources, less with larger differences of their shares."""
    shares = [min(part, 1.0) for part in parts]
    if len(shares) < 2:
        return 100.0
    if len(shares) == 2:
        spread = abs((shares[0] - shares[1]) / 2.0)
    else:
        mean = _mean(shares)
        spread = math.sqrt(_mean([(share - mean) * (share - mean) for share in shares]))
    return math.floor((1.0 - spread) * 100.0)


# The same on columns


def _weighted(weight: int, score: Column) -> Column:
    if weight != 1:
        score *= weight
    return score


def _free_amounts(wanted: Column, offer: Column) -> Column:
    free: Column = offer - wanted
    return np.maximum(free, 0.0, out=free)


def _mean_per_cent(part: Column, offer: Column) -> Column:
    """Return the mean of parts (k, n) of offers in per cent, rounded down before and after (n,).

    The parts are overwritten.
    """
    part *= 100.0
    part /= offer
    return _floored_mean(np.floor(part, out=part))


def _floored_mean(parts: Column) -> Column:
    mean = _mean_column(parts)
    return np.floor(mean, out=mean)


def _mean_column(parts: Column) -> Column:
    """Add up the rows of a block one after the other, and divide (…)."""
    total: Column = parts[0].copy() if len(parts) == 1 else parts[0] + parts[1]
    for part in parts[2:]:
        total += part
    total /= len(parts)
    return total


def _balance_change(used: Column, request: Sequence[float], offer: Column) -> Column:
    """Return 75 where a request leaves the balance as it is, more where it evens it out (n,)."""
    if len(request) < 2:
        return np.full(offer.shape[1], 75.0)
    more = np.zeros((len(request), 2, 1))
    more[:, 1, 0] = request
    shares = used[:, None] + more  # before and after
    shares /= offer[:, None]
    before, change = _balances(np.minimum(shares, 1.0, out=shares))
    change += 50
    change -= before
    change /= 2
    np.floor(change, out=change)
    change += 50
    return change


def _balances(shares: Column) -> Column:
    if len(shares) == 2:
        spread = np.subtract(shares[0], shares[1])
        spread /= 2.0
        np.absolute(spread, out=spread)
    else:
        shares -= _mean_column(shares)
        shares *= shares
        spread = np.sqrt(_mean_column(shares))
    np.subtract(1.0, spread, out=spread)
    spread *= 100.0
    return np.floor(spread, out=spread)
