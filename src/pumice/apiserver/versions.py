"""Objects in the version and form of the address at which a client asks for them."""

from collections.abc import Mapping
from typing import Any, Final

from pumice.api.kinds import Kind, Kinds, Manifest

_NEW_NAMES: Final[Mapping[str, str]] = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
}
"""Fields of an event of the core group by which ``events.k8s.io`` has other names."""
_OLD_NAMES: Final = {new: old for old, new in _NEW_NAMES.items()}
_EVENTS: Final = "events.k8s.io"


def is_stored(kind: Kind, kinds: Kinds) -> bool:
    """Return whether objects are stored as they are served as this kind."""
    known = kinds.get(kind.name)
    return known is None or known.api_version == kind.api_version


def shown(manifest: Manifest, kind: Kind) -> Manifest:
    """Return a stored object as a kind is served."""
    if manifest.get("apiVersion") == kind.api_version:
        return manifest
    if kind.group != _EVENTS:
        return {**manifest, "apiVersion": kind.api_version}
    made = _renamed(manifest, _NEW_NAMES)
    seen = made.get("eventTime") or _precise(made.get("deprecatedFirstTimestamp"))
    return {**made, "apiVersion": kind.api_version, "eventTime": seen}


def stored(manifest: Manifest, kind: Kind, kinds: Kinds) -> Manifest:
    """Return an object that a client sent as a kind as it is stored."""
    known = kinds.get(kind.name)
    if known is None or known.api_version == kind.api_version:
        return manifest
    made = _renamed(manifest, _OLD_NAMES) if kind.group == _EVENTS else manifest
    return {**made, "apiVersion": known.api_version}


def _renamed(manifest: Manifest, names: Mapping[str, str]) -> Manifest:
    return {names.get(field, field): value for field, value in manifest.items()}


def _precise(moment: Any) -> Any:
    """Write a time with millionths of a second, as the newer events have it."""
    text = str(moment or "")
    return f"{text[:-1]}.000000Z" if text.endswith("Z") and "." not in text else moment
