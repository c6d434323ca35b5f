"""Types of Go: JSON is read into a type and returned as Go would write it again.

The result has every field Go writes and no other; a mismatch is refused in Go's words.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from pumice.api.duration import DurationFormError, duration_text, nanoseconds
from pumice.api.quantity import QuantityFormError, amount
from pumice.api.schema.grammar import Field, GoType, fields_of, go_type
from pumice.webhooks.cpu_budget import check_cpu
from pumice.webhooks.fields import quoted

_DIGITS: Final = "[0-9](?:_?[0-9])*"  # Go lets underscores separate digits
_FLOAT: Final = re.compile(
    rf"[+-]?(?:(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?"
    "|inf(?:inity)?|nan)",
    re.IGNORECASE,
)
_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


class GoNumberError(ValueError):
    """A text that is not a number; the message is Go's."""


def parse_float(text: str) -> float:
    """Read a floating point number.

    Raises:
        GoNumberError: not a number, or too large.
    """
    if _HEX.fullmatch(text):
        number = float.fromhex(text)
    elif _FLOAT.fullmatch(text) and not re.match(r"[+-]nan", text, re.IGNORECASE):
        number = float(text)
    else:
        raise GoNumberError(f"strconv.ParseFloat: parsing {quoted(text)}: invalid syntax")
    if math.isinf(number) and "n" not in text.lower():
        raise GoNumberError(f"strconv.ParseFloat: parsing {quoted(text)}: value out of range")
    return number


def parse_int(text: str, *, bits: int = 64) -> int:
    """Read a whole number.

    Raises:
        GoNumberError: not a number, or too large.
    """
    if _INTEGER.fullmatch(text) is None:
        raise GoNumberError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    number = int(text) if len(text) < 100 else 2**64
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise GoNumberError(f"strconv.Atoi: parsing {quoted(text)}: value out of range")
    return number


RFC_3339: Final = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:\d{2})"
"""The pattern of a time."""
_TIME: Final = re.compile(RFC_3339)
WHOLE_BITS: Final = {"int32": 31, "int64": 63, "int": 63}
"""Bits of whole numbers, without the sign."""


class MismatchError(ValueError):
    """A value of another type; ``found`` is Go's word for it."""

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.found = found


class RefusedError(ValueError):
    """A value that a type's own reader refuses; ends the reading of the whole object.

    ``found`` and ``wanted`` are Go's words if it is of the wrong type; otherwise ``text`` is the
    value, and ``wanted`` the type whose form it does not have.
    """

    def __init__(
        self, problem: str = "", *, found: str = "", wanted: str = "", text: str = ""
    ) -> None:
        super().__init__(problem)
        self.text = text
        self.found = found
        self.wanted = wanted


def json_name(value: Any) -> str:
    """Return Go's word for the type of a JSON value."""
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    if isinstance(value, bool | str):
        return "bool" if isinstance(value, bool) else "string"
    return "number"


def number_text(value: float) -> str:
    """Write a number as Go's JSON does."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return "null"
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" in text:
        digits, _, exponent = text.partition("e")
        return f"{digits}e{int(exponent):+03d}" if abs(value) >= 1 else f"{digits}e{int(exponent)}"
    return text


def read_text(value: Any) -> str:
    """Accept a string."""
    if isinstance(value, str):
        return value
    raise MismatchError(json_name(value))


def _read_yaml_text(value: Any) -> str:
    """Accept a string, or a single value in its spelling."""
    if isinstance(value, bool):
        return str(value).lower()
    return number_text(value) if isinstance(value, int | float) else read_text(value)


def read_flag(value: Any) -> bool:
    """Accept a boolean."""
    if isinstance(value, bool):
        return value
    raise MismatchError(json_name(value))


def _read_whole(kind: str) -> Callable[[Any], int]:
    bits = WHOLE_BITS[kind]

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise MismatchError(json_name(value))
        whole = int(value) if isinstance(value, float) and _is_whole(value) else value
        if isinstance(whole, float) or not -(1 << bits) <= whole < 1 << bits:
            raise MismatchError(f"number {number_text(value)}")
        return whole

    return read


def _is_whole(value: float) -> bool:
    return math.isfinite(value) and value.is_integer() and abs(value) < 1e21


def read_quantity(value: Any) -> str:
    """Accept an amount; return its canonical spelling."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        text = number_text(value)
    else:
        text = json.dumps(value)
    try:
        return str(amount(text.strip()))
    except QuantityFormError as error:
        raise RefusedError(str(error), text=text, wanted="Quantity") from None


def read_duration(value: Any) -> str:
    """Accept a duration such as ``1h30m``; return its canonical spelling."""
    if not isinstance(value, str):
        raise RefusedError(found=json_name(value), wanted="string")
    try:
        return duration_text(nanoseconds(value))
    except DurationFormError as error:
        raise RefusedError(str(error), text=value, wanted="Duration") from None


def read_time(value: Any) -> str:
    """Accept a time of day in RFC 3339."""
    if not isinstance(value, str):
        raise RefusedError(found=json_name(value), wanted="string")
    if _TIME.fullmatch(value) is None:
        quoted = json.dumps(value, ensure_ascii=False)
        layout = '"2006-01-02T15:04:05Z07:00"'
        problem = f'parsing time {quoted} as {layout}: cannot parse {quoted} as "2006"'
        raise RefusedError(problem, text=value, wanted="Time")
    return value


def read_int_or_string(value: Any) -> int | str:
    """Accept a port or the like: a number or a name."""
    if isinstance(value, str):
        return value
    try:
        return READERS["int32"](value)
    except MismatchError as error:
        raise RefusedError(found=error.found, wanted="int32") from None


READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": read_text,
    "bool": read_flag,
    "int32": _read_whole("int32"),
    "int64": _read_whole("int64"),
    "int": _read_whole("int"),
    "Quantity": read_quantity,
    "Duration": read_duration,
    "Time": read_time,
    "IntOrString": read_int_or_string,
    "any": lambda value: value,
}
YAML_READERS: Final = {**READERS, "string": _read_yaml_text}
ZERO: Final[Mapping[str, Any]] = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "int": 0,
    "Quantity": "0", "Duration": "0s", "Time": None, "IntOrString": 0, "any": None,
}  # fmt: skip
STRUCTS: Final = frozenset({"Quantity", "Duration", "Time", "IntOrString"})
"""Scalars that are structs to Go: ``omitempty`` does not leave them out."""


class _Quantity(type):
    """The type of amounts: texts, as Kubernetes spells them."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, str)


class Quantity(metaclass=_Quantity):
    """An amount, which users may spell as a number or in other units."""


def read_usual(value: Any, notation: str) -> dict[str, Any] | None:
    """Return an object as Go would write it again, None if it is not of the usual form."""
    try:
        read = msgspec.convert(value, _struct(notation), dec_hook=_spelled)
        written: dict[str, Any] = msgspec.to_builtins(read, order="deterministic")
    except (ValueError, TypeError, RecursionError):  # such as a surrogate, or keys that are no text
        return None
    return written


def _spelled(_: type, value: Any) -> str:
    """Spell an amount as Kubernetes does."""
    if type(value) not in (str, int, float):
        raise ValueError
    return _spelling(value)


@lru_cache(maxsize=4096, typed=True)
def _spelling(value: str | float) -> str:
    try:
        return read_quantity(value)
    except RefusedError:
        raise ValueError from None


@cache
def _struct(notation: str) -> type[msgspec.Struct]:
    """Compile a struct; its fields are in Go's order, and those that Go leaves out are left out."""
    fields = [*fields_of(notation).values()]
    return msgspec.defstruct(
        f"Usual_{notation.replace('.', '_')}",
        [(f"{each.name}_", _type(each.type), _default(each)) for each in fields],
        rename={f"{each.name}_": each.name for each in fields},
        omit_defaults=True,
        gc=False,
    )


def _type(expected: GoType) -> Any:
    if expected.kind == "struct":
        return _struct(expected.notation)
    if expected.kind == "list":
        return list[_type(go_type(expected.element))]  # type: ignore[misc]
    if expected.kind == "map":
        return dict[str, _type(go_type(expected.element))]  # type: ignore[misc]
    return _SCALARS[expected.kind]


def _whole(bits: int) -> Any:
    return Annotated[int, Meta(ge=-(1 << bits), le=(1 << bits) - 1)]


_SCALARS: Final = {
    "string": str,
    "bool": bool,
    **{kind: _whole(bits) for kind, bits in WHOLE_BITS.items()},
    "Quantity": Quantity,
    "Duration": Annotated[str, Meta(pattern=r"\A[1-9]s\Z")],
    "Time": Annotated[str, Meta(pattern=rf"\A{RFC_3339}\Z")],
    "IntOrString": _whole(WHOLE_BITS["int32"]) | str,
    "any": Annotated[dict[str, Any], Meta(min_length=1)],
}


def _default(each: Field) -> Any:
    """Return the value of an absent field: left out as a default, written as one that is made."""
    expected = each.type
    if expected.pointer:
        return msgspec.field(default=None) if each.written != "always" else _made(None)
    if expected.kind == "struct":
        return msgspec.field(default_factory=_struct(expected.notation))
    if expected.kind in ("list", "map"):
        empty = {"list": list, "map": dict}[expected.kind]
        return msgspec.field(default_factory=empty) if each.written != "always" else _made(None)
    zero = ZERO[expected.kind]
    leaves_out = each.written == "nonzero" if expected.kind in STRUCTS else each.written == "filled"
    return msgspec.field(default=zero) if leaves_out else _made(zero)


def _made(value: Any) -> Any:
    return msgspec.field(default_factory=lambda: value)


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
    usual = None if from_yaml else read_usual(value, notation)
    return _read_by_field(value, notation, from_yaml=from_yaml) if usual is None else usual


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
