"""The cluster as controllers see it, in the kinds they watch, kept by list and watch.

Objects are found by namespace and name, by owner and by parent; they are shared with the cluster
and must not be changed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final

from pumice.api.kinds import NETWORK_POLICY, Manifest, kind_of
from pumice.cluster.base import Cluster, Event
from pumice.controllers.base import Key, controller_of
from pumice.errors import GoneError, NotFoundError

Place = tuple[str, str]
"""Namespace and name; the namespace is empty for kinds without one."""


def place_of(manifest: Manifest) -> Place:
    """Return the place of an object."""
    metadata = manifest["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def parent_of(manifest: Manifest) -> str:
    """Return the name of the object that an object, such as a queue, is below; empty if none."""
    spec = manifest.get("spec")
    return str(spec.get("parent") or "") if isinstance(spec, dict) else ""


def _owner_uid(manifest: Manifest) -> str:
    """Return the uid of the controlling owner, empty without one."""
    if not manifest["metadata"].get("ownerReferences"):
        return ""
    owner = controller_of(manifest)
    return "" if owner is None else str(owner.get("uid") or "")


class ObjectIndex:
    """Objects of one kind."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, Manifest]] = {}
        self._owned: dict[str, dict[Place, Manifest]] = {}
        self._below: dict[str, dict[Place, None]] | None = None
        """Places by ``spec.parent``, once someone asked."""

    def get(self, namespace: str, name: str) -> Manifest | None:
        """Return one object, None if there is none."""
        return self._namespaces.get(namespace, {}).get(name)

    def put(self, manifest: Manifest) -> Manifest | None:
        """Add or replace an object; return the one before."""
        namespace, name = place = place_of(manifest)
        objects = self._namespaces.setdefault(namespace, {})
        old = objects.get(name)
        if old is not None:
            self._disown(place, old)
        objects[name] = manifest
        if self._below is not None:
            self._below.setdefault(parent_of(manifest), {})[place] = None
        owner = _owner_uid(manifest)
        if owner:
            self._owned.setdefault(owner, {})[place] = manifest
        return old

    def fill(self, manifests: Iterable[Manifest]) -> None:
        """Add all objects of an empty index; of two with one name the later one counts."""
        self._below = None
        for manifest in manifests:
            metadata = manifest["metadata"]
            namespace = metadata.get("namespace") or ""
            objects = self._namespaces.get(namespace)
            if objects is None:
                objects = self._namespaces[namespace] = {}
            name = metadata["name"]
            if name in objects:
                self.put(manifest)
                continue
            objects[name] = manifest
            if metadata.get("ownerReferences") and (owner := _owner_uid(manifest)):
                self._owned.setdefault(owner, {})[place_of(manifest)] = manifest

    def remove(self, manifest: Manifest) -> Manifest | None:
        """Remove an object; return it as it was known."""
        namespace, name = place = place_of(manifest)
        old = self._namespaces.get(namespace, {}).pop(name, None)
        if old is not None:
            self._disown(place, old)
        return old

    def _disown(self, place: Place, manifest: Manifest) -> None:
        if self._below is not None:
            self._below.get(parent_of(manifest), {}).pop(place, None)
        owner = _owner_uid(manifest)
        if owner:
            owned = self._owned[owner]
            del owned[place]
            if not owned:
                del self._owned[owner]

    def all(self, namespace: str = "") -> Iterator[Manifest]:
        """Yield objects in the order of their names, of one namespace or of all."""
        for space in (namespace,) if namespace else sorted(self._namespaces):
            objects = self._namespaces.get(space, {})
            yield from (objects[name] for name in sorted(objects))

    def labelled(self, namespace: str, labels: Mapping[str, str] | None) -> list[Manifest]:
        """Return objects with these labels, of one namespace or of all."""
        if not labels:
            return [*self.all(namespace)]
        wanted = labels.items()
        found = self.all(namespace)
        return [one for one in found if wanted <= (one["metadata"].get("labels") or {}).items()]

    def below(self, parent: str) -> list[Manifest]:
        """Return the objects that name a parent, in the order of their names."""
        if self._below is None:
            self._below = {}
            for manifest in self.all():
                self._below.setdefault(parent_of(manifest), {})[place_of(manifest)] = None
        places = sorted(self._below.get(parent, ()))
        return [self._namespaces[namespace][name] for namespace, name in places]

    def owned_by(self, owner: Manifest) -> list[Manifest]:
        """Return the objects that an object controls, in the order of their names."""
        owned = self._owned.get(str(owner["metadata"].get("uid") or ""), {})
        return [owned[place] for place in sorted(owned)]


class ManifestView:
    """The view a controller would have if these were the objects of its cluster."""

    def __init__(self, manifests: Iterable[Manifest] = (), now: float = 0.0) -> None:
        self.now = now
        self._given: defaultdict[str, list[Manifest]] = defaultdict(list)
        """Objects of kinds that nobody has asked for yet."""
        for _, group in groupby(manifests, itemgetter("apiVersion", "kind")):
            several = [*group]
            self._given[kind_of(several[0])] += several
        self._indices: dict[str, ObjectIndex] = {}

    def _index(self, kind: str) -> ObjectIndex:
        index = self._indices.get(kind)
        if index is None:
            index = self._indices[kind] = ObjectIndex()
            index.fill(self._given.pop(kind, ()))
        return index

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return one object, None if there is none."""
        return self._index(kind).get(namespace, name)

    read = get

    def owned_by(self, kind: str, owner: Manifest) -> "list[Manifest]":
        """Return the objects of a kind that an object controls; without a uid it controls none."""
        return self._index(kind).owned_by(owner) if owner["metadata"].get("uid") else []

    def below(self, kind: str, parent: str) -> "list[Manifest]":
        """Return the objects of a kind, one without namespaces, that name a parent."""
        return self._index(kind).below(parent)

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """Return the objects of a kind, of one namespace or of all, with these labels."""
        return self._index(kind).labelled(namespace, labels)


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


_CONFIRMED_S: Final = 5.0
"""A watch reports a write by then, unless the written object is gone."""

Change = tuple[str, Manifest | None, Manifest | None]
"""Kind, object before and object after; None where there is none."""


def _number(version: str) -> int:
    """Return a resourceVersion as a number to compare by, 0 if it is none."""
    return int(version) if version.isdecimal() and len(version) < 20 else 0


class _Mirror(ObjectIndex):
    """Objects of one kind as reported by list, watch and our own writes."""

    def __init__(self) -> None:
        super().__init__()
        self.version = ""
        self.ahead: dict[Place, tuple[int, float]] = {}
        """Objects known from the answer to a write that the watch has not reported yet: their
        version, and the time at which to check whether they still exist."""


class ClusterView:
    """The view of controllers; complete for the given kinds, as of the last ``refresh``.

    Of the kinds ``looked_up`` only ``get`` returns something; the cluster is asked each time.
    """

    def __init__(
        self,
        cluster: Cluster,
        kinds: Iterable[str],
        looked_up: Collection[str] = (),
    ) -> None:
        self._cluster = cluster
        self.lookups = Lookups(cluster, looked_up)
        self._mirrors = {kind: _Mirror() for kind in kinds if kind not in self.lookups.kinds}

    @property
    def now(self) -> float:
        """The present time in seconds since 1970."""
        return self._cluster.now()

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return one object, None if there is none."""
        if kind in self.lookups.kinds:
            return self.lookups.get(kind, namespace, name)
        return self._mirrors[kind].get(namespace, name)

    def read(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return one object as it is now, also of a kind that the cluster does not watch."""
        if kind in self.lookups.kinds:
            self.lookups.forget(Key(kind, namespace, name))
        return self.get(kind, namespace, name)

    def owned_by(self, kind: str, owner: Manifest) -> "list[Manifest]":
        """Return objects of a kind whose controlling owner is this object."""
        return self._mirrors[kind].owned_by(owner)

    def below(self, kind: str, parent: str) -> "list[Manifest]":
        """Return the objects of a kind, one without namespaces, that name a parent."""
        return self._mirrors[kind].below(parent)

    def refresh(self) -> Iterator[Change]:
        """Apply changes since the last time; yield each change once it is applied."""
        for kind, mirror in self._mirrors.items():
            try:
                if not mirror.version:
                    yield from self._relist(kind, mirror)
                for event in self._cluster.watch(kind, since=mirror.version):
                    mirror.version = event.object["metadata"]["resourceVersion"]
                    if event.type != "BOOKMARK" and not self._behind(mirror, event):
                        yield self._take(kind, mirror, event)
            except GoneError:
                yield from self._relist(kind, mirror)
            if mirror.ahead:
                yield from self._vanished(kind, mirror)

    def expect(self, manifest: Manifest) -> Change | None:
        """Apply an object as returned by a write, before the watch reports it; return the change.

        The next reader sees what was written, although the cluster reports it late.
        """
        self.lookups.put(manifest)
        kind = kind_of(manifest)
        mirror = self._mirrors.get(kind)
        version = _number(manifest["metadata"].get("resourceVersion") or "")
        if mirror is None or version <= _number(mirror.version):  # reported, or never will be
            return None
        place = place_of(manifest)
        known = mirror.get(*place)
        if known is not None and version <= _number(known["metadata"]["resourceVersion"]):
            return None
        mirror.ahead[place] = version, self.now + _CONFIRMED_S
        return kind, mirror.put(manifest), manifest

    def lacks(self, manifest: Manifest) -> bool:
        """Return whether an object of a watched kind is not known here."""
        mirror = self._mirrors.get(kind_of(manifest))
        return mirror is not None and mirror.get(*place_of(manifest)) is None

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """Return objects of a kind, of one namespace or of all, with these labels."""
        return self._mirrors[kind].labelled(namespace, labels)

    @staticmethod
    def _behind(mirror: _Mirror, event: Event) -> bool:
        """Return whether an event adds nothing to what a write returned."""
        place = place_of(event.object)
        known = mirror.ahead.get(place)
        if known is None:
            return False
        ahead = known[0]
        version = _number(event.object["metadata"]["resourceVersion"])
        if version >= ahead:
            del mirror.ahead[place]
        return version < ahead or (version == ahead and event.type != "DELETED")

    def _vanished(self, kind: str, mirror: _Mirror) -> Iterator[Change]:
        """Forget objects that were written and deleted before the watch reported them.

        A cluster may leave objects out of a watch that were created and deleted in between.
        """
        seen = _number(mirror.version)
        for place, (version, look_at) in [*mirror.ahead.items()]:
            if version > seen and self.now < look_at:
                continue
            del mirror.ahead[place]
            known = mirror.get(*place)
            if known is not None and (version <= seen or not self._exists(kind, place)):
                mirror.remove(known)
                yield kind, known, None

    def _exists(self, kind: str, place: Place) -> bool:
        try:
            self._cluster.get(kind, *place)
        except NotFoundError:
            return False
        return True

    @staticmethod
    def _take(kind: str, mirror: _Mirror, event: Event) -> Change:
        if event.type == "DELETED":
            return kind, mirror.remove(event.object) or event.object, None
        return kind, mirror.put(event.object), event.object

    def _relist(self, kind: str, mirror: _Mirror) -> Iterator[Change]:
        """Start over from a list, yielding only the differences."""
        items, version = self._cluster.list(kind)
        mirror.version = version
        mirror.ahead.clear()
        known_before = [*mirror.all()]
        if not known_before:
            mirror.fill(items)
            yield from ((kind, None, manifest) for manifest in items)
            return
        present = {place_of(manifest) for manifest in items}
        for known in known_before:
            if place_of(known) not in present:
                mirror.remove(known)
                yield kind, known, None
        for manifest in items:
            old = mirror.put(manifest)
            if old is not manifest and old != manifest:
                yield kind, old, manifest
