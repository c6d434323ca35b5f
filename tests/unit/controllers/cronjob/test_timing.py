"""When a CronJob is due, and how long it is until the next time."""

from typing import Any

import pytest

from pumice.api.cron_schedule import parse_schedule
from pumice.api.times import rfc3339
from pumice.controllers.cronjob import due, read_schedule, wait_s

MINUTE = parse_schedule("* * * * *")
NEVER = parse_schedule("59 23 31 2 *")


def cron(last: float | None = None, made: float = 0.0, **spec: Any) -> Any:
    status = {} if last is None else {"lastScheduleTime": rfc3339(last)}
    metadata = {"creationTimestamp": rfc3339(made)}
    return {"metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("last", "deadline_s", "now", "at", "warned"),
    [
        (None, None, 59, None, False),
        (None, None, 60, 60, False),
        (None, None, 119, 60, False),
        (None, None, 120, 120, False),
        (None, None, 200, 180, False),
        (60, None, 119, None, False),
        (60, None, 120, 120, False),
        (None, 30, 100, None, False),
        (None, 41, 100, 60, False),
        (None, 1000, 100, 60, False),
        (None, None, 6000, 6000, False),
        (None, None, 6060, 6060, True),
        (None, 600, 6060, 6060, False),
    ],
)
def test_the_latest_time_that_was_not_served(
    last: Any, deadline_s: Any, now: float, at: float | None, warned: bool
) -> None:
    found = due(cron(last, startingDeadlineSeconds=deadline_s), MINUTE, now)
    assert found.at == at
    assert (found.warning is not None) == warned
    assert found.warning is None or found.warning.reason == "TooManyMissedTimes"


def test_a_schedule_without_any_time_is_a_problem() -> None:
    found = due(cron(), NEVER, 60.0)
    assert found.at is None
    assert found.warning is not None
    assert found.warning.reason == "InvalidSchedule"
    assert wait_s(cron(), NEVER, 60.0) is None


@pytest.mark.parametrize(
    ("last", "now", "left"),
    [(None, 10, 50.0), (None, 60, 60.0), (None, 130, 50.0), (60, 130, 50.0), (600, 130, 530.0)],
)
def test_how_long_it_is_until_the_next_time(last: Any, now: float, left: float) -> None:
    assert wait_s(cron(last), MINUTE, now) == left


@pytest.mark.parametrize(
    ("spec", "metadata", "is_read", "reason"),
    [
        ({"schedule": "* * * * *"}, {}, True, None),
        ({"schedule": "* * * * *", "timeZone": "Europe/Berlin"}, {}, True, None),
        ({"schedule": "* * * * *", "timeZone": "Mars/X"}, {}, False, "InvalidTimeZone"),
        ({"schedule": "TZ=UTC * * * * *"}, {}, True, "UnsupportedSchedule"),
        ({"schedule": "odd"}, {}, False, None),
        ({"schedule": "odd"}, {"generation": 1}, False, None),
        ({"schedule": "odd"}, {"generation": 2}, False, "UnParseableCronJobSchedule"),
    ],
)
def test_reading_a_schedule(spec: Any, metadata: Any, is_read: bool, reason: str | None) -> None:
    schedule, warning = read_schedule({"spec": spec, "metadata": metadata})
    assert (schedule is not None) == is_read
    assert (warning and warning.reason) == reason
