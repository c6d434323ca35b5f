"""Which metrics and labels a PromQL expression names."""

import re
from dataclasses import dataclass, field
from typing import Final

WORDS: Final = {"by", "without", "on", "ignoring", "group_left", "group_right"}
"""After these comes a list of labels."""
OPERATORS: Final = {"and", "or", "unless", "bool", "offset"}
_MATCHER: Final = re.compile(r'\s*(\w+)\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"\s*(?:,|$)')
_TOKEN: Final = re.compile(
    r"(?P<range>\[[^\]]*\])|(?P<matchers>\{[^}]*\})|(?P<number>\d[\w.]*)"
    r"|(?P<name>[A-Za-z_:][\w:]*)|(?P<sign>[-+*/%^()<>=!,]+?)|(?P<space>\s+)"
)


@dataclass
class Named:
    """What an expression names."""

    metrics: dict[str, set[str]] = field(default_factory=dict)
    """Each metric, with the labels that it is selected by."""
    grouped: set[str] = field(default_factory=set)
    """The labels by which series are added up or matched."""


def named(expression: str) -> Named:
    """Read an expression; raises ValueError at what is no PromQL."""
    found = Named()
    tokens = _tokens(expression)
    place = 0
    last = ""
    while place < len(tokens):
        kind, text = tokens[place]
        following = tokens[place + 1][1] if place + 1 < len(tokens) else ""
        if kind == "name" and text in WORDS:
            end = tokens.index(("sign", ")"), place)
            found.grouped |= {word for what, word in tokens[place:end] if what == "name"} - WORDS
            place = end
        elif kind == "name" and text not in OPERATORS:
            is_call = following == "(" or following in WORDS
            if not is_call:
                last = text
                found.metrics.setdefault(text, set())
        elif kind == "matchers":
            found.metrics[last] |= _labels(text[1:-1])
        place += 1
    return found


def _tokens(expression: str) -> list[tuple[str, str]]:
    tokens, place = [], 0
    while place < len(expression):
        match = _TOKEN.match(expression, place)
        if match is None:
            raise ValueError(f"{expression!r} is no PromQL from {expression[place:]!r} on")
        if match.lastgroup != "space":
            tokens.append((str(match.lastgroup), match.group()))
        place = match.end()
    return tokens


def _labels(matchers: str) -> set[str]:
    found, place = set(), 0
    while place < len(matchers):
        match = _MATCHER.match(matchers, place)
        if match is None:
            raise ValueError(f"{matchers!r} does not select by labels")
        found.add(match.group(1))
        place = match.end()
    return found
