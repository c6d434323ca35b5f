"""Go durations ("1h30m", "100ms"), read and written as Go does."""

import json
import re
from typing import Final

from pumice.errors import InputError

_UNITS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6,
    "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_DIGITS: Final = 19  # more are never needed: a duration has 63 bits


class DurationFormError(ValueError):
    """A text that is not a duration; the message is Go's."""


def parse_duration(text: str) -> float:
    """Read a Go duration ("1h30m", "100ms", "-1.5s", "0") as seconds.

    Raises:
        InputError: not in that syntax, or longer than the 292 years that Go can count.
    """
    try:
        return nanoseconds(text) / 10**9
    except DurationFormError:
        hint = "a number and a unit of ns, us, ms, s, m or h, repeated"
        raise InputError(wanted='a duration such as "1h30m"', found=text, hint=hint) from None


def nanoseconds(text: str) -> int:
    """Read a Go duration as nanoseconds.

    Raises:
        DurationFormError: not in that syntax, or too long for 63 bits.
    """
    quoted = json.dumps(text, ensure_ascii=False)
    sign, rest = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return 0
    total = position = 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None or not (match[1] or match[2]):
            break
        whole, part, unit = match[1].lstrip("0") or "0", (match[2] or "")[:_DIGITS], match[3]
        if not unit:
            raise DurationFormError(f"time: missing unit in duration {quoted}")
        if unit not in _UNITS:
            raise DurationFormError(f"time: unknown unit {json.dumps(unit)} in duration {quoted}")
        if len(whole) <= _DIGITS:
            total += int(whole + part) * _UNITS[unit] // 10 ** len(part)
        if len(whole) > _DIGITS or total > 1 << 63:
            break
        position = match.end()
    if not rest or position < len(rest) or total >= (1 << 63) + (sign == "-"):
        raise DurationFormError(f"time: invalid duration {quoted}")
    return -total if sign == "-" else total


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
