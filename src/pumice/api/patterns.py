"""Regular expressions that users write, in the syntax of Go and in time linear in the text.

The only module that knows RE2, the library that Go's own package follows.  Errors in an
expression are reported in Go's words.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]

_HEAVIEST: Final = 1 << 17  # RE2's memory bound refuses nearly all heavier ones anyway, but late
_CLASS_WEIGHT: Final = 1000
_LARGEST_COUNT: Final = 1000
_HEAVY: Final = re.compile(r"\\[pP]|\{(?:[0-9]+,)?([0-9]{1,4})")
"""Parts that cost more than a character: classes of Unicode, and counts."""
_GO_WORDS: Final = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
"""RE2's words where Go has others."""
_LOOK_BEHIND: Final = ("(?<=", "(?<!")
_ALL_BUT_BYTE: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\[^C]|[^\\]+", re.DOTALL)
_COUNT: Final = re.compile(r"(\{([0-9]+)(?:,([0-9]*))?\})\??\Z")


class PatternError(ValueError):
    """An expression that Go does not accept; the message is Go's."""

    def __init__(self, problem: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{part}`")


def _options(*, captures: bool) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    return options


_CAPTURING: Final = _options(captures=True)
_PLAIN: Final = _options(captures=False)


def check_pattern(pattern: str) -> None:
    """Check an expression.

    Raises:
        PatternError: Go does not accept it, or it is too large.
    """
    _compiled(pattern)


def occurs_in(text: str, pattern: str) -> bool:
    """Return whether an expression matches anywhere in a text, as Go's MatchString does.

    Raises:
        PatternError: Go does not accept it, or it is too large.
    """
    return _compiled(pattern).search(_encoded(text)) is not None


def occurrences(patterns: Collection[str], texts: Sequence[str]) -> dict[str, list[int]]:
    """Return for each expression the indices of the texts in which it occurs.

    All expressions are searched together, in one pass over each text.  One that Go does not accept
    occurs nowhere.
    """
    found: dict[str, list[int]] = {pattern: [] for pattern in patterns}
    valid = [pattern for pattern in found if _is_valid(pattern)]
    if valid:
        for index, matched in enumerate(_matched(valid, [_encoded(text) for text in texts])):
            for each in matched:
                found[valid[each]].append(index)
    return found


def _matched(patterns: list[str], texts: list[bytes]) -> Iterator[Sequence[int]]:
    """Yield for each text the indices of the expressions that occur in it."""
    together = re2.Set.SearchSet(_PLAIN)
    for pattern in patterns:
        together.Add(pattern)
    always = together.Add("")
    try:
        together.Compile()
    except re2.error:  # too large together
        together = None
    for text in texts:
        matched = together.Match(text) if together is not None else None
        if matched is None or always not in matched:  # the empty one is missing: out of memory
            yield [i for i, one in enumerate(patterns) if _compiled(one).search(text) is not None]
        else:
            yield [each for each in matched if each != always]


@lru_cache(maxsize=128)
def _compiled(pattern: str) -> Any:
    if _weight(pattern) > _HEAVIEST:
        raise PatternError("expression too large", pattern)
    try:
        compiled = re2.compile(pattern, _PLAIN)
    except UnicodeEncodeError:
        raise PatternError("invalid UTF-8", pattern.encode(errors="replace").decode()) from None
    except re2.error as error:
        raise _in_go_words(error.args[0].decode(errors="replace"), pattern) from None
    _check_beyond_re2(pattern)
    return compiled


def _weight(pattern: str) -> int:
    return len(pattern) + sum(int(one or _CLASS_WEIGHT) for one in _HEAVY.findall(pattern))


def _check_beyond_re2(pattern: str) -> None:
    """Refuse what RE2 accepts and Go does not: single bytes, and names of groups beyond ASCII."""
    if "\\C" in pattern and _ALL_BUT_BYTE.sub("", pattern):
        raise PatternError("invalid escape sequence", "\\C")
    if "(?" not in pattern or pattern.isascii():
        return
    for name in re2.compile(pattern, _CAPTURING).groupindex:
        if not name.isascii():
            mark = "P" if f"(?P<{name}>" in pattern else ""
            raise PatternError("invalid named capture", f"(?{mark}<{name}>")


def _is_valid(pattern: str) -> bool:
    try:
        check_pattern(pattern)
    except PatternError:
        return False
    return True


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def _in_go_words(message: str, pattern: str) -> PatternError:
    problem, _, part = message.partition(": ")
    if problem.startswith("pattern too large"):
        return PatternError("expression too large", pattern)
    if part in _LOOK_BEHIND:  # Go reads the name of a group up to the next >
        head, closed, _ = pattern[pattern.find(part) :].partition(">")
        return PatternError("invalid named capture", head + closed)
    count = _COUNT.search(part) if "repetition" in problem else None
    if count is not None and not _is_in_bounds(count[2], count[3]):  # Go looks at this first
        return PatternError("invalid repeat count", count[1])
    return PatternError(_GO_WORDS.get(problem, problem), part)


def _is_in_bounds(low: str, high: str | None) -> bool:
    least = int(low[:8])
    most = int(high[:8]) if high else _LARGEST_COUNT
    return least <= most <= _LARGEST_COUNT
