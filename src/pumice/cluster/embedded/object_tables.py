"""The tables of the embedded cluster's objects, by kind, with versions, owners, histories.

Used by the store and its garbage collector, which know the rules; here an object is stored or
removed and that is remembered, nothing else.  An object in the tables is never changed in
place: a change stores a new one that may share parts with the old.
"""

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Final, NamedTuple

from pumice.api.kinds import Kind, Kinds, Manifest
from pumice.api.times import rfc3339
from pumice.cluster.base import Event
from pumice.errors import (
    ConflictError,
    GoneError,
    NamespaceTerminatingError,
    NotFoundError,
    RejectedError,
)


class History:
    """Events in the order of their versions; the oldest are forgotten beyond ``limit``."""

    def __init__(self, kind: str, limit: int) -> None:
        self._kind = kind
        self._limit = limit
        self._versions: list[int] = []
        self._events: list[Event] = []
        self.forgotten = 0
        """The latest version that is not remembered."""

    def add(self, version: int, event: Event) -> None:
        """Remember an event."""
        self._versions.append(version)
        self._events.append(event)
        # A quarter more than the limit is kept, so that forgetting is rare and cheap on average.
        if len(self._versions) > self._limit + self._limit // 4 + 1:
            self.compact(self._versions[-self._limit - 1])

    def compact(self, version: int) -> None:
        """Forget everything up to a version."""
        cut = bisect_right(self._versions, version)
        del self._versions[:cut]
        del self._events[:cut]
        self.forgotten = max(self.forgotten, version)

    def since(self, text: str, latest: int) -> list[Event]:
        """Return events after a version.

        Raises:
            GoneError: some of them are forgotten, or the version is still to come.
            RejectedError: no version at all.
        """
        if not text.isdecimal() or len(text) > _DIGITS:
            problem = f"expected a resourceVersion of this cluster, got '{text[:_DIGITS]}'"
            raise RejectedError(self._kind, problem=problem)
        version = int(text)
        if not self.forgotten <= version <= latest:
            raise GoneError(
                self._kind,
                problem=f"expected changes after resourceVersion {version}, got those after "
                f"{self.forgotten} up to {latest} (list again)",
            )
        if not self._versions or version >= self._versions[-1]:
            return []
        return self._events[bisect_right(self._versions, version) :]


def bookmark(kind: Kind, version: int) -> Event:
    """Return the last event of a watch: the version up to which all was reported."""
    metadata = {"resourceVersion": str(version)}
    return Event(
        "BOOKMARK", {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    )


def visible(events: Iterable[Event], namespace: str, last: Event | None) -> Iterator[Event]:
    """Yield events of one namespace or of all, and a bookmark after them."""
    for event in events:
        if not namespace or event.object["metadata"].get("namespace") == namespace:
            yield event
    if last is not None:
        yield last


_DIGITS: Final = 20
"""Digits of a version, which is a number of 64 bits."""
_MAYBE_EMPTY: Final = ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds")
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIXES: Final = len(_LETTERS) ** 5
_STRIDE: Final = 8_675_309  # coprime to 27**5, so that suffixes repeat only after all were used


class Identity:
    """Assigns each new object its identity."""

    def __init__(self, seed: int, taken: Container[str] = ()) -> None:
        """Make one; uids that are ``taken`` are not assigned again."""
        self._prefix = f"{seed & 0xFFFFFFFF:08x}-0000-4000-8000-"
        self._seed = seed
        self._taken = taken
        self._uids = 0
        self._names = 0

    def stamp(self, metadata: Manifest, now: float) -> None:
        """Write uid, creationTimestamp and generation of a new object."""
        metadata["uid"] = self._next_uid()
        metadata["creationTimestamp"] = rfc3339(now)
        metadata["generation"] = 1
        for field in _MAYBE_EMPTY:
            metadata.pop(field, None)

    def complete(self, metadata: Manifest, now: float) -> None:
        """Write what the metadata of an object lacks that another cluster had."""
        if metadata.get("uid"):
            self._uids += 1
        else:
            metadata["uid"] = self._next_uid()
        if not metadata.get("creationTimestamp"):
            metadata["creationTimestamp"] = rfc3339(now)
        if not metadata.get("generation"):
            metadata["generation"] = 1
        for field in _MAYBE_EMPTY:
            if field in metadata and not metadata[field]:
                del metadata[field]

    def _next_uid(self) -> str:
        self._uids += 1
        while (uid := f"{self._prefix}{self._uids:012x}") in self._taken:
            self._uids += 1
        return uid

    def name(self, prefix: str) -> str:
        """Make a name of a prefix and five letters."""
        self._names += 1
        number = (self._names + self._seed) * _STRIDE % _SUFFIXES
        suffix = ""
        for _ in range(5):
            number, letter = divmod(number, len(_LETTERS))
            suffix += _LETTERS[letter]
        return prefix + suffix


Listener = Callable[[str, Event], None]


class Ref(NamedTuple):
    """The place of an object."""

    kind: str
    namespace: str
    name: str


class Table:
    """All objects of one kind, by namespace and name, and what happened to them."""

    __slots__ = ("history", "kind", "spaces")

    def __init__(self, kind: Kind, history: int) -> None:
        self.kind = kind
        self.spaces: dict[str, dict[str, Manifest]] = {}
        self.history = History(kind.name, history)

    def find(self, namespace: str, name: str) -> Manifest | None:
        """Return one object, None if there is none."""
        space = self.spaces.get(namespace)
        return None if space is None else space.get(name)

    def all(self, namespace: str = "") -> list[Manifest]:
        """Return the objects of one namespace or of all, by namespace and name."""
        found: list[Manifest] = []
        for space in (namespace,) if namespace else sorted(self.spaces):
            found += self._sorted(space).values()
        return found

    def _sorted(self, namespace: str) -> dict[str, Manifest]:
        """Return the objects of a namespace by name, in order.

        They stay in order, so that the next call has only new ones to sort.
        """
        objects = self.spaces.get(namespace, {})
        names = sorted(objects)
        if names != list(objects):
            objects = self.spaces[namespace] = {name: objects[name] for name in names}
        return objects

    def events(self, namespace: str, since: str, version: int) -> list[Event]:
        """Return what happened after a resourceVersion, or without one all objects as added.

        ``version`` is the newest; raises GoneError if some of it is forgotten.
        """
        if since in ("", "0"):
            return [Event("ADDED", manifest) for manifest in self.all(namespace)]
        return self.history.since(since, version)


class ObjectTables:
    """Objects with one version counter for all of them."""

    def __init__(self, history: int) -> None:
        self.kinds = Kinds()
        self.version = 0
        self.latest: dict[str, int] = {}
        """The version of the last change of each kind."""
        self.listeners: list[Listener] = []
        self._history = history
        self._resumed_at = 0
        self._tables: dict[str, Table] = {}
        self._by_uid: dict[str, Ref] = {}
        self._dependents: dict[str, dict[Ref, None]] = {}

    def table(self, kind: str) -> Table:
        """Return the table of a kind.

        Raises:
            NotFoundError: no object of such a kind ever existed.
        """
        table = self._tables.get(kind)
        if table is None:
            known = self.kinds.get(kind)
            if known is None:
                raise NotFoundError(kind, problem="the cluster serves no such kind")
            table = self._tables[kind] = Table(known, self._history)
            table.history.forgotten = self._resumed_at
        return table

    def define(self, kind: Kind) -> bool:
        """Serve a kind, new or changed; return False for one that is built in."""
        if not self.kinds.define(kind):
            return False
        if kind.name in self._tables:
            self._tables[kind.name].kind = kind
        return True

    def undefine(self, name: str) -> None:
        """Serve a kind no more; the history of its objects is kept for those who watch them."""
        self.kinds.forget(name)

    def resume(self, manifests: Iterable[Manifest], version: int) -> None:
        """Load objects as they were at a version; nothing before it is remembered."""
        self.version = self._resumed_at = version
        for manifest in manifests:
            table = self.table(self.kinds.of(manifest).name)
            metadata = manifest["metadata"]
            ref = Ref(table.kind.name, metadata.get("namespace", ""), metadata["name"])
            table.spaces.setdefault(ref.namespace, {})[ref.name] = manifest
            self._by_uid[metadata["uid"]] = ref
            self._link(ref, metadata.get("ownerReferences"))

    def tables(self) -> Iterable[Table]:
        """Return the tables of all kinds that were used."""
        return list(self._tables.values())

    def find(self, ref: Ref) -> Manifest | None:
        """Return one object, None if there is none."""
        return self.table(ref.kind).find(ref.namespace, ref.name)

    @property
    def uids(self) -> Container[str]:
        """The uids of all objects."""
        return self._by_uid

    def owner(self, uid: str) -> Ref | None:
        """Return the place of the object with a uid."""
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[Ref]:
        """Return the objects that name an owner, oldest first."""
        return list(self._dependents.get(uid, ()))

    def by_place(self, kind: str) -> dict[str, dict[str, Manifest]]:
        """Return the objects of a kind as they are now, by namespace and name."""
        return {name: space.copy() for name, space in [*self.table(kind).spaces.items()]}

    def put(self, table: Table, manifest: Manifest, old: Manifest | None) -> None:
        """Store an object whose metadata is its own, with the next version."""
        self.version += 1
        metadata = manifest["metadata"]
        metadata["resourceVersion"] = str(self.version)
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        space = table.spaces.get(namespace)
        if space is None:
            space = table.spaces[namespace] = {}
        space[name] = manifest
        owners = metadata.get("ownerReferences")
        if old is None:
            ref = self._by_uid[metadata["uid"]] = Ref(table.kind.name, namespace, name)
            if owners:
                self._link(ref, owners)
            self._notify(table, Event("ADDED", manifest))
            return
        if owners != old["metadata"].get("ownerReferences"):
            self._unlink(Ref(table.kind.name, namespace, name), old)
            self._link(Ref(table.kind.name, namespace, name), owners)
        self._notify(table, Event("MODIFIED", manifest))

    def drop(self, table: Table, manifest: Manifest) -> None:
        """Remove an object."""
        self.version += 1
        metadata = {**manifest["metadata"], "resourceVersion": str(self.version)}
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        del table.spaces[namespace][name]
        if not table.spaces[namespace]:
            del table.spaces[namespace]
        del self._by_uid[metadata["uid"]]
        self._unlink(Ref(table.kind.name, namespace, name), manifest)
        self._notify(table, Event("DELETED", {**manifest, "metadata": metadata}))

    def _notify(self, table: Table, event: Event) -> None:
        kind = table.kind.name
        table.history.add(self.version, event)
        self.latest[kind] = self.version
        for listener in self.listeners:
            listener(kind, event)

    def _link(self, ref: Ref, owners: list[Manifest] | None) -> None:
        for owner in owners or ():
            self._dependents.setdefault(owner["uid"], {})[ref] = None

    def _unlink(self, ref: Ref, manifest: Manifest) -> None:
        for owner in manifest["metadata"].get("ownerReferences") or ():
            uid = owner["uid"]
            links = self._dependents.get(uid)
            if links is not None:
                links.pop(ref, None)
                if not links:
                    del self._dependents[uid]


def check_home(kind: Kind, home: Manifest, name: str) -> None:
    """Refuse a new object in a namespace that is being deleted.

    Raises:
        NamespaceTerminatingError: it is.
    """
    if home["metadata"].get("deletionTimestamp"):
        namespace = home["metadata"]["name"]
        why = f"in namespace {namespace} because it is being terminated"
        problem = f'{kind.resource} "{name}" is forbidden: unable to create new content {why}'
        raise NamespaceTerminatingError(kind.name, namespace, name, problem)


def check_versions(kind: Kind, old: Manifest, new: Manifest) -> None:
    """Refuse a change of an object that has changed since it was read, or is another one.

    Raises:
        ConflictError: resourceVersion or uid are not those of the object.
    """
    known, asked = old["metadata"], new["metadata"]
    for field in ("resourceVersion", "uid"):
        if asked.get(field) and asked[field] != known[field]:
            problem = f"expected {field} {asked[field]}, got {known[field]} (read it again)"
            raise ConflictError(kind.name, known.get("namespace", ""), known["name"], problem)
