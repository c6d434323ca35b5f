"""Objects of a world in an embedded cluster, shared with the worlds that have further ones.

Answers play a world as it is and as it would be.  Most objects are the same on both sides, and the
cluster of the first is copied for the second: that copies tables, not objects.
"""

from collections.abc import Sequence
from itertools import takewhile
from operator import is_

from pumice.api.kinds import Manifest
from pumice.api.meta import KubeObject
from pumice.cache.informer import typed
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.diagnosis.arranged_objects import ArrangedObjects


class RestoredObjects:
    """The objects of the first world that was asked about."""

    def __init__(self) -> None:
        self._arranged: ArrangedObjects | None = None
        self._manifests: list[Manifest] = []
        self._cluster: EmbeddedCluster | None = None
        """These objects and nothing else; it never changes."""
        self._typed: dict[int, KubeObject] = {}
        """Objects of that cluster as the scheduler reads them, by identity."""

    def __reduce__(self) -> tuple[type["RestoredObjects"], tuple[()]]:
        """Leave the objects behind on the way to another process: there, identities are others."""
        return RestoredObjects, ()

    def arranged(self, objects: Sequence[Manifest]) -> ArrangedObjects:
        """Return objects in the order in which they are restored."""
        if self._arranged is None:
            self._arranged = ArrangedObjects(objects, started=True)
        known = self._arranged
        if not known.begins(objects):
            return ArrangedObjects(objects, started=True)
        return known.followed_by(objects[len(known) :])

    def cluster(self, manifests: Sequence[Manifest], clock: VirtualClock) -> EmbeddedCluster:
        """Return a cluster of its own with these objects, restored in this order.

        One that begins with the objects of the first is a copy of it with the rest: versions and
        uids follow from the order alone.  Jobs are last and not shared, because new objects come
        before them.
        """
        if self._cluster is None:
            shared = list(takewhile(_is_no_job, manifests))
            first = EmbeddedCluster(VirtualClock(clock.now()), record_events=False)
            first.restore(shared)
            self._manifests, self._cluster = shared, first
        if self._begins(manifests) and self._cluster.now() == clock.now():
            cluster = self._cluster.copy(clock)
            cluster.restore(manifests[len(self._manifests) :])
        else:
            cluster = EmbeddedCluster(clock, record_events=False)
            cluster.restore(manifests)
        return cluster

    def _begins(self, manifests: Sequence[Manifest]) -> bool:
        known = self._manifests
        return len(manifests) >= len(known) and all(map(is_, known, manifests))

    def read(self, kind: str, manifest: Manifest) -> KubeObject:
        """Return an object as the scheduler reads it; a shared one is read once."""
        found = self._typed.get(id(manifest))
        if found is None:
            found = typed(kind, manifest)
            if self._has(kind, manifest):  # only then does its identity stay its own
                self._typed[id(manifest)] = found
        return found

    def _has(self, kind: str, manifest: Manifest) -> bool:
        if self._cluster is None:
            return False
        meta = manifest["metadata"]
        return self._cluster.peek(kind, meta.get("namespace") or "", meta["name"]) is manifest


def _is_no_job(manifest: Manifest) -> bool:
    return bool(manifest["kind"] != "Job")
