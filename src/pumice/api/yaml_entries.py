"""One line of YAML in plain block style: the dashes of a list, a key, a value.

Used by pumice.api.yaml_blocks.  What is recognised here means the same to every parser of YAML;
the rest is named as such.
"""

import re
from enum import Enum
from typing import Any, Final

from pumice.api.yaml_nodes import plain_value

_ENTRY: Final = re.compile(
    r"(?P<dashes>(?:- )*)"
    r"(?:(?:(?P<key>[A-Za-z0-9_./](?:[^\t #:]|:(?! |$)){0,200})|"
    r"""(?P<quote>["'])(?P<quoted>[^\t"'\\]{0,200})(?P=quote)):(?: +|$))?"""
    r"(?P<value>.*)"
)
_PLAIN: Final = re.compile(
    r"(?:[A-Za-z0-9_./+~$(]|-(?=[^\t ]))(?:[^\t #:]|:(?! |$)| (?!#)|(?<! )#)*"
)
_SINGLE_QUOTED: Final = re.compile(r"'((?:[^\t']|'')*)'")
_DOUBLE_QUOTED: Final = re.compile(r'"([^\t"\\]*)"')


class Kind(Enum):
    """What the value of an entry is."""

    SCALAR = 1
    EMPTY = 2  # {} or []
    BELOW = 3  # on the lines that follow, or null
    LITERAL = 4  # text, after |
    OTHER = 5  # for the full parser
    TEXT = 6  # the line is no entry: it goes on with the value of one


SCALAR, EMPTY, BELOW, LITERAL, OTHER, TEXT = Kind
Entry = tuple[int, str | None, Kind, Any]
"""Dashes, key, kind of the value, and the value."""
_NO_ENTRY: Final[Entry] = (0, None, TEXT, None)
_SHORT: Final[dict[str, tuple[Kind, Any]]] = {
    "": (BELOW, None),
    "{}": (EMPTY, dict),
    "[]": (EMPTY, list),
    "|": (LITERAL, ""),
    "|-": (LITERAL, "-"),
    "|+": (LITERAL, "+"),
}


def entry_of(body: str) -> Entry:
    """Take a line without its indentation apart."""
    match = _ENTRY.fullmatch(body.rstrip(" "))
    if match is None:
        return _NO_ENTRY
    key, value = match["key"], match["value"]
    if key is None:
        key = match["quoted"]
    elif not isinstance(plain_value(key), str):
        return _NO_ENTRY
    dashes = len(match["dashes"]) // 2
    if key is None and value == "-":
        dashes, value = dashes + 1, ""
    if key is None and not dashes:
        return _NO_ENTRY
    return dashes, key, *(_SHORT.get(value) or _scalar(value))


def _scalar(text: str) -> tuple[Kind, Any]:
    """Return what is written as the value of an entry."""
    if _PLAIN.fullmatch(text):
        value = plain_value(text)
        return (OTHER, None) if isinstance(value, float) else (SCALAR, value)
    if match := _SINGLE_QUOTED.fullmatch(text):
        return SCALAR, match[1].replace("''", "'")
    if match := _DOUBLE_QUOTED.fullmatch(text):
        return SCALAR, match[1]
    return OTHER, None
