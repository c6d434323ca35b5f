"""How long ago something was, in the two spellings of the original."""

from datetime import UTC, datetime
from typing import Any

from pumice.api.times import epoch

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def age(moment: Any, now: float, *, whole_years: bool = True) -> str:
    """Tell the time since a moment of a manifest; ``whole_years`` writes `2y`, not `2y0d`."""
    return duration(now - epoch(moment), whole_years=whole_years) if moment else "<unknown>"


def duration(span: float, *, whole_years: bool = True) -> str:
    """Tell a time span with at most two units."""
    seconds = int(span)
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    for limit, unit, part, names in (
        (10 * _MINUTE, _MINUTE, 1, "ms"),
        (3 * _HOUR, _MINUTE, 0, "m"),
        (8 * _HOUR, _HOUR, _MINUTE, "hm"),
        (2 * _DAY, _HOUR, 0, "h"),
        (8 * _DAY, _DAY, _HOUR, "dh"),
        (2 * 365 * _DAY, _DAY, 0, "d"),
    ):
        if seconds < limit:
            rest = seconds % unit // part if part else 0
            return f"{seconds // unit}{names[0]}" + (f"{rest}{names[1]}" if rest else "")
    years, days = divmod(seconds // _DAY, 365)
    if years >= 8 or (whole_years and not days):
        return f"{years}y"
    return f"{years}y{days}d"


def go_time(moment: Any) -> str:
    """Print a timestamp of a manifest as Go does, in UTC."""
    if not moment:
        return "0001-01-01 00:00:00 +0000 UTC"
    when = datetime.fromisoformat(moment).astimezone(UTC)
    return f"{when:%Y-%m-%d %H:%M:%S} +0000 UTC"
