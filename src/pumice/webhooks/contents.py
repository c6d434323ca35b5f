"""Contents of objects, all but their metadata, by which equal ones are known again.

Most objects of a cluster differ in metadata alone: what a check of their contents found holds for
all of them.
"""

from hashlib import blake2b
from typing import Final, Generic, TypeVar

import msgspec

from pumice.api.kinds import Manifest

HEAD: Final = ("apiVersion", "kind", "metadata")
"""Fields that every object has."""
_MOST: Final = 10_000
_ENCODER: Final = msgspec.msgpack.Encoder()
_T = TypeVar("_T")


def content_key(manifest: Manifest, *more: object) -> bytes:
    """Return a short form of a content and what else counts; empty if it cannot be written."""
    content = {key: value for key, value in manifest.items() if key != "metadata"}
    try:
        text = _ENCODER.encode((content, more))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return b""
    return blake2b(text, digest_size=16).digest()


class KnownContents(Generic[_T]):
    """What was found out about contents; all of it is forgotten when it becomes too much."""

    def __init__(self) -> None:
        self._known: dict[bytes, _T] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._known

    def __getitem__(self, key: bytes) -> _T:
        return self._known[key]

    def get(self, key: bytes) -> _T | None:
        """Return what was found out, None for nothing; other threads may remember meanwhile."""
        return self._known.get(key)

    def remember(self, key: bytes, found: _T) -> None:
        """Remember what was found out, unless the content has no short form."""
        if not key:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = found
