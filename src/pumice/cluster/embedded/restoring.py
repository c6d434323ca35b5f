"""Loading of objects as another cluster had them."""

from collections.abc import Callable, Iterable

from pumice.api.kinds import Kind, Manifest
from pumice.cluster.embedded.object_tables import Identity, ObjectTables

Naming = Callable[[Kind, Manifest], Manifest]
"""Sets name and namespace of a new object and returns its metadata; makes a missing namespace."""


def restore(
    tables: ObjectTables,
    identity: Identity,
    named: Naming,
    manifests: Iterable[Manifest],
    now: float,
) -> None:
    """Load objects with status and uid, replacing any; only the top of their metadata is copied.

    Neighbours are mostly of one kind and one namespace, which are looked up once.
    """
    words: tuple[object, object] | None = None
    home: str | None = None  # a namespace that exists and takes new objects
    for manifest in manifests:
        if words != (new_words := (manifest.get("apiVersion"), manifest.get("kind"))):
            kind = tables.kinds.of(manifest)
            table = tables.table(kind.name)
            words, home = new_words, None
        given = manifest.get("metadata")
        metadata = {**given} if isinstance(given, dict) else given
        new = {**manifest, "metadata": metadata}
        if not home or metadata.get("namespace") != home or not metadata.get("name"):
            metadata = named(kind, new)
            home = metadata.get("namespace")
        identity.complete(metadata, now)
        if old := table.find(metadata.get("namespace", ""), metadata["name"]):
            tables.drop(table, old)
        tables.put(table, new, None)
