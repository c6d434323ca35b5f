"""Times: RFC 3339 and nothing else."""

import pytest

from pumice.api import times
from pumice.api.times import epoch
from pumice.errors import InputError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-15T10:00:19Z", 1768471219),
        ("2026-01-15T10:00:19.5Z", 1768471219.5),
        ("2026-01-15T10:00:19.123456789Z", 1768471219.123456),
        ("2026-01-15T12:00:19+02:00", 1768471219),
        ("2026-01-15t10:00:19z", 1768471219),
    ],
)
def test_a_time_is_seconds_since_1970(text: str, seconds: float) -> None:
    assert seconds == epoch(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "now", "2026-01-15", "2026-01-15T10:00:19", "2026-01-15 10:00:19Z", "20260115T100019Z",
        "2026-13-15T10:00:19Z", "2026-02-30T10:00:19Z", "2026-01-15T25:00:19Z",
        "2026-W03-4T10:00:19Z", "2026-01-15T10:00Z", "2026-01-15T10:00:19Z\n",
    ],
)  # fmt: skip
def test_what_is_no_rfc_3339_time_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        epoch(text)
    assert caught.value.found == text


def test_a_time_is_checked_whatever_was_checked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many good times are kept as there is place for; bad ones never are."""
    monkeypatch.setattr(times, "_good", good := set[str]())
    monkeypatch.setattr(times, "_MOST_TIMES", 2)
    for second in (1, 2, 2, 3):
        times.check_time(f"2026-01-15T10:00:0{second}Z", "start")
    assert good == {"2026-01-15T10:00:03Z"}
    for _ in range(2):
        with pytest.raises(InputError, match="RFC 3339"):
            times.check_time("tomorrow", "start")
    assert good == {"2026-01-15T10:00:03Z"}
