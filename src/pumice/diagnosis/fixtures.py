"""The objects of a cluster state as they are stored in an embedded cluster, in their order."""

from collections.abc import Callable, Iterable
from typing import Final

from pumice.api.annotations import EXPECTED, RUN_SECONDS, WALLTIME_SECONDS
from pumice.api.kinds import ENDED_PHASES, Manifest

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

    def __init__(self, objects: Iterable[Manifest], *, started: bool = False) -> None:
        """Arrange objects; ``started`` gives running pods a start time, that of their creation."""
        self._started = started
        self.stored: list[Manifest] = []
        """Objects in their order."""
        self.linkable: list[int] = []
        """Places of those that jobs without a uid may change."""
        self.timed: list[Manifest] = []
        """Objects as given that state a run time."""
        self.leaving: list[tuple[str, str]] = []
        """Namespace and name of the pods that have ended or are being deleted."""
        self._arrange(objects)

    def edit(self, edit: Callable[[Manifest], Manifest]) -> None:
        """Change each object by a function that leaves its name."""
        self.stored = [*map(edit, self.stored)]

    def _arrange(self, objects: Iterable[Manifest]) -> None:
        """Arrange objects in one look at each; of two with one name the later one counts."""
        first: dict[_Name, Manifest] = {}
        rest: dict[_Name, Manifest] = {}
        linked: list[_Name] = []
        for one in objects:
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
        self.stored = [*first.values(), *rest.values()]
        if linked:
            places = {name: place for place, name in enumerate(rest, len(first))}
            self.linkable = [*dict.fromkeys(places[name] for name in linked)]

    def _stored_pod(self, pod: Manifest) -> Manifest:
        """Return a pod as it is stored, and note whether it leaves."""
        status, meta = pod.get("status") or {}, pod["metadata"]
        phase, created = status.get("phase"), meta.get("creationTimestamp")
        if phase in ENDED_PHASES or "deletionTimestamp" in meta:
            self.leaving.append((meta.get("namespace") or "default", meta["name"]))
        if not self._started or phase != "Running" or not created or status.get("startTime"):
            return pod
        return {**pod, "status": {**status, "startTime": created}}


def _lasting(one: Manifest) -> Manifest:
    """Return a namespace in which objects can still be created."""
    meta = one["metadata"]
    if "deletionTimestamp" not in meta:
        return one
    return {**one, "metadata": {k: v for k, v in meta.items() if k != "deletionTimestamp"}}


def _has_deadline(one: Manifest) -> bool:
    is_pod = one["kind"] == "Pod"
    return is_pod and (one.get("spec") or {}).get("activeDeadlineSeconds") is not None
