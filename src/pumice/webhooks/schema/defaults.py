"""Preparation of a custom resource: defaults in, unknown fields out."""

from collections.abc import Iterator
from typing import Any

from pumice.api.cloning import clone
from pumice.api.schema.build import Node


def unknown_fields(value: Any, node: Node | None) -> list[str]:
    """Return the paths of the fields that the schema does not know, sorted."""
    return sorted(path for path, *_ in _unknown(value, node, ""))


def without_unknown(value: Any, node: Node | None) -> list[str]:
    """Remove the fields that the schema does not know, in place; return their paths, sorted."""
    found = list(_unknown(value, node, ""))
    for _, around, key in found:
        del around[key]
    return sorted(path for path, *_ in found)


def _unknown(value: Any, node: Node | None, path: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the path of each unknown field, the mapping that it is in, and its name."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, node.items if node else None, f"{path}[{index}]")
        return
    if not isinstance(value, dict) or _is_open(node, path):
        return
    for key, item in value.items():
        below = f"{path}.{key}" if path else key
        if node is not None and node.properties is not None and key in node.properties:
            yield from _unknown(item, node.properties[key], below)
        elif node is not None and node.values is not None:
            yield from _unknown(item, node.values, below)
        else:
            yield below, value, key


def _is_open(node: Node | None, path: str) -> bool:
    """Return whether fields are not checked: the metadata of the object, and open fields."""
    if path == "metadata":
        return True
    return node is not None and not (node.type or node.int_or_string)


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
