"""Number of pods by topology domain, as columns that log the nodes whose answer a pod flips."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.labels import LabelColumn
from pumice.core.resources import IndexArray, Mask
from pumice.core.tables import Ints

Counts = NDArray[np.int64]
_TOTAL, _NO_DOMAIN = -2, -1
Log = Callable[[Any], None]


class Counter:
    """Pods in each domain (``counts[code]``), in all domains, and a zero for nodes without one.

    Rows whose answer flips between none and some are logged if ``edges`` is set; all rows are
    logged if ``totals`` is set and the first pod arrives or the last one leaves.
    """

    __slots__ = ("codes", "counts", "domains", "edges", "eligible", "followed", "staying", "totals")

    def __init__(self, domains: LabelColumn, eligible: Mask | None) -> None:
        self.domains = domains
        self.codes = domains.codes
        self.eligible = eligible
        self.counts: Counts = np.zeros(len(domains.values) + 2, dtype=np.int64)
        self.edges = self.totals = False
        self.staying = False
        """Whether pods that are terminating do not count."""
        self.followed: frozenset[int] = frozenset()
        """Label classes it counts, if they are too many to be listed."""

    def fill(self, nodes: Ints) -> None:
        """Count pods from scratch by the nodes they are on."""
        self.counts[:] = 0
        if not len(nodes):
            return
        if self.eligible is not None:
            nodes = nodes[self.eligible[nodes]]
        codes = self.codes[nodes]
        size = len(self.domains.values)
        self.counts[:size] = np.bincount(codes[codes >= 0], minlength=size)
        self.counts[_TOTAL] = self.counts[:size].sum()

    @property
    def total(self) -> int:
        """Pods in all domains."""
        return int(self.counts[_TOTAL])

    def at(self, rows: Any) -> Counts:
        """Return the count in the domain of each of some nodes; 0 where a node is in none."""
        found: Counts = self.counts[self.codes[rows]]
        return found

    def add(self, node: int, sign: int, log: Log) -> None:
        """Follow one pod that was added to a node or left it."""
        code = self.codes.item(node)
        if code < 0 or (self.eligible is not None and not self.eligible[node]):
            return
        counts = self.counts
        old = counts.item(code)
        counts[code] = old + sign
        counts[_TOTAL] += sign
        self._log(code, old, old + sign, log)

    def _log(self, code: int, old: int, new: int, log: Log) -> None:
        if self.edges and (old == 0) != (new == 0):
            _log_domain(self.domains, code, log)
        if self.totals and self.counts[_TOTAL] == max(0, new - old):
            log(np.arange(len(self.codes)))


class SpreadCounter(Counter):
    """Counts for a hard spread constraint, with the least count over its domains.

    ``limits`` holds, for each form of the question, how far a domain may exceed the least one; rows
    whose answer flips are logged.
    """

    __slots__ = ("_is_fixed", "_n_least", "_present", "least", "limits")

    def __init__(self, domains: LabelColumn, eligible: Mask, min_domains: int) -> None:
        super().__init__(domains, eligible)
        self.limits: set[int] = set()
        self.least = 0
        self._n_least = 0
        """Domains with the least count."""
        self._present = domains.codes_on(eligible)
        self._is_fixed = len(self._present) < max(1, min_domains)

    @property
    def compared(self) -> IndexArray:
        """The domains among which the least count is looked for; none if it is always 0."""
        return self._present[:0] if self._is_fixed else self._present

    def fill(self, nodes: Ints) -> None:
        """Count pods from scratch by the nodes they are on."""
        super().fill(nodes)
        self._find_least()

    def _find_least(self) -> None:
        """Take 0 while there are fewer domains than the constraint wants."""
        if not self._is_fixed:
            counts: list[int] = self.counts.take(self._present).tolist()
            self.least = min(counts)
            self._n_least = counts.count(self.least)

    def _log(self, code: int, old: int, new: int, log: Log) -> None:
        before = self.least
        if not self._is_fixed:
            self._follow_least(old, new)
        if self.least == before:
            for limit in self.limits:
                if (old - before > limit) != (new - before > limit):
                    _log_domain(self.domains, code, log)
                    break
        else:
            self._log_all(code, old, before, log)

    def _follow_least(self, old: int, new: int) -> None:
        """Follow one domain; all are looked at only if the last of the least ones grew."""
        if new < self.least:
            self.least, self._n_least = new, 1
        elif new == self.least:
            self._n_least += 1
        elif old == self.least:
            self._n_least -= 1
            if not self._n_least:
                self._find_least()

    def _log_all(self, code: int, old: int, before: int, log: Log) -> None:
        """Log the rows of all domains whose answer flips: one grew or shrank, and the least did."""
        now = self.counts[:_TOTAL]
        then = now.copy()
        then[code] = old
        flipped = np.zeros(len(self.counts), dtype=bool)
        for limit in self.limits:
            flipped[:_TOTAL] |= (then > limit + before) != (now > limit + self.least)
        if len(self.domains.rows_of(code)) == 1:
            flipped[code] = False  # the node that moved is logged already
        rows = flipped.take(self.codes).nonzero()[0]
        if len(rows):
            log(rows)


def _log_domain(domains: LabelColumn, code: int, log: Log) -> None:
    rows = domains.rows_of(code)
    if len(rows) > 1:  # the node that moved is logged already
        log(rows)
