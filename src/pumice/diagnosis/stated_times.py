"""The latest instant in the objects of a dump: the time it was taken, or before."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pumice.api.kinds import GRACE_PERIOD_S, Manifest
from pumice.api.times import epoch

DEFAULT_NOW: Final = 1767225600.0  # 2026-01-01T00:00:00Z, as in scenarios
_STAMPS: Final = ("creationTimestamp", "startTime", "lastTransitionTime")


class StatedTimes:
    """The times that objects state."""

    def __init__(self, objects: Iterable[Manifest] = ()) -> None:
        self._written: dict[str, None] = {}
        self._leaving: list[Manifest] = []
        self.add(objects)

    def add(self, objects: Iterable[Manifest]) -> None:
        """Add the times of objects, in the order in which they are written."""
        for one in objects:
            _take_stamps(one, self._written)
            if one["metadata"].get("deletionTimestamp"):
                self._leaving.append(one)

    def latest(self, *, started: bool = False) -> float:
        """Return the latest instant; ``started`` leaves out future ends."""
        stamps = [epoch(stamp) for stamp in self._written]
        if not started:
            stamps += [asked for one in self._leaving for asked in _deletion_asked(one)]
        return max(stamps, default=0.0 if started else DEFAULT_NOW)


def latest_time(objects: Iterable[Manifest], *, started: bool = False) -> float:
    """Return the latest instant in objects; ``started`` leaves out future ends."""
    return StatedTimes(objects).latest(started=started)


def _deletion_asked(manifest: Manifest) -> Iterator[float]:
    """Yield when an object was deleted: its grace period before it must be gone."""
    meta = manifest["metadata"]
    if isinstance(meta.get("deletionTimestamp"), str):
        grace = meta.get("deletionGracePeriodSeconds")
        if grace is None:
            grace = _part(manifest, "spec").get("terminationGracePeriodSeconds")
        known = grace if isinstance(grace, int | float) else GRACE_PERIOD_S
        yield epoch(meta["deletionTimestamp"]) - known


def _take_stamps(manifest: Manifest, found: dict[str, None]) -> None:
    """Add the times of an object to those found, in the order in which they are written."""
    status = _part(manifest, "status")
    _take_parts((manifest["metadata"], status), found)
    conditions = status.get("conditions")
    if conditions and isinstance(conditions, list):
        _take_parts(conditions, found)


def _take_parts(parts: Iterable[Any], found: dict[str, None]) -> None:
    for part in parts:
        if isinstance(part, (dict, Mapping)):
            for name in _STAMPS:
                if name in part and isinstance(stamp := part[name], str) and stamp:
                    found[stamp] = None


def _part(manifest: Manifest, name: str) -> Mapping[str, Any]:
    """Return a part of an object that may not be well formed, nothing if it is no mapping."""
    found = manifest.get(name)
    return found if isinstance(found, (dict, Mapping)) else {}
