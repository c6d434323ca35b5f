"""How long ago something was, as kubectl writes it."""

from typing import Any, Final

from pumice.api.times import epoch

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNITS: Final = (
    (10 * _MINUTE, _MINUTE, 1, "ms"),
    (3 * _HOUR, _MINUTE, 0, "m"),
    (8 * _HOUR, _HOUR, _MINUTE, "hm"),
    (2 * _DAY, _HOUR, 0, "h"),
    (8 * _DAY, _DAY, _HOUR, "dh"),
)
"""Up to how many seconds, in which unit and which part of it a span is told."""


def age(moment: Any, now: float) -> str:
    """Tell the time since a timestamp of a manifest."""
    if not moment:
        return "<unknown>"
    seconds = max(0, int(now - epoch(moment)))
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    for limit, unit, part, names in _UNITS:
        if seconds < limit:
            rest = seconds % unit // part if part else 0
            return f"{seconds // unit}{names[0]}" + (f"{rest}{names[1]}" if rest else "")
    return f"{seconds // _DAY}d"
