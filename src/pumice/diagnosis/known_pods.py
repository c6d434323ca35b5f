"""All pods of a cluster at one moment, and what they add up to by job."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from operator import is_, is_not

import msgspec

from pumice.api.annotations import GROUP_NAME
from pumice.api.kinds import ENDED_PHASES, Manifest
from pumice.diagnosis.cluster_state import key_of, title_of
from pumice.diagnosis.unseen_jobs import owner_of

_Sort = tuple[str, str, str, str, bool]
"""Namespace, Volcano job or else pod group, phase, and whether there is no node."""


class KnownPods:
    """Pods by namespace and name; keys are made only of those that are asked for."""

    def __init__(self, spaces: Mapping[str, Mapping[str, Manifest]]) -> None:
        self.spaces = spaces
        self._compared: dict[int, tuple[KnownPods, list[Manifest]]] = {}

    def get(self, key: str) -> Manifest | None:
        """Return a pod by "namespace/name", None if there is none."""
        space, _, name = key.partition("/")
        return self.spaces.get(space, {}).get(name)

    def __contains__(self, key: object) -> bool:
        """Return whether there is such a pod."""
        return self.get(str(key)) is not None

    def __iter__(self) -> Iterator[Manifest]:
        """Iterate over the pods."""
        return (pod for space in self.spaces.values() for pod in space.values())

    def not_in(self, other: "KnownPods") -> list[Manifest]:
        """Return the pods that are not the very same at another moment or on another side."""
        known = self._compared.get(id(other))
        if known is None:
            found: list[Manifest] = []
            for space, pods in self.spaces.items():
                found += _unlike(pods, other.spaces.get(space, {}))
            known = self._compared[id(other)] = other, found
        return known[1]


def _unlike(pods: Mapping[str, Manifest], others: Mapping[str, Manifest]) -> Iterable[Manifest]:
    """Return the pods of a namespace that are not the very same among others."""
    if len(pods) == len(others) and all(map(is_, pods, others)):
        return compress(pods.values(), map(is_not, pods.values(), others.values()))
    return [pod for name, pod in pods.items() if others.get(name) is not pod]


class Tally(msgspec.Struct):
    """How many pods there are of a job."""

    pods: int = 0
    running: int = 0
    over: int = 0
    pending: int = 0
    unplaced: int = 0
    """Of those that are pending, the ones that have no node."""

    def add(self, number: int, phase: str, *, is_placed: bool) -> None:
        """Count pods of one phase, with a node or without."""
        self.pods += number
        if phase == "Running":
            self.running += number
        elif phase in ENDED_PHASES:
            self.over += number
        elif phase in ("", "Pending"):
            self.pending += number
            if phase and not is_placed:
                self.unplaced += number


class PodTallies:
    """Numbers of pods by their Volcano job, or else by their pod group."""

    def __init__(self, pods: Iterable[Manifest] = ()) -> None:
        self._numbers: dict[_Sort, int] = {}
        self._count(pods, 1)

    def changed(self, gone: Iterable[Manifest], new: Iterable[Manifest]) -> "PodTallies":
        """Return tallies without some of the pods and with others."""
        other = PodTallies()
        other._numbers = self._numbers.copy()
        other._count(gone, -1)
        other._count(new, 1)
        return other

    def _count(self, pods: Iterable[Manifest], sign: int) -> None:
        numbers = self._numbers
        for pod in pods:
            meta, status = pod["metadata"], pod.get("status")
            owner = owner_of(pod) if meta.get("ownerReferences") else ""
            marks = None if owner else meta.get("annotations")
            group = (marks.get(GROUP_NAME) or "") if marks else ""
            phase = str(status.get("phase") or "") if status else ""
            sort = meta["namespace"], owner, group, phase, not pod["spec"].get("nodeName")
            numbers[sort] = numbers.get(sort, 0) + sign

    def by_job(self, groups: Iterable[Manifest]) -> dict[str, Tally]:
        """Return tallies by the title of a job; one without pods has none."""
        titles = {key_of(group): title_of(group) for group in groups}
        found: dict[str, Tally] = {}
        for (space, owner, name, phase, is_free), number in self._numbers.items():
            key = f"{space}/{name}" if name else ""
            title = owner or titles.get(key, key)
            if number:
                found.setdefault(title, Tally()).add(number, phase, is_placed=not is_free)
        return found


def phase_of(pod: Manifest) -> str:
    """Return the phase of a pod, empty if it has none."""
    return str((pod.get("status") or {}).get("phase") or "")
