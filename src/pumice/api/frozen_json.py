"""JSON objects that are sent again and again: written as text once.

Used by the extender plugin for nodes and tasks, and by the client that sends them.
"""

from functools import cached_property
from typing import Any

import msgspec


class FrozenJson(dict[str, Any]):
    """An object that does not change any more."""

    @cached_property
    def text(self) -> bytes:
        """The object as JSON."""
        return msgspec.json.encode(dict(self))


def encode_parts(payload: Any) -> bytes:
    """Write a value as JSON; frozen objects in a mapping, or in lists there, stay as they are."""
    if not isinstance(payload, dict):
        return msgspec.json.encode(payload)
    items = (msgspec.json.encode(key) + b":" + _encode(part) for key, part in payload.items())
    return b"{" + b",".join(items) + b"}"


def _encode(part: Any) -> bytes:
    if isinstance(part, FrozenJson):
        return part.text
    if isinstance(part, list) and part and all(isinstance(each, FrozenJson) for each in part):
        return b"[" + b",".join([each.text for each in part]) + b"]"
    return msgspec.json.encode(part)
