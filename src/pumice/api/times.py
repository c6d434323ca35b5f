"""Times as manifests write them, and seconds since 1970 as programs count them."""

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any, Final

from pumice.errors import InputError

_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_MINUTE, _HOUR, DAY = 60, 3600, 86400
_FIRST: Final = int(datetime(1, 1, 1, tzinfo=UTC).timestamp())
_LAST: Final = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())
_SPANS: Final = (
    (10 * _MINUTE, _MINUTE, 1, "ms"),
    (3 * _HOUR, _MINUTE, 0, "m"),
    (8 * _HOUR, _HOUR, _MINUTE, "hm"),
    (2 * DAY, _HOUR, 0, "h"),
    (8 * DAY, DAY, _HOUR, "dh"),
)
"""Up to how many seconds, in which unit and which part of it a span is written."""


_MOST_TIMES: Final = 1 << 16
_good: Final[set[str]] = set()
"""Times that were found to be good; a look into a set does not put what is kept in order."""


@lru_cache(maxsize=_MOST_TIMES)
def epoch(text: str) -> float:
    """Read an RFC 3339 time ("2026-01-15T10:00:19Z") as seconds since 1970.

    Raises:
        InputError: not such a time, or one without an offset.
    """
    wanted = 'an RFC 3339 time such as "2026-01-15T10:00:19Z"'
    if _RFC3339.fullmatch(text) is None:  # fromisoformat alone takes much more than that
        raise InputError(wanted=wanted, found=text)
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except ValueError:
        raise InputError(wanted=wanted, found=text, hint="no such day or hour") from None


def epoch_or_zero(text: str | None) -> float:
    """Read an RFC 3339 time; none at all is the beginning of time."""
    return epoch(text) if text else 0.0


def lenient_epoch(text: str) -> float:
    """Read a date and time in any form of ISO 8601, without an offset in UTC.

    Raises:
        ValueError: it is not one.
    """
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def check_time(text: str, field: str) -> None:
    """Refuse a time that is not RFC 3339, naming ``field``."""
    if text in _good:
        return
    try:
        epoch(text)
    except InputError as error:
        raise InputError(wanted=error.wanted, found=text, field=field, hint=error.hint) from None
    if len(_good) == _MOST_TIMES:
        _good.clear()
    _good.add(text)


def moment_of(seconds: float, zone: tzinfo = UTC) -> datetime:
    """Return seconds since 1970 as a date; beyond the years 1 and 9999 the first or last of them.

    Sums of a time and a span may lie there, and a time of a manifest with its offset.
    """
    margin = 0 if zone is UTC else DAY  # zones differ by less
    return datetime.fromtimestamp(min(max(seconds, _FIRST + margin), _LAST - margin), zone)


def rfc3339(seconds: float, zone: tzinfo = UTC) -> str:
    """Write seconds since 1970 as Kubernetes writes a Time: in whole seconds."""
    return _rfc3339(int(min(max(seconds, _FIRST), _LAST)), zone)


@lru_cache(maxsize=1024)  # many things happen in the same second
def _rfc3339(second: int, zone: tzinfo) -> str:
    return _with_z(moment_of(second, zone).isoformat())


def rfc3339_micro(seconds: float) -> str:
    """Write seconds since 1970 as Kubernetes writes a MicroTime: in microseconds."""
    return _with_z(moment_of(seconds).isoformat(timespec="microseconds"))


def _with_z(text: str) -> str:
    return f"{text.removesuffix('+00:00')}Z" if text.endswith("+00:00") else text


def human_duration(seconds: int) -> str:
    """Write a span as kubectl does: in one or two units, of which days are the largest."""
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    for limit, unit, part, names in _SPANS:
        if seconds < limit:
            rest = seconds % unit // part if part else 0
            return f"{seconds // unit}{names[0]}" + (f"{rest}{names[1]}" if rest else "")
    return f"{seconds // DAY}d"


def age(moment: Any, now: float) -> str:
    """Write the time since a timestamp of a manifest."""
    return human_duration(max(0, int(now - epoch(moment)))) if moment else "<unknown>"


_LATE_S: Final = 10.0


def overdue_s(deletion: str | None, now: float) -> float:
    """Return for how long a pod should have been gone, by its deletion timestamp; 0 if not yet.

    A kubelet needs some seconds to remove a pod that has ended.
    """
    return late_s(epoch(deletion), now) if deletion else 0.0


def late_s(due: float, now: float) -> float:
    """Return by how much something is late; 0 within what a kubelet needs."""
    return now - due if now - due > _LATE_S else 0.0
