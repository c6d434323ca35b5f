"""Objects of a world in an embedded cluster, shared with the worlds that have further ones.

Answers play a world as it is and as it would be.  Most objects are the same on both sides, and the
cluster of the first is copied for the second: that copies tables, not objects.
"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from operator import is_

from pumice.api.kinds import Manifest
from pumice.api.meta import KubeObject
from pumice.cache.object_reader import ObjectReader
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.diagnosis.arranged_objects import ArrangedObjects
from pumice.errors import NotFoundError


class RestoredObjects(ObjectReader):
    """The objects of the first world that was asked about."""

    def __init__(self) -> None:
        self._arranged: ArrangedObjects | None = None
        self._manifests: list[Manifest] = []
        self._cluster: EmbeddedCluster | None = None
        """These objects and nothing else; it never changes."""
        self._typed: dict[str, dict[int, KubeObject]] = {}
        """Objects of that cluster as the scheduler reads them, by kind and identity."""

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
            first.restore(shared, unseen=True)
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
        return self._shared(kind).get(id(manifest)) or super().read(kind, manifest)

    def read_all(self, kind: str, manifests: Sequence[Manifest]) -> list[KubeObject]:
        """Do the same for many."""
        known = self._shared(kind)
        found = [known.get(id(manifest)) for manifest in manifests]
        return [
            super(RestoredObjects, self).read(kind, manifest) if one is None else one
            for manifest, one in zip(manifests, found, strict=True)
        ]

    def _shared(self, kind: str) -> dict[int, KubeObject]:
        """Return the shared objects of a kind: as these stay, so do their identities."""
        found = self._typed.get(kind)
        if found is None:
            found = {} if self._cluster is None else self._read_shared(kind, self._cluster)
            self._typed[kind] = found
        return found

    def _read_shared(self, kind: str, cluster: EmbeddedCluster) -> dict[int, KubeObject]:
        manifests: Sequence[Manifest] = ()
        with suppress(NotFoundError):  # a cluster without this kind
            manifests = cluster.list(kind)[0]
        with suppress(Exception):  # a bad one is for the reader
            return dict(zip(map(id, manifests), super().read_all(kind, manifests), strict=True))
        found: dict[int, KubeObject] = {}
        for manifest in manifests:
            with suppress(Exception):
                found[id(manifest)] = super().read(kind, manifest)
        return found


def _is_no_job(manifest: Manifest) -> bool:
    return bool(manifest["kind"] != "Job")
