"""The protocol of a cluster, real or embedded: objects by kind, watches, binding, eviction.

Objects are plain manifests.  The scheduler's binder, the controllers and the command line use
this protocol only; they do not know which cluster is behind it.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, NamedTuple, Protocol

from pumice.api.kinds import Manifest
from pumice.errors import ClusterError

PatchType = Literal["merge", "json", "strategic", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]


class Event(NamedTuple):
    """One step of a watch: what happened to an object, and the object after it."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: Manifest


class ReadableCluster(Protocol):
    """The part of a cluster that answers about it need."""

    def now(self) -> float:
        """Return the cluster's time in seconds since 1970."""

    def get(self, kind: str, namespace: str, name: str) -> Manifest:
        """Return one object."""

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[list[Manifest], str]:
        """Return all objects of a kind and the resourceVersion from which to watch."""


class Cluster(ReadableCluster, Protocol):
    """The part of a Kubernetes cluster that Pumice needs.

    ``namespace`` is empty for kinds that live in none, and in ``list`` and ``watch`` for all.
    Methods raise the cluster errors of ``pumice.errors``: NotFoundError, AlreadyExistsError,
    ConflictError (stale resourceVersion or uid), GoneError (a watch too far back), RejectedError.
    """

    def watch(self, kind: str, namespace: str = "", since: str = "") -> Iterator[Event]:
        """Yield what happened after a resourceVersion; ends when there is nothing more."""

    def create(self, manifest: Manifest) -> Manifest:
        """Add an object; return it as stored (uid, resourceVersion, defaults)."""

    def update(self, manifest: Manifest) -> Manifest:
        """Replace an object, except its status where the kind has a status subresource."""

    def update_status(self, manifest: Manifest) -> Manifest:
        """Replace the status of an object."""

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
        """Change parts of an object."""

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

    def bind(
        self, namespace: str, pod: str, node: str, annotations: Mapping[str, str], *, uid: str = ""
    ) -> None:
        """Bind a pod to a node; with ``uid`` only if it is that very pod."""

    def evict(self, namespace: str, pod: str, reason: str, *, uid: str = "") -> None:
        """Evict a pod, with a condition that states the reason."""

    def record(
        self, about: Manifest, event_type: str, reason: str, message: str, source: str
    ) -> None:
        """Write an event about an object."""


def event_object(
    about: Manifest, what: tuple[str, str, str, str], place: tuple[str, str], moment: str
) -> Manifest:
    """Make an event about an object: ``what`` is its type, reason, message and source."""
    metadata = about["metadata"]
    fields = ("namespace", "name", "uid", "resourceVersion")
    involved = {key: metadata[key] for key in fields if metadata.get(key)}
    event_type, reason, message, source = what
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": place[1], "namespace": place[0]},
        "involvedObject": {"apiVersion": about["apiVersion"], "kind": about["kind"], **involved},
        "type": event_type,
        "reason": reason,
        "message": message,
        "source": {"component": source},
        "reportingComponent": source,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


class Lane(IntEnum):
    """How urgent a write is: lower lanes go first when writes wait for their turn."""

    BIND = 0
    EVICT = 1
    STATUS = 2
    EVENT = 3


@dataclass(frozen=True, slots=True)
class Write:
    """One write as data: a method of ``Cluster`` and its arguments."""

    verb: Literal["bind", "evict", "patch", "create", "update", "update_status", "delete", "record"]
    arguments: Mapping[str, Any] = field(default_factory=dict)


Done = Callable[[ClusterError | None], None]
"""Called with the result of a write; not necessarily on the thread that asked for it."""


class Writer(Protocol):
    """Takes writes; they may be carried out at once or later, in parallel."""

    def submit(self, write: Write, *, lane: Lane, done: Done | None = None) -> None:
        """Queue a write; two writes of one lane about the same object keep their order."""

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything handed in is done; return whether it is."""


class DirectWriter:
    """Carries each write out at once, on a cluster that answers at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def submit(self, write: Write, *, lane: Lane, done: Done | None = None) -> None:  # noqa: ARG002
        """Do it now."""
        error: ClusterError | None = None
        try:
            getattr(self._cluster, write.verb)(**write.arguments)
        except ClusterError as found:
            error = found
        if done is not None:
            done(error)

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002
        """Return True: nothing is ever left to do."""
        return True


class LiveCluster(Cluster, Writer, Protocol):
    """A watched cluster: reads come from caches that watches keep, writes go in lanes."""

    def wait_synced(self, timeout_s: float) -> list[str]:
        """Wait until caches are complete; return the kinds whose caches are not."""

    def wait_current(self, timeout_s: float) -> list[str]:
        """Wait until caches are as new as the lease and no watch is lost; return the others."""

    def read(self, kind: str, namespace: str, name: str, *, timeout_s: float) -> Manifest:
        """Return one object as it is now, whatever the cache has; one attempt of limited time."""

    def troubles(self) -> dict[str, str]:
        """Return by kind why it is not being watched; empty when all is well."""

    def absent(self) -> list[str]:
        """Return the kinds that the server does not have."""

    def new_wake(self) -> threading.Event:
        """Return an event that is set whenever something changed, for one loop."""
