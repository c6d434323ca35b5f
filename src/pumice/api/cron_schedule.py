"""Cron schedules: five fields or a descriptor, read once, then asked for the next time.

The syntax is that of the Go library behind Kubernetes' and Volcano's CronJobs.  Times are seconds
since 1970.  Wall clock fields are those of the schedule's time zone: an hour that is skipped in
spring has no times, one that comes twice in autumn has them twice.
"""

from datetime import MAXYEAR, UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol
from zoneinfo import ZoneInfo

import msgspec

from pumice.api.duration import parse_duration
from pumice.api.times import moment_of
from pumice.errors import InputError

_HORIZON_YEARS: Final = 5  # a schedule without a time by then never has one: 31 February
_MINUTE: Final = 60
_LONGEST_STEP: Final = 10**9 - 1  # a step may be longer than its field
_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_WANTED: Final = 'a cron schedule such as "*/5 * * * *" or "@hourly"'


class Schedule(Protocol):
    """When a schedule is due."""

    def next(self, after: float) -> float | None:
        """Return the first time later than ``after``, None if there is none in five years."""


class Every(msgspec.Struct, frozen=True):
    """Due again and again after the same span, counted from the time asked with."""

    span_s: int

    def next(self, after: float) -> float:
        """Return the time one span later, on a full second."""
        return float(int(after) + self.span_s)


class Fields(msgspec.Struct, frozen=True):
    """Due whenever the wall clock of a zone matches all fields."""

    minutes: frozenset[int]
    hours: frozenset[int]
    month_days: frozenset[int]
    months: frozenset[int]
    week_days: frozenset[int]
    any_month_day: bool
    any_week_day: bool
    zone: tzinfo = UTC

    def next(self, after: float) -> float | None:
        """Return the first matching full minute later than ``after``."""
        if not (self.minutes and self.hours and self.month_days and self.months):
            return None  # a field of nothing but commas lists nothing
        at = (int(after) // _MINUTE + 1) * _MINUTE
        last_year = min(moment_of(at, self.zone).year + _HORIZON_YEARS, MAXYEAR - 1)
        while True:
            wall = moment_of(at, self.zone)
            if wall.year > last_year:
                return None
            if wall.month not in self.months:
                at = max(_first_of_next_month(wall), at + _MINUTE)
            elif not self._on_day(wall):
                at = max(_next_midnight(wall), at + _MINUTE)
            elif wall.hour not in self.hours:
                at += (60 - wall.minute) * _MINUTE
            elif wall.minute not in self.minutes:
                at += _MINUTE
            else:
                return float(at)

    def _on_day(self, wall: datetime) -> bool:
        """Check the day: with both fields given one of them is enough."""
        in_month = wall.day in self.month_days
        in_week = wall.isoweekday() % 7 in self.week_days
        if self.any_month_day or self.any_week_day:
            return in_month and in_week
        return in_month or in_week


def parse_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """Read a schedule; a leading ``TZ=`` or ``CRON_TZ=`` outweighs ``zone``.

    Raises:
        InputError: not a schedule, or a time zone that does not exist.
    """
    spec = text
    if spec.startswith(("TZ=", "CRON_TZ=")):
        name, _, spec = spec.partition("=")[2].partition(" ")
        zone = load_zone(name)
    spec = spec.strip()
    if spec.startswith("@every "):
        return Every(max(1, int(parse_duration(spec.removeprefix("@every ")))))
    if spec.startswith("@"):
        if spec not in _DESCRIPTORS:
            raise InputError(wanted=_WANTED, found=text, hint=f"one of {', '.join(_DESCRIPTORS)}")
        spec = _DESCRIPTORS[spec]
    parts = spec.split()
    if len(parts) != 5:
        hint = "five fields: minute, hour, day of month, month, day of week"
        raise InputError(wanted=_WANTED, found=text, hint=hint)
    minutes, _ = _field(parts[0], 0, 59)
    hours, _ = _field(parts[1], 0, 23)
    month_days, any_month_day = _field(parts[2], 1, 31)
    months, _ = _field(parts[3], 1, 12, _MONTHS)
    week_days, any_week_day = _field(parts[4], 0, 6, _DAYS)
    return Fields(minutes, hours, month_days, months, week_days, any_month_day, any_week_day, zone)


def load_zone(name: str) -> tzinfo:
    """Find a time zone by its name in the zone database; empty is UTC.

    Raises:
        InputError: there is no such zone.
    """
    if name in {"", "UTC", "Local"}:  # a cluster's own zone is UTC
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # missing, a folder, or no name at all
        raise InputError(wanted='a time zone such as "Europe/Berlin"', found=name) from None


def latest(schedule: Schedule, after: float, until: float) -> float | None:
    """Return the last time of a schedule later than ``after`` and not later than ``until``."""
    if isinstance(schedule, Every):  # counted from ``after``, so that nothing may be cut off
        spans = int(until - int(after)) // schedule.span_s
        return float(int(after) + spans * schedule.span_s) if spans > 0 else None
    window = float(_MINUTE)
    while True:
        start = max(after, until - window)
        due = schedule.next(start)
        if due is not None and due <= until:
            break
        if start == after:
            return None
        window *= 2
    while (later := schedule.next(due)) is not None and later <= until:
        due = later
    return due


def _field(
    text: str, low: int, high: int, names: tuple[str, ...] = ()
) -> tuple[frozenset[int], bool]:
    """Read one field: the values it lists, and whether it leaves the value open."""
    values: set[int] = set()
    is_open = False
    for part in text.split(","):
        if not part:
            continue  # the Go library splits at commas and drops what is empty
        found, star = _range(part, low, high, names)
        values |= found
        is_open = is_open or star
    return frozenset(values), is_open


def _range(part: str, low: int, high: int, names: tuple[str, ...]) -> tuple[set[int], bool]:
    """Read ``*``, ``a``, ``a-b``, each with or without ``/step``."""
    span, slash, step_text = part.partition("/")
    first, dash, last = span.partition("-")
    step = _number(step_text, 1, _LONGEST_STEP) if slash else 1
    if first in {"*", "?"}:
        return set(range(low, high + 1, step)), step == 1
    start = _number(first, low, high, names)
    open_end = high if slash else start  # "3/5" runs on to the end of the field
    end = _number(last, low, high, names) if dash else open_end
    if start > end:
        raise InputError(wanted="a range that does not run backwards", found=part)
    return set(range(start, end + 1, step)), False


def _number(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> int:
    """Read a value by its name or as a number."""
    if text.lower() in names:
        return names.index(text.lower()) + low  # January is 1, Sunday is 0
    digits = text.removeprefix("+")  # Go reads a sign
    readable = digits.isascii() and digits.isdigit() and len(digits) <= 9
    if not readable or not low <= int(text) <= high:
        raise InputError(wanted=f"a number from {low} to {high}", found=text)
    return int(text)


def _next_midnight(wall: datetime) -> int:
    day = wall.date() + timedelta(days=1)
    return int(datetime(day.year, day.month, day.day, tzinfo=wall.tzinfo).timestamp())


def _first_of_next_month(wall: datetime) -> int:
    year, month = (wall.year + 1, 1) if wall.month == 12 else (wall.year, wall.month + 1)
    return int(datetime(year, month, 1, tzinfo=wall.tzinfo).timestamp())
