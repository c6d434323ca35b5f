"""Objects of Kubernetes' own kinds in protobuf, as clients in Go send them.

Answers are JSON, which every client reads.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final

from pumice.api.json_text import parse_json
from pumice.api.kinds import Manifest
from pumice.apiserver.failures import RequestError
from pumice.errors import InputError
from pumice.webhooks.cpu_budget import check_cpu

MAGIC: Final = b"k8s\0"
_HEAD: Final = "meta.TypeMeta"
_OPTIONS: Final = "DeleteOptions"
_DEEPEST: Final = 64
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNREADABLE: Final = (
    IndexError, ValueError, TypeError, AttributeError, OverflowError, InputError,
)  # fmt: skip
_EMPTY: Final = ("", 0, False, 0.0, None)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message, as ``tools/protobuf_fields.py`` writes it."""

    name: str
    type: str
    """A letter for a scalar, the name of a struct."""
    shape: str = ""
    """``[`` for a list, ``{`` for a map, ``<`` for fields of the struct around it."""
    may_be_empty: bool = False
    """Whether an empty value is one that was sent on purpose."""


@cache
def _lines() -> Mapping[str, str]:
    text = files("pumice.apiserver").joinpath("protobuf_fields.txt").read_text("utf-8")
    return dict(line.split(" ", 1) for line in text.splitlines())


@cache
def _fields(struct: str) -> Mapping[int, Field]:
    """Return the fields of a struct by number."""
    if struct == _HEAD:
        return {1: Field("apiVersion", "s"), 2: Field("kind", "s")}
    found: dict[int, Field] = {}
    for part in _lines()[struct].split():
        number, _, rest = part.partition(":")
        name, _, written = rest.partition("=")
        type_ = written.lstrip("[{<*")
        marks = written.removesuffix(type_)
        found[int(number)] = Field(name, type_, marks.strip("*")[:1], "*" in marks)
    return found


def read_object(data: bytes) -> Manifest:
    """Read an object.

    Raises:
        RequestError: it cannot be read, or its kind is sent as JSON only.
    """
    head: Manifest = {}
    try:
        envelope = dict(_parts(data[len(MAGIC) :]))
        head = _read(envelope.get(1, b""), _HEAD, 0)
        struct = _struct_of(head)
        if data.startswith(MAGIC) and struct is not None:
            return head | _read(envelope.get(2, b""), struct, 0)
    except _UNREADABLE as error:
        raise RequestError(400, f"the body is not protobuf: {error}") from None
    raise RequestError(
        415, f"protobuf of {head.get('kind') or 'this'} is not served: send application/json"
    )


def _struct_of(head: Manifest) -> str | None:
    """Name the struct of a kind, None if its fields are not known."""
    version, kind = head.get("apiVersion", ""), head.get("kind", "")
    struct = f"meta.{kind}" if kind == _OPTIONS else f"{version}.{kind}"
    return struct if struct in _lines() else None


def _read(data: bytes, struct: str, depth: int) -> dict[str, Any]:
    """Read the fields of a message that are known."""
    if depth > _DEEPEST:
        raise ValueError("too deep")
    check_cpu()
    out: dict[str, Any] = {}
    fields = _fields(struct)
    for number, value in _parts(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.shape == "<":
            out |= _read(value, field.type, depth + 1)
        elif field.shape == "{":
            key, item = _pair(value, field.type, depth)
            out.setdefault(field.name, {})[key] = item
        elif field.shape == "[":
            out.setdefault(field.name, []).append(_value(value, field.type, depth))
        else:
            found = _value(value, field.type, depth)
            if field.may_be_empty or (found not in _EMPTY and found != {}):
                out[field.name] = found
    return out


def _pair(data: bytes, type_: str, depth: int) -> tuple[str, Any]:
    parts = dict(_parts(data))
    given = parts.get(2)
    item = _NOTHING.get(type_, b"") if given is None else given
    return parts.get(1, b"").decode(), _value(item, type_, depth)


_NOTHING: Final[Mapping[str, Any]] = {"i": 0, "b": 0}


def _value(value: Any, type_: str, depth: int) -> Any:
    match type_:
        case "s":
            return value.decode()
        case "i":
            return value - (1 << 64) if value >> 63 else value
        case "b":
            return bool(value)
        case "y":
            return base64.b64encode(value).decode()
        case "q":
            return dict(_parts(value)).get(1, b"0").decode()
    return _special(value, type_) if len(type_) == 1 else _read(value, type_, depth + 1)


def _special(value: Any, type_: str) -> Any:
    """Read a message that JSON writes as one value."""
    if type_ == "l":
        return [item.decode() for _, item in _parts(value)]
    parts = dict(_parts(value))
    if type_ == "x":
        number = parts.get(2, 0)
        number = number - (1 << 64) if number >> 63 else number
        return parts.get(3, b"").decode() if parts.get(1) else number
    if type_ == "r":
        return parse_json(parts.get(1, b"null").decode(), "raw", unique=False)
    seconds = _value(parts.get(1, 0), "i", 0)
    if not parts:
        return None
    moment = _START + timedelta(seconds=seconds, microseconds=parts.get(2, 0) // 1000)
    if type_ == "u":
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _parts(data: bytes) -> Iterator[tuple[int, Any]]:
    """Split a message into field numbers and values."""
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _number(data, at)
            yield number, value
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"wire type {wire}")
        length, at = _number(data, at) if wire == 2 else (8 if wire == 1 else 4, at)
        if at + length > len(data):
            raise ValueError("cut off")
        yield number, data[at : at + length]
        at += length


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte; return it and where it ends."""
    value = shift = 0
    while shift < 64 + 7:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value & _WORD, at
    raise ValueError("a number of more than 64 bits")


_WORD: Final = (1 << 64) - 1
