"""Scores by requests: least, most and balanced, in Kubernetes' whole numbers.

Columns are computed in place and all resources together, because most of their cost is the number
of steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pumice.core.resources import CPU, MEMORY, Column, Mask
from pumice.core.tables import Shape
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

    def of(self, shape: Shape, nodes: Nodes) -> Column:
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
