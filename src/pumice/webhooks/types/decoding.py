"""Reads JSON into a type and returns it as Go would write it again.

The result has every field Go writes and no other; a mismatch is refused in Go's words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from pumice.api.quantity import amount
from pumice.api.schema.grammar import Field, GoType, fields_of, go_type
from pumice.webhooks.cpu_budget import check_cpu
from pumice.webhooks.types.scalars import (
    READERS,
    STRUCTS,
    YAML_READERS,
    ZERO,
    MismatchError,
    RefusedError,
    json_name,
)


def same(one: Any, other: Any, notation: str) -> bool:
    """Compare two values of a type."""
    return _same(one, other, go_type(notation))


def _same(one: Any, other: Any, expected: GoType) -> bool:
    if expected.pointer and (one is None or other is None):
        return one is None and other is None
    if expected.kind == "struct":
        fields = fields_of(expected.notation)
        left, right = one or {}, other or {}
        return all(_same(left.get(k), right.get(k), each.type) for k, each in fields.items())
    if expected.kind == "list":
        left, right = one or [], other or []
        element = go_type(expected.element)
        return len(left) == len(right) and all(
            _same(a, b, element) for a, b in zip(left, right, strict=True)
        )
    if expected.kind == "map":
        left, right = one or {}, other or {}
        element = go_type(expected.element)
        return set(left) == set(right) and all(_same(left[k], right[k], element) for k in left)
    if expected.kind == "Quantity":
        return amount(one or "0").nano == amount(other or "0").nano
    return (one or None) == (other or None) if not expected.pointer else bool(one == other)


_DEEPEST: Final = 200
_LOOKS: Final = 64
"""Items after which the clock is checked."""


class DecodeError(ValueError):
    """JSON that does not fit a type; the message is Go's, ``path`` the keys that lead there.

    ``found`` and ``wanted`` are types in Go's words, for a mismatch of types; for a text of the
    wrong form, ``found`` is the text.  ``shape`` is what a type with a name of its own is made of.
    """

    def __init__(
        self,
        message: str,
        path: tuple[str | int, ...] = (),
        found: str = "",
        wanted: str = "",
        shape: str = "",
    ) -> None:
        super().__init__(message)
        self.path = path
        self.found = found
        self.wanted = wanted
        self.shape = shape


@dataclass(slots=True)
class _Reading:
    """One object being read; the first mismatch is raised once all is read."""

    from_yaml: bool = False
    first: DecodeError | None = None
    struct: str = ""
    """The struct around the current place."""
    names: list[str] = field(default_factory=list)
    """The names of fields that lead to the current place."""
    keys: list[str | int] = field(default_factory=list)
    """All keys that lead to the current place."""

    @property
    def _readers(self) -> Mapping[str, Callable[[Any], Any]]:
        return YAML_READERS if self.from_yaml else READERS

    def mismatch(self, found: str, expected: GoType) -> None:
        """Record a value of the wrong type."""
        if self.first is None:
            self.first = self.mismatch_error(found, expected.name, expected.kind)

    def mismatch_error(self, found: str, wanted: str, shape: str = "") -> DecodeError:
        """Return the error, in Go's words, that a value here has the wrong type."""
        where = (
            f"Go struct field {self.struct}.{'.'.join(self.names)}" if self.names else "Go value"
        )
        text = f"json: cannot unmarshal {found} into {where} of type {wanted}"
        return DecodeError(text, tuple(self.keys), found, wanted, shape)

    def read(self, value: Any, expected: GoType) -> Any:
        if value is None:
            return None if expected.pointer else zero(expected)
        if len(self.keys) > _DEEPEST:
            raise RefusedError("exceeded max depth")
        if expected.kind == "struct":
            return self._struct(value, expected)
        if expected.kind == "list":
            return self._list(value, expected)
        if expected.kind == "map":
            return self._map(value, expected)
        try:
            return self._readers[expected.kind](value)
        except MismatchError as error:
            self.mismatch(error.found, expected)
            return zero(expected)

    def _struct(self, value: Any, expected: GoType) -> Any:
        if not isinstance(value, dict):
            self.mismatch(json_name(value), expected)
            return zero(expected)
        around, self.struct = self.struct, expected.name.partition(".")[2]
        fields = fields_of(expected.notation)
        read: dict[str, Any] = {}
        for key in sorted(value):  # the order in which an API server writes them
            if (each := fields.get(key)) is None:
                continue
            if type(part := value[key]) is str and each.type.kind == "string":
                read[key] = part
                continue
            self.names.append(key)
            self.keys.append(key)
            read[key] = self.read(part, each.type)
            self.keys.pop()
            self.names.pop()
        self.struct = around
        unknown = (key for key in value if key not in fields) if self.from_yaml else ()
        return _written(expected.notation, read) | {key: value[key] for key in unknown}

    def _list(self, value: Any, expected: GoType) -> list[Any]:
        if not isinstance(value, list):
            self.mismatch(json_name(value), expected)
            return []
        element = go_type(expected.element)
        items = []
        for index, item in enumerate(value):
            if not index % _LOOKS:
                check_cpu()
            self.keys.append(index)
            items.append(self.read(item, element))
            self.keys.pop()
        return items

    def _map(self, value: Any, expected: GoType) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.mismatch(json_name(value), expected)
            return {}
        element = go_type(expected.element)
        items = {}
        for key in sorted(value):
            if type(value[key]) is str and element.kind == "string":
                items[key] = value[key]
                continue
            self.keys.append(key)
            items[key] = self.read(value[key], element)
            self.keys.pop()
        return items


def decode(value: Any, notation: str, *, from_yaml: bool = False) -> dict[str, Any]:
    """Read an object.

    From YAML, a number or a truth value is taken where a text is wanted, and unknown fields are
    kept at the end.

    Raises:
        DecodeError: something in it has the wrong type.
    """
    usual = None if from_yaml else _usual_reader()(value, notation)
    return _read_by_field(value, notation, from_yaml=from_yaml) if usual is None else usual


@cache
def _usual_reader() -> Callable[[Any, str], dict[str, Any] | None]:
    from pumice.webhooks.types.compiled import read_usual  # noqa: PLC0415 - not for help

    return read_usual


def _read_by_field(value: Any, notation: str, *, from_yaml: bool) -> dict[str, Any]:
    reading = _Reading(from_yaml)
    try:
        read = reading.read(value, go_type(notation))
    except RefusedError as error:
        if error.found:
            raise reading.mismatch_error(error.found, error.wanted) from None
        keys = tuple(reading.keys)
        raise DecodeError(str(error), keys, error.text, error.wanted) from None
    if reading.first is not None:
        raise reading.first
    return dict(read)


def zero(expected: GoType) -> Any:
    """Return Go's zero value."""
    if expected.pointer or expected.kind in ("list", "map"):
        return None
    if expected.kind == "struct":
        return _copied(_zero_struct(expected.notation))
    return ZERO[expected.kind]


@cache
def _zero_struct(struct: str) -> dict[str, Any]:
    return _written(struct, {})


def _copied(content: dict[str, Any]) -> dict[str, Any]:
    return {k: _copied(v) if isinstance(v, dict) else v for k, v in content.items()}


@cache
def _order(struct: str) -> Mapping[str, int]:
    """Number the fields of a struct in the order in which Go writes them."""
    return {name: number for number, name in enumerate(fields_of(struct))}


@cache
def _always(struct: str) -> tuple[Field, ...]:
    """Return the fields that Go writes even if they are empty."""
    return tuple(
        each
        for each in fields_of(struct).values()
        if each.written == "always" or not _is_left_out(zero(each.type), each)
    )


def _written(struct: str, read: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the fields Go writes, in its order."""
    fields = fields_of(struct)
    kept = {
        name: content
        for name, content in read.items()
        if fields[name].written == "always" or not _is_left_out(content, fields[name])
    }
    for each in _always(struct):
        if each.name not in read:
            kept[each.name] = zero(each.type)
    return in_order(kept, struct)


def in_order(content: Mapping[str, Any], struct: str) -> dict[str, Any]:
    """Put the fields of a struct in the order in which Go writes them."""
    names = [*content]
    ordered = sorted(names, key=_order(struct).__getitem__) if len(names) > 1 else names
    return dict(content) if ordered == names else {name: content[name] for name in ordered}


def _is_left_out(content: Any, each: Field) -> bool:
    if each.type.pointer:
        return content is None
    if each.type.kind == "struct" or each.type.kind in STRUCTS:
        return each.written == "nonzero" and bool(content == zero(each.type))
    return not content
