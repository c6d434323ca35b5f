"""Go durations: what is read, and what is refused."""

from typing import Any

import pytest

from pumice.api.duration import parse_duration
from pumice.errors import InputError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("-0", 0.0),
        ("10s", 10.0),
        ("1h30m", 5400.0),
        ("100ms", 0.1),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("5.s", 5.0),
        ("-1m", -60.0),
        ("+1m", 60.0),
        ("1m1m", 120.0),
        ("3us", 3e-6),
        ("3\u00b5s", 3e-6),
        ("3\u03bcs", 3e-6),
        ("7ns", 7e-9),
        ("0.3ns", 0.0),
        ("9223372036854775807ns", 9223372036.854775807),
    ],
)
def test_gos_syntax_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", "5", "1.5", "s", ".s", "1d", "1 s", " 1s", "1s ", "1S", "--1s", "1h-1m"),
        *("1e3s", "1_0s", "1mh", "9223372036854775808ns", "9" * 40 + "h", "\u0661s"),
    ],
)
def test_anything_else_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match="expected a duration"):
        parse_duration(text)
