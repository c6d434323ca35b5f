"""Checks objects against structural schemas, as the API server does before it stores them.

Knows what our schemas use.  Besides what is wrong it names the fields that would be dropped;
nulls without a default go unnoticed, as in the API server.
Rules in CEL are not evaluated: the tests on a real control plane do that.
"""

import re
from datetime import datetime
from typing import Any

_TYPES = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "object": dict,
    "string": str,
}
_WIDTHS = {"int32": 2**31, "int64": 2**63}


def check(schema: Any, value: Any, path: str = "") -> Any:
    """List what is wrong with a value, as (path, problem)."""
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            return [(path, "must be an integer or a string")]
        return _text(schema, value, path) if isinstance(value, str) else []
    wanted = schema["type"]
    is_number = isinstance(value, bool) and wanted == "integer"
    if not isinstance(value, _TYPES[wanted]) or is_number:
        return [(path, f"must be of type {wanted}")]
    return _CHECKS[wanted](schema, value, path)


def _text(schema: Any, value: Any, path: Any) -> Any:
    found = []
    if len(value) > schema.get("maxLength", len(value)):
        found.append((path, "is too long"))
    if len(value) < schema.get("minLength", 0):
        found.append((path, "is too short"))
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append((path, f"must match {schema['pattern']}"))
    if schema.get("format") == "date-time" and not _is_time(value):
        found.append((path, "must be a time"))
    return found + _listed(schema, value, path)


def _is_time(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _listed(schema: Any, value: Any, path: Any) -> Any:
    if value in schema.get("enum", [value]):
        return []
    return [(path, f"must be one of {', '.join(schema['enum'])}")]


def _number(schema: Any, value: Any, path: Any) -> Any:
    width = _WIDTHS.get(schema.get("format"), 2**63)
    found = [] if -width <= value < width else [(path, "is too big")]
    if value < schema.get("minimum", value):
        found.append((path, f"must be at least {schema['minimum']}"))
    if value > schema.get("maximum", value):
        found.append((path, f"must be at most {schema['maximum']}"))
    return found


def _list(schema: Any, value: Any, path: Any) -> Any:
    found = [(path, "has too few items")] if len(value) < schema.get("minItems", 0) else []
    for at, item in enumerate(value):
        found += check(schema["items"], item, f"{path}[{at}]")
    return found


def _object(schema: Any, value: Any, path: Any) -> Any:
    found = [
        (f"{path}.{key}", "is required") for key in schema.get("required", []) if key not in value
    ]
    known = schema.get("properties", {})
    other = schema.get("additionalProperties")
    for key, part in value.items():
        place = f"{path}.{key}"
        if part is None and "default" not in known.get(key, other or {}):
            found += [] if key in known or other else [(place, "would be dropped")]
        elif key in known:
            found += check(known[key], part, place)
        elif other is not None:
            found += check(other, part, place)
        elif path != ".metadata":
            found.append((place, "would be dropped"))
    return found


_CHECKS = {
    "array": _list,
    "boolean": lambda *_: [],
    "integer": _number,
    "object": _object,
    "string": _text,
}


def problems(definitions: Any, manifest: Any) -> Any:
    """List what is wrong with an object of one of these definitions."""
    group, _, version = manifest["apiVersion"].partition("/")
    for definition in definitions:
        spec = definition["spec"]
        if spec["group"] == group and spec["names"]["kind"] == manifest["kind"]:
            served = {one["name"]: one for one in spec["versions"]}
            schema = served[version]["schema"]["openAPIV3Schema"]
            return check(schema, manifest)
    raise LookupError(f"no definition of {manifest['kind']} in {group}")
