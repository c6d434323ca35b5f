"""Reads JSON into a type and gives it back as Go would write it again.

The result has every field Go writes and no other; what does not fit is refused in Go's words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pumice.api.quantity import amount
from pumice.api.schema.grammar import Field, GoType, fields_of, go_type
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


class DecodeError(ValueError):
    """JSON that does not fit a type; the message is Go's, ``path`` the keys that lead there.

    ``found`` and ``wanted`` are types in Go's words, where it is a matter of types.
    """

    def __init__(
        self, message: str, path: tuple[str | int, ...] = (), found: str = "", wanted: str = ""
    ) -> None:
        super().__init__(message)
        self.path = path
        self.found = found
        self.wanted = wanted


@dataclass(slots=True)
class _Place:
    """Where the reading stands: the struct around, the names of fields, and all keys."""

    struct: str = ""
    names: tuple[str, ...] = ()
    keys: tuple[str | int, ...] = ()


@dataclass(slots=True)
class _Reading:
    """One object being read; the first mismatch is told once all is read."""

    from_yaml: bool = False
    first: DecodeError | None = None
    place: _Place = field(default_factory=_Place)

    @property
    def _readers(self) -> Mapping[str, Callable[[Any], Any]]:
        return YAML_READERS if self.from_yaml else READERS

    def mismatch(self, found: str, expected: GoType) -> None:
        """Note a value of the wrong type."""
        if self.first is None:
            self.first = self.told(found, expected.name)

    def told(self, found: str, wanted: str) -> DecodeError:
        """Say in Go's words that a value here has the wrong type."""
        where = (
            f"Go struct field {self.place.struct}.{'.'.join(self.place.names)}"
            if self.place.names
            else "Go value"
        )
        text = f"json: cannot unmarshal {found} into {where} of type {wanted}"
        return DecodeError(text, self.place.keys, found, wanted)

    def read(self, value: Any, expected: GoType) -> Any:
        if value is None:
            return None if expected.pointer else zero(expected)
        if len(self.place.keys) > _DEEPEST:
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
        around = self.place
        fields = fields_of(expected.notation)
        name = expected.name.partition(".")[2]
        read: dict[str, Any] = {}
        for key in sorted(value):  # the order in which an API server writes them
            if key in fields:
                self.place = _Place(name, (*around.names, key), (*around.keys, key))
                read[key] = self.read(value[key], fields[key].type)
        self.place = around
        unknown = (key for key in value if key not in fields) if self.from_yaml else ()
        return _written(fields, read) | {key: value[key] for key in unknown}

    def _list(self, value: Any, expected: GoType) -> list[Any]:
        if not isinstance(value, list):
            self.mismatch(json_name(value), expected)
            return []
        around = self.place
        element = go_type(expected.element)
        items = []
        for index, item in enumerate(value):
            self.place = _Place(around.struct, around.names, (*around.keys, index))
            items.append(self.read(item, element))
        self.place = around
        return items

    def _map(self, value: Any, expected: GoType) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.mismatch(json_name(value), expected)
            return {}
        around = self.place
        element = go_type(expected.element)
        items = {}
        for key in sorted(value):
            self.place = _Place(around.struct, around.names, (*around.keys, key))
            items[key] = self.read(value[key], element)
        self.place = around
        return items


def decode(value: Any, notation: str, *, from_yaml: bool = False) -> dict[str, Any]:
    """Read an object.

    From YAML, a number or a truth value is taken where a text is wanted, and unknown fields are
    kept at the end.

    Raises:
        DecodeError: something in it has the wrong type.
    """
    reading = _Reading(from_yaml)
    try:
        read = reading.read(value, go_type(notation))
    except RefusedError as error:
        if error.found:
            raise reading.told(error.found, error.wanted) from None
        raise DecodeError(str(error), reading.place.keys) from None
    if reading.first is not None:
        raise reading.first
    return dict(read)


def zero(expected: GoType) -> Any:
    """Give what Go has where nothing was said."""
    if expected.pointer or expected.kind in ("list", "map"):
        return None
    if expected.kind == "struct":
        return _written(fields_of(expected.notation), {})
    return ZERO[expected.kind]


def _written(fields: Mapping[str, Field], read: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the fields Go writes, in its order."""
    kept = {}
    for name, each in fields.items():
        content = read.get(name) if name in read else zero(each.type)
        if each.written == "always" or not _is_left_out(content, each):
            kept[name] = content
    return kept


def _is_left_out(content: Any, each: Field) -> bool:
    if each.type.pointer:
        return content is None
    if each.type.kind == "struct" or each.type.kind in STRUCTS:
        return each.written == "nonzero" and content == zero(each.type)
    return content is None or content in ("", 0, False) or content in ([], {})
