"""Conditions about figures before and after a change: ``evictions>10``, ``wait.p99 <= 1.05 * old``.

One language for `--fail-on`, `--require` and the constraints of a search.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pumice.api.duration import parse_duration
from pumice.api.wording import name_hint, span
from pumice.errors import InputError

_CONDITION: Final = re.compile(r"([a-z0-9.-]+(?:@[^\s<>=]+)?)\s*(?:(>=|<=|>|<)\s*(.+))?")
_OLD: Final = re.compile(r"old|(\S+?)\s*(?:x|\*\s*old)|old\s*\*\s*(\S+)")
_COMPARES: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_TIMED: Final = ("wait.", "settles", "makespan")
_EXAMPLES: Final = "such as gangs-broken, evictions>10, wait.p95>1.2x, wait.p99 <= 1.05 * old"


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A figure compared with a number, or with a multiple of the same figure before the change."""

    text: str
    figure: str
    compares: Callable[[float, float], bool]
    number: float
    is_ratio: bool = False
    """Whether the number is a multiple of the figure before the change."""

    def limit(self, before: Mapping[str, float]) -> float:
        """Return the number to compare with."""
        if not self.is_ratio:
            return self.number
        old = _figure(before, self.figure)
        return old * self.number if old else 0.0  # a multiple of what has no end has none either

    def is_met(self, before: Mapping[str, float], after: Mapping[str, float]) -> bool:
        """Return whether it holds after a change.

        Raises:
            InputError: there is no such figure.
        """
        return self.compares(_figure(after, self.figure), self.limit(before))

    def words(self, before: Mapping[str, float], after: Mapping[str, float]) -> str:
        """Return the condition with the figures of both sides."""
        right, left = (figure_words(self.figure, side[self.figure]) for side in (after, before))
        return f"{self.text}: {right}, before {left}"


def figure_words(figure: str, number: float) -> str:
    """Write a figure for people."""
    if not figure.startswith(_TIMED):
        return f"{number:g}"
    return "not within sight" if math.isinf(number) else span(number)


def _figure(figures: Mapping[str, float], name: str) -> float:
    if name not in figures:
        raise InputError(wanted="a known figure", found=name, hint=name_hint(name, figures))
    return figures[name]


def conditions(text: str, figures: Iterable[str]) -> list[Condition]:
    """Read conditions that commas separate, such as ``gangs-broken, wait.p95>1.2x``.

    A figure is one of the given, or part of one: ``utilisation.cpu``, ``wait.p99@queue``.

    Raises:
        InputError: One is not a figure with a bound.
    """
    known = [*figures]
    return [_condition(part.strip(), known) for part in text.split(",") if part.strip()]


def _condition(text: str, known: list[str]) -> Condition:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise InputError(wanted=f"conditions {_EXAMPLES}", found=text)
    figure, sign, right = found.groups()
    base = figure.partition("@")[0]
    if not {figure, base, f"{base.partition('.')[0]}."} & {*known}:
        listed = [name for name in known if not name.endswith(".")]
        hint = name_hint(figure, listed)
        raise InputError(wanted=f"one of {', '.join(listed)}", found=figure, hint=hint)
    if not sign:
        return Condition(text=text, figure=figure, compares=operator.gt, number=0.0)
    old = _OLD.fullmatch(right.strip())
    if old is None:
        value = _number(right.strip(), is_time=figure.startswith(_TIMED))
    else:
        value = _number(old[1] or old[2] or "1", is_time=False)
    return Condition(
        text=text,
        figure=figure,
        compares=_COMPARES[sign],
        number=value,
        is_ratio=old is not None,
    )


def _number(text: str, *, is_time: bool) -> float:
    with suppress(ValueError):
        value = float(text)
        if 0 <= value < math.inf:
            return value
    if is_time:
        return parse_duration(text)
    raise InputError(wanted="a number of 0 or more", found=text)
