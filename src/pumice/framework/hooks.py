"""A hook: how the answers of several plugins are combined, and all else that follows from its row.

The base class of plugins declares each hook where it declares the method, in one place; binding,
checking, the documentation and the conformance tests read the row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, TypeVar, get_type_hints

import numpy as np

from pumice.core.resources import Mask, holds_any
from pumice.framework.hook_answers import Answer
from pumice.framework.refusals import PERMIT, REJECT, Refusal, Verdict

Ask = Callable[..., Any]
"""A hook of one plugin, or of all of them combined."""
Tiers = Sequence[Sequence[Ask]]
"""The plugins that answer: tiers in order, plugins of a tier in order; no tier is empty."""


@dataclass(frozen=True)
class Rule:
    """A rule that combines answers."""

    words: str
    """The rule in words."""
    bind: Callable[[Tiers], Ask]
    """Return one question that asks all of them."""


def _flat(tiers: Tiers) -> tuple[Ask, ...]:
    return tuple(ask for tier in tiers for ask in tier)


# Yes or no


def _all_agree(tiers: Tiers) -> Ask:
    """Return the first answer that is no, else True."""
    asks = _flat(tiers)
    if len(asks) == 1:
        return asks[0]

    def agree(*args: Any) -> Any:
        for ask in asks:
            answer = ask(*args)
            if not answer:
                return answer
        return True

    return agree


def _no_objection(nothing: Any, tiers: Tiers) -> Ask:
    """Return the first objection, ``nothing`` if there is none."""
    asks = _flat(tiers)

    def objection(*args: Any) -> Any:
        for ask in asks:
            answer = ask(*args)
            if answer:
                return answer
        return nothing

    return objection


def _first_reason(tiers: Tiers) -> Ask:
    """Return for each row the first reason number that is not 0."""
    asks = _flat(tiers)

    def verdict(*args: Any) -> Any:
        found: Any = 0
        for ask in asks:
            codes = ask(*args)
            if codes is not None:
                found = codes if isinstance(found, int) else np.where(found == 0, codes, found)
        return found

    return verdict


def _any(tiers: Tiers) -> Ask:
    asks = _flat(tiers)
    return lambda *args: any(ask(*args) for ask in asks)


def _first_tier_agrees(tiers: Tiers) -> Ask:
    return _all_agree(tiers[:1]) if tiers else lambda *_: False


def _vote(tiers: Tiers) -> Ask:
    def vote(*args: Any) -> Verdict:
        for tier in tiers:
            permitted = False
            for ask in tier:
                answer = ask(*args)
                if isinstance(answer, Refusal):
                    return answer
                if answer <= REJECT:
                    return False
                permitted = permitted or answer >= PERMIT
            if permitted:
                return True
        return True

    return vote


# Numbers


def _sum(tiers: Tiers) -> Ask:
    """Add the columns to a start value, one after the other: the last bits depend on the order."""
    asks = _flat(tiers)

    def add(total: Any, *args: Any) -> Any:
        for ask in asks:
            column = ask(*args)
            if column is not None:
                total = total + column
        return total

    return add


def _keys(tiers: Tiers) -> Ask:
    """List the keys of rows, to be compared in turn: one (n,) or several (k, n) of a plugin."""
    asks = _flat(tiers)

    def keys(view: Any) -> list[list[float]]:
        found: list[list[float]] = []
        for ask in asks:
            answer = np.asarray(ask(view))
            found += answer.tolist() if answer.ndim > 1 else [answer.tolist()]
        return found

    return keys


def _first_difference(tiers: Tiers) -> Ask:
    asks = _flat(tiers)
    if len(asks) == 1:
        return asks[0]

    def compare(*args: Any) -> Any:
        for ask in asks:
            order = ask(*args)
            if order:
                return order
        return 0.0

    return compare


# Victims


def _tier_intersection(tiers: Tiers) -> Ask:
    """Intersect answers within a tier; the first tier that leaves victims decides.

    Volcano: an intersection that runs empty is forgotten, and the next plugin of the tier starts
    again; only an empty answer ends a tier.
    """

    def intersect(asker: Any, candidates: list[int]) -> list[int]:
        for tier in tiers:
            kept = _intersection(tier, asker, candidates)
            if kept is not None:
                return [row for row, keep in zip(candidates, kept.tolist(), strict=True) if keep]
        return []

    return intersect


def _intersection(tier: Sequence[Ask], asker: Any, candidates: list[int]) -> Mask | None:
    kept: Mask | None = None
    for ask in tier:
        answer = ask(asker, candidates)
        if answer is None:
            continue
        mask = np.asarray(answer, dtype=bool)
        if not holds_any(mask):
            return None
        kept = mask if kept is None else kept & mask
        if not holds_any(kept):
            kept = None
    return kept


def in_unison(asks: Sequence[Ask]) -> Ask:
    """Return one question for the victims that all plugins permit; None if none judges them."""

    def permitted(asker: Any, candidates: list[int]) -> Mask | None:
        kept: Mask | None = None
        for ask in asks:
            answer = ask(asker, candidates)
            if answer is not None:
                mask = np.asarray(answer, dtype=bool)
                kept = mask if kept is None else kept & mask
        return kept

    return permitted


def _tier_union(tiers: Tiers) -> Ask:
    def union(*args: Any) -> list[int]:
        for tier in tiers:
            found = dict.fromkeys(row for ask in tier for row in ask(*args))
            if found:
                return list(found)
        return []

    return union


# Others


def _first_answer(tiers: Tiers) -> Ask:
    asks = _flat(tiers)
    return lambda *args: next((a for a in (ask(*args) for ask in asks) if a is not None), None)


def _each(tiers: Tiers) -> Ask:
    asks = _flat(tiers)

    def notify(*args: Any) -> None:
        for ask in asks:
            ask(*args)

    return notify


_AGREE, _DIFFER = "all must agree", "first difference decides"
ALL_AGREE: Final = Rule(_AGREE, _all_agree)
NO_REASON: Final = Rule(_AGREE, partial(_no_objection, None))
NO_PROBLEM: Final = Rule(_AGREE, partial(_no_objection, ""))
FIRST_REASON: Final = Rule(_AGREE, _first_reason)
ANY: Final = Rule("one yes decides", _any)
TIER_ALL: Final = Rule(
    "first tier with an answer decides, all of it must agree", _first_tier_agrees
)
VOTE: Final = Rule("a reject decides; a permit ends its tier; else yes", _vote)
SUM: Final = Rule("sum", _sum)
KEYS: Final = Rule(_DIFFER, _keys)
FIRST_DIFFERENCE: Final = Rule(_DIFFER, _first_difference)
TIER_INTERSECT: Final = Rule(
    "intersection within a tier, first tier with victims", _tier_intersection
)
TIER_UNION: Final = Rule("union within a tier, first tier with victims", _tier_union)
FIRST: Final = Rule("first answer", _first_answer)
EACH: Final = Rule("all are notified", _each)


_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class Hook:
    """One extension point."""

    method: Callable[..., Any]
    """The method of the base class: its name, signature and documentation are the hook's."""
    rule: Rule
    """How the answers of several plugins become one."""
    answer: Answer
    """The form of a valid answer, and the answer used if a plugin fails."""
    volcano: str
    """Volcano's name for it."""
    switch: str = ""
    """The key of the configuration file that turns it off; empty: cannot be turned off."""

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.method.__name__

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The types of its parameters by name."""
        types = get_type_hints(self.method)
        types.pop("return")
        return types

    @cached_property
    def unanswered(self) -> Ask:
        """The question where no plugin answers it."""
        return self.rule.bind(())


@dataclass(frozen=True)
class HookTable:
    """The hooks of a class by name, in the order of its methods."""

    rows: dict[str, Hook] = field(default_factory=dict)

    def add(
        self, rule: Rule, answer: Answer, *, volcano: str, switch: str = ""
    ) -> Callable[[_Method], _Method]:
        """Declare the method below as a hook."""

        def declare(method: _Method) -> _Method:
            self.rows[method.__name__] = Hook(method, rule, answer, volcano, switch)
            return method

        return declare
