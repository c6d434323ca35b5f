"""The influence of other pods on a node's answer: host ports, (anti-)affinity, hard spread.

A ``Demand`` holds the counts for one kind of pod; pods with equal demands share it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.pod_terms import PodTerms, ShapeTerms, Spread
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot
from pumice.core.tables import Shape
from pumice.core.term_counts import Counter, SpreadCounter
from pumice.framework.placement.kernel import AT_MOST, NO_PODS, SOME_PODS, CountTerm, PodCounts
from pumice.plugins.predicates.reasons import REASONS, Code

Codes = NDArray[np.int16]
_CURABLE = np.array([True, *(reason.curable for reason in REASONS)])


@dataclass(frozen=True, eq=False)
class Demand:
    """The counts that decide for one kind of pod, in the order of the tests."""

    ports: tuple[Counter, ...]
    required: tuple[Counter, ...]
    is_own_neighbour: bool
    """The pod matches its own required affinity, so the first one may be placed anywhere."""
    anti: tuple[Counter, ...]
    existing: tuple[Counter, ...]
    spread: tuple[tuple[SpreadCounter, int], ...]
    """Counts, and how far a domain may exceed the least one."""

    def settle(self, codes: Codes, rows: Any) -> None:
        """Write reasons into the codes of some nodes."""
        for code, failed in self.tests(rows):
            refuse(codes, failed, code)

    def tests(self, rows: Any) -> Iterator[tuple[Code, Mask]]:
        """Mark the nodes that each count refuses, except spread."""
        for counter in self.ports:
            yield Code.PORTS, counter.at(rows) > 0
        if self.required:
            yield Code.AFFINITY, ~self._near(rows)
        for counter in self.anti:
            yield Code.ANTI_AFFINITY, counter.at(rows) > 0
        for counter in self.existing:
            yield Code.EXISTING_ANTI_AFFINITY, counter.at(rows) > 0

    @cached_property
    def _exclusive(self) -> tuple[Counter, ...]:
        """Counts that refuse a node where they are not 0."""
        return (*self.ports, *self.anti, *self.existing)

    def as_counts(self) -> PodCounts:
        """State the tests as data."""
        terms = [CountTerm(each, NO_PODS) for each in self._exclusive]
        terms += [CountTerm(each, SOME_PODS) for each in self.required]
        terms += [CountTerm(each, AT_MOST, limit) for each, limit in self.spread]
        return PodCounts(tuple(terms), self.is_own_neighbour)

    def settle_spread(self, codes: Codes, rows: Any) -> None:
        """Write reasons of hard spread; only the first failing constraint is reported."""
        if not self.spread:
            return
        found = self._spread_codes(rows)
        if not np.count_nonzero(codes):
            codes[:] = found
            return
        for code in (Code.SPREAD_LABEL, Code.SPREAD):
            refuse(codes, found == code, code)

    def _spread_codes(self, rows: Any) -> Codes:
        """Return the reason number of the first constraint that fails (n,)."""
        found: Codes | None = None
        for counter, limit in self.spread:
            domains = counter.codes[rows]
            codes = (counter.counts[domains] > limit + counter.least) * np.int16(Code.SPREAD)
            if not counter.domains.is_everywhere:
                codes[domains < 0] = Code.SPREAD_LABEL
            found = codes if found is None else np.where(found == 0, codes, found)
        return np.asarray(found)

    def _near(self, rows: Any) -> Mask:
        alone = self.is_own_neighbour and not any(counter.total for counter in self.required)
        near: Mask | None = None
        for counter in self.required:
            here = counter.codes[rows] >= 0 if alone else counter.at(rows) > 0
            near = here if near is None else near & here
        return np.asarray(near)


def refuse(codes: Codes, failed: Mask, code: Code) -> None:
    """Set a reason where there is none yet, or only one that evictions could cure."""
    if not np.count_nonzero(failed):
        return
    open_to = codes == 0 if _CURABLE[code] else _CURABLE[codes]
    codes[failed & open_to] = code


class Demands:
    """Makes the demands of pods, one for each distinct set of counts."""

    def __init__(
        self, snapshot: Snapshot, terms: PodTerms, *, ports: bool, affinity: bool, spread: bool
    ) -> None:
        self._snapshot = snapshot
        self._terms = terms
        self._ports, self._affinity, self._spread = ports, affinity, spread
        self._kept: dict[tuple[int, int], Demand | None] = {}
        self._made: dict[Any, Demand | None] = {}

    def of(self, shape: Shape, label_class: int) -> Demand | None:
        """Return the terms of a pod about its neighbours, and theirs about it; None: none."""
        try:
            return self._kept[shape.id, label_class]
        except KeyError:
            like = self._terms.like(label_class)
            made = self._make(shape, label_class) if like == label_class else self.of(shape, like)
            self._kept[shape.id, label_class] = made
            return made

    def _make(self, shape: Shape, label_class: int) -> Demand | None:
        terms = ShapeTerms()
        if shape.id in self._terms.speaking:
            terms = self._terms.book.of(shape, label_class) or terms
        ports = [self._terms.holding(each) for each in terms.ports] if self._ports else []
        required, anti, existing = [], [], []
        if self._affinity:
            matchers = [each.matcher for each in terms.required]
            required = [self._terms.matching(matchers, each.key) for each in terms.required]
            anti = [self._terms.matching([each.matcher], each.key) for each in terms.anti]
            existing = [self._terms.owning(each) for each in self._terms.binding(label_class)[0]]
        for counter in (*required, *anti, *existing):
            counter.edges = True
        own = self._means(label_class, terms)
        for counter in required:
            counter.totals = True
        spread = self._spreads(shape, label_class, terms.hard_spread) if self._spread else []
        parts = (_distinct(ports), _distinct(required), own, _distinct(anti), _distinct(existing))
        name = tuple(tuple(map(id, part)) if isinstance(part, tuple) else part for part in parts)
        whole = (*name, tuple((id(counter), limit) for counter, limit in spread))
        if whole not in self._made:
            is_empty = not (ports or required or anti or existing or spread)
            self._made[whole] = None if is_empty else Demand(*parts, spread=tuple(spread))
        return self._made[whole]

    def _means(self, label_class: int, terms: ShapeTerms) -> bool:
        known = self._snapshot.label_classes[label_class]
        return bool(terms.required) and all(
            each.matcher.means(self._terms.book, *known) for each in terms.required
        )

    def _spreads(
        self, shape: Shape, label_class: int, constraints: Iterable[Spread]
    ) -> list[tuple[SpreadCounter, int]]:
        known = self._snapshot.label_classes[label_class]
        found = []
        for each, eligible in self._terms.eligible(shape, tuple(constraints)):
            counter = self._terms.spread(each, eligible)
            limit = each.max_skew - each.matcher.means(self._terms.book, *known)
            counter.limits.add(limit)
            found.append((counter, limit))
        return found


def _distinct(counters: list[Counter]) -> tuple[Counter, ...]:
    return tuple({id(counter): counter for counter in counters}.values())
