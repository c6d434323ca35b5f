"""Expressions that users write: Go's syntax and words, and linear time."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from pumice.api import patterns
from pumice.api.patterns import PatternError, check_pattern, occurrences, occurs_in


@pytest.mark.parametrize(
    "text",
    [
        "", "a|b", "^n-[0-9]+$", "(?i)a", "(?P<n>x)", "(?P<n>a)(?P<n>b)", "\\Q\\C\\E", "é(?P<n>x)",
        "(?<n>x)", "[[:alpha:]]", "\\pL", "[]a]",
        "\\p{Greek}", "a{,2}", "x{2,3}?", "(?:a)*", "()*", "\\Q*\\E", "\\x{41}", "\\07", "[^a-z]",
        "a+?", "(?i-s:a)", "[a-]",
    ],
)  # fmt: skip
def test_expressions_that_go_takes(text: str) -> None:
    check_pattern(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("n-[", "missing closing ]: `[`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("x{1001}", "invalid repeat count: `{1001}`"),
        ("x{2,1}", "invalid repeat count: `{2,1}`"),
        ("a*{1001}", "invalid repeat count: `{1001}`"),
        ("x{2,1}?", "invalid repeat count: `{2,1}`"),
        ("(a{100}){100}", "invalid repeat count: `{100}`"),
        ("a\\C", "invalid escape sequence: `\\C`"),
        ("\ud800", "invalid UTF-8: `?`"),
        ("\\8", "invalid escape sequence: `\\8`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("^(?!x)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?<=x)", "invalid named capture: `(?<=x)`"),
        ("a(?<!x>y)", "invalid named capture: `(?<!x>`"),
        ("(?", "invalid or unsupported Perl syntax: `(?`"),
        ("(?P<>x)", "invalid named capture: `(?P<>`"),
        ("(?P<é>x)", "invalid named capture: `(?P<é>`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("\\p{Foo}", "invalid character class range: `\\p{Foo}`"),
    ],
)
def test_expressions_that_go_refuses(text: str, problem: str) -> None:
    with pytest.raises(PatternError) as caught:
        check_pattern(text)
    assert str(caught.value) == f"error parsing regexp: {problem}"


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("c$", "abc", True),
        ("c$", "abc\n", False),
        ("", "", True),
        ("^.$", "é", True),
        ("\\bnode\\b", "a node", True),
        ("(?i)NODE", "node", True),
    ],
)
def test_matching_is_a_search_as_in_go(pattern: str, text: str, expected: bool) -> None:
    assert occurs_in(text, pattern) is expected


def test_many_expressions_are_looked_for_together() -> None:
    found = occurrences(["^a", "b$", "[", "^a", ""], ["ab", "a", "b", "\ud800"])
    assert found == {"^a": [0, 1], "b$": [0, 2], "[": [], "": [0, 1, 2, 3]}


def test_expressions_that_do_not_fit_together_are_looked_for_one_by_one() -> None:
    large = [f"{letter}(a{{1000}}){{1}}" * 40 for letter in "bcdefg"]
    found = occurrences([*large, "^n"], ["n", f"b{'a' * 1000}" * 40])
    assert found == {**{one: [] for one in large}, "^n": [0], large[0]: [1]}


def _seconds(call: Callable[..., object], *arguments: Any) -> float:
    """Measure processor time, which others on the machine do not change."""
    start = time.process_time()
    with contextlib.suppress(PatternError):
        call(*arguments)
    return time.process_time() - start


def test_nested_repetition_costs_linear_time() -> None:
    text = "a" * 100_000 + "!"
    assert _seconds(occurs_in, text, "^(a+)+$") < 1
    assert _seconds(occurrences, ["^(a+)+$", "(a|a)*$"], [text]) < 1


@pytest.mark.parametrize(
    "pattern",
    ["[" * 40_000, "[a" * 20_000, "[[:foo" * 6_000, "\\pL" * 12_000, "(?i)[^a]" * 5_000,
     "(" * 40_000, "(?P<a>" * 6_000, "\\C" * 20_000, "a{1000}" * 5_000, "\\x{4" * 8_000,
     "(" + "a" * 39_000 + "){1000}", "(" + "[^a]" * 9_000 + "){1000}"],
)  # fmt: skip
def test_a_large_expression_is_checked_at_once(pattern: str) -> None:
    assert _seconds(check_pattern, pattern) < 1


def test_what_would_cost_too_much_is_refused() -> None:
    for pattern in ("\\pL" * 200, "a" * 200_000, "\\pL{1000}"):
        with pytest.raises(PatternError, match="expression too large"):
            check_pattern(pattern)


def test_nothing_is_written_to_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    occurrences(["(", "(a{1000}){1}" * 99], ["a" * 500])
    patterns._compiled.cache_clear()
    with pytest.raises(PatternError):
        check_pattern("(")
    assert capfd.readouterr() == ("", "")
