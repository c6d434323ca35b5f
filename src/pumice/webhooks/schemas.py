"""Custom resources and their schema: defaults, unknown fields, and the API server's findings."""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

from pumice.api.cloning import clone
from pumice.api.kinds import Manifest
from pumice.api.patterns import occurs_in
from pumice.api.schema.build import EXCLUSIVE, Node, unknown_fields
from pumice.webhooks.contents import KnownContents, content_key
from pumice.webhooks.cpu_budget import check_cpu
from pumice.webhooks.fields import (
    OMITTED,
    FieldError,
    Key,
    Path,
    Step,
    duplicate,
    go_json,
    invalid,
    path_text,
    required,
    too_long,
    unsupported,
)
from pumice.webhooks.go_types import json_name

UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_BLOCKING: Final = frozenset(
    {"Unsupported value", "Required value", "Too long", "Too many", "Wrong type"}
)
_NEW: Final = object()
_NOWHERE: Final = path_text(())
"""The field of messages that name the field in their text only."""
_SAFE: Final = 2**53 - 1  # whole numbers that a float can distinguish
_TIME: Final = re.compile(
    r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"
)
_DATE: Final = re.compile(r"^([0-9]{4})-([0-9]{2})-([0-9]{2})$")


def check(value: Any, node: Node, old: Any = None) -> list[FieldError]:
    """Find faults; with an older version, only in changed parts."""
    found = list(_value(value, node, (), _NEW if old is None else old))
    found += _repeats(value, node, ())
    if _has_selectors(node):
        if any(error.fault in _BLOCKING for error in found):
            found.append(FieldError("Invalid value", (), None, UNCHECKED))
        else:
            found += _selectors(value, node, ())
    return list({str(error): error for error in found}.values())


def _value(value: Any, node: Node, path: Path, old: Any) -> Iterator[FieldError]:
    if old is not _NEW and value == old and type(value) is type(old):
        return
    types = ("integer", "string") if node.int_or_string else (node.type,) if node.type else ()
    mistyped = not _fits(value, types, node.format)
    if mistyped:
        yield _mistyped(value, types, node.format, path)
    if value is None:
        if node.enum:
            yield unsupported(path, None, node.enum)
        return
    if node.int_or_string and mistyped:
        yield from _neither(value, path)
    yield from _content(value, node, path, old)
    if node.enum and value not in node.enum:
        yield unsupported(path, value, node.enum)
    if isinstance(value, dict):
        yield from _mapping(value, node, path, old)


def _neither(value: Any, path: Path) -> Iterator[FieldError]:
    """Yield a value that is neither a whole number nor a text where both are allowed."""
    named = f"{go_json(path_text(path))} must validate at least one schema (anyOf)"
    yield FieldError("Invalid value", path, "", named, shown=_NOWHERE)
    yield _mistyped(value, ("integer",), "", path)
    if isinstance(value, float):
        yield _out_of_range("(default format)", path)


def _content(value: Any, node: Node, path: Path, old: Any) -> Iterator[FieldError]:
    if isinstance(value, str):
        yield from _text(value, node, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, node, path)
    elif isinstance(value, list):
        yield from _list(value, node, path, old)


def _mistyped(value: Any, types: tuple[str, ...], form: str, path: Path) -> FieldError:
    """Return the finding of a wrong type; where there is a format, its own finding instead."""
    found, wanted = _json_type(value), ",".join(types)
    if form and found in ("boolean", "object", "number"):
        found, wanted = ("float64" if found == "number" else ""), form
    detail = f"{path_text(path)} in body must be of type {wanted}: {go_json(found)}"
    return FieldError("Wrong type", path, found, detail)


def _fits(value: Any, types: tuple[str, ...], form: str) -> bool:
    found = _json_type(value)
    if not types or found in types or (found == "integer" and "number" in types):
        return True
    if "integer" in types:
        return found == "number" and value.is_integer() and abs(value) <= _SAFE
    return bool(form) and found == "string"


def _out_of_range(form: str, path: Path) -> FieldError:
    detail = f"Checked value must be of type integer {form} in {path_text(path)}"
    return FieldError("Invalid value", path, "", detail, shown=_NOWHERE)


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return json_name(value)


def _text(value: str, node: Node, path: Path) -> Iterator[FieldError]:
    if node.max_length is not None and len(value) > node.max_length:
        yield too_long(path, node.max_length)
    elif node.min_length is not None and len(value) < node.min_length:
        detail = f"{path_text(path)} in body should be at least {node.min_length} chars long"
        yield invalid(path, value, detail)
    elif node.pattern and not occurs_in(value, node.pattern):
        yield invalid(path, value, f"{path_text(path)} in body should match '{node.pattern}'")
    if node.format == "date-time" and not _is_date_time(value):
        detail = f"{path_text(path)} in body must be of type date-time: {go_json(value)}"
        yield FieldError("Wrong type", path, value, detail)


def _is_date_time(text: str) -> bool:
    date, _, time = text.lower().partition("t")
    matched = _DATE.match(date)
    clock = _TIME.match(time)
    if matched is None or clock is None:
        return False
    month, day = int(matched[2]), int(matched[3])
    return 1 <= month <= 12 and 1 <= day <= 31 and int(clock[1]) < 24 and int(clock[2]) < 60


def _number(value: float, node: Node, path: Path) -> Iterator[FieldError]:
    if node.type == "integer":
        bits = 31 if node.format == "int32" else 63
        if not (math.isfinite(value) and -(1 << bits) <= value < 1 << bits and value == int(value)):
            form = f"with format {node.format}" if node.format else "(default format)"
            yield _out_of_range(form, path)
    shown = value if isinstance(value, int) else float(value)
    if node.minimum is not None and value < node.minimum:
        detail = f"{path_text(path)} in body should be greater than or equal to {node.minimum}"
        yield invalid(path, shown, detail)
    if node.maximum is not None and value > node.maximum:
        detail = f"{path_text(path)} in body should be less than or equal to {node.maximum}"
        yield invalid(path, shown, detail)


def _list(value: list[Any], node: Node, path: Path, old: Any) -> Iterator[FieldError]:
    if node.items is not None:
        before = _by_keys(old, node)
        for index, item in enumerate(value):
            check_cpu()
            known = before.get(_keys_of(item, node), _NEW) if before else _NEW
            yield from _value(item, node.items, (*path, index), known)
    if node.min_items is not None and len(value) < node.min_items:
        detail = f"{path_text(path)} in body should have at least {node.min_items} items"
        yield invalid(path, len(value), detail)


def _by_keys(old: Any, node: Node) -> dict[str, Any]:
    """Return the items of the older version of a list whose items have keys; the first counts."""
    if not node.keys or not isinstance(old, list):
        return {}
    return {_keys_of(one, node): one for one in reversed(old) if isinstance(one, dict)}


def _keys_of(item: Any, node: Node) -> str:
    """Write the keys of an item, which may be anything."""
    return go_json([item.get(key) for key in node.keys]) if isinstance(item, dict) else ""


def _mapping(value: dict[str, Any], node: Node, path: Path, old: Any) -> Iterator[FieldError]:
    before = old if isinstance(old, dict) else {}
    if node.values is not None:
        for key, item in value.items():
            yield from _value(item, node.values, (*path, key), before.get(key, _NEW))
    for key, below in (node.properties or {}).items():
        if key in value and not (not path and key == "metadata"):
            yield from _value(value[key], below, (*path, key), before.get(key, _NEW))
    for key in node.required:
        if key not in value:
            yield required((*path, key))


def _repeats(value: Any, node: Node | None, path: tuple[Step | Key, ...]) -> Iterator[FieldError]:
    """Find items of keyed lists that occur twice."""
    if node is None:
        return
    if isinstance(value, list):
        yield from _repeated_items(value, node, path)
        for index, item in enumerate(value):
            yield from _repeats(item, node.items, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(item, dict | list):
                continue
            if node.properties is not None and key in node.properties:
                yield from _repeats(item, node.properties[key], (*path, key))
            elif node.values is not None:
                yield from _repeats(item, node.values, (*path, Key(key)))


def _repeated_items(
    value: list[Any], node: Node, path: tuple[Step | Key, ...]
) -> Iterator[FieldError]:
    if not (node.keys or node.unique):
        return
    counts: dict[str, int] = {}
    for index, item in enumerate(value):
        item_shown: Any = item
        if node.keys:
            if item is not None and not isinstance(item, dict):
                detail = "must be an object for an array of list-type map"
                yield FieldError("Invalid value", (*path, index), item, detail)
                return
            item_shown = {key: item[key] for key in node.keys if key in item} if item else {}
        text = go_json(item_shown)
        counts[text] = counts.get(text, 0) + 1
        if counts[text] == 2:
            yield duplicate((*path, index), item_shown)  # type: ignore[arg-type]


def _has_selectors(node: Node) -> bool:
    spec = (node.properties or {}).get("spec")
    return spec is not None and "members" in (spec.properties or {})


def _selectors(value: Any, node: Node | None, path: Path) -> Iterator[FieldError]:
    """Apply the rules on the selectors of a HyperNode's members."""
    if node is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _selectors(item, node.items, (*path, index))
    elif isinstance(value, dict):
        if node.exclusive:
            given = sum(key in value for key in node.properties or {})
            if given != 1:
                yield FieldError("Invalid value", path, OMITTED, EXCLUSIVE[min(given, 1)])
        for key, item in value.items():
            yield from _selectors(item, (node.properties or {}).get(key), (*path, key))


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
            check_cpu()
            fill_in(item, node.items)
    elif isinstance(value, dict):
        for key, below in (node.properties or {}).items():
            if below.has_default and value.get(key) is None:
                value[key] = clone(below.default)
        for key, item in value.items():
            if isinstance(item, dict | list):
                fill_in(item, (node.properties or {}).get(key) or node.values)


class SchemaContents:
    """Remembers contents as they are after preparation, and those without faults.

    A schema has nothing on metadata, and an object names its kind: its content is all that counts.
    """

    def __init__(self) -> None:
        self._prepared = KnownContents[Manifest | None]()
        self._valid = KnownContents[None]()

    def prepare(self, given: Manifest, node: Node) -> list[str]:
        """Fill in defaults and remove unknown fields, in place; return the latter."""
        key = content_key(given)
        if key in self._prepared:
            known = self._prepared[key]
            if known is not None:
                metadata = given["metadata"]
                given.clear()
                given.update(clone(known), metadata=metadata)
            return []
        unknown = without_unknown(given, node)
        without_nulls(given, node)
        fill_in(given, node)
        if not unknown:
            is_same = content_key(given) == key
            self._prepared.remember(key, None if is_same else clone({**given, "metadata": {}}))
        return unknown

    def faults(self, given: Manifest, node: Node, old: Manifest | None = None) -> list[FieldError]:
        """Find faults; with an older version, only in changed parts."""
        before = None if old is None else {k: v for k, v in old.items() if k != "metadata"}
        key = content_key(given, before)
        if key in self._valid:
            return []
        found = check(given, node, old)
        if not found:
            self._valid.remember(key, None)
        return found
