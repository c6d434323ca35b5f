"""Builds the schema of a custom resource from its types and the rules beside them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from pumice.webhooks.schema.rules import REQUIRED, RULES
from pumice.webhooks.types.grammar import Field, GoType, fields_of, go_type

QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
ROOTS: Final[Mapping[str, str]] = {
    "Job.batch.volcano.sh": "batch.Job",
    "CronJob.batch.volcano.sh": "batch.CronJob",
    "JobFlow.flow.volcano.sh": "flow.JobFlow",
    "JobTemplate.flow.volcano.sh": "flow.JobTemplate",
    "Queue.scheduling.volcano.sh": "scheduling.Queue",
    "PodGroup.scheduling.volcano.sh": "scheduling.PodGroup",
    "HyperNode.topology.volcano.sh": "topology.HyperNode",
    "Command.bus.volcano.sh": "bus.Command",
}
"""Struct of each kind that has a schema."""
_TYPES: Final = {
    "string": "string", "bool": "boolean", "int32": "integer", "int64": "integer",
    "int": "integer", "Duration": "string", "Time": "string",
}  # fmt: skip
_FORMATS: Final = {"int32": "int32", "int64": "int64", "Time": "date-time"}
_OWN_META: Final = ("annotations", "finalizers", "labels", "name", "namespace")
_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One place in a schema."""

    type: str = ""
    """JSON type; empty where anything goes."""
    format: str = ""
    properties: Mapping[str, "Node"] | None = None
    """None: no field is unknown."""
    items: "Node | None" = None
    values: "Node | None" = None
    """Schema of the values of a mapping."""
    required: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    unique: bool = False
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
    one_selector: bool = False
    """The rules on a HyperNode member's selector apply."""


@cache
def schema_of(kind: str) -> Node | None:
    """Give the schema of a kind (``Job.batch.volcano.sh``), None if it has none."""
    root = ROOTS.get(kind)
    if root is None:
        return None
    node = _struct(root)
    properties = dict(node.properties or {})
    properties["metadata"] = Node(type="object")
    return replace(node, properties=properties, required=())


@cache
def _struct(name: str) -> Node:
    rules = RULES.get(name, _NOTHING)
    if name == "v1.EphemeralContainer":
        rules = RULES["v1.Container"]
    fields = fields_of(name)
    chosen = fields if name != "meta.ObjectMeta" else {key: fields[key] for key in _OWN_META}
    required = REQUIRED.get(name)
    if required is None:
        required = tuple(_required(fields, rules))
    return Node(
        type="object",
        properties={key: _ruled(each, rules.get(key, _NOTHING)) for key, each in chosen.items()},
        required=tuple(sorted(required)),
        one_selector=name == "topology.MemberSelector",
    )


def _required(fields: Mapping[str, Field], rules: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Name what must be given: what Go always writes, unless it has a default or may be null."""
    return [
        key
        for key, each in fields.items()
        if each.written == "always"
        and "default" not in rules.get(key, _NOTHING)
        and key not in ("apiGroup", "allocated")
    ]


def _ruled(each: Field, rule: Mapping[str, Any]) -> Node:
    node = _typed(each.type)
    if "items" in rule and node.items is not None:
        node = replace(node, items=replace(node.items, enum=tuple(rule["items"]["enum"])))
    return replace(
        node,
        keys=tuple(rule.get("keys", ())),
        unique=rule.get("unique", False),
        has_default="default" in rule,
        default=rule.get("default"),
        minimum=rule.get("minimum"),
        maximum=rule.get("maximum"),
        min_length=rule.get("minLength"),
        max_length=rule.get("maxLength"),
        min_items=rule.get("minItems"),
        pattern=rule.get("pattern", node.pattern),
        enum=tuple(rule.get("enum", ())),
    )


def _typed(expected: GoType) -> Node:
    match expected.kind:
        case "struct":
            return _struct(expected.notation)
        case "list":
            return Node(type="array", items=_typed(go_type(expected.element)))
        case "map":
            return Node(type="object", values=_typed(go_type(expected.element)))
        case scalar:
            return _SCALARS.get(scalar) or Node(
                type=_TYPES[scalar], format=_FORMATS.get(scalar, "")
            )


_SCALARS: Final[Mapping[str, Node]] = {
    "Quantity": Node(int_or_string=True, pattern=QUANTITY_PATTERN),
    "IntOrString": Node(int_or_string=True),
    "any": Node(),
}
