"""Reads the notation in which ``kinds.txt`` declares the fields of all kinds.

A struct is a name, followed by its fields in the order in which Go writes them, indented::

    batch.TaskSpec
      replicas int32 >=0 -- How many pods.
      name string length<=63 pattern=LABEL, minAvailable *int32 >=0

A line holds fields with commas between them, or one with its description after ``--``; a line that
is indented further continues the one before.

A field is a name, a type and rules.  ``!`` after the name: written even if empty, and required;
``-``: left out when empty although it is a struct.  Types: ``*T`` may be null, ``[]T`` list,
``{}T`` mapping; a dotted name that is not declared is a string.  Rules: ``>=`` and ``<=`` for
numbers, ``length>=``, ``items>=``, ``pattern=``, ``enum=`` and ``keys=`` with ``|`` between
values, ``default=``, ``unique``, ``atomic``, ``required``, ``optional``; ``bare``: the fields of
this struct have no defaults here.

After the name of a struct: ``kind``: an object with metadata; ``like X``: has the fields of X too;
``atomic``; ``exclusive``: exactly one field is given.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

Written = Literal["filled", "always", "nonzero"]
_MARKS: Final[Mapping[str, Written]] = {"!": "always", "-": "nonzero"}
_PACKAGES: Final = {
    "meta": "v1", "batch": "v1alpha1", "flow": "v1alpha1", "bus": "v1alpha1",
    "topology": "v1alpha1", "scheduling": "v1beta1",
}  # fmt: skip
_GROUPS: Final = {
    "": "v1", "policy": "policy", "apps": "apps", "batch": "batchv1",
    "scheduling.k8s.io": "priority", "storage.k8s.io": "storage",
    "coordination.k8s.io": "coordination", "resource.k8s.io": "resource",
    "networking.k8s.io": "networking", "apiextensions.k8s.io": "apiextensions",
}  # fmt: skip
"""Kubernetes' own groups and the package of their kinds."""
_LISTED_AMOUNTS: Final = "v1.ResourceList"
_HEAD: Final = (
    "kind string -- Kind of the object.",
    "apiVersion string -- Version of the API.",
    "metadata meta.ObjectMeta",
)
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_PATTERNS: Final = {
    "LABEL": f"^{_LABEL}$",
    "SUBDOMAIN": f"^{_SUBDOMAIN}$",
    "REASON": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    "CONDITION_TYPE": rf"^({_SUBDOMAIN}/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
}
_ENUMS: Final = {
    "EVENTS": "*|PodPending|PodRunning|PodFailed|PodEvicted|Unknown|TaskCompleted|OutOfSync"
    "|CommandIssued|JobUpdated|TaskFailed",
    "JOB_PHASES": "Pending|Aborting|Aborted|Running|Restarting|Completing|Completed|Terminating"
    "|Terminated|Failed",
}
_BOUNDS: Final = {
    ">=": "minimum", "<=": "maximum", "length>=": "min_length", "length<=": "max_length",
    "items>=": "min_items",
}  # fmt: skip
_RULE: Final = re.compile(r"([a-z]*(?:>=|<=|=)?)(.*)")
_DEFAULTS: Final[Mapping[str, Callable[[str], Any]]] = {
    "bool": lambda text: text == "true", "int": int, "int32": int,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GoType:
    """One type; ``name`` is its name in Go's messages."""

    kind: str
    """``struct``, ``list``, ``map``, or the name of a scalar."""
    name: str
    notation: str
    element: str = ""
    """Notation of what a list or mapping holds."""
    pointer: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct."""

    name: str
    type: GoType
    written: Written
    required: bool
    rules: Mapping[str, Any]
    """Rules by the attribute of a schema's node that they set, ``bare`` besides."""
    description: str


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct; ``marks`` are the words after its name."""

    fields: Mapping[str, Field]
    marks: tuple[str, ...]
    description: str


@cache
def go_type(notation: str) -> GoType:
    """Read the notation of a type."""
    if notation.startswith("*"):
        return replace(go_type(notation[1:]), pointer=True)
    if notation.startswith("[]"):
        return GoType("list", f"[]{go_type(notation[2:]).name}", notation, notation[2:])
    if notation.startswith("{}"):
        return GoType("map", f"map[string]{go_type(notation[2:]).name}", notation, notation[2:])
    if notation == _LISTED_AMOUNTS:
        return GoType("map", _LISTED_AMOUNTS, notation, "Quantity")
    package, dot, name = notation.partition(".")
    if not dot:
        return GoType(notation, notation, notation)
    kind = "struct" if notation in _declarations() else "string"
    return GoType(kind, f"{_PACKAGES.get(package, package)}.{name}", notation)


def notation_of(group: str, kind: str) -> str:
    """Return the notation of the struct of a kind; an undeclared one has metadata only."""
    if group.endswith(".volcano.sh"):
        return f"{group.partition('.')[0]}.{kind}"
    notation = f"{_GROUPS.get(group)}.{kind}"
    head = _declarations().get(notation, [""])[0]
    return notation if "kind" in head.split() or notation == "v1.Pod" else "meta.AnyObject"


def fields_of(struct: str) -> Mapping[str, Field]:
    """Return the fields of a struct by name, in the order in which Go writes them."""
    return struct_of(struct).fields


@cache
def struct_of(name: str) -> Struct:
    """Return a struct by its notation."""
    head, *lines = _declarations()[name]
    words, _, description = head.partition(" -- ")
    marks = tuple(words.split()[1:])
    fields: dict[str, Field] = {}
    if "like" in marks:
        fields |= fields_of(marks[marks.index("like") + 1])
    declared = (one for line in lines for one in _split(line))
    for each in (*(_HEAD if "kind" in marks else ()), *declared):
        field = _field(each)
        fields[field.name] = field
    return Struct(fields, marks, description)


def _split(line: str) -> list[str]:
    return [line] if " -- " in line else line.split(", ")


def _field(declared: str) -> Field:
    body, _, description = declared.partition(" -- ")
    name, notation, *words = body.split(" ")
    expected = go_type(notation)
    rules = dict(rule for word in words for rule in _rules(word, expected.kind))
    written = _MARKS.get(name[-1], "filled")
    required = rules.pop("required", written == "always" and "has_default" not in rules)
    return Field(name.rstrip("!-"), expected, written, required, rules, description)


def _rules(word: str, kind: str) -> Iterator[tuple[str, Any]]:
    match = _RULE.fullmatch(word)
    key, text = match.groups() if match else ("", "")
    if key in _BOUNDS:
        yield _BOUNDS[key], int(text)
    elif key == "default=":
        yield "has_default", True
        yield "default", _DEFAULTS.get(kind, str)(text)
    elif key == "pattern=":
        yield "pattern", _PATTERNS.get(text, text)
    elif key in ("enum=", "keys="):
        yield key[:-1], tuple(_ENUMS.get(text, text).split("|"))
    elif key in ("required", "optional"):
        yield "required", key == "required"
    else:
        yield key, True


@cache
def _declarations() -> Mapping[str, list[str]]:
    """Split the texts into structs: a head, then the lines of fields."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in files("pumice.api.schema").joinpath("kinds.txt").read_text("utf-8").splitlines():
        if line.startswith("    "):
            lines[-1] += f" {line.strip()}"
        elif line.startswith("  "):
            lines.append(line.strip())
        elif not line.startswith("#"):
            lines = [line]
            found[line.partition(" ")[0]] = lines
    return found
