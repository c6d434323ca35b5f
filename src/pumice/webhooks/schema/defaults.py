"""Preparation of a custom resource: defaults in, unknown fields out."""

from typing import Any

from pumice.api.cloning import clone
from pumice.api.schema.build import Node
from pumice.api.schema.unknown_fields import unknown_fields


def without_unknown(value: Any, node: Node | None) -> list[str]:
    """Remove the fields that the schema does not know, in place; return their paths, sorted."""
    found = unknown_fields(value, node)
    for field in found:
        del field.around[field.key]
    return [field.path for field in found]


def without_nulls(value: Any, node: Node | None) -> None:
    """Remove nulls that no default will replace."""
    if node is None:
        return
    if isinstance(value, list):
        for item in value:
            without_nulls(item, node.items)
    elif isinstance(value, dict):
        for key, item in list(value.items()):
            below = (node.properties or {}).get(key) or node.values
            if item is None and below is not None and not below.has_default:
                del value[key]
            elif isinstance(item, dict | list):
                without_nulls(item, below)


def fill_in(value: Any, node: Node | None) -> None:
    """Fill in the defaults of the schema, in place."""
    if node is None:
        return
    if isinstance(value, list):
        for item in value:
            fill_in(item, node.items)
    elif isinstance(value, dict):
        for key, below in (node.properties or {}).items():
            if below.has_default and value.get(key) is None:
                value[key] = clone(below.default)
        for key, item in value.items():
            if isinstance(item, dict | list):
                fill_in(item, (node.properties or {}).get(key) or node.values)
