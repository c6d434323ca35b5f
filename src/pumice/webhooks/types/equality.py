"""Whether two decoded objects mean the same: nothing and empty are equal, so are 1 and 1000m."""

from typing import Any

from pumice.api.quantity import amount
from pumice.api.schema.grammar import GoType, fields_of, go_type


def same(one: Any, other: Any, notation: str) -> bool:
    """Compare two values of a type."""
    return _same(one, other, go_type(notation))


def _same(one: Any, other: Any, expected: GoType) -> bool:
    if expected.pointer and (one is None or other is None):
        return one is None and other is None
    if expected.kind == "struct":
        fields = fields_of(expected.notation)
        left, right = one or {}, other or {}
        return all(_same(left.get(k), right.get(k), each.type) for k, each in fields.items())
    if expected.kind == "list":
        left, right = one or [], other or []
        element = go_type(expected.element)
        return len(left) == len(right) and all(
            _same(a, b, element) for a, b in zip(left, right, strict=True)
        )
    if expected.kind == "map":
        left, right = one or {}, other or {}
        element = go_type(expected.element)
        return set(left) == set(right) and all(_same(left[k], right[k], element) for k in left)
    if expected.kind == "Quantity":
        return amount(one or "0").nano == amount(other or "0").nano
    return (one or None) == (other or None) if not expected.pointer else bool(one == other)
