"""How long ago something was, in the two spellings of the original."""

from datetime import UTC, datetime
from typing import Any

from pumice.api.times import DAY, epoch, human_duration


def age(moment: Any, now: float, *, whole_years: bool = True) -> str:
    """Write the time since a moment of a manifest; ``whole_years`` writes `2y`, not `2y0d`."""
    return duration(now - epoch(moment), whole_years=whole_years) if moment else "<unknown>"


def duration(span: float, *, whole_years: bool = True) -> str:
    """Write a time span with at most two units."""
    seconds = int(span)
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    years, days = divmod(seconds // DAY, 365)
    if years < 2:
        return human_duration(seconds)
    return f"{years}y" if years >= 8 or (whole_years and not days) else f"{years}y{days}d"


def go_time(moment: Any) -> str:
    """Print a timestamp of a manifest as Go does, in UTC."""
    if not moment:
        return "0001-01-01 00:00:00 +0000 UTC"
    when = datetime.fromisoformat(moment).astimezone(UTC)
    return f"{when:%Y-%m-%d %H:%M:%S} +0000 UTC"
