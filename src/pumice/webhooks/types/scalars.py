"""Single values as Go reads them from JSON: accepted ones, and messages about the others."""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pumice.api.duration import DurationFormError, duration_text, nanoseconds
from pumice.api.quantity import QuantityFormError, amount
from pumice.webhooks.fields import quoted

_DIGITS: Final = "[0-9](?:_?[0-9])*"  # Go lets underscores separate digits
_FLOAT: Final = re.compile(
    rf"[+-]?(?:(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?"
    "|inf(?:inity)?|nan)",
    re.IGNORECASE,
)
_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


class GoNumberError(ValueError):
    """A text that is not a number; the message is Go's."""


def parse_float(text: str) -> float:
    """Read a floating point number.

    Raises:
        GoNumberError: not a number, or too large.
    """
    if _HEX.fullmatch(text):
        number = float.fromhex(text)
    elif _FLOAT.fullmatch(text) and not re.match(r"[+-]nan", text, re.IGNORECASE):
        number = float(text)
    else:
        raise GoNumberError(f"strconv.ParseFloat: parsing {quoted(text)}: invalid syntax")
    if math.isinf(number) and "n" not in text.lower():
        raise GoNumberError(f"strconv.ParseFloat: parsing {quoted(text)}: value out of range")
    return number


def parse_int(text: str, *, bits: int = 64) -> int:
    """Read a whole number.

    Raises:
        GoNumberError: not a number, or too large.
    """
    if _INTEGER.fullmatch(text) is None:
        raise GoNumberError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    number = int(text) if len(text) < 100 else 2**64
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise GoNumberError(f"strconv.Atoi: parsing {quoted(text)}: value out of range")
    return number


RFC_3339: Final = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:\d{2})"
"""The pattern of a time."""
_TIME: Final = re.compile(RFC_3339)
WHOLE_BITS: Final = {"int32": 31, "int64": 63, "int": 63}
"""Bits of whole numbers, without the sign."""


class MismatchError(ValueError):
    """A value of another type; ``found`` is Go's word for it."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


class RefusedError(ValueError):
    """A value that a type's own reader refuses; ends the reading of the whole object.

    ``found`` and ``wanted`` are Go's words if it is of the wrong type; otherwise ``text`` is the
    value, and ``wanted`` the type whose form it does not have.
    """

    def __init__(
        self, problem: str = "", *, found: str = "", wanted: str = "", text: str = ""
    ) -> None:
        super().__init__(problem)
        self.text = text
        self.found = found
        self.wanted = wanted


def json_name(value: Any) -> str:
    """Return Go's word for the type of a JSON value."""
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
    """Accept a string."""
    if isinstance(value, str):
        return value
    raise MismatchError(json_name(value))


def _read_yaml_text(value: Any) -> str:
    """Accept a string, or a single value in its spelling."""
    if isinstance(value, bool):
        return str(value).lower()
    return number_text(value) if isinstance(value, int | float) else read_text(value)


def read_flag(value: Any) -> bool:
    """Accept a boolean."""
    if isinstance(value, bool):
        return value
    raise MismatchError(json_name(value))


def _read_whole(kind: str) -> Callable[[Any], int]:
    bits = WHOLE_BITS[kind]

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
    """Accept an amount; return its canonical spelling."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = number_text(value)
    else:
        text = json.dumps(value)
    try:
        return str(amount(text.strip()))
    except QuantityFormError as error:
        raise RefusedError(str(error), text=text, wanted="Quantity") from None


def read_duration(value: Any) -> str:
    """Accept a duration such as ``1h30m``; return its canonical spelling."""
    if not isinstance(value, str):
        raise RefusedError(found=json_name(value), wanted="string")
    try:
        return duration_text(nanoseconds(value))
    except DurationFormError as error:
        raise RefusedError(str(error), text=value, wanted="Duration") from None


def read_time(value: Any) -> str:
    """Accept a time of day in RFC 3339."""
    if not isinstance(value, str):
        raise RefusedError(found=json_name(value), wanted="string")
    if _TIME.fullmatch(value) is None:
        quoted = json.dumps(value, ensure_ascii=False)
        layout = '"2006-01-02T15:04:05Z07:00"'
        problem = f'parsing time {quoted} as {layout}: cannot parse {quoted} as "2006"'
        raise RefusedError(problem, text=value, wanted="Time")
    return value


def read_int_or_string(value: Any) -> int | str:
    """Accept a port or the like: a number or a name."""
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
