"""Values of a scenario file: checked one by one, with errors that name field and line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from pumice.api.duration import parse_duration
from pumice.api.text_files import is_stdin, read_text
from pumice.api.wording import counted, nearest
from pumice.api.yaml_text import compose_all, line_of
from pumice.errors import ABSENT, InputError, ScenarioError

_LEAST: Final = "at least"
_MOST: Final = "at most"
_WITHIN: Final = re.compile(r"\s*(\d+)\s*(cycles?)?\s*")
_BETWEEN: Final = re.compile(r"\s*(\d+)\s*\.\.\s*(\d+)\s*")
_RANGE: Final = "a number, or {at least: N, at most: N}"
_SPAN: Final = 'a number of cycles such as "5 cycles", or a time such as 30s'
_LARGEST: Final = 1 << 20
"""Bytes of a file that is read again for the line of a field."""


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def listed(path: Path, where: str, value: Any) -> list[Any]:
    """Return the value if it is a list."""
    found: list[Any] = typed(path, where, value, list, "a list")
    return found


def mapped(path: Path, where: str, value: Any, wanted: str = "a mapping") -> dict[str, Any]:
    """Return the value if it is a mapping."""
    found: dict[str, Any] = typed(path, where, value, dict, wanted)
    return found


def typed(path: Path, where: str, value: Any, kind: type | tuple[type, ...], wanted: str) -> Any:
    """Return the value if it has the wanted type; a boolean is not a number."""
    if not isinstance(value, kind) or isinstance(value, bool):
        unquoted = kind is str and isinstance(value, bool)
        raise problem(path, where, value, wanted, hint="put it in quotes" if unquoted else "")
    return value


def refuse_unknown(
    path: Path, where: str, given: Mapping[str, Any], known: tuple[str, ...]
) -> None:
    """Refuse keys that have no meaning there."""
    for key in given:
        if key not in known:
            near = nearest(str(key), known)
            raise problem(
                path,
                where,
                key,
                "a known key",
                hint=f"did you mean '{near}'?" if near else f"known are {', '.join(known)}",
            )


def problem(path: Path, where: str, found: Any, wanted: str, hint: str = "") -> ScenarioError:
    """Make the error about a value."""
    return ScenarioError(
        wanted=wanted,
        found=ABSENT if found is None else found,
        field=where,
        file=str(path),
        hint=hint,
    )


# Numbers and spans


@dataclass(frozen=True)
class Range:
    """A number of something, in words."""

    least: int | None = None
    most: int | None = None

    def __contains__(self, number: int) -> bool:
        """Return whether a number is within it."""
        return (self.least or 0) <= number and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        """Write it as it is stated."""
        if self.least == self.most:
            return str(self.least)
        named = ((_LEAST, self.least), (_MOST, self.most))
        return " and ".join(f"{words} {number}" for words, number in named if number is not None)


def is_range(value: Any) -> bool:
    """Return whether a value states how many, not which."""
    if isinstance(value, dict):
        return bool(value) and value.keys() <= {_LEAST, _MOST}
    return is_count(value) or (isinstance(value, str) and _BETWEEN.fullmatch(value) is not None)


def range_from(path: Path, where: str, value: Any) -> Range:
    """Read how many: a number, "2..4", or `at least` and `at most`."""
    if not is_range(value):
        raise problem(path, where, value, _RANGE)
    if isinstance(value, str):
        first, last = value.split("..")
        return Range(int(first), int(last))
    if not isinstance(value, dict):
        return Range(value, value)
    for words, number in value.items():
        if not is_count(number) or number < 0:
            raise problem(path, f"{where}.{words}", number, "a number")
    return Range(value.get(_LEAST), value.get(_MOST))


@dataclass(frozen=True)
class Within:
    """A span: a number of cycles, or seconds."""

    cycles: int | None = None
    seconds: float = 0.0

    def is_over(self, cycle: int, seconds: float) -> bool:
        """Return whether a cycle, counted from 1, or a time is after it."""
        return seconds > self.seconds if self.cycles is None else cycle > self.cycles

    def in_cycles(self, interval: float) -> int:
        """Return the number of the last cycle within it."""
        return int(self.seconds / interval) + 1 if self.cycles is None else self.cycles

    def __str__(self) -> str:
        """Write it as it is stated."""
        return f"{self.seconds:g}s" if self.cycles is None else counted(self.cycles, "cycle")


def is_span(value: Any) -> bool:
    """Return whether a value is a number of cycles or a time."""
    if is_count(value) or (isinstance(value, str) and _WITHIN.fullmatch(value)):
        return True
    try:
        return isinstance(value, str) and parse_duration(value.replace(" ", "")) >= 0
    except InputError:
        return False


def within_from(path: Path, where: str, value: Any) -> Within:
    """Read a span: 5, "5 cycles" or "2m"."""
    text = str(value) if is_count(value) else typed(path, where, value, str, _SPAN)
    found = _WITHIN.fullmatch(text)
    if found:
        return Within(cycles=int(found[1]))
    return Within(seconds=seconds_from(path, where, text, _SPAN))


def seconds_from(path: Path, where: str, value: Any, wanted: str = "a time such as 30s") -> float:
    """Read a time: "2m"."""
    try:
        seconds = parse_duration(typed(path, where, value, str, wanted).replace(" ", ""))
    except InputError:
        raise problem(path, where, value, wanted) from None
    if seconds < 0:
        raise problem(path, where, value, wanted)
    return seconds


# Lines


def with_line(error: ScenarioError, path: Path) -> ScenarioError:
    """Make an error about a field of a scenario name its line, if that can be found."""
    if error.file != str(path) or not error.field or error.field.startswith("line "):
        return error
    try:
        if is_stdin(path) or not path.is_file() or path.stat().st_size > _LARGEST:
            return error
        roots = list(compose_all(read_text(path), str(path)))
    except (OSError, ValueError, InputError):
        return error
    line = _line(roots[0], error.field, error.found) if len(roots) == 1 else 0
    if line:
        error.file = f"{path}:{line}"
    return error


def _line(node: yaml.Node, where: str, found: Any) -> int:
    """Return the line of a field, or of the nearest thing around it that is there; 0 if none is."""
    line = 0
    while where:
        step = _step(node, where)
        if step is None:
            return line
        line, node, where = step
    if isinstance(node, yaml.MappingNode):  # a key that is unknown there
        line = next((line_of(key) for key, _ in node.value if key.value == found), line)
    return line


def _step(node: yaml.Node, where: str) -> tuple[int, yaml.Node, str] | None:
    """Follow the first part of a field; names may have dots themselves."""
    if isinstance(node, yaml.SequenceNode):
        index, bracket, rest = where.removeprefix("[").partition("]")
        if where[0] != "[" or not (bracket and index.isdigit() and int(index) < len(node.value)):
            return None
        below = node.value[int(index)]
        return line_of(below), below, rest.removeprefix(".")
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, below in sorted(node.value, key=lambda item: -len(str(item[0].value))):
        name = str(key.value)
        rest = where.removeprefix(name)
        if where.startswith(name) and (not rest or rest[0] in ".["):
            return line_of(key), below, rest.removeprefix(".")
    return None
