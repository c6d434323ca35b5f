"""Events about objects, kept for an hour as an API server does; the same one again is counted."""

from collections import OrderedDict
from typing import Any, Final, Protocol

from pumice.api.kinds import Manifest
from pumice.api.times import rfc3339
from pumice.cluster.base import event_object
from pumice.errors import NotFoundError

_KEPT_S: Final = 3600.0
_KEPT_MOST: Final = 20_000

_EventKey = tuple[str, str, str, str, str]


class _Store(Protocol):
    """The part of a cluster that writing events needs."""

    def now(self) -> float:
        """Return the time."""

    def create(self, manifest: Manifest) -> Manifest:
        """Add an object."""

    def patch(self, kind: str, namespace: str, name: str, patch: Any) -> Manifest:
        """Change an object."""

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object."""


class EventRecorder:
    """Writes events into a store and removes those that are too old or too many."""

    def __init__(self, store: _Store) -> None:
        self._store = store
        self._written = 0
        self._known: OrderedDict[_EventKey, tuple[str, str, float, int]] = OrderedDict()

    def record(
        self, about: Manifest, event_type: str, reason: str, message: str, source: str
    ) -> None:
        """Write an event, or count it if it is known."""
        now = self._store.now()
        self._forget(now)
        metadata = about["metadata"]
        identity = metadata.get("uid") or f"{about['kind']}/{metadata['name']}"
        key = (identity, event_type, reason, message, source)
        known = self._known.pop(key, None)
        if known is None or not self._count(key, known, now):
            self._write(about, key, now)

    def _count(self, key: _EventKey, known: tuple[str, str, float, int], now: float) -> bool:
        namespace, name, _, count = known
        changes = {"count": count + 1, "lastTimestamp": rfc3339(now)}
        try:
            self._store.patch("Event", namespace, name, changes)
        except NotFoundError:  # a client deleted it
            return False
        self._known[key] = (namespace, name, now, count + 1)
        return True

    def _write(self, about: Manifest, key: _EventKey, now: float) -> None:
        self._written += 1
        metadata = about["metadata"]
        place = metadata.get("namespace") or "default", f"{metadata['name']}.{self._written:016x}"
        self._store.create(event_object(about, key[1:], place, rfc3339(now)))
        self._known[key] = (*place, now, 1)

    def _forget(self, now: float) -> None:
        while self._known:
            namespace, name, last, _ = next(iter(self._known.values()))
            if now - last < _KEPT_S and len(self._known) < _KEPT_MOST:
                return
            self._known.popitem(last=False)
            try:
                self._store.delete("Event", namespace, name)
            except NotFoundError:  # a client deleted it
                continue
