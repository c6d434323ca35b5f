"""What changed between two versions of an object, as a JSON merge patch (RFC 7386)."""

from collections.abc import Mapping
from typing import Any, Final

from pumice.api.kinds import Manifest, kind_of
from pumice.records.entries import Place


def place_of(manifest: Manifest) -> Place:
    """Return kind, namespace and name of an object."""
    metadata = manifest["metadata"]
    return kind_of(manifest), metadata.get("namespace") or "", metadata["name"]


class _NotPatchableError(Exception):
    """A null in the new version, which a patch would take for a removal."""


def difference(old: Manifest, new: Manifest) -> dict[str, Any] | None:
    """Return the patch that makes one object of another; None if no patch can."""
    try:
        return _patch(old, new)
    except _NotPatchableError:
        return None


def _patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        known = old.get(key)
        if key in old and (known is value or known == value):
            continue
        if isinstance(known, dict) and isinstance(value, dict):
            found[key] = _patch(known, value)
        else:
            _refuse_null(value)
            found[key] = value
    return found


def _refuse_null(value: Any) -> None:
    if value is None:
        raise _NotPatchableError
    if isinstance(value, dict):
        for each in value.values():
            _refuse_null(each)


_IDENTITY: Final = frozenset({"apiVersion", "kind"})
_NAMES: Final = frozenset({"name", "namespace"})


def keeps_identity(patch: Mapping[str, Any]) -> bool:
    """Return whether an object is surely the same one after a patch."""
    metadata = patch.get("metadata", {})
    is_plain = isinstance(metadata, dict) and _NAMES.isdisjoint(metadata)
    return is_plain and _IDENTITY.isdisjoint(patch)


def merge_into(target: dict[str, Any], patch: Mapping[str, Any]) -> None:
    """Carry a merge patch out on an object that nobody else holds."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            known = target.get(key)
            if not isinstance(known, dict):
                known = target[key] = {}
            merge_into(known, value)
        else:
            target[key] = value


def without_heartbeats(node: Manifest) -> Manifest:
    """Return a node without the times at which its kubelet reported that all is as before."""
    status = node.get("status") or {}
    conditions = status.get("conditions")
    if not conditions:
        return node
    kept = [
        {key: value for key, value in one.items() if key != "lastHeartbeatTime"}
        for one in conditions
    ]
    return {**node, "status": {**status, "conditions": kept}}


def is_touch(patch: Mapping[str, Any]) -> bool:
    """Return whether a patch changes nothing but the version of an object."""
    return not patch or (patch.keys() == {"metadata"} and patch["metadata"].keys() <= _VERSION)


_VERSION = {"resourceVersion"}
