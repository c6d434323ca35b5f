"""How objects are deleted: grace of running pods, finalizers, dependents, namespaces.

Used by the store, which checks preconditions first.  Everything happens at once; what a real
cluster's garbage collector does a moment later is done when this returns.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pumice.api.kinds import GRACE_PERIOD_S, Manifest
from pumice.cluster.base import Propagation
from pumice.cluster.embedded.object_tables import ObjectTables, Ref
from pumice.errors import RejectedError

FOREGROUND: Final = "foregroundDeletion"
_OVER: Final = frozenset({"Succeeded", "Failed"})


def _ref(kind: str, manifest: Mapping[str, Any]) -> Ref:
    metadata = manifest["metadata"]
    return Ref(kind, metadata.get("namespace", ""), metadata["name"])


def check_owners(kind: str, manifest: Manifest) -> None:
    """Refuse incomplete references to owners.

    Raises:
        RejectedError: one lacks its apiVersion, kind, name or uid.
    """
    metadata = manifest["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        missing = [key for key in ("apiVersion", "kind", "name", "uid") if not owner.get(key)]
        if missing:
            problem = f"metadata.ownerReferences: expected {', '.join(missing)}, got nothing"
            raise RejectedError(kind, metadata.get("namespace", ""), metadata["name"], problem)


_LONGEST_GRACE_S: Final = 1 << 31  # more would end after the calendar does


class GarbageCollector:
    """Deletes objects by the rules of an API server and its garbage collector."""

    def __init__(self, tables: ObjectTables, timestamp: Callable[[float], str]) -> None:
        self._tables = tables
        self._timestamp = timestamp
        self._suspects: dict[Ref, None] = {}

    def delete(
        self, ref: Ref, *, grace_s: int | None = None, propagation: Propagation = "Background"
    ) -> None:
        """Delete an object now, or mark it and wait for its finalizers, kubelet or dependents."""
        manifest = self._tables.find(ref)
        if manifest is None:
            return
        uid = manifest["metadata"]["uid"]
        if propagation == "Orphan":
            for dependent in self._tables.dependents(uid):
                self._disown(dependent, uid)
        waits = propagation == "Foreground" and self._is_blocked(uid)
        grace = _grace(ref.kind, manifest, grace_s)
        if grace or waits or manifest["metadata"].get("finalizers") or ref.kind == "Namespace":
            self._mark(ref, manifest, grace, waits=waits)
            if waits:
                for dependent in self._tables.dependents(uid):
                    self.delete(dependent, propagation="Foreground")
            if ref.kind == "Namespace":
                for inside in self._content(ref.name):
                    self.delete(inside)
            self.finish(ref)
        else:
            self._remove(ref, manifest)

    def finish(self, ref: Ref) -> bool:
        """Remove an object if it was marked and nothing keeps it any more."""
        manifest = self._tables.find(ref)
        if manifest is None or not manifest["metadata"].get("deletionTimestamp"):
            return False
        metadata = manifest["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FOREGROUND in finalizers and not self._is_blocked(metadata["uid"]):
            left = [name for name in finalizers if name != FOREGROUND]
            manifest = self._rewrite(ref, manifest, {"finalizers": left})
        if manifest["metadata"].get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
            return False
        if ref.kind == "Namespace" and self._content(ref.name):
            return False
        self._remove(ref, manifest)
        return True

    def enqueue(self, ref: Ref, manifest: Manifest) -> None:
        """Remember a new object if an owner it names does not exist."""
        tables = self._tables
        for owner in manifest["metadata"].get("ownerReferences") or ():
            group, slash, _ = owner["apiVersion"].partition("/")
            kind = f"{owner['kind']}.{group}" if slash else owner["kind"]
            if tables.owner(owner["uid"]) is None and tables.kinds.get(kind) is not None:
                self._suspects[ref] = None

    def collect(self) -> int:
        """Delete objects whose owners never existed; return how many."""
        suspects, self._suspects = self._suspects, {}
        return sum(self._orphaned(ref) for ref in suspects)

    def _remove(self, ref: Ref, manifest: Manifest) -> None:
        tables = self._tables
        metadata = manifest["metadata"]
        tables.drop(tables.table(ref.kind), manifest)
        for dependent in tables.dependents(metadata["uid"]):
            self._orphaned(dependent)
        for owner in metadata.get("ownerReferences") or ():
            above = tables.owner(owner["uid"])
            if above is not None:
                self.finish(above)
        if ref.namespace:
            self.finish(Ref("Namespace", "", ref.namespace))

    def _orphaned(self, ref: Ref) -> bool:
        """Delete an object if no owner is left, else remove the references to missing ones."""
        manifest = self._tables.find(ref)
        owners = manifest["metadata"].get("ownerReferences") if manifest else None
        if manifest is None or not owners:
            return False
        left = [owner for owner in owners if self._tables.owner(owner["uid"]) is not None]
        if left:
            if len(left) < len(owners):
                self._rewrite(ref, manifest, {"ownerReferences": left})
            return False
        self.delete(ref)
        return True

    def _disown(self, ref: Ref, uid: str) -> None:
        manifest = self._tables.find(ref)
        if manifest is not None:
            owners = manifest["metadata"].get("ownerReferences") or ()
            left = [owner for owner in owners if owner["uid"] != uid]
            self._rewrite(ref, manifest, {"ownerReferences": left})

    def _mark(self, ref: Ref, manifest: Manifest, grace: int, *, waits: bool) -> None:
        """Write the deletion mark; a second one may only shorten the grace."""
        metadata = manifest["metadata"]
        changes: Manifest = {}
        known = metadata.get("deletionGracePeriodSeconds")
        if known is None or grace < known:
            changes["deletionTimestamp"] = self._timestamp(grace)
            changes["deletionGracePeriodSeconds"] = grace
        finalizers = metadata.get("finalizers") or []
        if waits and FOREGROUND not in finalizers:
            changes["finalizers"] = [*finalizers, FOREGROUND]
        if changes:
            status = {"phase": "Terminating"} if ref.kind == "Namespace" else None
            self._rewrite(ref, manifest, changes, status)

    def _rewrite(
        self, ref: Ref, manifest: Manifest, changes: Manifest, status: Manifest | None = None
    ) -> Manifest:
        metadata = {**manifest["metadata"], **changes}
        for field in ("finalizers", "ownerReferences"):
            if not metadata.get(field):
                metadata.pop(field, None)
        new = {**manifest, "metadata": metadata}
        if status is not None:
            new["status"] = {**(manifest.get("status") or {}), **status}
        self._tables.put(self._tables.table(ref.kind), new, manifest)
        return new

    def _is_blocked(self, uid: str) -> bool:
        """Return whether an owner waits for one of its dependents before it goes."""
        return any(
            owner["uid"] == uid and owner.get("blockOwnerDeletion")
            for ref in self._tables.dependents(uid)
            for owner in (self._tables.find(ref) or {"metadata": {}})["metadata"].get(
                "ownerReferences", ()
            )
        )

    def _content(self, namespace: str) -> list[Ref]:
        return [
            _ref(table.kind.name, manifest)
            for table in self._tables.tables()
            if namespace in table.spaces
            for manifest in table.all(namespace)
        ]


def _grace(kind: str, manifest: Manifest, asked: int | None) -> int:
    """Return how long an object may take to end: only a pod that may be running takes any time."""
    if kind != "Pod" or asked == 0:
        return 0
    spec = manifest.get("spec") or {}
    phase = (manifest.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in _OVER:
        return 0
    grace = spec.get("terminationGracePeriodSeconds") if asked is None else asked
    return min(max(int(GRACE_PERIOD_S if grace is None else grace), 0), _LONGEST_GRACE_S)
