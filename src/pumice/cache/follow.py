"""Keeps a snapshot in step with a cluster: list, watch, convert, take in.

Used by the scheduler's loop.  A bad object is reported and skipped; it never stops the others.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from pumice.api.meta import KubeObject
from pumice.api.objects import KINDS, from_manifest
from pumice.api.pods import Pod
from pumice.cache.ingest import Ingest
from pumice.cache.marks import key_of
from pumice.cluster.base import Cluster, Event, Manifest, kind_of
from pumice.core.snapshot import Snapshot
from pumice.errors import GoneError, InputError, NotFoundError

FOLLOWED: Final = tuple(kind_of({"apiVersion": version, "kind": kind}) for version, kind in KINDS)
"""Every kind the scheduler reads."""
_REMEMBERED: Final = 1000


@dataclass(frozen=True, slots=True)
class BadObject:
    """An object that was skipped."""

    kind: str
    key: str
    error: InputError


class Follower:
    """Follows a cluster into a snapshot; ``sync`` before each cycle."""

    def __init__(
        self,
        cluster: Cluster,
        ingest: Ingest,
        kinds: Iterable[str] = FOLLOWED,
    ) -> None:
        self._cluster = cluster
        self._ingest = ingest
        self._since = dict.fromkeys(kinds, "")
        self._known: dict[str, dict[str, KubeObject]] = {kind: {} for kind in self._since}
        self._assumed: dict[str, tuple[str, str]] = {}
        self.problems: deque[BadObject] = deque(maxlen=_REMEMBERED)
        """Objects skipped lately, oldest first."""
        self._loaded = False

    def sync(self) -> int:
        """Take in what changed since the last time; gives how many changes there were."""
        if not self._loaded:
            return self._load()
        changes = 0
        for kind, since in self._since.items():
            try:
                changes += self._watch(kind, since)
            except GoneError:
                changes += self._relist(kind)
            except NotFoundError:  # a cluster without this kind
                continue
        self._ingest.settle()
        return changes

    @property
    def snapshot(self) -> Snapshot:
        """What is followed into."""
        return self._ingest.snapshot

    def assume(self, pod: str, node: str) -> None:
        """Count a pod ("namespace/name") on a node until the cluster says so or ``undo``."""
        known = self._known["Pod"].get(pod)
        if isinstance(known, Pod):
            self._assumed[pod] = known.metadata.uid, node
            self._ingest.upsert(self._as_assumed(pod, known))

    def undo(self, pod: str) -> None:
        """Count a pod as the cluster has it: its bind failed."""
        if self._assumed.pop(pod, None) is not None:
            known = self._known["Pod"].get(pod)
            if known is not None:
                self._ingest.upsert(known)

    def _load(self) -> int:
        """Take in everything there is."""
        things = []
        for kind in self._since:
            try:
                items, self._since[kind] = self._cluster.list(kind)
            except NotFoundError:  # a cluster without this kind
                continue
            for manifest in items:
                thing = self._read(kind, manifest)
                if thing is not None:
                    self._known[kind][key_of(thing)] = thing
                    things.append(thing)
        self._ingest.load(things)
        self._loaded = True
        return len(things)

    def _watch(self, kind: str, since: str) -> int:
        """Take in what happened to objects of a kind; of each only what happened last."""
        latest: dict[str, Event] = {}
        for event in self._cluster.watch(kind, since=since):
            self._since[kind] = event.object["metadata"]["resourceVersion"]
            if event.type != "BOOKMARK":
                key = _key(event.object)
                if event.type == "DELETED":  # a successor of the same name starts anew
                    latest.pop(key, None)
                    self._drop(kind, key)
                latest[key] = event
        for event in latest.values():
            self._take(kind, event)
        return len(latest)

    def _take(self, kind: str, event: Event) -> None:
        if event.type == "DELETED":
            self._drop(kind, _key(event.object))
            return
        thing = self._read(kind, event.object)
        if thing is not None:
            key = key_of(thing)
            self._known[kind][key] = thing
            if isinstance(thing, Pod):
                thing = self._as_assumed(key, thing)
            self._ingest.upsert(thing)

    def _drop(self, kind: str, key: str) -> None:
        known = self._known[kind].pop(key, None)
        if known is not None:
            self._ingest.delete(known)
            if kind == "Pod":
                self._assumed.pop(key, None)

    def _as_assumed(self, key: str, pod: Pod) -> Pod:
        """Give a pod as it is thought to be; the cluster's word ends an assumption."""
        assumed = self._assumed.get(key)
        if assumed is None:
            return pod
        uid, node = assumed
        if pod.spec.node_name or pod.metadata.uid != uid:
            del self._assumed[key]
            return pod
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        return msgspec.structs.replace(pod, spec=spec)

    def _relist(self, kind: str) -> int:
        items, self._since[kind] = self._cluster.list(kind)
        present = {_key(manifest) for manifest in items}
        missing = [key for key in self._known[kind] if key not in present]
        for key in missing:
            self._drop(kind, key)
        changed = [manifest for manifest in items if not self._is_known(kind, manifest)]
        for manifest in changed:
            self._take(kind, Event("MODIFIED", manifest))
        return len(missing) + len(changed)

    def _is_known(self, kind: str, manifest: Manifest) -> bool:
        known = self._known[kind].get(_key(manifest))
        version = manifest["metadata"].get("resourceVersion")
        return known is not None and known.metadata.resource_version == version

    def _read(self, kind: str, manifest: Manifest) -> KubeObject | None:
        try:
            return from_manifest(manifest)
        except InputError as error:
            self.problems.append(BadObject(kind, _key(manifest), error))
            return None


def _key(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
