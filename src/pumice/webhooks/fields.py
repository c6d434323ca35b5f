"""Findings about fields in the words of Kubernetes: place, kind of fault, value, detail.

Used by every check; carries enough for a message of the API and for a line of `pumice lint`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pumice.errors import RejectedError
from pumice.webhooks.plain_words import plain_type, plainly


class Words(str):
    """A description instead of the value found."""

    __slots__ = ()


class Mistyped(str):
    """A text where another type is wanted."""

    __slots__ = ()


class Missing(str):
    """What a message shows in place of a value that is missing."""

    __slots__ = ()


Step = str | int
Path = tuple[Step, ...]
"""Keys and indices that lead to a field."""

Fault = Literal[
    "Required value", "Invalid value", "Unsupported value", "Duplicate value", "Not found",
    "Forbidden", "Too long", "Too many", "Wrong type",
]  # fmt: skip
_WITHOUT_VALUE: Final = frozenset({"Required value", "Forbidden", "Too long"})
_TEXTS: Final = {"Wrong type": "Invalid value"}


class _Omitted:
    """Replaces a value that is not shown."""


OMITTED: Final = _Omitted()


@dataclass(frozen=True, slots=True)
class Shown:
    """A value with its own spelling."""

    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """A step into a mapping, shown in brackets."""

    name: str


@dataclass(frozen=True, slots=True)
class FieldError:
    """One finding."""

    fault: Fault
    path: tuple[Step | Key, ...]
    value: Any = ""
    detail: str = ""
    shown: str = ""
    """The spelling of the path where it is unusual."""

    @property
    def field(self) -> str:
        """The path as Kubernetes writes it."""
        return self.shown or path_text(self.path)

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    @property
    def body(self) -> str:
        """The message without the field."""
        text = _TEXTS.get(self.fault, self.fault)
        if self.fault not in _WITHOUT_VALUE and self.value is not OMITTED:
            text = f"{text}: {value_text(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text


def path_text(path: Iterable[Step | Key]) -> str:
    """Write a path: ``spec.tasks[0].name``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif isinstance(step, Key):
            text += f"[{step.name}]"
        else:
            text += f".{step}" if text else step
    return text or "<nil>"


def value_text(value: Any) -> str:
    """Show a value as Kubernetes' messages do."""
    if isinstance(value, Shown):
        return value.text
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return go_json(value)


def go_json(value: Any, *, sort: bool = True) -> str:
    """Write JSON as Go does: no blanks, the keys of mappings sorted."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=sort, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def quoted(text: str) -> str:
    """Quote a text as Go's ``%q`` does."""
    shown = []
    for char in text:
        if char in '"\\':
            shown.append(f"\\{char}")
        elif char in _ESCAPES:
            shown.append(_ESCAPES[char])
        elif char.isprintable():
            shown.append(char)
        else:
            shown.append(_escaped(ord(char)))
    return f'"{"".join(shown)}"'


_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def _escaped(code: int) -> str:
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_MOST_FINDINGS: Final = 100
"""More than anybody reads, of an object that may have a million."""


def aggregate(errors: Iterable[object]) -> str:
    """Join findings as Kubernetes does: one alone, several in brackets, none twice."""
    listed = list(errors)
    texts = list(dict.fromkeys(str(error) for error in listed[:_MOST_FINDINGS]))
    if len(listed) > _MOST_FINDINGS:
        texts.append(f"{len(listed) - _MOST_FINDINGS:,} more")
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


_REASONS: Final = {
    "Required value": "FieldValueRequired",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
    "Not found": "FieldValueNotFound",
    "Forbidden": "FieldValueForbidden",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Wrong type": "FieldValueTypeInvalid",
}


def refused(place: tuple[str, str, str], found: Sequence[FieldError]) -> RejectedError:
    """Make the error of an object, by kind, namespace and name, with findings."""
    error = RejectedError(*place, aggregate(found))
    error.causes = tuple(
        (_REASONS.get(one.fault, "FieldValueInvalid"), one.field, one.body)
        for one in found[:_MOST_FINDINGS]
    )
    return error


def required(path: Path, detail: str = "") -> FieldError:
    """Return the finding that a field is missing."""
    return FieldError("Required value", path, "", detail)


def invalid(path: tuple[Step | Key, ...], value: Any, detail: str) -> FieldError:
    """Return the finding that a value is malformed."""
    return FieldError("Invalid value", path, value, detail)


def unsupported(path: Path, value: Any, known: Iterable[str]) -> FieldError:
    """Return the finding that a value is unknown."""
    listed = ", ".join(quoted(one) for one in known)
    return FieldError("Unsupported value", path, value, f"supported values: {listed}")


def duplicate(path: Path, value: Any) -> FieldError:
    """Return the finding that a value occurs twice."""
    return FieldError("Duplicate value", path, value)


def not_found(path: Path, value: Any) -> FieldError:
    """Return the finding that a referenced object does not exist."""
    return FieldError("Not found", path, value)


def forbidden(path: Path, detail: str) -> FieldError:
    """Return the finding that a value is not allowed here."""
    return FieldError("Forbidden", path, "", detail)


def too_long(path: Path, most: int) -> FieldError:
    """Return the finding that a value is too long."""
    return FieldError("Too long", path, "", f"may not be more than {most} bytes")


def wanted_of(error: FieldError) -> str:
    """Describe in a few words what would have been right."""
    detail = error.detail
    for start in (f"{error.field} in body ", "should be ", "must be ", "should "):
        detail = detail.removeprefix(start)
    match error.fault:
        case "Required value":
            return f"a value ({detail})" if detail else "a value"
        case "Unsupported value":
            return f"one of {detail.removeprefix('supported values: ')}"
        case "Duplicate value":
            return "each only once"
        case "Not found":
            return detail or "something that exists"
        case "Forbidden":
            return f"nothing here: {detail}"
        case _:
            return _wanted_value(error.fault, detail)


def _wanted_value(fault: Fault, detail: str) -> str:
    """Describe a value that would have been right."""
    if fault == "Wrong type":
        types, _, found = detail.removeprefix("of type ").partition(": ")
        return plain_type(types, found.strip('"'))
    subject, _, bound = detail.partition(" must be ")
    return plainly(bound if bound and "[" in subject else detail)
