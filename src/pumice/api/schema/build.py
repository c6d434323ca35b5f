"""Builds the schemas of the kinds from their declaration."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, NamedTuple

from pumice.api.kinds import (
    COMMAND,
    CRON_JOB,
    HYPER_NODE,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    POD_GROUP,
    QUEUE,
    kind_of,
)
from pumice.api.schema.grammar import Field, GoType, go_type, notation_of, struct_of
from pumice.api.wording import nearest

CHECKED_KINDS: Final = (
    JOB,
    CRON_JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    QUEUE,
    POD_GROUP,
    HYPER_NODE,
    COMMAND,
)
"""Kinds whose objects are checked against their schema on admission."""
EXCLUSIVE: Final = (
    "Either ExactMatch or RegexMatch or LabelMatch must be specified",
    "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
)
"""The messages of the rules on a HyperNode member's selector."""
_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_TEMPLATE_META: Final = (
    "annotations", "creationTimestamp", "finalizers", "labels", "name", "namespace",
)  # fmt: skip
"""The metadata in a template; Go writes a null as its creation time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One place in a schema."""

    type: str = ""
    """JSON type; empty where anything goes."""
    format: str = ""
    description: str = ""
    properties: Mapping[str, "Node"] | None = None
    """None: no field is unknown."""
    items: "Node | None" = None
    values: "Node | None" = None
    """Schema of the values of a mapping."""
    required: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """The keys that identify the items of a list."""
    unique: bool = False
    """Whether all of an item identifies it."""
    atomic: bool = False
    exclusive: bool = False
    """Exactly one of the properties is given."""
    int_or_string: bool = False
    has_default: bool = False
    default: Any = None
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    pattern: str = ""
    enum: tuple[str, ...] = ()


_SCALARS: Final[Mapping[str, Node]] = {
    "string": Node(type="string"),
    "bool": Node(type="boolean"),
    "int": Node(type="integer"),
    "int32": Node(type="integer", format="int32"),
    "int64": Node(type="integer", format="int64"),
    "Duration": Node(type="string"),
    "Time": Node(type="string", format="date-time"),
    "Quantity": Node(int_or_string=True, pattern=_QUANTITY),
    "IntOrString": Node(int_or_string=True),
    "any": Node(),
}


class _SchemaBuilder:
    """Builds schemas, of each struct once."""

    def __init__(self) -> None:
        self._structs: dict[str, Node] = {}

    def of_kind(self, notation: str) -> Node:
        """Build the schema of a kind such as ``batch.Job``."""
        node = self._struct(notation)
        properties = {**(node.properties or {}), "metadata": Node(type="object")}
        return replace(node, properties=properties, description=struct_of(notation).description)

    def _struct(self, name: str) -> Node:
        if name not in self._structs:
            self._structs[name] = self._build(name)
        return self._structs[name]

    def _build(self, name: str) -> Node:
        struct = struct_of(name)
        shown = _TEMPLATE_META if name == "meta.ObjectMeta" else struct.fields
        return Node(
            type="object",
            properties={key: self._field(struct.fields[key]) for key in shown},
            required=tuple(sorted(key for key in shown if struct.fields[key].required)),
            atomic="atomic" in struct.marks,
            exclusive="exclusive" in struct.marks,
        )

    def _field(self, field: Field) -> Node:
        node = self._typed(field.type)
        rules = dict(field.rules)
        if rules.pop("bare", False) and node.properties is not None:
            bare = {k: replace(one, has_default=False) for k, one in node.properties.items()}
            node = replace(node, properties=bare)
        if node.items is not None and "enum" in rules:
            node = replace(node, items=replace(node.items, enum=rules.pop("enum")))
        return replace(node, **rules, description=field.description)

    def _typed(self, expected: GoType) -> Node:
        match expected.kind:
            case "struct":
                return self._struct(expected.notation)
            case "list":
                return Node(type="array", items=self._typed(go_type(expected.element)))
            case "map":
                return Node(type="object", values=self._typed(go_type(expected.element)))
            case scalar:
                return _SCALARS[scalar]


_BUILDER: Final = _SchemaBuilder()


@cache
def declared_schema(kind: str) -> Node:
    """Return the schema of a kind as it is declared; ``Job.batch.volcano.sh``, ``Pod``."""
    name, _, group = kind.partition(".")
    return _BUILDER.of_kind(notation_of(group, name))


def schema_of(kind: str) -> Node | None:
    """Return the schema that admission applies to a kind, None if there is none."""
    return declared_schema(kind) if kind in CHECKED_KINDS else None


class UnknownField(NamedTuple):
    """A field that the schema does not know."""

    path: str
    around: dict[str, Any]
    """The mapping that it is in."""
    key: str
    known: Collection[str]
    """The fields that the mapping may have."""

    @property
    def sentence(self) -> str:
        """The mistake in words, with the field that was probably meant."""
        near = nearest(str(self.key), self.known)
        place = self.path.removesuffix(str(self.key))
        hint = f"; did you mean {place}{near}?" if near else ""
        return f"unknown field {self.path}{hint}"


def unknown_fields(value: Any, node: Node | None) -> list[UnknownField]:
    """Return the fields that the schema does not know, by path."""
    return sorted(_unknown(value, node, ""), key=lambda each: each.path)


def misspelt_fields(manifest: Mapping[str, Any]) -> list[UnknownField]:
    """Return the fields of an object that a cluster would drop, so that they are mistakes.

    Users do not write a status, and that of a newer version may have more.
    """
    schema = schema_of(kind_of(manifest))
    if schema is None:
        return []
    written = {name: value for name, value in manifest.items() if name != "status"}
    return unknown_fields(written, schema)


def _unknown(value: Any, node: Node | None, path: str) -> Iterator[UnknownField]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, node.items if node else None, f"{path}[{index}]")
        return
    if not isinstance(value, dict) or _is_open(node, path):
        return
    known = (node.properties if node is not None else None) or {}
    for key, item in value.items():
        below = f"{path}.{key}" if path else key
        if key in known:
            yield from _unknown(item, known[key], below)
        elif node is not None and node.values is not None:
            yield from _unknown(item, node.values, below)
        else:
            yield UnknownField(below, value, key, known.keys())


def _is_open(node: Node | None, path: str) -> bool:
    """Return whether fields are not checked: the metadata of the object, and open fields."""
    if path == "metadata":
        return True
    return node is not None and not (node.type or node.int_or_string)
