"""Kinds that clients define: each CustomResourceDefinition adds one to those of its cluster."""

import re
from typing import Any, Final

from pumice.api.kinds import CUSTOM_KIND, Kind, Manifest
from pumice.cluster.base import Event
from pumice.cluster.embedded.defaults import CLEANUP
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import NotFoundError

_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STAGES: Final = {"alpha": 0, "beta": 1, None: 2}


def kind_defined_by(definition: Manifest) -> Kind:
    """Return the kind that a definition describes, in the foremost of its versions."""
    spec = definition["spec"]
    names = spec["names"]
    versions = served_versions(definition)
    first = versions[0]
    own = first.get("subresources") or {}
    return Kind(
        str(spec["group"]),
        str(first["name"]),
        str(names["kind"]),
        str(names["plural"]),
        tuple(map(str, names.get("shortNames") or ())),
        namespaced=spec.get("scope") == "Namespaced",
        has_status=own.get("status") is not None,
        has_scale=own.get("scale") is not None,
        categories=tuple(map(str, names.get("categories") or ())),
        other_versions=tuple(str(one["name"]) for one in versions[1:]),
        singular_name=str(names.get("singular") or ""),
        columns=tuple(map(_column, first.get("additionalPrinterColumns") or ())),
    )


def served_versions(definition: Manifest) -> list[Manifest]:
    """Return the versions that a definition serves, the most stable and newest first."""
    versions = [one for one in definition["spec"].get("versions") or () if one.get("served")]
    return sorted(versions, key=lambda one: _priority(str(one["name"])), reverse=True)


def _priority(version: str) -> tuple[int, int, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        return -1, 0, 0
    return _STAGES[found[2]], int(found[1]), int(found[3] or 0)


def _column(given: Manifest) -> tuple[str, str, str, int]:
    priority = int(given.get("priority") or 0)
    return str(given["name"]), str(given["type"]), str(given["jsonPath"]), priority


class CustomKinds:
    """Keeps the kinds of a cluster in step with its definitions."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._kinds: dict[str, Kind] = {}
        """By the uid of their definitions."""
        self._gone: list[Kind] = []
        """Those whose definition is deleted while objects of theirs may be left."""
        for definition in cluster.list(CUSTOM_KIND)[0]:
            self._define(definition)
        cluster.listeners.append(self._notice)

    def _notice(self, kind: str, event: Event) -> None:
        if kind != CUSTOM_KIND:
            return
        if event.type == "DELETED":
            known = self._kinds.pop(event.object["metadata"]["uid"], None)
            if known is not None:
                self._cluster.tables.undefine(known.name)
                self._gone.append(known)
        else:
            self._define(event.object)

    def _define(self, definition: Manifest) -> None:
        """Serve a kind; one that is built in is served as it is."""
        if not served_versions(definition):
            return
        kind, uid = kind_defined_by(definition), definition["metadata"]["uid"]
        if self._kinds.get(uid) != kind and self._cluster.tables.define(kind):
            self._kinds[uid] = kind

    def sync(self, _cycle: Any = None) -> None:
        """Delete the objects of definitions that are being deleted, and then these."""
        cluster = self._cluster
        gone, self._gone = self._gone, []
        for kind in gone:
            self._empty(kind)
        for definition in cluster.list(CUSTOM_KIND)[0]:
            metadata = definition["metadata"]
            found = self._kinds.get(metadata["uid"])
            if metadata.get("deletionTimestamp") and not (found and self._empty(found)):
                left = [name for name in metadata.get("finalizers") or () if name != CLEANUP]
                changes = {"metadata": {"finalizers": left}}
                cluster.patch(CUSTOM_KIND, "", metadata["name"], changes)

    def _empty(self, kind: Kind) -> bool:
        """Delete all objects of a kind; return whether some are left."""
        cluster = self._cluster
        try:
            for one in cluster.list(kind.name)[0]:
                metadata = one["metadata"]
                place = kind.name, metadata.get("namespace", ""), metadata["name"]
                if not metadata.get("deletionTimestamp") and cluster.peek(*place) is not None:
                    cluster.delete(*place)
            return bool(cluster.list(kind.name)[0])
        except NotFoundError:  # there never was one
            return False
