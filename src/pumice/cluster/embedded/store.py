"""The embedded cluster: an object store in memory that behaves as an API server does.

Implements ``pumice.cluster.base.Cluster``.  Objects from ``list`` and ``watch`` are shared with the
store and must not be changed by the reader; all other methods return copies.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from pumice.api.cloning import clone
from pumice.api.kinds import LIMIT_RANGE, PRIORITY_CLASS, Kind, Kinds, Manifest
from pumice.api.times import rfc3339
from pumice.clock import Clock, VirtualClock
from pumice.cluster.base import Event, PatchType, Propagation, event_object
from pumice.cluster.embedded.claim_changes import check_claim_status
from pumice.cluster.embedded.defaults import (
    assign_cluster_ip,
    fill_in,
    keep_fields,
    select_own_pods,
)
from pumice.cluster.embedded.garbage import GarbageCollector, check_owners
from pumice.cluster.embedded.object_tables import (
    Identity,
    Listener,
    ObjectTables,
    Ref,
    Table,
    bookmark,
    check_home,
    check_versions,
    visible,
)
from pumice.cluster.embedded.patches import apply_patch
from pumice.cluster.embedded.pods import bound, disrupted, give_amounts, keep_spec, prioritised
from pumice.errors import AlreadyExistsError, ConflictError, NotFoundError, RejectedError

_EVENT_KEPT_S: Final = 3600.0
_EVENTS_KEPT: Final = 20_000
_EventKey = tuple[str, str, str, str, str]
Admission = Callable[[str, Manifest, Manifest | None], Manifest]
"""Called before a write with "CREATE", "UPDATE", "STATUS" or "DELETE", the object and the one
before; returns the object to store, or raises RejectedError."""


class Gate(Protocol):
    """A limit on pods that counts those that are stored."""

    def admit(self, pod: Manifest) -> Callable[[], None]:
        """Refuse a new pod, with its defaults, that there is no room for.

        Return what counts the pod, to be called once it is stored.
        """
        ...


class EmbeddedCluster:
    """A cluster in memory; same seed and same calls, same objects."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        seed: int = 0,
        history: int = 50_000,
        admission: Admission | None = None,
        record_events: bool = True,
        tables: ObjectTables | None = None,
    ) -> None:
        self.clock: Clock = clock if clock is not None else VirtualClock()
        self.lock = threading.RLock()
        """Held during each call; hold it to make several calls atomic."""
        self.admission = admission
        self.quotas: Gate | None = None
        self._tables = tables or ObjectTables(history)
        self._identity = Identity(seed, self._tables.uids)
        self._services = self._tables.version  # counts services; each has another address
        self._garbage = GarbageCollector(self._tables, lambda s: rfc3339(self.now() + s))
        self._events = EventRecorder(self) if record_events else None
        for namespace in ("default", "kube-system"):
            self._need_namespace(namespace)

    @property
    def kinds(self) -> Kinds:
        """The kinds served."""
        return self._tables.kinds

    @property
    def version(self) -> int:
        """The latest resourceVersion; the same as long as nothing changes."""
        return self._tables.version

    @property
    def tables(self) -> ObjectTables:
        """The tables of all objects; only to be read."""
        return self._tables

    @property
    def listeners(self) -> list[Listener]:
        """Called with kind and event after each change, inside the call that makes it."""
        return self._tables.listeners

    def now(self) -> float:
        """Return the cluster's time in seconds since 1970."""
        return self.clock.now()

    def get(self, kind: str, namespace: str, name: str) -> Manifest:
        """Return one object."""
        with self.lock:
            copied: Manifest = clone(self._need(Ref(kind, namespace, name)))
            return copied

    def peek(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return one object without copying it, None if there is none; it must not be changed."""
        return self._tables.table(kind).find(namespace, name)

    def by_place(self, kind: str) -> dict[str, dict[str, Manifest]]:
        """Return all objects of a kind as they are now, by namespace and name."""
        return self._tables.by_place(kind)

    def owned_by(self, uid: str, kind: str) -> list[Manifest]:
        """Return the objects of a kind that name an owner, as ``peek`` does, oldest first."""
        owned = (self._tables.find(ref) for ref in self._tables.dependents(uid) if ref.kind == kind)
        return [one for one in owned if one is not None]

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[list[Manifest], str]:
        """Return all objects of a kind and the resourceVersion from which to watch."""
        with self.lock:
            items = self._tables.table(kind).all(namespace)
            if labels:
                wanted = labels.items()
                items = [m for m in items if wanted <= (m["metadata"].get("labels") or {}).items()]
            return items, str(self._tables.version)

    def watch(
        self, kind: str, namespace: str = "", since: str = "", *, bookmarks: bool = False
    ) -> Iterator[Event]:
        """Return what happened after a resourceVersion, or without one all objects, and end.

        With ``bookmarks`` the last event has the version up to which all was reported.

        Raises:
            GoneError: some of it is forgotten.
        """
        with self.lock:
            table = self._tables.table(kind)
            events = table.events(namespace, since, self._tables.version)
            last = bookmark(table.kind, self._tables.version) if bookmarks else None
        return visible(events, namespace, last) if events or bookmarks else iter(())

    def compact(self, version: int | None = None) -> None:
        """Forget what happened up to a version, or all of it; older watches get GoneError."""
        with self.lock:
            for table in self._tables.tables():
                table.history.compact(self._tables.version if version is None else version)

    def create(self, manifest: Manifest) -> Manifest:
        """Add an object; return it as stored (uid, resourceVersion, defaults)."""
        with self.lock:
            kind = self.kinds.of(manifest)
            table = self._tables.table(kind.name)
            new: Manifest = clone(manifest)
            metadata = self._name(kind, new)
            if table.find(metadata.get("namespace", ""), metadata["name"]) is not None:
                raise AlreadyExistsError(kind.name, metadata.get("namespace", ""), metadata["name"])
            if self.admission is not None:
                new = self.admission("CREATE", new, None)
                metadata = new["metadata"]
            check_owners(kind.name, new)
            fill_in(kind.name, new, has_status=kind.has_status)
            count = None
            if kind.name == "Pod":
                prioritised(new, self._tables.table(PRIORITY_CLASS).all())
                give_amounts(new, self._tables.table(LIMIT_RANGE).all(metadata["namespace"]))
                count = None if self.quotas is None else self.quotas.admit(new)
            elif kind.name == "Service":
                self._services += 1
                assign_cluster_ip(new, self._services)
            self._identity.stamp(new["metadata"], self.now())
            if kind.name == "Job.batch":
                select_own_pods(new)
            self._tables.put(table, new, None)
            if count is not None:
                count()
            if metadata.get("ownerReferences"):
                ref = Ref(kind.name, metadata.get("namespace", ""), metadata["name"])
                self._garbage.enqueue(ref, new)
            return clone(new)

    def restore(self, manifests: Iterable[Manifest]) -> None:
        """Load objects as another cluster had them, with status and uid, replacing any.

        No caller may change them from now on: only the top of their metadata is copied.
        """
        with self.lock:
            self._restore(manifests, self.now())

    def update(self, manifest: Manifest) -> Manifest:
        """Replace an object, except its status where the kind has a status subresource."""
        with self.lock:
            kind = self.kinds.of(manifest)
            old = self._precondition(kind, manifest)
            return self._replace(kind, old, clone(manifest))

    def update_status(self, manifest: Manifest) -> Manifest:
        """Replace the status of an object.

        Raises:
            NotFoundError: no such object, or a kind without a status of its own.
        """
        with self.lock:
            kind = self.kinds.of(manifest)
            old = self._precondition(kind, manifest)
            return self._replace_status(kind, old, clone(manifest.get("status")))

    def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: Any,
        *,
        patch_type: PatchType = "merge",
        subresource: str = "",
    ) -> Manifest:
        """Change parts of an object; applying a missing one creates it."""
        with self.lock:
            old = self._tables.table(kind).find(namespace, name)
            if old is None and patch_type == "apply" and not subresource:
                return self.create(patch)
            old = self._need(Ref(kind, namespace, name))
            known = self._tables.table(kind).kind
            target = old if patch_type == "merge" else clone(old)
            new = apply_patch(target, clone(patch), patch_type)
            if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
                raise RejectedError(kind, namespace, name, "the patch leaves no object")
            new["metadata"] = dict(new["metadata"])
            check_versions(known, old, new)
            if subresource == "status":
                return self._replace_status(known, old, new.get("status"))
            if subresource:
                raise NotFoundError(kind, namespace, name, f"no subresource '{subresource}'")
            return self._replace(known, old, new)

    def merge_status(
        self, kind: str, namespace: str, name: str, changes: Mapping[str, Any]
    ) -> None:
        """Replace top-level fields of a status; None removes one."""
        with self.lock:
            old = self._need(Ref(kind, namespace, name))
            status = {**(old.get("status") or {}), **changes}
            for field, value in changes.items():
                if value is None:
                    del status[field]
            if status != old.get("status"):
                new = {**old, "metadata": dict(old["metadata"]), "status": status}
                self._put(self._tables.table(kind), old, new)

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        grace_s: int | None = None,
        propagation: Propagation = "Background",
        uid: str = "",
    ) -> None:
        """Delete an object; finalizers and running pods may keep it for a while."""
        with self.lock:
            ref = Ref(kind, namespace, name)
            old = self._need_same(ref, uid)
            if self.admission is not None:
                self.admission("DELETE", old, old)
            self._garbage.delete(ref, grace_s=grace_s, propagation=propagation)

    def collect_garbage(self) -> int:
        """Delete objects that were created for owners that do not exist; return how many."""
        with self.lock:
            return self._garbage.collect()

    def bind(
        self, namespace: str, pod: str, node: str, annotations: Mapping[str, str], *, uid: str = ""
    ) -> None:
        """Bind a pod to a node; with ``uid`` only if it is that very pod."""
        with self.lock:
            old = self._need_same(Ref("Pod", namespace, pod), uid)
            new = bound(old, node, annotations, rfc3339(self.now()))
            self._tables.put(self._tables.table("Pod"), new, old)

    def evict(self, namespace: str, pod: str, reason: str, *, uid: str = "") -> None:
        """Mark a pod as disrupted and delete it with its own grace."""
        with self.lock:
            ref = Ref("Pod", namespace, pod)
            old = self._need_same(ref, uid)
            new = disrupted(old, reason, rfc3339(self.now()))
            self._tables.put(self._tables.table("Pod"), new, old)
            self._garbage.delete(ref)

    def record(
        self, about: Manifest, event_type: str, reason: str, message: str, source: str
    ) -> None:
        """Write an event about an object; the same one again is counted."""
        if self._events is not None:
            with self.lock:
                self._events.record(about, event_type, reason, message, source)

    def _restore(self, manifests: Iterable[Manifest], now: float) -> None:
        """Load objects; most neighbours are of one kind and namespace, looked up once."""
        tables = self._tables
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
                own = self._name(kind, new)
                home = own.get("namespace") or ""
            self._identity.complete(own, now)
            if owners := own.get("ownerReferences"):
                # a file may lack the uid; an API server accepts no such reference
                own["ownerReferences"] = [owner for owner in owners if owner.get("uid")]
            if old := table.find(own.get("namespace", ""), own["name"]):
                tables.drop(table, old)
            tables.put(table, new, None)

    def _need(self, ref: Ref) -> Manifest:
        manifest = self._tables.find(ref)
        if manifest is None:
            raise NotFoundError(*ref)
        return manifest

    def _need_same(self, ref: Ref, uid: str) -> Manifest:
        """Return an object if it is the very one, or if no uid is named."""
        manifest = self._need(ref)
        found = manifest["metadata"]["uid"]
        if uid and uid != found:
            raise ConflictError(*ref, f"expected uid {uid}, got {found}")
        return manifest

    def _name(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Set the name and namespace of a new object; return its metadata."""
        metadata = manifest.get("metadata")
        if not isinstance(metadata, dict):
            raise RejectedError(kind.name, problem="expected metadata with a name, got none")
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                raise RejectedError(kind.name, problem="expected a name or generateName, got none")
            metadata["name"] = self._identity.name(metadata["generateName"])
        if not kind.namespaced:
            metadata.pop("namespace", None)
            return metadata
        namespace = metadata["namespace"] = metadata.get("namespace") or "default"
        check_home(kind, self._need_namespace(namespace), metadata["name"])
        return metadata

    def _need_namespace(self, name: str) -> Manifest:
        """Return a namespace; a missing one is created."""
        table = self._tables.table("Namespace")
        found = table.find("", name)
        if found is None:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            found = table.spaces[""][name]
        return found

    def _precondition(self, kind: Kind, manifest: Manifest) -> Manifest:
        metadata = manifest["metadata"]
        namespace = (metadata.get("namespace") or "default") if kind.namespaced else ""
        old = self._need(Ref(kind.name, namespace, metadata["name"]))
        check_versions(kind, old, manifest)
        return old

    def _replace(self, kind: Kind, old: Manifest, new: Manifest) -> Manifest:
        """Write all of an object except the fields of the server and the kubelet."""
        keep_fields(new, old, has_status=kind.has_status)
        if kind.name == "Pod":
            keep_spec(old, new)
        if self.admission is not None:
            new = self.admission("UPDATE", new, old)
        check_owners(kind.name, new)
        return self._write(self._tables.table(kind.name), old, new)

    def _replace_status(self, kind: Kind, old: Manifest, status: Any) -> Manifest:
        metadata = old["metadata"]
        if not kind.has_status:
            namespace = metadata.get("namespace", "")
            raise NotFoundError(kind.name, namespace, metadata["name"], "no subresource 'status'")
        new = {**old, "metadata": dict(metadata), "status": status}
        if status is None:
            del new["status"]
        elif self.admission is not None:
            new = self.admission("STATUS", new, old)
        check_claim_status(kind.name, old, status or {})
        return self._write(self._tables.table(kind.name), old, new)

    def _write(self, table: Table, old: Manifest, new: Manifest) -> Manifest:
        """Store a change and return a copy; one that changes nothing causes no event."""
        if new != old:
            metadata = new["metadata"]
            aside = ("metadata", "status") if table.kind.has_status else ("metadata",)
            if any(new.get(key) != old.get(key) for key in {*new, *old} if key not in aside):
                metadata["generation"] = metadata.get("generation", 0) + 1
            self._put(table, old, new)
        return clone(new)

    def _put(self, table: Table, old: Manifest, new: Manifest) -> None:
        self._tables.put(table, new, old)
        meta = new["metadata"]
        if meta.get("deletionTimestamp"):
            self._garbage.finish(Ref(table.kind.name, meta.get("namespace", ""), meta["name"]))


class EventRecorder:
    """Writes events about objects into a store, counts repeated ones, and removes old ones."""

    def __init__(self, store: "EmbeddedCluster") -> None:
        self._store = store
        self._written = 0
        self._known: OrderedDict[_EventKey, tuple[str, str, float, int]] = OrderedDict()

    def record(
        self, about: Manifest, event_type: str, reason: str, message: str, source: str
    ) -> None:
        """Write an event, or count it if it is known."""
        now = self._store.now()
        self._forget(now)
        metadata = about["metadata"]
        identity = metadata.get("uid") or f"{about['kind']}/{metadata['name']}"
        key = (identity, event_type, reason, message, source)
        known = self._known.pop(key, None)
        if known is None or not self._count(key, known, now):
            self._write(about, key, now)

    def _count(self, key: _EventKey, known: tuple[str, str, float, int], now: float) -> bool:
        namespace, name, _, count = known
        changes = {"count": count + 1, "lastTimestamp": rfc3339(now)}
        try:
            self._store.patch("Event", namespace, name, changes)
        except NotFoundError:  # a client deleted it
            return False
        self._known[key] = (namespace, name, now, count + 1)
        return True

    def _write(self, about: Manifest, key: _EventKey, now: float) -> None:
        self._written += 1
        metadata = about["metadata"]
        place = metadata.get("namespace") or "default", f"{metadata['name']}.{self._written:016x}"
        self._store.create(event_object(about, key[1:], place, rfc3339(now)))
        self._known[key] = (*place, now, 1)

    def _forget(self, now: float) -> None:
        while self._known:
            namespace, name, last, _ = next(iter(self._known.values()))
            if now - last < _EVENT_KEPT_S and len(self._known) < _EVENTS_KEPT:
                return
            self._known.popitem(last=False)
            try:
                self._store.delete("Event", namespace, name)
            except NotFoundError:  # a client deleted it
                continue
