"""Writes schemas as the API server reads them: structural OpenAPI v3, fields sorted by name."""

from itertools import combinations
from typing import Any

from pumice.api.schema.build import EXCLUSIVE, Node

Schema = dict[str, Any]


def openapi(node: Node) -> Schema:
    """Return one place of a schema and all below it."""
    schema: Schema = {"description": node.description} if node.description else {}
    if node.int_or_string:
        either = [{"type": "integer"}, {"type": "string"}]
        return {**schema, "anyOf": either, **_limits(node), "x-kubernetes-int-or-string": True}
    schema["type"] = node.type
    if node.properties is not None:
        schema["properties"] = {
            key: openapi(node.properties[key]) for key in sorted(node.properties)
        }
    if node.values is not None:
        schema["additionalProperties"] = openapi(node.values)
    if node.items is not None:
        schema["items"] = openapi(node.items)
    return {**schema, **_limits(node), **_extensions(node)}


def _limits(node: Node) -> Schema:
    limits = {
        "required": list(node.required) or None,
        "format": node.format or None,
        "enum": list(node.enum) or None,
        "minimum": node.minimum,
        "maximum": node.maximum,
        "minItems": node.min_items,
        "minLength": node.min_length,
        "maxLength": node.max_length,
        "pattern": node.pattern or None,
    }
    given = {key: limit for key, limit in limits.items() if limit is not None}
    return {**given, "default": node.default} if node.has_default else given


def _extensions(node: Node) -> Schema:
    extensions: Schema = {}
    if node.atomic:
        extensions["list-type" if node.type == "array" else "map-type"] = "atomic"
    if node.keys:
        extensions |= {"list-type": "map", "list-map-keys": list(node.keys)}
    if node.exclusive:
        extensions["validations"] = _exactly_one(node)
    return {f"x-kubernetes-{key}": content for key, content in extensions.items()}


def _exactly_one(node: Node) -> list[Schema]:
    """Write in CEL that exactly one property is given."""
    given = [f"has(self.{key})" for key in sorted(node.properties or {})]
    pairs = [f"!({one} && {other})" for one, other in combinations(given, 2)]
    rules = (" || ".join(given), " && ".join(pairs))
    return [
        {"rule": rule, "message": message} for rule, message in zip(rules, EXCLUSIVE, strict=True)
    ]
