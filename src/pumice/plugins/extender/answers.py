"""The answers of an extender, read as Go reads JSON into Volcano's structures.

Used by the extender plugin.  Keys match in any case, the last one counts, and ``null`` leaves a
field empty; a value of the wrong type makes the whole answer unusable, unknown keys do not.
"""

import sys
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar

import msgspec

from pumice.errors import InputError

_Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_Float64 = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]


class IgnoredAnswer(msgspec.Struct):
    """An answer whose content is ignored."""


class Fit(msgspec.Struct):
    """Why a node does not fit, empty if it does."""

    status: str = ""
    code: _Int64 = 0


class Scores(msgspec.Struct):
    """Scores by node name."""

    nodeScore: dict[str, _Float64] | None = None  # noqa: N815  # the key of the answer
    errorMessage: str = ""  # noqa: N815


class Amounts(msgspec.Struct):
    """The request of a task in an answer."""

    MilliCPU: _Float64 = 0.0
    Memory: _Float64 = 0.0
    ScalarResources: dict[str, _Float64] = {}
    MaxTaskNum: _Int64 = 0


class Victim(msgspec.Struct):
    """A task in an answer; only its UID counts, the rest must have the right types."""

    UID: str = ""
    Job: str = ""
    Name: str = ""
    Namespace: str = ""
    TaskRole: str = ""
    Resreq: Amounts | None = None
    InitResreq: Amounts | None = None
    NodeName: str = ""
    Status: _Int64 = 0
    Priority: Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)] = 0
    Preemptable: bool = False
    BestEffort: bool = False
    SchGated: bool = False
    RevocableZone: str = ""
    Pod: dict[str, Any] = {}


class Victims(msgspec.Struct):
    """Tasks that may be evicted, and whether the service has an opinion."""

    status: _Int64 = 0
    victims: list[Victim] = []


class Overused(msgspec.Struct):
    """Whether a queue must wait."""

    overused: bool = False


class Vote(msgspec.Struct):
    """A vote on a job."""

    status: _Int64 = 0


class Ready(msgspec.Struct):
    """Whether a job can start."""

    status: bool = False


class Handled(msgspec.Struct):
    """The error of a placement or an eviction."""

    errorMessage: str = ""  # noqa: N815


_PARTS: Final[dict[tuple[type, str], type[msgspec.Struct]]] = {
    (Victims, "victims"): Victim,
    (Victim, "Resreq"): Amounts,
    (Victim, "InitResreq"): Amounts,
}
"""Fields that hold structures, alone or in a list."""
A = TypeVar("A", bound=msgspec.Struct)


def read_answer(found: Mapping[str, Any], kind: type[A]) -> A:
    """Read an answer.

    Raises:
        InputError: something in it has the wrong type.
    """
    if not found:
        return kind()
    try:
        return msgspec.convert(_fitted(found, kind), kind)
    except msgspec.ValidationError as error:
        raise InputError(wanted="an answer of the right types", hint=str(error)) from error


@cache
def _names(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {name.casefold(): name for name in kind.__struct_fields__}


def _fitted(value: Any, kind: type[msgspec.Struct]) -> Any:
    """Rename the keys of a structure to those of its fields, and drop nulls."""
    if not isinstance(value, dict):
        return value
    names = _names(kind)
    fitted: dict[str, Any] = {}
    for key, item in value.items():
        name = names.get(key.casefold())
        if name is not None and len(name) == len(key) and item is not None:
            fitted[name] = _fitted_item(item, _PARTS.get((kind, name)))
    return fitted


def _fitted_item(item: Any, part: type[msgspec.Struct] | None) -> Any:
    if part is not None and isinstance(item, list):
        return [_fitted(each, part) for each in item if each is not None]
    if part is not None:
        return _fitted(item, part)
    if isinstance(item, dict):
        return {key: content for key, content in item.items() if content is not None}
    return item
