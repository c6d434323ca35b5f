"""What filters, scores and ``rank_nodes`` answer, stated as data by ``Plugin.node_terms``.

The kernel computes these terms by itself, in the order of operations of the hooks they stand for.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pumice.core.labels import LabelColumn
from pumice.core.term_counts import Counter

END: Final = 0.0
_POD_LIMIT, _REQUESTED, _PACKED, _STRATEGY = 1.0, 2.0, 3.0, 4.0
NO_PODS, SOME_PODS, AT_MOST = range(3)
"""What a count must be: 0, above 0, or at most so many above the least one."""
TO_BEST, TO_WORST, STRETCHED, SPREAD = range(4)
"""How candidates are compared: by a number that is good or bad, by counts, by counts in domains."""


class AmountTerm(NamedTuple):
    """A refusal or a score that follows from the amounts of a node."""

    is_score: bool
    numbers: tuple[float, ...]
    """Its kind and parameters, as kernel.c reads them."""


class CountTerm(NamedTuple):
    """A refusal by the number of pods in the domain of a node."""

    counter: Counter
    rule: int
    skew: int = 0


class PodCounts(NamedTuple):
    """The refusals of a task by counts."""

    counts: tuple[CountTerm, ...]
    own_neighbour: bool
    """Whether the first pod may be anywhere although it wants to be near its own kind."""


class RankPart(NamedTuple):
    """Pods in the domain of a node, which a score adds up."""

    counter: Counter
    factor: int
    """The weight, or ``maxSkew``."""
    domains: LabelColumn
    """The label, in a score of spread."""


class RankTerm(NamedTuple):
    """A score that compares candidates with each other, 0 to 100 times its weight."""

    kind: int
    weight: int
    raw: NDArray[np.integer[Any] | np.bool_] | None = None
    """A number of each node; for a score of spread whether it has all labels, None: all (n,)."""
    parts: tuple[RankPart, ...] = ()


NodeTerm = AmountTerm | PodCounts | RankTerm

POD_LIMIT: Final = AmountTerm(is_score=False, numbers=(_POD_LIMIT,))
"""Refuse nodes that hold as many pods as they may."""


def requested_score(least: int, most: int, balanced: int, gpu: int | None) -> AmountTerm:
    """Score free, used and evenly used amounts as Kubernetes does; ``gpu`` is a resource row."""
    numbers = (_REQUESTED, least, most, balanced, -1 if gpu is None else gpu)
    return AmountTerm(is_score=True, numbers=numbers)


def packed_score(weight: int, total: float, rows: Iterable[tuple[int, float]]) -> AmountTerm:
    """Score the use of some resources (row, weight) after placement; overflow scores nothing."""
    flat = [number for pair in rows for number in pair]
    return AmountTerm(is_score=True, numbers=(_PACKED, weight, total, len(flat) // 2, *flat))


def strategy_score(
    scale: float, total: float, rules: Iterable[tuple[int, float, bool]]
) -> AmountTerm:
    """Score by rules (row, weight, whether high use is good); overflow scores nothing."""
    flat = [float(number) for rule in rules for number in rule]
    return AmountTerm(is_score=True, numbers=(_STRATEGY, scale, total, len(flat) // 3, *flat))
