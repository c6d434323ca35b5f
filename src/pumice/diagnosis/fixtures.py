"""The objects of a cluster state in an embedded cluster, shared with states that have further ones.

Answers play a cluster as it is and as it would be.  Most objects are the same on both sides, and
the cluster of the first is copied for the second: that copies tables, not objects.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import takewhile
from operator import is_
from typing import Final

from pumice.api.annotations import EXPECTED, RUN_SECONDS, WALLTIME_SECONDS
from pumice.api.kinds import ENDED_PHASES, Manifest
from pumice.api.meta import KubeObject
from pumice.cache.informer import ObjectReader
from pumice.cache.new_tasks import PodRuns
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster

_FIRST: Final = frozenset({"Namespace", "PriorityClass"})
"""Kinds that come before the objects that name them."""
_LINKED: Final = frozenset({"Job", "PodGroup"})
"""Kinds that a job without a uid may change; besides, whatever has an owner."""

_Name = tuple[str, str, str]
"""Plain kind, namespace and name."""


class Fixtures:
    """Objects as they are stored, but for the uids of jobs that no cluster has seen.

    Objects that are only expected are left to the controllers.
    """

    def __init__(self, objects: Iterable[Manifest] = (), *, started: bool = False) -> None:
        """Make one; ``started`` gives running pods a start time, that of their creation."""
        self._started = started
        self._given: list[Manifest] = []
        self._names: set[_Name] = set()
        self.stored: list[Manifest] = []
        """Objects in their order."""
        self.linkable: list[int] = []
        """Places of those that jobs without a uid may change."""
        self.timed: list[Manifest] = []
        """Objects as given that state a run time."""
        self.leaving: list[tuple[str, str]] = []
        """Namespace and name of the pods that have ended or are being deleted."""
        self.add(objects)

    def __len__(self) -> int:
        """Return how many objects were given."""
        return len(self._given)

    def begins(self, objects: Sequence[Manifest]) -> bool:
        """Return whether others begin with the very objects that were given."""
        return len(objects) >= len(self) and all(map(is_, self._given, objects))

    def followed_by(self, more: Sequence[Manifest]) -> "Fixtures":
        """Return these objects with more; all are arranged again if some come earlier."""
        if any(one["kind"] in _FIRST or _name(one) in self._names for one in more):
            return Fixtures([*self._given, *more], started=self._started)
        other = self._with(self.stored)
        other.add(more)
        return other

    def edited(self, edit: Callable[[Manifest], Manifest]) -> "Fixtures":
        """Return a copy of which each object went through a function that leaves its name."""
        return self._with(map(edit, self.stored))

    def _with(self, stored: Iterable[Manifest]) -> "Fixtures":
        other = Fixtures(started=self._started)
        other._given, other._names = self._given.copy(), self._names.copy()
        other.stored, other.linkable = list(stored), self.linkable.copy()
        other.timed, other.leaving = self.timed.copy(), self.leaving.copy()
        return other

    def add(self, objects: Iterable[Manifest]) -> None:
        """Add objects in one look at each; of two with one name the later one counts."""
        first: dict[_Name, Manifest] = {}
        rest: dict[_Name, Manifest] = {}
        linked: list[_Name] = []
        given = [*objects]
        self._given += given
        for one in given:
            kind, meta = one["kind"], one["metadata"]
            marks = meta.get("annotations") or ()
            if RUN_SECONDS in marks or WALLTIME_SECONDS in marks or _has_deadline(one):
                self.timed.append(one)
            if EXPECTED in marks:
                continue
            name = kind, meta.get("namespace") or "", meta["name"]
            if kind in _FIRST:
                first[name] = _lasting(one)
                continue
            rest[name] = self._stored_pod(one) if kind == "Pod" else one
            if kind in _LINKED or meta.get("ownerReferences"):
                linked.append(name)
        self._names.update(first, rest)
        self.stored += first.values()
        if linked:
            places = {name: place for place, name in enumerate(rest, len(self.stored))}
            self.linkable += dict.fromkeys(places[name] for name in linked)
        self.stored += rest.values()

    def _stored_pod(self, pod: Manifest) -> Manifest:
        """Return a pod as it is stored, and note whether it leaves."""
        status, meta = pod.get("status") or {}, pod["metadata"]
        phase, created = status.get("phase"), meta.get("creationTimestamp")
        if phase in ENDED_PHASES or "deletionTimestamp" in meta:
            self.leaving.append((meta.get("namespace") or "default", meta["name"]))
        if not self._started or phase != "Running" or not created or status.get("startTime"):
            return pod
        return {**pod, "status": {**status, "startTime": created}}


def _name(one: Manifest) -> _Name:
    meta = one["metadata"]
    return one["kind"], meta.get("namespace") or "", meta["name"]


def _lasting(one: Manifest) -> Manifest:
    """Return a namespace in which objects can still be created."""
    meta = one["metadata"]
    if "deletionTimestamp" not in meta:
        return one
    return {**one, "metadata": {k: v for k, v in meta.items() if k != "deletionTimestamp"}}


class SharedFixtures(ObjectReader):
    """The objects of the first world that was asked about."""

    def __init__(self) -> None:
        self._arranged: Fixtures | None = None
        self._manifests: list[Manifest] = []
        self._cluster: EmbeddedCluster | None = None
        """These objects and nothing else; it never changes."""
        self._typed: dict[str, dict[int, KubeObject]] = {}
        """Objects of that cluster as the scheduler reads them, by kind and identity."""
        self._identities: dict[str, set[int]] = {}
        self.runs = PodRuns()
        """Pods alike among those that the scheduler read first."""

    def __reduce__(self) -> tuple[type["SharedFixtures"], tuple[()]]:
        """Leave the objects behind on the way to another process: there, identities are others."""
        return SharedFixtures, ()

    def arranged(self, objects: Sequence[Manifest]) -> Fixtures:
        """Return objects in the order in which they are restored."""
        if self._arranged is None:
            self._arranged = Fixtures(objects, started=True)
        known = self._arranged
        if not known.begins(objects):
            return Fixtures(objects, started=True)
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


def _has_deadline(one: Manifest) -> bool:
    is_pod = one["kind"] == "Pod"
    return is_pod and (one.get("spec") or {}).get("activeDeadlineSeconds") is not None
