"""What happens to a custom resource before anybody looks at it: defaults in, unknown fields out."""

from typing import Any

from pumice.api.schema.build import Node
from pumice.cluster.base import clone


def without_unknown(value: Any, node: Node | None, path: str = "") -> list[str]:
    """Remove the fields that the schema does not know, in place; gives their paths, sorted."""
    found: list[str] = []
    _prune(value, node, path, found)
    return sorted(found)


def _prune(value: Any, node: Node | None, path: str, found: list[str]) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _prune(item, node.items if node else None, f"{path}[{index}]", found)
        return
    if not isinstance(value, dict) or _is_open(node, path):
        return
    for key in list(value):
        below = f"{path}.{key}" if path else key
        if node is not None and node.properties is not None and key in node.properties:
            _prune(value[key], node.properties[key], below, found)
        elif node is not None and node.values is not None:
            _prune(value[key], node.values, below, found)
        else:
            found.append(below)
            del value[key]


def _is_open(node: Node | None, path: str) -> bool:
    """Say whether fields are not looked at: the metadata of the object, and anything goes."""
    if path == "metadata":
        return True
    return node is not None and not (node.type or node.int_or_string)


def without_nulls(value: Any, node: Node | None) -> None:
    """Remove nulls that stand where no default will take their place."""
    if node is None:
        return
    if isinstance(value, list):
        for item in value:
            without_nulls(item, node.items)
    elif isinstance(value, dict):
        for key in list(value):
            below = (node.properties or {}).get(key) or node.values
            if value[key] is None and below is not None and not below.has_default:
                del value[key]
            else:
                without_nulls(value[key], below)


def fill_in(value: Any, node: Node | None) -> None:
    """Put the defaults of the schema in, in place."""
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
            fill_in(item, (node.properties or {}).get(key) or node.values)
