"""The types an argument can have, and how a YAML value becomes one; beneath ``arguments``.

Volcano's rules of typing: an integer is a YAML integer and nothing else, a number may be an
integer, a boolean may be quoted, a duration is Go text. A few integers may have a fraction, which
is cut off. Readers raise ValueError and know neither keys nor defaults.
"""

import math
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Final, NewType, Union, get_args, get_origin

import msgspec

from pumice.api.duration import parse_duration
from pumice.api.quantity import parse_quantity

Duration = NewType("Duration", float)
"""Seconds; written as a Go duration such as "1h30m"."""
Amount = NewType("Amount", float)
"""Whole units of a resource; written as a Kubernetes quantity such as "500m" or "2Gi"."""
WholePart = NewType("WholePart", int)
"""An integer; of a number with a fraction, which Volcano cuts off for some arguments."""

_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


class Kind(msgspec.Struct, frozen=True):
    """A type of argument: its display name, and a reader that raises ValueError."""

    name: str
    read: Callable[[Any], Any]


def _read_int(value: Any) -> int:
    if type(value) is not int:
        raise ValueError
    return value


def _read_whole_part(value: Any) -> int:
    return int(_read_float(value))


def _read_float(value: Any) -> float:
    if type(value) not in {int, float} or not math.isfinite(value):
        raise ValueError
    return float(value)


def _read_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value not in _TRUE | _FALSE:
        raise ValueError
    return value in _TRUE


def _read_str(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004  the one signal of every reader
    return value


def _read_duration(value: Any) -> float:
    return parse_duration(_read_str(value))


def _read_amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError  # noqa: TRY004  the one signal of every reader
    return parse_quantity(value) / 10**9


def _read_names(value: Any) -> list[str]:
    if isinstance(value, str):
        return [name for part in value.split(",") if (name := part.strip())]
    return [_read_str(item) for item in _read_list(value)]


def _read_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError  # noqa: TRY004  the one signal of every reader
    return value


def _read_mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError  # noqa: TRY004  the one signal of every reader
    return value


MAPPING: Final = Kind("mapping", _read_mapping)
KINDS: Final[dict[Any, Kind]] = {
    int: Kind("integer", _read_int),
    WholePart: Kind("integer", _read_whole_part),
    float: Kind("number", _read_float),
    bool: Kind("true or false", _read_bool),
    str: Kind("text", _read_str),
    Duration: Kind("duration", _read_duration),
    Amount: Kind("quantity", _read_amount),
    list[str]: Kind("names, comma separated", _read_names),
    Any: Kind("anything", lambda value: value),
}
_CONTAINERS: Final[dict[Any, Kind]] = {
    dict: MAPPING,
    Mapping: MAPPING,
    list: Kind("list", _read_list),
}


def bare(annotation: Any) -> Any:
    """Strip ``| None``: None can be a default, but cannot be written."""
    if get_origin(annotation) in {Union, UnionType}:
        kinds = [each for each in get_args(annotation) if each is not NoneType]
        return kinds[0] if len(kinds) == 1 else annotation
    return annotation


def kind_of(annotation: Any, key: str) -> Kind:
    """Return the kind of an annotation; an annotation without one is a programming error."""
    kind = KINDS.get(annotation) or _CONTAINERS.get(get_origin(annotation) or annotation)
    if kind is None:
        raise TypeError(
            f"argument '{key}' has the annotation {annotation}, which no value can have"
        )
    return kind
