"""A view of manifests that nobody changes: what controllers see of files and dumps."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pumice.api.kinds import Manifest, kind_of
from pumice.controllers.object_index import ObjectIndex


class ManifestView:
    """What a controller would see if these were the objects of its cluster."""

    def __init__(self, manifests: Iterable[Manifest] = (), now: float = 0.0) -> None:
        self.now = now
        self._kinds: defaultdict[str, ObjectIndex] = defaultdict(ObjectIndex)
        for manifest in manifests:
            self._kinds[kind_of(manifest)].put(manifest)

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return one object, None if there is none."""
        return self._kinds[kind].get(namespace, name)

    def owned_by(self, kind: str, owner: Manifest) -> "list[Manifest]":
        """Return the objects of a kind that an object controls."""
        return self._kinds[kind].owned_by(owner)

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """Return the objects of a kind, of one namespace or of all, with these labels."""
        return self._kinds[kind].labelled(namespace, labels)
