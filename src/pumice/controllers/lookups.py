"""Objects that are looked up one by one instead of being watched.

Used by the view of controllers that run live: objects of job plugins (services, secrets, …) are
needed seldom, and watching them would need the right to read every secret of the cluster.
"""

from collections.abc import Collection
from typing import Final

from pumice.api.kinds import NETWORK_POLICY, Manifest, kind_of
from pumice.cluster.base import Cluster
from pumice.controllers.base import Key
from pumice.errors import NotFoundError

LOOKED_UP: Final = ("ConfigMap", "Secret", "Service", NETWORK_POLICY)
"""The kinds that controllers read by name only."""
_GOOD_FOR_S: Final = 60.0
_KEPT: Final = 10_000


class Lookups:
    """Answers about single objects, kept for a minute; absence is never cached."""

    def __init__(self, cluster: Cluster, kinds: Collection[str]) -> None:
        self._cluster = cluster
        self.kinds = frozenset(kinds)
        self._answers: dict[Key, tuple[float, Manifest]] = {}

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return an object, None if there is none."""
        key, now = Key(kind, namespace, name), self._cluster.now()
        known = self._answers.get(key)
        if known is not None and now < known[0]:
            return known[1]
        try:
            found = self._cluster.get(kind, namespace, name)
        except NotFoundError:
            self.forget(key)
            return None
        self._keep(key, found)
        return found

    def put(self, manifest: Manifest) -> None:
        """Store an object as returned by a write."""
        kind, metadata = kind_of(manifest), manifest["metadata"]
        if kind in self.kinds:
            self._keep(Key(kind, metadata.get("namespace") or "", metadata["name"]), manifest)

    def forget(self, key: Key) -> None:
        """Ask again for an object the next time."""
        self._answers.pop(key, None)

    def clear(self) -> None:
        """Ask again for everything."""
        self._answers.clear()

    def _keep(self, key: Key, manifest: Manifest) -> None:
        if len(self._answers) >= _KEPT:
            self._answers.clear()
        self._answers[key] = self._cluster.now() + _GOOD_FOR_S, manifest
