"""Loading of objects as another cluster had them."""

from collections.abc import Callable, Iterable

from pumice.api.kinds import Kind, Manifest
from pumice.cluster.embedded.object_tables import Identity, ObjectTables, Table

Naming = Callable[[Kind, Manifest], Manifest]
"""Sets name and namespace of a new object and returns its metadata; makes a missing namespace."""


def restore(
    tables: ObjectTables,
    identity: Identity,
    named: Naming,
    manifests: Iterable[Manifest],
    now: float,
    *,
    unseen: bool = False,
) -> None:
    """Load objects with status and uid, replacing any; only the top of their metadata is copied.

    Neighbours are mostly of one kind and one namespace, which are looked up once.  What happened in
    an ``unseen`` cluster, which nobody has watched yet, is forgotten.
    """
    last: tuple[object, object] = None, None
    place: tuple[Kind, Table] | None = None
    home = ""  # a namespace that exists and takes new objects
    for manifest in manifests:
        version, word = manifest.get("apiVersion"), manifest.get("kind")
        if place is None or word != last[1] or version != last[0]:
            kind = tables.kinds.of(manifest)
            place, last, home = (kind, tables.table(kind.name)), (version, word), ""
        kind, table = place
        given = manifest.get("metadata")
        own = dict(given) if isinstance(given, dict) else {}
        new = dict(manifest)
        new["metadata"] = own if isinstance(given, dict) else given
        if not home or own.get("namespace") != home or not own.get("name"):
            own = named(kind, new)
            home = own.get("namespace") or ""
        identity.complete(own, now)
        if owners := own.get("ownerReferences"):
            # a file may lack the uid; an API server accepts no such reference
            own["ownerReferences"] = [owner for owner in owners if owner.get("uid")]
        if old := table.find(own.get("namespace", ""), own["name"]):
            tables.drop(table, old)
        if unseen:
            tables.load(table, new)
        else:
            tables.put(table, new, None)
    if unseen:
        tables.forget_history()
