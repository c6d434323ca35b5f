"""Types as declared, compiled: they read objects of the usual form at once.

What they do not take may still be right, such as null for an empty list; ``decoding`` then reads it
field by field, and has the messages.
"""

from functools import cache, lru_cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from pumice.api.schema.grammar import Field, GoType, fields_of, go_type
from pumice.webhooks.types.scalars import (
    RFC_3339,
    STRUCTS,
    WHOLE_BITS,
    ZERO,
    RefusedError,
    read_quantity,
)


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
