"""Objects of a world in an embedded cluster, shared with the worlds that have further ones.

Answers play a world as it is and as it would be.  Most objects are the same on both sides, and the
cluster of the first is copied for the second: that copies tables, not objects.
"""

from collections.abc import Container, Sequence
from itertools import takewhile
from operator import is_

from pumice.api.kinds import Manifest
from pumice.api.meta import KubeObject
from pumice.cache.new_tasks import PodRuns
from pumice.cache.object_reader import ObjectReader
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.diagnosis.arranged_objects import ArrangedObjects


class RestoredObjects(ObjectReader):
    """The objects of the first world that was asked about."""

    def __init__(self) -> None:
        self._arranged: ArrangedObjects | None = None
        self._manifests: list[Manifest] = []
        self._cluster: EmbeddedCluster | None = None
        """These objects and nothing else; it never changes."""
        self._typed: dict[str, dict[int, KubeObject]] = {}
        """Objects of that cluster as the scheduler reads them, by kind and identity."""
        self._identities: dict[str, set[int]] = {}
        self.runs = PodRuns()
        """Pods alike among those that the scheduler read first."""

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
        known, shared = self._typed.setdefault(kind, {}), self._shared(kind)
        found = known.get(id(manifest))
        if found is None:
            found = super().read(kind, manifest)
            if id(manifest) in shared:
                known[id(manifest)] = found
        return found

    def read_all(self, kind: str, manifests: Sequence[Manifest]) -> list[KubeObject]:
        """Do the same for many."""
        known, shared = self._typed.setdefault(kind, {}), self._shared(kind)
        found = [known.get(id(manifest)) for manifest in manifests]
        missing = [manifest for manifest, one in zip(manifests, found, strict=True) if one is None]
        new = super().read_all(kind, missing)
        for manifest, one in zip(missing, new, strict=True):
            if id(manifest) in shared:
                known[id(manifest)] = one
        rest = iter(new)
        return [next(rest) if one is None else one for one in found]

    def _shared(self, kind: str) -> Container[int]:
        """Return the identities of the shared objects of a kind: as these stay, they do."""
        found = self._identities.get(kind)
        if found is None and self._cluster is not None:
            spaces = self._cluster.tables.by_place(kind).values()
            found = self._identities[kind] = {id(one) for space in spaces for one in space.values()}
        return found or ()


def _is_no_job(manifest: Manifest) -> bool:
    return bool(manifest["kind"] != "Job")
