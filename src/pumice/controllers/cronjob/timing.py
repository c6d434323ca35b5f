"""When a CronJob is due: its schedule in its time zone, its deadline, what it missed."""

from datetime import UTC
from typing import Final

import msgspec

from pumice.api.cron_schedule import Schedule, latest, load_zone, parse_schedule
from pumice.api.kinds import Manifest
from pumice.api.times import epoch
from pumice.errors import InputError

_MANY: Final = 100
"""Number of missed times at which the clock or the controller must be wrong."""


class ScheduleWarning(msgspec.Struct, frozen=True):
    """A warning to write about a CronJob."""

    reason: str
    message: str


class Due(msgspec.Struct, frozen=True):
    """The latest time a CronJob missed, if any, and its problem, if any."""

    at: float | None = None
    warning: ScheduleWarning | None = None


def read_schedule(cron: Manifest) -> tuple[Schedule | None, ScheduleWarning | None]:
    """Read the schedule of a CronJob in its time zone; None if it cannot be read."""
    spec = cron["spec"]
    zone_name, text = spec.get("timeZone"), str(spec["schedule"])
    try:
        zone = UTC if zone_name is None else load_zone(zone_name)
    except InputError:
        message = f'Invalid time zone "{zone_name}": unknown time zone {zone_name}'
        return None, ScheduleWarning("InvalidTimeZone", message)
    warning = None
    if "TZ" in text:
        message = (
            f'CRON_TZ or TZ in the schedule "{text}" is not officially supported. '
            "If set, the TimeZone field will be ignored during execution."
        )
        warning = ScheduleWarning("UnsupportedSchedule", message)
    try:
        return parse_schedule(text, zone), warning
    except InputError:
        # Volcano: an unreadable schedule is reported on a change, not at creation
        if cron["metadata"].get("generation", 1) > 1:
            message = f"unparseable schedule for cronjob: {text}"
            warning = ScheduleWarning("UnParseableCronJobSchedule", message)
        return None, warning


def due(cron: Manifest, schedule: Schedule, now: float) -> Due:
    """Find the latest time not later than now that has not been served and is not too late."""
    since = _since(cron)
    deadline_s = cron["spec"].get("startingDeadlineSeconds")
    if deadline_s is not None:
        since = max(since, now - float(deadline_s))
    first = schedule.next(since)
    if first is None:
        message = "time difference between two schedules is less than 1 second"
        return Due(
            None, ScheduleWarning("InvalidSchedule", f"Error getting schedule time: {message}")
        )
    if now < first:
        return Due()
    second = schedule.next(first)
    if second is None or now < second:
        return Due(first)
    n_missed = (now - first) // (second - first) + 1
    message = (
        "too many missed start times. "
        "Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    )
    warning = ScheduleWarning("TooManyMissedTimes", message) if n_missed > _MANY else None
    return Due(latest(schedule, since, now), warning)


def wait_s(cron: Manifest, schedule: Schedule, now: float) -> float | None:
    """Return how long it is until the next time, None if there is none."""
    since = _since(cron)
    last = latest(schedule, since, now)
    following = schedule.next(since if last is None else last)
    return None if following is None else max(following - now, 0.0)


def _since(cron: Manifest) -> float:
    """Return the time from which a CronJob counts: the last one served, or its creation."""
    last = (cron.get("status") or {}).get("lastScheduleTime")
    return epoch(last or cron["metadata"]["creationTimestamp"])
