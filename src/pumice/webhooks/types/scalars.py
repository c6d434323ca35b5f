"""Single values as Go reads them from JSON: which are taken, and what is said about the others."""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pumice.api.quantity import QuantityFormError, amount

_UNITS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6,
    "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_DIGITS: Final = 19  # more are never needed: a duration has 63 bits
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:\d{2})")
_RANGE: Final = {"int32": 31, "int64": 63, "int": 63}


class MismatchError(ValueError):
    """A value of another type; ``found`` is Go's word for it."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


class RefusedError(ValueError):
    """A value that a type's own reader refuses; ends the reading of the whole object.

    ``found`` and ``wanted`` are Go's words if it is of the wrong type.
    """

    def __init__(self, problem: str = "", *, found: str = "", wanted: str = "") -> None:
        super().__init__(problem)
        self.found = found
        self.wanted = wanted


def json_name(value: Any) -> str:
    """Give Go's word for the type of a JSON value."""
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    if isinstance(value, bool | str):
        return "bool" if isinstance(value, bool) else "string"
    return "number"


def number_text(value: float) -> str:
    """Write a number as Go's JSON does."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return "null"
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" in text:
        digits, _, exponent = text.partition("e")
        return f"{digits}e{int(exponent):+03d}" if abs(value) >= 1 else f"{digits}e{int(exponent)}"
    return text


def read_text(value: Any) -> str:
    """Take a string."""
    if isinstance(value, str):
        return value
    raise MismatchError(json_name(value))


def _read_yaml_text(value: Any) -> str:
    """Take a string, or a single value in its spelling."""
    if isinstance(value, bool):
        return str(value).lower()
    return number_text(value) if isinstance(value, int | float) else read_text(value)


def read_flag(value: Any) -> bool:
    """Take a boolean."""
    if isinstance(value, bool):
        return value
    raise MismatchError(json_name(value))


def _read_whole(kind: str) -> Callable[[Any], int]:
    bits = _RANGE[kind]

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise MismatchError(json_name(value))
        whole = int(value) if isinstance(value, float) and _is_whole(value) else value
        if isinstance(whole, float) or not -(1 << bits) <= whole < 1 << bits:
            raise MismatchError(f"number {number_text(value)}")
        return whole

    return read


def _is_whole(value: float) -> bool:
    return math.isfinite(value) and value.is_integer() and abs(value) < 1e21


def read_quantity(value: Any) -> str:
    """Take an amount; gives its canonical spelling."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = number_text(value)
    else:
        text = json.dumps(value)
    try:
        return str(amount(text.strip()))
    except QuantityFormError as error:
        raise RefusedError(str(error)) from None


def read_duration(value: Any) -> str:
    """Take a duration such as ``1h30m``; gives its canonical spelling."""
    if not isinstance(value, str):
        raise RefusedError(found=json_name(value), wanted="string")
    return duration_text(_nanoseconds(value))


def _nanoseconds(text: str) -> int:
    quoted = json.dumps(text, ensure_ascii=False)
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total = 0
    position = 0
    if not rest:
        raise RefusedError(f"time: invalid duration {quoted}")
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None or not (match[1] or match[2]):
            raise RefusedError(f"time: invalid duration {quoted}")
        whole, part, unit = match[1].lstrip("0") or "0", (match[2] or "")[:_DIGITS], match[3]
        if not unit:
            raise RefusedError(f"time: missing unit in duration {quoted}")
        if unit not in _UNITS:
            raise RefusedError(f"time: unknown unit {json.dumps(unit)} in duration {quoted}")
        if len(whole) <= _DIGITS:
            total += int(whole + part) * _UNITS[unit] // 10 ** len(part)
        if len(whole) > _DIGITS or total > 1 << 63:
            raise RefusedError(f"time: invalid duration {quoted}")
        position = match.end()
    total = -total if text.startswith("-") else total
    if total >= 1 << 63:
        raise RefusedError(f"time: invalid duration {quoted}")
    return total


def duration_text(nanoseconds: int) -> str:
    """Write a duration as Go does: ``90s`` is ``1m30s``."""
    size = abs(nanoseconds)
    sign = "-" if nanoseconds < 0 else ""
    if size == 0:
        return "0s"
    if size < 10**9:
        for unit, scale in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
            if size < scale * 1000:
                return f"{sign}{_trimmed(size, scale)}{unit}"
    minutes, rest = divmod(size, 60 * 10**9)
    seconds = f"{_trimmed(rest, 10**9)}s"
    if not minutes:
        return f"{sign}{seconds}"
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{f'{hours}h' if hours else ''}{minutes}m{seconds}"


def _trimmed(size: int, scale: int) -> str:
    whole, part = divmod(size, scale)
    if not part:
        return str(whole)
    digits = str(part).zfill(len(str(scale)) - 1).rstrip("0")
    return f"{whole}.{digits}"


def read_time(value: Any) -> str:
    """Take a time of day in RFC 3339."""
    if not isinstance(value, str):
        raise RefusedError(found=json_name(value), wanted="string")
    if _TIME.fullmatch(value) is None:
        quoted = json.dumps(value, ensure_ascii=False)
        layout = '"2006-01-02T15:04:05Z07:00"'
        raise RefusedError(f'parsing time {quoted} as {layout}: cannot parse {quoted} as "2006"')
    return value


def read_int_or_string(value: Any) -> int | str:
    """Take a port or the like: a number or a name."""
    if isinstance(value, str):
        return value
    try:
        return READERS["int32"](value)
    except MismatchError as error:
        raise RefusedError(found=error.found, wanted="int32") from None


READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": read_text,
    "bool": read_flag,
    "int32": _read_whole("int32"),
    "int64": _read_whole("int64"),
    "int": _read_whole("int"),
    "Quantity": read_quantity,
    "Duration": read_duration,
    "Time": read_time,
    "IntOrString": read_int_or_string,
    "any": lambda value: value,
}
YAML_READERS: Final = {**READERS, "string": _read_yaml_text}
ZERO: Final[Mapping[str, Any]] = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "int": 0,
    "Quantity": "0", "Duration": "0s", "Time": None, "IntOrString": 0, "any": None,
}  # fmt: skip
STRUCTS: Final = frozenset({"Quantity", "Duration", "Time", "IntOrString"})
"""Scalars that are structs to Go: ``omitempty`` does not leave them out."""
