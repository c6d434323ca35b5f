"""Small core objects in Kubernetes' protobuf, which kubectl sends from `kubectl create KIND`.

Only the kinds that users create by hand with it are read; for others clients send JSON.
"""

import base64
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.apiserver.failures import RequestError

MAGIC: Final = b"k8s\0"

Fields = Mapping[int, tuple[str, Any]]
"""Number to name and type: text, number, flag, bytes, a map or list of one, or fields."""

_META: Final[Fields] = {
    1: ("name", "text"),
    2: ("generateName", "text"),
    3: ("namespace", "text"),
    11: ("labels", ("map", "text")),
    12: ("annotations", ("map", "text")),
    14: ("finalizers", ("list", "text")),
}
_QUANTITY: Final = ("only", {1: ("string", "text")})
_KINDS: Final[Mapping[tuple[str, str], Fields]] = MappingProxyType(
    {
        ("v1", "Namespace"): {},
        ("v1", "ServiceAccount"): {},
        ("v1", "ConfigMap"): {
            2: ("data", ("map", "text")),
            3: ("binaryData", ("map", "bytes")),
            4: ("immutable", "flag"),
        },
        ("v1", "Secret"): {
            2: ("data", ("map", "bytes")),
            3: ("type", "text"),
            4: ("stringData", ("map", "text")),
            5: ("immutable", "flag"),
        },
        ("v1", "ResourceQuota"): {
            2: ("spec", {1: ("hard", ("map", _QUANTITY)), 2: ("scopes", ("list", "text"))})
        },
        ("scheduling.k8s.io/v1", "PriorityClass"): {
            2: ("value", "number"),
            3: ("globalDefault", "flag"),
            4: ("description", "text"),
            5: ("preemptionPolicy", "text"),
        },
    }
)


def read_object(data: bytes) -> Manifest:
    """Read an object.

    Raises:
        RequestError: it cannot be read, or its kind is sent as JSON only.
    """
    try:
        envelope = _read(
            data[len(MAGIC) :],
            {1: ("head", {1: ("apiVersion", "text"), 2: ("kind", "text")}), 2: ("raw", "raw")},
        )
        head = envelope.get("head", {})
        fields = _KINDS.get((head.get("apiVersion", ""), head.get("kind", "")))
        if data.startswith(MAGIC) and fields is not None:
            return head | _read(envelope.get("raw", b""), {1: ("metadata", _META), **fields})
    except (IndexError, ValueError) as error:
        raise RequestError(400, f"the body is not protobuf: {error}") from None
    raise RequestError(
        415,
        f"protobuf of {head.get('kind') or 'this'} is not served: send JSON, for example by "
        "'--dry-run=client -o yaml | kubectl apply -f -'",
    )


def _read(data: bytes, fields: Fields) -> dict[str, Any]:
    """Read the fields of a message that are known."""
    out: dict[str, Any] = {}
    for number, value in _parts(data):
        if number not in fields:
            continue
        name, shape = fields[number]
        if isinstance(shape, tuple) and shape[0] == "map":
            pair = _read(value, {1: ("key", "text"), 2: ("value", shape[1])})
            out.setdefault(name, {})[pair.get("key", "")] = pair.get("value", "")
        elif isinstance(shape, tuple) and shape[0] == "list":
            out.setdefault(name, []).append(_value(value, shape[1]))
        else:
            out[name] = _value(value, shape)
    return {key: value for key, value in out.items() if value != ""}


def _value(value: Any, shape: Any) -> Any:
    if shape == "number":
        return value - (1 << 64) if value >> 63 else value
    if shape == "flag":
        return bool(value)
    if shape == "text":
        return value.decode()
    if shape == "bytes":
        return base64.b64encode(value).decode()
    if isinstance(shape, tuple):  # a message with one field is that field
        return next(iter(_read(value, shape[1]).values()), "")
    return value if shape == "raw" else _read(value, shape)


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
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
