"""The objects of a world in the order in which an embedded cluster takes them.

Many worlds begin with all objects of another one: they are arranged as that one, with some more.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Final

from pumice.api.annotations import EXPECTED, RUN_SECONDS
from pumice.api.kinds import ENDED_PHASES, Manifest

_FIRST: Final = frozenset({"Namespace", "PriorityClass"})
"""Kinds that come before the objects that name them."""
_LINKED: Final = frozenset({"Job", "PodGroup"})
"""Kinds that a job without a uid may change; besides, whatever has an owner."""

_Name = tuple[str, str, str]
"""Plain kind, namespace and name."""


class ArrangedObjects:
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

    def followed_by(self, more: Sequence[Manifest]) -> "ArrangedObjects":
        """Return these objects with more; all are arranged again if some come earlier."""
        if any(one["kind"] in _FIRST or _name(one) in self._names for one in more):
            return ArrangedObjects([*self._given, *more], started=self._started)
        other = self._with(self.stored)
        other.add(more)
        return other

    def edited(self, edit: Callable[[Manifest], Manifest]) -> "ArrangedObjects":
        """Return a copy of which each object went through a function that leaves its name."""
        return self._with(map(edit, self.stored))

    def _with(self, stored: Iterable[Manifest]) -> "ArrangedObjects":
        other = ArrangedObjects(started=self._started)
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
            if RUN_SECONDS in marks:
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
