"""Reads the notation in which the types are written down.

A struct is a name followed by its fields: ``replicas int32, template v1.PodTemplateSpec``.  ``!``
after a field's name: written even if empty; ``-``: left out when empty although it is a struct.
Types: ``*T`` may be null, ``[]T`` list, ``{}T`` mapping.  Used by decoding and by the schemas.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from pumice.webhooks.types.core import CORE
from pumice.webhooks.types.volcano import TEXTS, VOLCANO
from pumice.webhooks.types.volumes import VOLUMES

Written = Literal["filled", "always", "nonzero"]
_MARKS: Final[Mapping[str, Written]] = {"!": "always", "-": "nonzero"}
_PACKAGES: Final = {
    "meta": "v1", "batch": "v1alpha1", "flow": "v1alpha1", "bus": "v1alpha1",
    "topology": "v1alpha1", "scheduling": "v1beta1",
}  # fmt: skip
_TEXT_NAMES: Final = frozenset({*TEXTS.split(), "types.UID"})
_LISTED_AMOUNTS: Final = "v1.ResourceList"


@dataclass(frozen=True, slots=True)
class GoType:
    """One type; ``name`` is how Go's messages call it."""

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


@cache
def go_type(notation: str) -> GoType:
    """Read the notation of a type."""
    if notation.startswith("*"):
        below = go_type(notation[1:])
        return GoType(below.kind, below.name, below.notation, below.element, pointer=True)
    if notation.startswith("[]"):
        return GoType("list", f"[]{go_type(notation[2:]).name}", notation, notation[2:])
    if notation.startswith("{}"):
        return GoType("map", f"map[string]{go_type(notation[2:]).name}", notation, notation[2:])
    if notation == _LISTED_AMOUNTS:
        return GoType("map", _LISTED_AMOUNTS, notation, "Quantity")
    package, dot, name = notation.partition(".")
    told = f"{_PACKAGES.get(package, package)}.{name}" if dot else notation
    if notation in _structs():
        return GoType("struct", told, notation)
    return GoType("string" if notation in _TEXT_NAMES else notation, told, notation)


@cache
def fields_of(struct: str) -> Mapping[str, Field]:
    """Give the fields of a struct by name, in the order in which Go writes them."""
    found = {}
    for declared in _structs()[struct].split(", "):
        name, _, notation = declared.partition(" ")
        written = _MARKS.get(name[-1], "filled")
        name = name.rstrip("!-")
        if notation.startswith("{v1.PodPhase}"):  # keys are texts, whatever they are called
            notation = notation.replace("{v1.PodPhase}", "{}")
        found[name] = Field(name, go_type(notation), written)
    return found


@cache
def _structs() -> Mapping[str, str]:
    """Split the texts into structs."""
    found: dict[str, str] = {}
    name = ""
    for line in f"{CORE}{VOLUMES}{VOLCANO}".splitlines():
        if line and not line.startswith(" "):
            name = line.strip()
            found[name] = ""
        elif line:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
