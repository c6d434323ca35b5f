"""Cron schedules: syntax, time zones, clocks that jump."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.cron_schedule import Every, latest, load_zone, parse_schedule
from pumice.errors import InputError
from tests.present import present


def at(text: Any) -> Any:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def following(schedule: Any, after: Any, n: Any = 1, zone: str = "UTC") -> Any:
    """Return the next times of a schedule in UTC, without seconds."""
    plan, times, when = parse_schedule(schedule, load_zone(zone)), [], at(after)
    for _ in range(n):
        when = plan.next(when)
        times.append(f"{datetime.fromtimestamp(present(when), UTC):%Y-%m-%d %H:%M}")
    return times if n > 1 else times[0]


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        ("* * * * *", "2026-01-01 12:00:00", "2026-01-01 12:01"),
        ("* * * * *", "2026-01-01 12:00:59", "2026-01-01 12:01"),
        ("*/15 * * * *", "2026-01-01 12:50", "2026-01-01 13:00"),
        ("5/20 * * * *", "2026-01-01 12:26", "2026-01-01 12:45"),
        ("10-30/10 * * * *", "2026-01-01 12:31", "2026-01-01 13:10"),
        ("30 4 * * *", "2026-12-31 05:00", "2027-01-01 04:30"),
        ("0 0 1 * *", "2026-01-15 00:00", "2026-02-01 00:00"),
        ("0 0 29 2 *", "2026-01-01 00:00", "2028-02-29 00:00"),
        ("0 9 * * MON-FRI", "2026-01-02 10:00", "2026-01-05 09:00"),
        ("0 9 * JUL sun", "2026-01-02 10:00", "2026-07-05 09:00"),
        ("0,30 8,20 * * ?", "2026-01-01 08:10", "2026-01-01 08:30"),
        ("@hourly", "2026-01-01 12:30", "2026-01-01 13:00"),
        ("@midnight", "2026-01-01 12:30", "2026-01-02 00:00"),
        ("@weekly", "2026-01-01 12:30", "2026-01-04 00:00"),
        ("@monthly", "2026-01-01 12:30", "2026-02-01 00:00"),
        ("@yearly", "2026-01-01 12:30", "2027-01-01 00:00"),
        ("@every 1h30m", "2026-01-01 12:30", "2026-01-01 14:00"),
        ("TZ=Europe/Berlin 0 12 * * *", "2026-01-01 00:00", "2026-01-01 11:00"),
        ("CRON_TZ=Asia/Tokyo 0 12 * * *", "2026-01-01 00:00", "2026-01-01 03:00"),
    ],
)
def test_the_next_time(schedule: str, after: str, due: str) -> None:
    assert following(schedule, after) == due


def test_two_kinds_of_days_count_as_either_one_open_kind_as_both() -> None:
    """The 13th or a Friday; with one of them open, the other alone decides."""
    either = following("0 0 13 * 5", "2026-01-03", 3)
    assert either == ["2026-01-09 00:00", "2026-01-13 00:00", "2026-01-16 00:00"]
    assert following("0 0 13 * *", "2026-01-03") == "2026-01-13 00:00"
    assert following("0 0 */2 * 5", "2026-01-03") == "2026-01-05 00:00"  # a step is not open


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "whenever",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 7",
        "*/0 * * * *",
        "5-1 * * * *",
        "1-2-3 * * * *",
        "a * * * *",
        "-1 * * * *",
        "@reboot",
        "@every soon",
        "TZ=Mars/Olympus * * * * *",
    ],
)
def test_what_is_no_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(InputError):
        parse_schedule(schedule)


def test_a_span_shorter_than_a_second_is_a_second() -> None:
    assert parse_schedule("@every -1h") == Every(1)


def test_a_day_that_never_comes_has_no_next_time() -> None:
    assert parse_schedule("59 23 31 2 *").next(at("2026-01-01")) is None


def test_times_are_those_of_the_zone_summer_and_winter() -> None:
    assert following("0 12 * * *", "2026-03-28 00:00", 2, "Europe/Berlin") == [
        "2026-03-28 11:00",
        "2026-03-29 10:00",
    ]


def test_an_hour_that_is_skipped_has_no_times() -> None:
    assert following("30 2 * * *", "2026-03-28 12:00", 1, "Europe/Berlin") == "2026-03-30 00:30"


def test_an_hour_that_comes_twice_has_its_times_twice() -> None:
    assert following("30 2 * * *", "2026-10-24 12:00", 2, "Europe/Berlin") == [
        "2026-10-25 00:30",
        "2026-10-25 01:30",
    ]


def test_a_zone_half_an_hour_off() -> None:
    assert following("0 6 * * *", "2026-01-01 00:00", 1, "Asia/Kolkata") == "2026-01-01 00:30"


@pytest.mark.parametrize("name", ["Mars/Olympus", "Europe", "../etc", "europe/berlin ", "/x"])
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        load_zone(name)


@pytest.mark.parametrize(
    ("schedule", "after", "until", "found"),
    [
        ("* * * * *", "2025-01-01 00:00", "2026-01-01 00:00:30", "2026-01-01 00:00"),
        ("0 9 * * *", "2026-01-01 00:00", "2026-01-03 08:00", "2026-01-02 09:00"),
        ("0 9 1 1 *", "2020-01-01 12:00", "2025-06-01 00:00", "2025-01-01 09:00"),
        ("0-30 9 * * *", "2026-01-01 00:00", "2026-01-03 08:00", "2026-01-02 09:30"),
        ("@every 7m", "2026-01-01 00:00", "2026-01-01 00:30", "2026-01-01 00:28"),
    ],
)
def test_the_latest_time_of_a_span(schedule: str, after: str, until: str, found: str) -> None:
    assert latest(parse_schedule(schedule), at(after), at(until)) == at(found)


@pytest.mark.parametrize("schedule", ["0 9 * * *", "@every 1h", "59 23 31 2 *"])
def test_a_span_without_a_time(schedule: str) -> None:
    assert latest(parse_schedule(schedule), at("2026-01-01 10:00"), at("2026-01-01 10:30")) is None


@settings(max_examples=30, deadline=None)
@given(
    minute=st.sampled_from(["*", "*/7", "30", "0,15", "50-59"]),
    hour=st.sampled_from(["*", "2", "1-3", "*/5", "23"]),
    day=st.sampled_from(["*", "29", "*/2"]),
    week_day=st.sampled_from(["*", "0", "1-5"]),
    start=st.sampled_from(["2026-03-27 21:13", "2026-10-23 22:59", "2026-12-30 23:59"]),
)
def test_leaping_finds_what_going_minute_by_minute_finds(
    minute: Any, hour: Any, day: Any, week_day: Any, start: Any
) -> None:
    """Around clock changes and the turn of a year, in a zone that has both."""
    zone = load_zone("Europe/Berlin")
    plan: Any = parse_schedule(f"{minute} {hour} {day} * {week_day}", zone)
    begin = int(at(start))
    step = 60
    matching = []
    for when in range(begin // step * step + step, begin + 3 * 86400, step):
        wall = datetime.fromtimestamp(when, zone)
        if wall.minute in plan.minutes and wall.hour in plan.hours and plan._on_day(wall):
            matching.append(when)
    found, due = [], plan.next(begin)
    while due is not None and due < begin + 3 * 86400:
        found.append(int(due))
        due = plan.next(due)
    assert found == matching
