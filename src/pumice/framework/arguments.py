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
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, field
from functools import cache
from typing import Any, Final, get_args, get_type_hints

import msgspec

from pumice.api.conf import Problem, Severity, is_switch
from pumice.api.conf_lines import summary
from pumice.api.wording import nearest
from pumice.framework.argument_kinds import (
    KINDS,
    MAPPING,
    Amount,
    Duration,
    Kind,
    WholePart,
    bare,
    kind_of,
)

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

UNKNOWN: Final = "an argument that exists"
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
