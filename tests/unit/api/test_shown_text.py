"""Text as it may be shown: no mark that moves a cursor or hides a letter, all letters."""

import json
import sys
import unicodedata

import pytest
import yaml

from pumice.api.shown_text import has_marks, shown, shown_json, shown_lines, without_secrets

ALL = [chr(code) for code in range(sys.maxunicode + 1)]
MARKS = [one for one in ALL if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
LETTERS = [one for one in ALL if unicodedata.category(one)[0] in "LNPSM" or one == "\u3000"]


def test_every_mark_is_escaped_and_every_letter_stays() -> None:
    assert shown("".join(LETTERS)) == "".join(LETTERS)
    assert shown("".join(MARKS)).isascii()
    assert not any(has_marks(one) for one in LETTERS)


def test_escapes() -> None:
    assert shown("a\x1b[1m\n\r\t\u202e\U000e0041\ud800") == (
        r"a\u001b[1m\n\r\t\u202e\U000e0041\ud800"
    )
    assert shown_lines("a\n\tb\r\x1b") == "a\n\tb\\r\\u001b"


def test_json_and_yaml_mean_the_same() -> None:
    text = "".join(one for one in MARKS if unicodedata.category(one) != "Cs")
    assert json.loads(shown_json(json.dumps(text, ensure_ascii=False))) == text
    written = yaml.safe_dump(text, allow_unicode=True, default_style='"', width=10**9)
    assert yaml.safe_load(shown_lines(written)) == text


@pytest.mark.parametrize(
    ("address", "left"),
    [
        ("https://user:PW@host:6443/a", "https://host:6443/a"),
        ("https://user:P/W?@host", "https://host"),
        ("user:PW@host:6443", "host:6443"),
        ("http://PW@", "http://"),
        ("https://host/path?token=PW#PW", "https://host/path"),
        ("https://host:6443", "https://host:6443"),
        ("a\nb@c", "c"),
        ("", ""),
    ],
)
def test_an_address_without_its_secrets(address: str, left: str) -> None:
    assert without_secrets(address) == left
