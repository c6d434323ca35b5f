"""Words to write structural schemas with: each gives one node of an OpenAPI v3 schema.

Used by the modules that describe the custom resources.  Knows Kubernetes, nothing of Volcano.
"""

from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, Any]

LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_LABEL: Final = f"^{LABEL}$"
DNS_NAME: Final = rf"^{LABEL}(\.{LABEL})*$"
_NUMBER: Final = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
QUANTITY: Final = rf"^[+-]?{_NUMBER}([KMGTPE]i|[numkMGTPE]|[eE][+-]?{_NUMBER})?$"


def _said(says: str, schema: Schema) -> Schema:
    return {"description": says, **schema} if says else schema


def text(says: str = "", **limits: Any) -> Schema:
    """Give a string."""
    return _said(says, {"type": "string", **limits})


def name(says: str = "", *, longest: int = 253, **limits: Any) -> Schema:
    """Give a string that names an object."""
    return text(says, maxLength=longest, pattern=DNS_NAME, **limits)


def one_of(says: str, *values: str, **limits: Any) -> Schema:
    """Give a string out of a closed list."""
    return text(says, enum=[*values], **limits)


def moment(says: str = "") -> Schema:
    """Give a point in time."""
    return text(says, format="date-time")


def number(says: str = "", *, wide: bool = False, **limits: Any) -> Schema:
    """Give an integer of 32 bits, or of 64 if it is wide."""
    return _said(says, {"type": "integer", "format": "int64" if wide else "int32", **limits})


def count(says: str = "", **limits: Any) -> Schema:
    """Give an integer of 32 bits that is not negative."""
    return number(says, **{"minimum": 0, **limits})


def index(says: str = "", **limits: Any) -> Schema:
    """Give an integer without a stated width, as Go's ``int`` has none."""
    return _said(says, {"type": "integer", **limits})


def flag(says: str = "", **limits: Any) -> Schema:
    """Give true or false."""
    return _said(says, {"type": "boolean", **limits})


def quantity(says: str = "") -> Schema:
    """Give an amount of a resource: 2, "500m", "1Gi"."""
    schema = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY,
        "x-kubernetes-int-or-string": True,
    }
    return _said(says, schema)


def several(says: str, of: Schema, **limits: Any) -> Schema:
    """Give a list."""
    return _said(says, {"type": "array", "items": of, **limits})


def texts(says: str = "") -> Schema:
    """Give a list of strings."""
    return several(says, text())


def by_name(says: str, of: Schema) -> Schema:
    """Give a mapping with free keys."""
    return _said(says, {"type": "object", "additionalProperties": of})


def amounts(says: str) -> Schema:
    """Give amounts by the name of a resource."""
    return by_name(says, quantity())


def fields(says: str, parts: Mapping[str, Schema], *required: str, **more: Any) -> Schema:
    """Give an object of known fields; others are dropped by the API server."""
    schema: Schema = {"type": "object", "properties": dict(parts)}
    if required:
        schema["required"] = sorted(required)
    return _said(says, {**schema, **more})


def loose(says: str, parts: Mapping[str, Schema] | None = None, *required: str) -> Schema:
    """Give an object whose known fields are checked and whose other fields are kept."""
    more = {"x-kubernetes-preserve-unknown-fields": True}
    if parts:
        return fields(says, parts, *required, **more)
    return _said(says, {"type": "object", **more})


def label_selector(says: str) -> Schema:
    """Give a selector of objects by their labels."""
    expression = fields(
        "",
        {"key": text(), "operator": text(), "values": _atomic(texts())},
        "key",
        "operator",
    )
    parts = {
        "matchExpressions": _atomic(several("All of these must hold.", expression)),
        "matchLabels": by_name("All of these labels must be there.", text()),
    }
    return fields(says, parts, **{"x-kubernetes-map-type": "atomic"})


def conditions(says: str, **more: Any) -> Schema:
    """Give the list of conditions that Kubernetes' conventions describe."""
    parts = {
        "lastTransitionTime": moment(),
        "message": text(maxLength=32768),
        "observedGeneration": number(wide=True, minimum=0),
        "reason": text(
            minLength=1, maxLength=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
        ),
        "status": one_of("", "True", "False", "Unknown"),
        "type": text(
            maxLength=316,
            pattern=rf"^({LABEL}(\.{LABEL})*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    }
    required = ("lastTransitionTime", "message", "reason", "status", "type")
    return several(says, fields("", parts, *required), **more)


def _atomic(schema: Schema) -> Schema:
    return {**schema, "x-kubernetes-list-type": "atomic"}
