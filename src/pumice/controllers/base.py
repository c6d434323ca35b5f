"""The shape of a controller: a view in, effects out, no input or output of its own.

``reconcile`` looks at the present state only, so that it does not matter which events were missed
or came twice.  The loop in ``controllers/loop.py`` applies effects through a cluster.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from pumice.api.kinds import Manifest, kind_of


class Key(NamedTuple):
    """One object that a controller manages."""

    kind: str
    namespace: str
    name: str


class Create(msgspec.Struct, frozen=True):
    """Add an object."""

    manifest: Manifest


class Update(msgspec.Struct, frozen=True):
    """Replace an object (``status`` excepted); stale ones are reconciled again."""

    manifest: Manifest


class UpdateStatus(msgspec.Struct, frozen=True):
    """Replace the status of an object."""

    manifest: Manifest


class Patch(msgspec.Struct, frozen=True):
    """Merge changes into an object; None removes a field."""

    key: Key
    changes: Manifest
    subresource: str = ""


class Delete(msgspec.Struct, frozen=True):
    """Delete an object."""

    key: Key
    grace_s: int | None = None
    propagation: str = "Background"
    uid: str = ""


class Record(msgspec.Struct, frozen=True):
    """Write an event about an object."""

    about: Manifest
    type: str
    reason: str
    message: str
    source: str


Effect = Create | Update | UpdateStatus | Patch | Delete | Record


class Plan(msgspec.Struct):
    """What to do, in order, and when to reconcile again at the latest."""

    effects: list[Effect] = msgspec.field(default_factory=list)
    again_in_s: float | None = None
    look_at: list[Key] = msgspec.field(default_factory=list)
    """Further objects of the same controller to reconcile, each by itself."""
    is_part: bool = False
    """Whether there is more to do as soon as this has been done."""
    if_refused: list[Effect] = msgspec.field(default_factory=list)
    """What to do in place of the rest if a quota refuses a pod."""


class View(Protocol):
    """The cluster as a controller sees it: complete for the kinds it watches."""

    @property
    def now(self) -> float:
        """The present time in seconds since 1970."""

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return one object, None if there is none."""

    def read(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return one object as it is now, also of a kind that the cluster does not watch."""

    def owned_by(self, kind: str, owner: Manifest) -> list[Manifest]:
        """Return objects of a kind whose controlling owner is this object."""

    def below(self, kind: str, parent: str) -> "list[Manifest]":
        """Return the objects of a kind, one without namespaces, that name a parent."""

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """Return objects of a kind, of one namespace or of all, with these labels."""


class Controller(Protocol):
    """Manages one kind of object."""

    @property
    def name(self) -> str:
        """Its name in records and failures."""

    @property
    def watches(self) -> tuple[str, ...]:
        """Kinds whose changes it watches, its own first (see ``pumice.api.kinds.kind_of``)."""

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:
        """Name the objects to reconcile when an object of a watched kind changed or was deleted."""

    def reconcile(self, key: Key, view: View) -> Plan:
        """Return what to do about one object; it may be gone."""


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
