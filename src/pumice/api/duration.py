"""Go durations ("1h30m", "100ms") to seconds; read wherever Volcano's own reader reads one."""

import re
from typing import Final

from pumice.errors import InputError

_UNITS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6,
    "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_LONGEST: Final = 1 << 63  # nanoseconds


def parse_duration(text: str) -> float:
    """Read a Go duration ("1h30m", "100ms", "-1.5s", "0") as seconds.

    Raises:
        InputError: not in that syntax, or longer than the 292 years that Go can count.
    """
    sign, body = (text[:1], text[1:]) if text[:1] in {"+", "-"} else ("", text)
    nano = 0 if body == "0" else _nanoseconds(body)
    if nano is None or nano >= _LONGEST + (sign == "-"):
        hint = "a number and a unit of ns, us, ms, s, m or h, repeated"
        raise InputError(wanted='a duration such as "1h30m"', found=text, hint=hint)
    return (-nano if sign == "-" else nano) / 10**9


def _nanoseconds(body: str) -> int | None:
    """Add up the parts of a duration without sign, None when one of them is malformed."""
    nano, at = 0, 0
    while at < len(body):
        part = _PART.match(body, at)
        if part is None or not (part[1] or part[2]):
            return None
        decimals = (part[2] or "")[:18]  # finer than a nanosecond of an hour cannot matter
        unit = _UNITS[part[3]]
        if len(part[1]) > 30:
            return None
        nano += int(part[1] or "0") * unit + int(decimals or "0") * unit // 10 ** len(decimals)
        at = part.end()
    return nano if body else None
