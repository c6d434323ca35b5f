"""CronJobs: schedule, time zone, and a name that leaves room for those of the jobs."""

import posixpath
import re
from typing import Final

from pumice.api.cron_schedule import load_zone, parse_schedule
from pumice.errors import InputError
from pumice.webhooks.fields import quoted
from pumice.webhooks.names import qualified_name
from pumice.webhooks.review import Answer, Existing, Finding, Options, Request, denied
from pumice.webhooks.types.decoding import decode

KIND: Final = "batch.CronJob"
_LONGEST: Final = 52
_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def validate_cronjob(request: Request, existing: Existing, options: Options) -> Answer:
    """Check a new or a changed CronJob."""
    del existing, options
    cron = decode(request.object, KIND)
    if request.operation not in ("CREATE", "UPDATE"):
        return denied([Finding("expect operation to be 'CREATE' or 'UPDATE'")])
    spec = cron["spec"]
    when = [*_schedule(spec["schedule"]), *_zone(spec.get("timeZone"))]
    name = _name(cron["metadata"].get("name", ""))
    parts = ("".join(one.text for one in when).strip(), "".join(one.text for one in name))
    return denied([*when, *name], "; ".join(part for part in parts if part))


def _schedule(schedule: str) -> list[Finding]:
    path = ("spec", "schedule")
    if not schedule:
        text = " schedule is required, but got empty"
        return [Finding(text, path, schedule, "a cron schedule")]
    if "TZ" in schedule:
        text = (
            " schedule should not contain TZ or CRON_TZ, "
            "TZ should only be set in the timeZone field"
        )
        return [Finding(text, path, schedule, "a schedule without a time zone")]
    try:
        parse_schedule(schedule)
    except InputError:
        text = "schedule is not a valid cron expression"
        return [Finding(text, path, schedule, 'a cron schedule such as "*/5 * * * *" or "@hourly"')]
    return []


def _zone(zone: str | None) -> list[Finding]:
    path = ("spec", "timeZone")
    if zone is None:
        return []
    if not zone:
        text = " timeZone must be nil or non-empty string, got empty string"
        return [Finding(text, path, zone, "the name of a time zone")]
    found = [
        Finding(" unknown timeZone", path, zone, "the name of a time zone")
        for part in zone.split("/")
        if part in (".", "..") or part.startswith("-") or _PART.fullmatch(part) is None
    ]
    if zone.lower() == "local":
        text = " timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"
        found.append(Finding(text, path, zone, "the name of a time zone"))
    elif not _is_zone(zone):
        found.append(Finding(" invalid timeZone", path, zone, "the name of a time zone"))
    return found


def _is_zone(name: str) -> bool:
    """Return whether the zone database knows a name; the lookup treats // as /."""
    if ".." in name or name.startswith(("/", "\\")) or name.endswith("/"):
        return False
    try:
        load_zone(posixpath.normpath(name))
    except InputError:
        return False
    return True


def _name(name: str) -> list[Finding]:
    path = ("metadata", "name")
    if len(name.encode(errors="replace")) > _LONGEST:
        text = (
            f"cronJob name must be no more than {_LONGEST} characters "
            "to accommodate job name suffix (max 63 total)"
        )
        return [Finding(text, path, name, f"at most {_LONGEST} characters")]
    messages = qualified_name(name)
    if messages:
        text = f"invalid cronJob name {quoted(name)}: {'; '.join(messages)}"
        return [Finding(text, path, name, "; ".join(messages))]
    return []
