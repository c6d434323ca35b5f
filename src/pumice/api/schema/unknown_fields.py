"""Fields that a kind does not have, at any depth, and which of its fields was probably meant."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from pumice.api.kinds import kind_of
from pumice.api.schema.build import Node, schema_of
from pumice.api.wording import nearest


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
        hint = f" (did you mean {place}{near}?)" if near else ""
        return f"there is no field {self.path}{hint}"


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
