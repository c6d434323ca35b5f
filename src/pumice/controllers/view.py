"""A copy of the cluster as far as controllers watch it, kept by list and watch.

Used by the controller loop.  Objects are shared with the cluster: nobody changes them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pumice.cluster.base import Cluster, Event, Manifest
from pumice.errors import GoneError

Change = tuple[str, Manifest | None, Manifest | None]
"""Kind, object before and object after; None where there is none."""


def _place(manifest: Mapping[str, Any]) -> tuple[str, str]:
    metadata = manifest["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _controller_of(manifest: Mapping[str, Any]) -> str:
    """Give the uid of the owner in charge, or nothing."""
    for owner in manifest["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner["uid"])
    return ""


class _Mirror:
    """Objects of one kind by namespace and name, and by the owner in charge."""

    def __init__(self) -> None:
        self.version = ""
        self.spaces: dict[str, dict[str, Manifest]] = {}
        self.owned: dict[str, dict[tuple[str, str], Manifest]] = {}

    def put(self, manifest: Manifest) -> Manifest | None:
        """Take in an object; gives the one before."""
        old = self.remove(manifest)
        namespace, name = _place(manifest)
        self.spaces.setdefault(namespace, {})[name] = manifest
        owner = _controller_of(manifest)
        if owner:
            self.owned.setdefault(owner, {})[namespace, name] = manifest
        return old

    def remove(self, manifest: Manifest) -> Manifest | None:
        """Forget an object; gives it as it was known."""
        namespace, name = _place(manifest)
        old = self.spaces.get(namespace, {}).pop(name, None)
        if old is not None:
            owner = _controller_of(old)
            if owner:
                owned = self.owned[owner]
                del owned[namespace, name]
                if not owned:
                    del self.owned[owner]
        return old

    def all(self, namespace: str) -> Iterator[Manifest]:
        """Give objects in the order of their names."""
        for space in (namespace,) if namespace else sorted(self.spaces):
            objects = self.spaces.get(space, {})
            yield from (objects[name] for name in sorted(objects))


class ClusterView:
    """What controllers see; complete for the kinds given, as of the last ``refresh``."""

    def __init__(self, cluster: Cluster, kinds: Iterable[str]) -> None:
        self._cluster = cluster
        self._mirrors = {kind: _Mirror() for kind in kinds}

    @property
    def now(self) -> float:
        """The present time in seconds since 1970."""
        return self._cluster.now()

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Give one object, None if there is none."""
        return self._mirrors[kind].spaces.get(namespace, {}).get(name)

    def owned_by(self, kind: str, owner: Manifest) -> "list[Manifest]":
        """Give objects of a kind whose controlling owner is this object."""
        owned = self._mirrors[kind].owned.get(owner["metadata"]["uid"])
        return [owned[place] for place in sorted(owned)] if owned else []

    def refresh(self) -> Iterator[Change]:
        """Take in what changed since the last time; gives each change once it is taken in."""
        for kind, mirror in self._mirrors.items():
            try:
                if not mirror.version:
                    yield from self._relist(kind, mirror)
                for event in self._cluster.watch(kind, since=mirror.version):
                    mirror.version = event.object["metadata"]["resourceVersion"]
                    if event.type != "BOOKMARK":
                        yield self._take(kind, mirror, event)
            except GoneError:
                yield from self._relist(kind, mirror)

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """Give objects of a kind, of one namespace or of all, with these labels."""
        found = self._mirrors[kind].all(namespace)
        if not labels:
            return [*found]
        wanted = labels.items()
        return [m for m in found if wanted <= (m["metadata"].get("labels") or {}).items()]

    @staticmethod
    def _take(kind: str, mirror: _Mirror, event: Event) -> Change:
        if event.type == "DELETED":
            return kind, mirror.remove(event.object) or event.object, None
        return kind, mirror.put(event.object), event.object

    def _relist(self, kind: str, mirror: _Mirror) -> Iterator[Change]:
        """Start over from a list, telling only what differs from what was known."""
        items, version = self._cluster.list(kind)
        mirror.version = version
        present = {_place(manifest) for manifest in items}
        for known in [*mirror.all("")]:
            if _place(known) not in present:
                mirror.remove(known)
                yield kind, known, None
        for manifest in items:
            old = mirror.put(manifest)
            if old is not manifest and old != manifest:
                yield kind, old, manifest
