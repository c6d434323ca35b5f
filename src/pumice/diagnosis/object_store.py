"""Objects of a cluster state while its sources are read; the later of two of one name counts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import msgspec

from pumice.api.kinds import GRACE_PERIOD_S, Manifest
from pumice.api.named_files import applied, conf_entries
from pumice.api.objects import KINDS, KubeObject, from_manifest, in_namespace, is_in_namespaces
from pumice.api.times import epoch
from pumice.controllers.expected import created
from pumice.controllers.job.objects import expand
from pumice.controllers.view import ManifestView
from pumice.errors import ManifestError
from pumice.webhooks.files import stored_job

DEFAULT_NOW: Final = 1767225600.0  # 2026-01-01T00:00:00Z, as in scenarios
_STAMPS: Final = ("creationTimestamp", "startTime", "lastTransitionTime")
_KIND_NAMES: Final = {kind for _, kind in KINDS}
_JOB: Final = ("batch.volcano.sh/v1alpha1", "Job")
_EVENTS: Final = (("v1", "Event"), ("events.k8s.io/v1", "Event"))
_SPECIAL: Final = frozenset({"ConfigMap", "Queue"})
"""Kinds that are more than one object among others."""
_AGED: Final = frozenset({"KubePodGroup", "PodGroup", "Pod", "Queue"})
"""Kinds whose older objects come first."""
_AT_HAND: Final = 256
"""How many objects are read at once: so many stay in the processor's cache."""


# The latest instant in objects: the time of a dump, or before


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


# Objects


@dataclass
class ObjectStore:
    """The objects gathered so far."""

    objects: dict[tuple[str, str, str], Manifest] = field(default_factory=dict)
    jobs: list[Manifest] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    passed_over: dict[str, list[str]] = field(default_factory=dict)
    """Names of objects that scheduling does not read, to their kinds."""
    conf: tuple[str, str] | None = None
    now: float | None = None
    usage: dict[str, dict[str, float]] = field(default_factory=dict)
    seed: int = 0
    is_live: bool = False
    hidden: dict[str, str] = field(default_factory=dict)
    """Kinds that a cluster did not show, with its reason."""
    notes: list[str] = field(default_factory=list)
    events: list[Manifest] = field(default_factory=list)
    times: StatedTimes = field(default_factory=StatedTimes)
    """The times of all objects taken, replaced ones included."""
    replaced: bool = False
    undated: set[tuple[str, str, str]] = field(default_factory=set)
    """Objects of files that have a place by age and state none: they are still to be created."""
    is_dated: bool = False
    """Whether others state when they were created."""

    def take(self, item: Any, source: str, *, fresh: bool = False) -> None:
        """Take one object; ``fresh`` ones may be what a user has not applied yet.

        Raises:
            ManifestError: it cannot be used.
        """
        if not isinstance(item, (dict, Mapping)) or not item.get("kind"):
            raise ManifestError(
                wanted="an object with apiVersion and kind", found=item, file=source
            )
        if not isinstance(item["kind"], str):
            raise ManifestError(
                wanted="a non-empty string", found=item["kind"], field="kind", file=source
            )
        kind = (str(item.get("apiVersion")), item["kind"])
        if kind == _JOB:
            job = stored_job(dict(item), source=source)
            expand(job, ManifestView(), source=source)  # reports errors while the source is known
            self.jobs.append(job)
            return
        if kind in _EVENTS:
            self.events.append(dict(item))
            return
        if kind == ("v1", "ConfigMap"):
            self._take_conf(item, source)
        if kind not in KINDS and (kind[1] not in _KIND_NAMES or kind[0].startswith("batch/")):
            self._pass_over(item)
            return
        manifest = dict(in_namespace(item))
        from_manifest(manifest, source=source)  # reports errors while the source is known
        if fresh and kind[1] == "Queue" and "status" not in manifest:
            manifest["status"] = {"state": "Open"}  # as the queue controller would
        if kind[1] == "Pod" and manifest.get("spec") is None:
            manifest["spec"] = {}  # read as one that states nothing
        self._keep(KINDS[kind].__name__, (manifest,), fresh=fresh)

    def apply(self, item: Any, source: str) -> None:
        """Take one object as if it were applied to those that are there.

        Raises:
            ManifestError: it cannot be used.
        """
        meta = item.get("metadata") if isinstance(item, dict) and "kind" in item else None
        if isinstance(meta, dict) and "name" in meta and self.objects:
            item = dict(in_namespace(item))
            meta = item["metadata"]
            known = self.objects.get((item["kind"], meta.get("namespace", ""), meta["name"]))
            item = applied([known] if known else [], [item])[0]
        self.take(item, source)

    def _pass_over(self, item: Mapping[str, Any]) -> None:
        """Count an object of a kind that scheduling does not read, and keep its name."""
        self.left_out[item["kind"]] += 1
        meta = item.get("metadata")
        if isinstance(meta, Mapping) and isinstance(meta.get("name"), str):
            space = meta.get("namespace")
            key = f"{space}/{meta['name']}" if space else meta["name"]
            self.passed_over.setdefault(key, []).append(item["kind"])

    def _keep(self, kind: str, manifests: Sequence[Manifest], *, fresh: bool) -> None:
        known, aged = self.objects, kind in _AGED
        number = len(known) + len(manifests)
        for one in manifests:
            meta = one["metadata"]
            key = kind, meta.get("namespace", ""), meta["name"]
            known[key] = one
            if aged:
                self._note_age(key, meta, fresh=fresh)
        self.times.add(manifests)
        self.replaced |= len(known) < number

    def _note_age(self, key: tuple[str, str, str], meta: Mapping[str, Any], *, fresh: bool) -> None:
        self.undated.discard(key)
        if meta.get("creationTimestamp"):
            self.is_dated = True
        elif fresh:
            self.undated.add(key)

    def all_objects(self, now: float) -> list[Manifest]:
        """Return all objects; of those by age, the ones that are still to be created are as of now.

        Where none states when it was created, all are equally old.
        """
        if self.is_dated:
            for key in self.undated:
                self.objects[key] = created(self.objects[key], now)
        return list(self.objects.values())

    def latest_time(self) -> float:
        """Return the latest instant in all objects and jobs."""
        if self.replaced:
            return latest_time([*self.objects.values(), *self.jobs])
        self.times.add(self.jobs)
        return self.times.latest()

    def take_all(self, alike: Sequence[Manifest]) -> bool:
        """Take objects that are alike, which are read at once; return False if one is bad.

        Then none is taken: which one it is shows when they are taken singly.
        """
        cls = KINDS[alike[0]["apiVersion"], alike[0]["kind"]]
        try:
            msgspec.convert(alike, _list_of(cls))
        except Exception:  # noqa: BLE001  # whatever one of them holds
            return False
        self._keep(cls.__name__, alike, fresh=True)
        return True

    def _take_conf(self, item: Mapping[str, Any], source: str) -> None:
        """Use the configuration that Volcano's own ConfigMap holds."""
        found, meta = conf_entries(item.get("data")), item.get("metadata")
        if found and isinstance(meta, Mapping) and self.conf is None:
            self.conf = (str(found[0][1]), f"{source}: ConfigMap {meta.get('name')}")


def alike_until(items: Sequence[Any], start: int) -> int:
    """Return where a run of plain objects of one kind ends that begins at a place.

    It ends at once where an object is more than one among others of its kind, names no namespace
    although its kind lives in them, or has no specification.
    """
    words = version, kind = _words(items[start])
    if words not in KINDS or kind in _SPECIAL:
        return start
    in_namespaces = is_in_namespaces(kind)
    end = min(len(items), start + _AT_HAND)
    for place in range(start, end):
        item = items[place]
        if type(item) is not dict or item.get("kind") != kind or item.get("apiVersion") != version:
            return place
        meta = item.get("metadata")
        if in_namespaces and not (isinstance(meta, dict) and meta.get("namespace")):
            return place
        if item.get("spec") is None and kind == "Pod":
            return place
    return end


def _words(item: Any) -> tuple[str, str]:
    """Return apiVersion and kind of an object, empty where they are no texts."""
    if type(item) is not dict:
        return "", ""
    version, kind = item.get("apiVersion"), item.get("kind")
    return (version, kind) if isinstance(version, str) and isinstance(kind, str) else ("", "")


@cache
def _list_of(cls: type[KubeObject]) -> Any:
    return list[cls]  # type: ignore[valid-type]
