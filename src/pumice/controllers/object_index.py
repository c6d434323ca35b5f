"""Objects by kind, found by namespace and name and by the owner that controls them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter

from pumice.api.kinds import Manifest, kind_of
from pumice.controllers.ownership import controller_of

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

    def take(self, spaces: dict[str, dict[str, Manifest]], with_owners: Iterable[Manifest]) -> None:
        """Take all objects of a cluster by namespace and name, and those of them with owners."""
        self._namespaces, self._below = spaces, None
        for manifest in with_owners:
            if owner := _owner_uid(manifest):
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
