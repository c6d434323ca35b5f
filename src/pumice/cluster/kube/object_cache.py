"""The known objects of one kind: each as last reported, in the order of changes.

Written by a reflector, read by any thread.  Objects are shared with the readers, which must not
change them.
"""

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pumice.api.kinds import Manifest
from pumice.cluster.base import Event
from pumice.errors import GoneError, RejectedError

_REMEMBERED: Final = 10_000
"""Maximum number of deleted objects that are kept."""
_REMEMBERED_BYTES: Final = 32 << 20
"""Maximum bytes of their JSON together; in memory they take about five times that."""

Key = tuple[str, str]
"""Namespace and name."""

_Events = list[Event]
_Changes = list[tuple[int, Event]]


class _Entry(NamedTuple):
    """An object, the version it was last changed at and the one it appeared at."""

    changed: int
    appeared: int
    object: Manifest


class _Deleted(NamedTuple):
    """A deleted object in its last state, and its bytes as JSON."""

    entry: _Entry
    size: int


class ObjectCache:
    """Objects of one kind.

    Of each object only the last change is kept, and of the deleted ones the latest: a reader that
    is late gets the current state, not each step.  Versions are compared as
    numbers, as API servers promise.
    """

    def __init__(
        self,
        kind: str,
        remembered: int = _REMEMBERED,
        remembered_bytes: int = _REMEMBERED_BYTES,
    ) -> None:
        self.kind = kind
        self.synced = False
        """Whether there was a complete list; a kind the server does not have counts as empty."""
        self.version = 0
        """The version up to which all is known; 0 while there is none."""
        self._newest: str | None = None
        """That version as a reader has written it, once one has asked for what is newer."""
        self._remembered = remembered
        self._remembered_bytes = remembered_bytes
        self._deleted_bytes = 0
        self._forgotten = 0
        self._entries: dict[Key, _Entry] = {}  # by the version of their last change
        self._deleted: dict[tuple[str, str, str], _Deleted] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def replace(self, items: Iterable[Manifest], version: str) -> bool:
        """Start over from a complete list; return whether anything has changed.

        Readers get GoneError for older versions, and list again from here.  A list in pages may
        hold objects that are newer than its version; its readers know them nevertheless.
        """
        listed = int(version or 0)
        found = [(_key(item), _version(item["metadata"]), item) for item in items]
        found.sort(key=lambda each: each[1])
        with self._lock:
            known, self._entries = self._entries, {}
            for key, changed, item in found:
                old = known.get(key)
                same = old if old is not None and old.changed == changed else None
                appeared = min(same.appeared if same else changed, listed)
                self._entries[key] = _Entry(changed, appeared, same.object if same else item)
            self.version, self._newest = listed, None
            differs = not self.synced or self._entries != known
            if differs:
                self._deleted.clear()
                self._deleted_bytes = 0
                self._forgotten = self.version
            self.synced = True
        return differs

    def apply(self, events: Iterable[Event]) -> int:
        """Apply steps of a watch; return how many were new."""
        news = 0
        with self._lock:
            for event in events:
                version = _version(event.object["metadata"])
                if version <= self.version:  # already known
                    continue
                self.version, self._newest = version, None
                if event.type != "BOOKMARK" and not self._is_outdated(event, version):
                    news += 1
                    self._take(event, version)
        return news

    def get(self, namespace: str, name: str) -> Manifest | None:
        """Return one object, None if there is none."""
        entry = self._entries.get((namespace, name))
        return None if entry is None else entry.object

    def known(self, item: Manifest) -> Manifest:
        """Return the object here if it is the very same version, so that one is kept of two."""
        entry = self._entries.get(_key(item))
        if entry is None or entry.changed != _version(item["metadata"]):
            return item
        return entry.object

    def list(
        self, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[list[Manifest], str]:
        """Return objects by namespace and name, and the version from which to watch."""
        with self._lock:
            version = str(self.version)
            entries = [*self._entries.items()]
        entries.sort()
        items = [e.object for key, e in entries if not namespace or key[0] == namespace]
        if labels:
            wanted = labels.items()
            items = [m for m in items if wanted <= (m["metadata"].get("labels") or {}).items()]
        return items, version

    def since(self, text: str, namespace: str = "") -> _Events:
        """Return what happened after a version; without one, all objects.

        Raises:
            GoneError: some of it is forgotten, or the version is still to come.
            RejectedError: no version at all.
        """
        if text == self._newest and self.synced:  # nothing new, as most of the time
            return []
        if text and not (text.isdecimal() and len(text) < 20):
            problem = f"expected a resourceVersion of this cluster, got '{text}'"
            raise RejectedError(self.kind, problem=problem)
        start = int(text or 0)
        with self._lock:
            if start == self.version and self.synced:
                self._newest = text
                return []
            if start and not (self.synced and self._forgotten <= start <= self.version):
                raise GoneError(
                    self.kind,
                    problem=f"expected changes after resourceVersion {start}, got those after "
                    f"{self._forgotten} up to {self.version} (list again)",
                )
            changes = self._changes(start)
        changes.sort(key=lambda each: (each[0], each[1].type != "DELETED"))
        return [
            event
            for _, event in changes
            if not namespace or event.object["metadata"].get("namespace") == namespace
        ]

    def _changes(self, start: int) -> _Changes:
        found: _Changes = []
        for entry in reversed(self._entries.values()):
            if entry.changed <= start:
                break
            if start and entry.changed > self.version:  # known from the list; its step is to come
                continue
            step: Event = Event("ADDED" if entry.appeared > start else "MODIFIED", entry.object)
            found.append((entry.changed, step))
        if start:  # a reader without a version has missed nothing
            for entry, _ in reversed(self._deleted.values()):
                if entry.changed <= start:
                    break
                if entry.appeared <= start:  # else it was created and deleted unseen
                    found.append((entry.changed, Event("DELETED", entry.object)))
        return found

    def _is_outdated(self, event: Event, version: int) -> bool:
        """Return whether a newer state of the object came with a list that was read in pages."""
        known = self._entries.get(_key(event.object))
        return known is not None and known.changed > version

    def _take(self, event: Event, version: int) -> None:
        key = _key(event.object)
        old = self._entries.pop(key, None)
        if event.type != "DELETED":
            uid = event.object["metadata"].get("uid")
            if old is not None and old.object["metadata"].get("uid") != uid:
                self._remember_deleted(
                    key, old._replace(changed=version)
                )  # its deletion was not reported
                old = None
            appeared = version if old is None else old.appeared
            self._entries[key] = _Entry(version, appeared, event.object)
        elif old is not None:
            self._remember_deleted(key, _Entry(version, old.appeared, event.object))

    def _remember_deleted(self, key: Key, entry: _Entry) -> None:
        uid = str(entry.object["metadata"].get("uid"))
        size = len(json.dumps(entry.object))
        before = self._deleted.pop((*key, uid), None)
        self._deleted[*key, uid] = _Deleted(entry, size)
        self._deleted_bytes += size - (before.size if before else 0)
        while len(self._deleted) > self._remembered or self._deleted_bytes > self._remembered_bytes:
            oldest = self._deleted.pop(next(iter(self._deleted)))
            self._deleted_bytes -= oldest.size
            self._forgotten = max(self._forgotten, oldest.entry.changed)


def _key(manifest: Manifest) -> Key:
    metadata = manifest["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _version(metadata: Mapping[str, str]) -> int:
    return int(metadata["resourceVersion"])
