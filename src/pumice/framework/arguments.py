"""Declared arguments: fields of a dataclass that are read from the scheduler configuration.

A plugin or action declares its arguments as fields; the annotation is the type, ``arg`` has
the YAML key, the default and the bounds:

    @dataclass(kw_only=True)
    class Binpack:
        weight: int = arg("binpack.weight", default=1, minimum=0, doc="factor of the score")
        others: dict[str, int] = arg_pattern("binpack.resources.*", doc="weight of a resource")

``bind_arguments`` reads the file into such fields. A value that cannot be used never
stops it: the default stays and a Problem of severity "ignored" reports it; callers choose how
strict to be. Bound values are shared by every instance made from them: read, do not write.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, dataclass, field
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from pumice.api.conf import Problem, Severity, is_switch
from pumice.api.conf_lines import summary
from pumice.api.duration import parse_duration
from pumice.api.quantity import parse_quantity
from pumice.api.wording import nearest

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


__all__ = [
    "UNKNOWN",
    "Amount",
    "ArgumentRow",
    "Duration",
    "Fault",
    "WholePart",
    "arg",
    "arg_pattern",
    "argument_fields",
    "bind_arguments",
    "describe_arguments",
    "dump_arguments",
]

UNKNOWN: Final = "a known argument"
"""What a problem about an unknown argument wants."""
_METADATA: Final = "pumice.argument"


class _Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a field made by ``arg``."""

    key: str
    pattern: bool
    minimum: float | None
    above: float | None
    maximum: float | None
    choices: Collection[Any] | None
    fallback: Any
    doc: str


class _Argument(msgspec.Struct, frozen=True):
    """One declared field with all its properties."""

    field: str
    kind: Kind
    section: type | None
    declaration: _Declaration
    default: Any

    def suffix(self, key: str) -> str:
        """Return the part of ``key`` that matches the star of a pattern, "" for no match."""
        prefix = self.declaration.key[:-1]
        return key[len(prefix) :] if self.declaration.pattern and key.startswith(prefix) else ""


class ArgumentRow(msgspec.Struct, frozen=True):
    """One argument as shown to users; all columns are text."""

    key: str
    type: str
    default: str
    bounds: str
    doc: str


class Fault(msgspec.Struct, frozen=True):
    """An unusable value of the right type; the key is one that was given."""

    key: str
    wanted: str
    found: object
    hint: str = ""
    severity: Severity = "ignored"
    without: str = ""
    """The action whose absence makes it a fault; empty: it is one in any case."""


def arg(
    key: str,
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    choices: Collection[Any] | None = None,
    fallback: Any = MISSING,
    doc: str = "",
) -> Any:
    """Declare a field that is read from the configuration key ``key``.

    Args:
        key: the key among the arguments of the plugin or action.
        default: the value when the key is absent or unusable.
        default_factory: makes the default, for lists, mappings and sections.
        minimum: least value allowed.
        above: the value must be greater than this.
        maximum: greatest value allowed.
        choices: the only values allowed.
        fallback: what a value out of bounds becomes: a value, or a function of the bad one;
            without it the default.
        doc: one line for users.
    """
    if (default is MISSING) == (default_factory is MISSING):
        raise TypeError(f"argument '{key}' needs either a default or a default_factory")
    declaration = _Declaration(
        key=key,
        pattern=False,
        minimum=minimum,
        above=above,
        maximum=maximum,
        choices=choices,
        fallback=fallback,
        doc=doc,
    )
    metadata = {_METADATA: declaration}
    if default is MISSING:
        return field(default_factory=default_factory, metadata=metadata)
    return field(default=default, metadata=metadata)


@cache
def argument_fields(cls: Any) -> frozenset[str]:
    """Return the names of the fields that are read from the configuration."""
    return frozenset(each.name for each in dataclasses.fields(cls) if _METADATA in each.metadata)


def arg_pattern(
    key: str,
    *,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    choices: Collection[Any] | None = None,
    fallback: Any = MISSING,
    doc: str = "",
) -> Any:
    """Declare a ``dict[str, T]`` field that collects every key of the form ``prefix*``.

    The part that matches the star is the key of the dict. A value out of bounds becomes
    ``fallback`` or, without one, is left out.
    """
    if key.find("*") != len(key) - 1:
        raise TypeError(f"pattern '{key}' needs exactly one star, at its end")
    declaration = _Declaration(
        key=key,
        pattern=True,
        minimum=minimum,
        above=above,
        maximum=maximum,
        choices=choices,
        fallback=fallback,
        doc=doc,
    )
    return field(default_factory=dict, metadata={_METADATA: declaration})


def bind_arguments(
    cls: type,
    arguments: Mapping[str, Any],
    lines: Mapping[str, int] | None = None,
    *,
    path: str = "",
) -> tuple[dict[str, Any], list[Problem]]:
    """Read the arguments of a configuration into the declared fields of ``cls``.

    Return the fields to construct ``cls`` with, absent where the default stays, and the
    problems: each has the severity "ignored", the line that ``lines`` gives for the key, and
    ``path``, such as the name of the plugin, before it.
    """
    binding = _Binding(cls, lines or {}, f"{path}." if path else "")
    for key, value in arguments.items():
        binding.take(key, value)
    return binding.fields, binding.problems


def describe_arguments(cls: type) -> list[ArgumentRow]:
    """List the declared arguments of a dataclass in the order of its fields."""
    return list(_rows(cls, ""))


def dump_arguments(thing: Any) -> dict[str, Any]:
    """Write the declared fields of an instance as a configuration would; None is left out."""
    out: dict[str, Any] = {}
    cls: type = type(thing)
    for each in _arguments(cls):
        value, key = getattr(thing, each.field), each.declaration.key
        if each.declaration.pattern:
            out |= {f"{key[:-1]}{part}": _written(each, item) for part, item in value.items()}
        elif value is not None:
            out[key] = _written(each, value)
    return out


def _written(argument: _Argument, value: Any) -> Any:
    if argument.section is not None:
        return dump_arguments(value)
    return f"{value:.9f}s" if argument.kind is KINDS[Duration] else value


@cache
def _arguments(cls: type) -> tuple[_Argument, ...]:
    """Collect the declared fields of a dataclass; asked once for each class."""
    if any(isinstance(each, dataclasses.Field) for each in vars(cls).values()):
        raise TypeError(f"{cls.__name__} declares arguments but is not a dataclass")
    if not dataclasses.is_dataclass(cls):
        return ()
    hints = get_type_hints(cls)
    found = []
    for each in dataclasses.fields(cls):
        declaration = each.metadata.get(_METADATA)
        if declaration is None:
            continue
        annotation = bare(hints[each.name])
        if declaration.pattern:
            annotation = bare(get_args(annotation)[1]) if get_args(annotation) else Any
        section = annotation if isinstance(annotation, type) else None
        section = section if dataclasses.is_dataclass(section) else None
        kind = MAPPING if section else kind_of(annotation, declaration.key)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        found.append(_Argument(each.name, kind, section, declaration, default))
    return tuple(found)


class _Binding:
    """One call of ``bind_arguments``: takes key after key, collects fields and problems."""

    def __init__(self, cls: type, lines: Mapping[str, int], path: str) -> None:
        self.arguments = _arguments(cls)
        self.exact = {each.declaration.key: each for each in self.arguments}
        self.lines = lines
        self.path = path
        self.fields: dict[str, Any] = {}
        self.problems: list[Problem] = []

    def take(self, key: str, value: Any) -> None:
        """Bind one key, or report why not."""
        argument = self.find(key)
        if argument is None:
            near = nearest(key, self.exact)
            hint = f"did you mean '{near}'?" if near else ""
            if is_switch(key):
                hint = "it is a switch: write it beside the name"
            self.note(key, UNKNOWN, key, hint)
            return
        try:
            bound = self.read(argument, key, value)
        except ValueError:
            hint = f"{self.kept(argument)}{_quotes(argument.kind, value)}"
            self.note(key, argument.kind.name, value, hint)
            return
        if bound is MISSING:
            return
        if argument.declaration.pattern:
            self.fields.setdefault(argument.field, {})[argument.suffix(key)] = bound
        else:
            self.fields[argument.field] = bound

    def find(self, key: str) -> _Argument | None:
        """Return the argument of that very key, else that of the longest matching pattern."""
        if key in self.exact and not self.exact[key].declaration.pattern:
            return self.exact[key]
        matching = [each for each in self.arguments if each.suffix(key)]
        return max(matching, key=lambda each: len(each.declaration.key), default=None)

    def read(self, argument: _Argument, key: str, value: Any) -> Any:
        """Return the value to use, MISSING for the default; raise ValueError on a wrong type."""
        given = argument.kind.read(value)
        if argument.section is not None:
            fields, problems = bind_arguments(
                argument.section,
                given,
                dict.fromkeys(given, self.lines.get(key, 0)),
                path=f"{self.path}{key}",
            )
            self.problems += problems
            return argument.section(**fields)
        if _within(argument.declaration, given):
            return given
        fallback = argument.declaration.fallback
        if callable(fallback):
            fallback = fallback(given)
        wanted = f"{argument.kind.name} {_bounds(argument.declaration)}"
        hint = self.kept(argument) if fallback is MISSING else f"{_plain(fallback)} is used"
        self.note(key, wanted, value, hint)
        return fallback

    def kept(self, argument: _Argument) -> str:
        """Describe what happens without a usable value."""
        if argument.declaration.pattern:
            return "left out"
        return f"the default {_default(argument)} is kept"

    def note(self, key: str, wanted: str, found: object, hint: str) -> None:
        self.problems.append(
            Problem(
                line=self.lines.get(key, 0),
                field=f"{self.path}{key}",
                wanted=wanted,
                found=summary(found),
                hint=hint,
                severity="ignored",
            )
        )


def _quotes(kind: Kind, value: Any) -> str:
    """Suggest to remove quotes, or add them, if that would help."""
    number = kind.name in {"integer", "number"}
    if number and isinstance(value, str) and re.fullmatch(r"[-+]?[0-9.]+", value):
        return "; write it without quotes"
    text = kind.name in {"text", "duration"}
    return "; write it in quotes" if text and isinstance(value, int | float) else ""


def _within(declaration: _Declaration, value: Any) -> bool:
    return (
        (declaration.minimum is None or value >= declaration.minimum)
        and (declaration.above is None or value > declaration.above)
        and (declaration.maximum is None or value <= declaration.maximum)
        and (declaration.choices is None or value in declaration.choices)
    )


def _bounds(declaration: _Declaration) -> str:
    parts = [
        f"{sign} {bound:g}"
        for sign, bound in (
            (">=", declaration.minimum),
            (">", declaration.above),
            ("<=", declaration.maximum),
        )
        if bound is not None
    ]
    if declaration.choices is not None:
        parts.append(f"one of {', '.join(map(str, declaration.choices))}")
    return ", ".join(parts)


def _plain(value: Any) -> str:
    """Write a default as YAML."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value == {} else str(value)


def _default(argument: _Argument) -> str:
    """Write the default of an argument, a duration with its unit."""
    if argument.kind is KINDS[Duration] and argument.default is not None:
        return f"{argument.default:g}s"
    return _plain(argument.default)


def _rows(cls: type, before: str) -> Iterator[ArgumentRow]:
    for each in _arguments(cls):
        key = f"{before}{each.declaration.key}"
        if each.section is not None:
            yield from _rows(each.section, f"{key}: ")
            continue
        default = "" if each.declaration.pattern else _default(each)
        bounds = _bounds(each.declaration)
        yield ArgumentRow(key, each.kind.name, default, bounds, each.declaration.doc)


_ERROR_CACHE = "skip a node for a role that it refused before"


@dataclass(kw_only=True)
class AllocateArguments:
    """Arguments of allocate."""

    remember_errors: bool = arg("predicateErrorCacheEnable", default=True, doc=_ERROR_CACHE)


@dataclass(kw_only=True)
class MinimalVictimsArguments:
    """Arguments of actions that may evict no more than needed."""

    minimal_victims: bool = arg(
        "minimalVictims",
        default=False,
        doc="evict the cheapest set of pods of which none can be spared",
    )
    hysteresis: Duration = arg(
        "hysteresis",
        default=Duration(300.0),
        minimum=0,
        doc="how long a job that lost pods evicts no others; with `minimalVictims`",
    )
    max_per_minute: int = arg(
        "maxEvictionsPerMinute",
        default=0,
        minimum=0,
        doc="most pods that a queue loses in a minute, 0: any number; with `minimalVictims`",
    )


@dataclass(kw_only=True)
class PreemptArguments(MinimalVictimsArguments):
    """Arguments of preempt."""

    remember_errors: bool = arg("predicateErrorCacheEnable", default=True, doc=_ERROR_CACHE)
    by_dry_run: bool = arg(
        "enableTopologyAwarePreemption",
        default=False,
        doc="compare nodes by their victims instead of by their scores",
    )
    percentage: int = arg(
        "minCandidateNodesPercentage",
        default=10,
        doc="share of nodes with victims to compare, in percent; only without scores",
    )
    at_least: int = arg("minCandidateNodesAbsolute", default=1, doc="least number of them")
    at_most: int = arg("maxCandidateNodesAbsolute", default=100, doc="greatest number of them")
    workers: int = arg(
        "topologyAwarePreemptWorkerNum",
        default=16,
        doc="accepted and without effect: nodes are compared all at once",
    )


@dataclass(kw_only=True)
class ForgetfulArguments:
    """Arguments of backfill, and part of those of reclaim.

    Volcano: both make a new cache for each task, so it is always empty.
    """

    remember_errors: bool = arg(
        "predicateErrorCacheEnable",
        default=True,
        doc="accepted and without effect: each task asks all nodes again",
    )


@dataclass(kw_only=True)
class ReclaimArguments(ForgetfulArguments, MinimalVictimsArguments):
    """Arguments of reclaim."""


@dataclass(kw_only=True)
class GangEvictionArguments:
    """Arguments of gangpreempt and gangreclaim."""

    max_domains: int = arg("maxDomains", default=8, minimum=1, doc="network domains to try")
    take_whole: bool = arg(
        "allowWholeBundle", default=True, doc="whether a gang may be evicted below its minMember"
    )


@dataclass(kw_only=True)
class ConsolidateArguments:
    """Arguments of consolidate."""

    max_moves: int = arg(
        "maxMoves", default=4, minimum=1, doc="most pods that move so that a job can start"
    )
    max_jobs: int = arg(
        "maxJobs", default=4, minimum=1, doc="waiting jobs for which a cycle makes a plan"
    )
    pause: Duration = arg(
        "pause",
        default=Duration(300.0),
        minimum=0,
        doc="how long a job that was started or moved so is left alone",
    )


@dataclass(kw_only=True)
class NoArguments:
    """An action without arguments."""


ACTION_ARGUMENTS: dict[str, type] = {
    "allocate": AllocateArguments,
    "backfill": ForgetfulArguments,
    "preempt": PreemptArguments,
    "reclaim": ReclaimArguments,
    "gangpreempt": GangEvictionArguments,
    "gangreclaim": GangEvictionArguments,
    "consolidate": ConsolidateArguments,
}

_T = TypeVar("_T")


def arguments_of(configured: Mapping[str, Any], action: str, cls: type[_T]) -> _T:
    """Read an action's arguments; an unusable value leaves the default."""
    given = own_names(action, configured.get(action) or {})
    return cls(**bind_arguments(cls, given)[0]) if given else cls()


def own_names(action: str, given: Mapping[str, _T]) -> dict[str, _T]:
    """Return arguments by their names alone: ``preempt.minimalVictims`` means the same."""
    return {key.removeprefix(f"{action}."): value for key, value in given.items()}
