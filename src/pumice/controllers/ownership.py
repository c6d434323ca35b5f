"""The controlling owner and the place of an object; used by all controllers."""

from collections.abc import Mapping
from typing import Any, Final

from pumice.api.kinds import Manifest, kind_of
from pumice.controllers.base import Key

SOURCE: Final = "vc-controller-manager"
"""The source that Volcano's controllers write into events."""


def key_of(manifest: Manifest) -> Key:
    """Name an object."""
    metadata = manifest["metadata"]
    return Key(kind_of(manifest), str(metadata.get("namespace", "")), str(metadata["name"]))


def controlled_by(owner: Manifest) -> Manifest:
    """Return the owner reference of an object that another one controls.

    The uid is empty for an owner that no cluster has seen.
    """
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(manifest: Manifest) -> Mapping[str, Any] | None:
    """Return the owner reference of the controlling owner, None without one."""
    references: list[Mapping[str, Any]] | None = manifest["metadata"].get("ownerReferences")
    if references:
        for one in references:
            if one.get("controller"):
                return one
    return None


def phase_of(job: Manifest) -> str:
    """Return the phase of a Job, empty when it has none yet."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")
