"""Rules of fields as data: a table for each struct, walked in the order of Kubernetes' findings.

The functions here make the usual rules of the names of fields; what depends on several fields is a
function of its own in the same table.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from pumice.webhooks.cpu_budget import check_cpu
from pumice.webhooks.fields import FieldError, Path, forbidden, required, unsupported
from pumice.webhooks.names import Messages, each, labels

Struct = Mapping[str, Any]
Rule = Callable[[Struct, Path, Any], Iterable[FieldError]]
"""Finds faults of a struct at a path; the last argument has the facts around it."""
Test = Callable[[Any], Messages]
"""Returns what is wrong with one value."""
When = Literal["given", "filled", "always"]
"""Which values are looked at: all but null, those that are not empty, or an absent one as empty."""


def walk(rules: Iterable[Rule], struct: Struct, path: Path, around: Any = None) -> list[FieldError]:
    """Find the faults of a struct by a table."""
    check_cpu()
    return [error for rule in rules for error in rule(struct, path, around)]


def _values(struct: Struct, keys: Iterable[str], when: When) -> Iterator[tuple[str, Any]]:
    for key in keys:
        value = struct.get(key, "" if when == "always" else None)
        if value if when == "filled" else value is not None:
            yield key, value


def needed(*keys: str, test: Test | None = None, detail: str = "") -> Rule:
    """Require that fields are filled; then they must pass a test, if there is one."""

    def check(struct: Struct, path: Path, _: Any) -> Iterator[FieldError]:
        for key in keys:
            value = struct.get(key)
            if not value:
                yield required((*path, key), detail)
            elif test is not None:
                yield from each(test(value), (*path, key), value)

    return check


def passes(test: Test, *keys: str, when: When = "given") -> Rule:
    """Require that values pass a test."""

    def check(struct: Struct, path: Path, _: Any) -> Iterator[FieldError]:
        for key, value in _values(struct, keys, when):
            yield from each(test(value), (*path, key), value)

    return check


def all_pass(test: Test, key: str) -> Rule:
    """Require that each value of a list passes a test."""

    def check(struct: Struct, path: Path, _: Any) -> Iterator[FieldError]:
        for index, value in enumerate(struct.get(key) or ()):
            yield from each(test(value), (*path, key, index), value)

    return check


def one_of(key: str, known: Iterable[str], *, when: When = "given") -> Rule:
    """Require a known value."""

    def check(struct: Struct, path: Path, _: Any) -> Iterator[FieldError]:
        for _key, value in _values(struct, (key,), when):
            if value not in known:
                yield unsupported((*path, key), value, known)

    return check


def refused_here(*keys: str, detail: str, when: When = "given") -> Rule:
    """Forbid fields."""

    def check(struct: Struct, path: Path, _: Any) -> Iterator[FieldError]:
        for key, _value in _values(struct, keys, when):
            yield forbidden((*path, key), detail)

    return check


def label_map(key: str) -> Rule:
    """Require that keys and values are those of labels."""
    return lambda struct, path, _: labels(struct.get(key), (*path, key))


def part(key: str, *rules: Rule) -> Rule:
    """Apply a table to a struct inside, if there is one."""

    def check(struct: Struct, path: Path, around: Any) -> Iterator[FieldError]:
        inner = struct.get(key)
        if inner is not None:
            for rule in rules:
                yield from rule(inner, (*path, key), around)

    return check


def inside(key: str, *rules: Rule) -> Rule:
    """Apply a table to a struct inside; an absent one is empty."""

    def check(struct: Struct, path: Path, around: Any) -> Iterator[FieldError]:
        for rule in rules:
            yield from rule(struct.get(key) or {}, (*path, key), around)

    return check


def items(key: str, *rules: Rule) -> Rule:
    """Apply a table to each struct of a list."""

    def check(struct: Struct, path: Path, around: Any) -> Iterator[FieldError]:
        for index, item in enumerate(struct.get(key) or ()):
            for rule in rules:
                yield from rule(item, (*path, key, index), around)

    return check
