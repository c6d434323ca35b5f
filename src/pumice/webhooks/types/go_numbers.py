"""Numbers in texts as Go's strconv reads them, with its words for those that are none."""

import math
import re
from typing import Final

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
    """A text that is no number; the message is Go's."""


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
