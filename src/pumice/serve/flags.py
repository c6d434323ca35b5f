"""Flags as Go programs take them: one dash or two, ``--flag=value``, durations such as 1m30s.

A flag is declared once, as a field of the options of a process: ``flag(default, help)`` for one
that has an effect, ``ignored(default, why)`` for one of Volcano's that has none here.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, Literal, TypeVar, get_type_hints

from pumice.api.duration import parse_duration
from pumice.api.wording import nearest
from pumice.errors import InputError, Words

Kind = Literal[
    "string", "bool", "int", "float", "duration", "address", "array", "slice", "gates", "levels"
]
_T = TypeVar("_T")
_FLAG: Final = "flag"
_KINDS: Final[Mapping[Any, Kind]] = {bool: "bool", int: "int", float: "float", str: "string"}
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_REDIRECTION: Final = "2>&1"
"""Volcano's manifests pass this word literally, though it is meant for a shell."""


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One flag of a process: its type, its effect, and the field of the options it sets."""

    name: str
    """Without dashes."""
    field: str
    kind: Kind
    default: Any
    help: str = ""
    ignored: str = ""
    """Why it has no effect; the log says so if the value is not the default."""
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


def flag(
    default: _T,
    help: str,  # noqa: A002  # what it is called everywhere
    *,
    kind: Kind | None = None,
    choices: tuple[str, ...] = (),
    least: float | None = None,
    most: float | None = None,
) -> _T:
    """Declare a field of options that a flag sets, by default with the kind of its type."""
    declared: dict[str, Any] = {"help": help, "choices": choices, "least": least, "most": most}
    if kind is not None:
        declared["kind"] = kind
    return _declare(default, declared)


def ignored(default: _T, why: str, *, choices: tuple[str, ...] = ()) -> _T:
    """Declare a field of options for a flag that is accepted and has no effect."""
    return _declare(default, {"ignored": why, "choices": choices})


def _declare(default: _T, declared: Mapping[str, Any]) -> _T:
    return field(default_factory=lambda: default, metadata={_FLAG: declared})


def flags_of(options: type[Any]) -> tuple[Flag, ...]:
    """List the flags of a class of options, in the order of its fields.

    A class that declares a field of its base again, with a plain value, changes the default only.
    """
    declared: dict[str, Mapping[str, Any]] = {}
    for base in reversed(options.__mro__):
        for each in fields(base) if is_dataclass(base) else ():
            declared[each.name] = each.metadata.get(_FLAG) or declared[each.name]
    defaults, types = options(), get_type_hints(options)
    return tuple(
        _flag(name, types[name], getattr(defaults, name), help_text)
        for name, help_text in declared.items()
    )


def _flag(field_name: str, annotation: Any, default: Any, declared: Mapping[str, Any]) -> Flag:
    is_duration = annotation is float and field_name.endswith("_s")
    name = field_name.removesuffix("_s") if is_duration else field_name
    kind = "duration" if is_duration else _KINDS.get(annotation, "slice")
    return Flag(
        **{"kind": kind, **declared}, name=name.replace("_", "-"), field=field_name, default=default
    )


@dataclass
class Parsed:
    """The content of a command line."""

    values: dict[str, Any] = field(default_factory=dict)
    """Options by field name, if they are given."""
    warnings: list[str] = field(default_factory=list)
    wants_help: bool = False


def parse(flags: Sequence[Flag], words: Sequence[str]) -> Parsed:
    """Read a command line.

    Raises:
        InputError: a flag that does not exist, or a value it cannot have.
    """
    known = {flag.name: flag for flag in flags}
    parsed = Parsed()
    rest = [*words]
    while rest:
        word = rest.pop(0)
        if word == _REDIRECTION:
            continue
        name, text = _split(word)
        if name in ("help", "h"):
            parsed.wants_help = True
            continue
        flag = known.get(name)
        if flag is None:
            raise _unknown(name, known)
        if text is None:
            text = _value_of(flag, rest)
        _take(flag, text, parsed)
    return parsed


def _split(word: str) -> tuple[str, str | None]:
    """Return the name of a flag and its value, if it is in the same word."""
    dashes = len(word) - len(word.lstrip("-"))
    name, equals, text = word[dashes:].partition("=")
    if dashes not in (1, 2) or not name:
        hint = "values of switches follow an equals sign, as in --leader-elect=false"
        raise InputError(wanted="a flag", found=word, hint=hint)
    return name.replace("_", "-"), text if equals else None


def _value_of(flag: Flag, rest: list[str]) -> str:
    if flag.kind == "bool":
        return "true"
    if not rest:
        raise InputError(
            field=f"--{flag.name}", wanted=_wanted(flag), found=Words("nothing after it")
        )
    return rest.pop(0)


def _unknown(name: str, known: Collection[str]) -> InputError:
    near = nearest(name, known)
    dash = "-" if len(name) == 1 else "--"
    hint = f"did you mean --{near}?" if near else "--help lists them"
    return InputError(wanted="a known flag", found=f"{dash}{name}", hint=hint)


def _take(flag: Flag, text: str, parsed: Parsed) -> None:
    value = _READERS[flag.kind](flag, text)
    _check(flag, value, text)
    if flag.ignored:
        if value != flag.default:
            warning = f"--{flag.name} has no effect: {flag.ignored}"
            parsed.warnings = [*dict.fromkeys((*parsed.warnings, warning))]
        return
    if flag.kind in ("array", "slice"):
        value = (*parsed.values.get(flag.field, ()), *value)
    if flag.kind == "gates":
        unknown = sorted(value.keys() - flag.default.keys())
        parsed.warnings += [f"feature gate {name} is not known and ignored" for name in unknown]
        ours = {name: on for name, on in value.items() if name in flag.default}
        value = {**flag.default, **parsed.values.get(flag.field, {}), **ours}
    parsed.values[flag.field] = value


def _check(flag: Flag, value: Any, text: str) -> None:
    outside = (flag.least is not None and value < flag.least) or (
        flag.most is not None and value > flag.most
    )
    if outside or (flag.choices and value not in flag.choices):
        raise _bad(flag, text)


def _bad(flag: Flag, text: str, hint: str = "") -> InputError:
    return InputError(field=f"--{flag.name}", wanted=_wanted(flag), found=text, hint=hint)


def _wanted(flag: Flag) -> str:
    if flag.choices:
        return " or ".join(f'"{choice}"' for choice in flag.choices)
    bounds = ""
    if flag.least is not None and flag.most is not None:
        bounds = f" from {flag.least:g} to {flag.most:g}"
    elif flag.least is not None:
        bounds = f" of at least {flag.least:g}{' seconds' if flag.kind == 'duration' else ''}"
    return f"{_WANTED[flag.kind]}{bounds}"


_WANTED: Final[Mapping[Kind, str]] = {
    "string": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "duration": "a duration such as 1s or 1m30s",
    "address": "an address such as :8080 or 127.0.0.1:8080",
    "array": "a text",
    "slice": "texts separated by commas",
    "gates": "gates such as Name=true,Other=false",
    "levels": "levels such as scheduler=4,lease=2",
}


def _read_text(flag: Flag, text: str) -> str:  # noqa: ARG001
    return text


def _read_bool(flag: Flag, text: str) -> bool:
    if text not in _TRUE and text not in _FALSE:
        raise _bad(flag, text)
    return text in _TRUE


def _read_int(flag: Flag, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise _bad(flag, text)
    return int(text)


def _read_float(flag: Flag, text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise _bad(flag, text)
    return float(text)


def _read_duration(flag: Flag, text: str) -> float:
    try:
        return parse_duration(text)
    except InputError as error:
        raise _bad(flag, text, error.hint) from None


def _read_address(flag: Flag, text: str) -> str:
    split_address(text, flag.name)
    return text


def split_address(text: str, flag: str) -> tuple[str, int]:
    """Return host and port of an address; all hosts if empty.

    Raises:
        InputError: it is not an address.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not _PORT.fullmatch(port) or int(port) > 65535:
        raise InputError(field=f"--{flag}", wanted=_WANTED["address"], found=text)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _read_one(flag: Flag, text: str) -> tuple[str, ...]:  # noqa: ARG001
    return (text,)


def _read_slice(flag: Flag, text: str) -> tuple[str, ...]:  # noqa: ARG001
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _pairs(flag: Flag, text: str) -> list[tuple[str, str]]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    split = [part.partition("=") for part in parts]
    if not all(equals for _, equals, _ in split):
        raise _bad(flag, text)
    return [(name.strip(), value.strip()) for name, _, value in split]


def _read_gates(flag: Flag, text: str) -> dict[str, bool]:
    for name, value in (pairs := _pairs(flag, text)):
        if value not in _TRUE and value not in _FALSE:
            raise InputError(field=f"--{flag.name} {name}", wanted=_WANTED["bool"], found=value)
    return {name: value in _TRUE for name, value in pairs}


def _read_levels(flag: Flag, text: str) -> str:
    if not all(_INTEGER.fullmatch(level) for _, level in _pairs(flag, text)):
        raise _bad(flag, text)
    return text


_READERS: Final[Mapping[Kind, Callable[[Flag, str], Any]]] = {
    "string": _read_text,
    "bool": _read_bool,
    "int": _read_int,
    "float": _read_float,
    "duration": _read_duration,
    "address": _read_address,
    "array": _read_one,
    "slice": _read_slice,
    "gates": _read_gates,
    "levels": _read_levels,
}
