"""Shared by all readers of YAML here: the type of a plain scalar, lines, bounded nesting.

Plain scalars have the types that kubectl and Volcano give them (go-yaml version 2): YAML 1.1
without base 60 and without timestamps.
"""

import math
import re
from typing import Any, Final

import yaml

TAG: Final = "tag:yaml.org,2002:"
PLAIN: Final = "!plain"
"""The tag of a scalar without quotes and without a tag: its text decides."""
BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times faster
_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INT: Final = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_OLD_OCTAL: Final = re.compile(r"[-+]?0[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INT64: Final = 1 << 63


def line_of(node: yaml.Node) -> int:
    """Return the line on which a node starts, counted from 1."""
    return int(node.start_mark.line) + 1


def plain_value(text: str) -> Any:
    """Resolve the type of an unquoted scalar: null, bool, int, float or str.

    Unlike PyYAML, ``1e3`` is a float, ``12:30`` and ``2024-01-01`` are text, ``y`` and ``n`` are
    booleans, as in the reader that kubectl and Volcano use. An integer beyond 64 bits is a float.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    bare = text.replace("_", "")
    if _INT.fullmatch(bare) and len(bare) < 80:
        number = int(bare, 8 if _OLD_OCTAL.fullmatch(bare) else 0)
        if -_INT64 <= number < _INT64:
            return number
    if _FLOAT.fullmatch(bare) and math.isfinite(value := float(bare)):
        return value
    return text


def deep_line(text: str, most: int) -> int:
    """Return the line on which the nesting passes ``most`` levels, 0 if none does.

    A composer recurses and would crash on it. A level of a block takes a column, one of a flow a
    bracket; so most texts need no second look.
    """
    longest = max(map(len, text.splitlines()), default=0)
    if longest < most and text.count("[") + text.count("{") < most:
        return 0
    depth = 0
    for event in yaml.parse(text, Loader=BaseLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > most:
            return int(event.start_mark.line) + 1
    return 0
