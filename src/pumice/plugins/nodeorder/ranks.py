"""Scores that compare candidates: node affinity, taints, preferences about neighbours, soft spread.

Each holds the data of one kind of pod; ``of`` scores some candidate nodes, None if all are equal.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pumice.core.labels import LabelColumn
from pumice.core.resources import Column
from pumice.core.tables import Ints
from pumice.core.term_counts import Counter
from pumice.framework.placement.kernel import (
    SPREAD,
    STRETCHED,
    TO_BEST,
    TO_WORST,
    RankPart,
    RankTerm,
)


class Rank(Protocol):
    """One score over candidates."""

    def of(self, rows: Any) -> Column | None:
        """Score candidate nodes from 0 to 100 in whole numbers, times the weight."""

    def as_term(self) -> RankTerm:
        """State the same as data."""


@dataclass(frozen=True)
class ByNodeAffinity:
    """Sum of the weights of preferred node affinity terms, scaled by the best candidate."""

    weight: int
    raw: Ints

    def of(self, rows: Any) -> Column | None:
        """Scale to the best."""
        raw = self.raw[rows].astype(np.float64)
        best = raw.max(initial=0.0)
        return None if best <= 0 else self.weight * np.floor(100.0 * raw / best)

    def as_term(self) -> RankTerm:
        """State it."""
        return RankTerm(TO_BEST, self.weight, self.raw)


@dataclass(frozen=True)
class ByTaints:
    """Number of PreferNoSchedule taints that are not tolerated; none is best."""

    weight: int
    raw: Ints

    def of(self, rows: Any) -> Column | None:
        """Scale to the worst."""
        raw = self.raw[rows].astype(np.float64)
        worst = raw.max(initial=0.0)
        if worst <= 0:
            return None
        return self.weight * (100.0 - np.floor(100.0 * raw / worst))

    def as_term(self) -> RankTerm:
        """State it."""
        return RankTerm(TO_WORST, self.weight, self.raw)


@dataclass(frozen=True)
class ByNeighbours:
    """Preferences of a pod about others, and of others about it, weighted and counted by domain."""

    weight: int
    wishes: Sequence[tuple[int, Counter]]

    def of(self, rows: Any) -> Column | None:
        """Stretch from the worst to the best."""
        raw: Any = None
        for weight, counter in self.wishes:
            if counter.total:
                here = weight * counter.at(rows)
                raw = here if raw is None else raw + here
        if raw is None or not len(raw):
            return None
        low, high = int(raw.min()), int(raw.max())
        if low == high:
            return None
        return self.weight * np.floor(100.0 * ((raw - low) / (high - low)))

    def as_term(self) -> RankTerm:
        """State it."""
        parts = (RankPart(counter, weight, counter.domains) for weight, counter in self.wishes)
        return RankTerm(STRETCHED, self.weight, parts=tuple(parts))


@dataclass(frozen=True)
class SoftSpread:
    """One soft constraint: the domains of its label, and matching pods counted."""

    domains: LabelColumn
    counter: Counter
    max_skew: int


@dataclass(frozen=True)
class BySpread:
    """Matching pods in the domains of soft spread constraints; fewer are better."""

    weight: int
    constraints: Sequence[SoftSpread]

    def of(self, rows: Any) -> Column | None:
        """Reverse counts; a node without one of the labels gets nothing."""
        domains = [each.domains.codes[rows] for each in self.constraints]
        placed = np.logical_and.reduce([codes >= 0 for codes in domains])
        if not placed.any():
            return None
        raw = np.zeros(len(placed))
        for each, codes in zip(self.constraints, domains, strict=True):
            scale = math.log(len(np.unique(codes[placed])) + 2)
            raw = raw + (each.counter.at(rows) * scale + (each.max_skew - 1))
        raw = np.floor(raw + 0.5)
        low, high = raw[placed].min(), raw[placed].max()
        turned = 100.0 if high == 0 else np.floor(100.0 * (high + low - raw) / high)
        return self.weight * np.where(placed, turned, 0.0)

    def as_term(self) -> RankTerm:
        """State it."""
        parts = [RankPart(each.counter, each.max_skew, each.domains) for each in self.constraints]
        placed = np.logical_and.reduce([each.domains.codes >= 0 for each in parts])
        return RankTerm(SPREAD, self.weight, None if placed.all() else placed, tuple(parts))
