"""Locks on nodes for pods that are about to be bound with devices, and their removal.

Used by the binder.  A lock is an annotation with a time.  It is written for the node as it was
seen, so that only one of two schedulers gets it.  It is removed only if it is still the same; its
microseconds distinguish it from another one.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from pumice import logs
from pumice.api.nodes import Node, is_locked
from pumice.api.times import rfc3339_micro
from pumice.binder.claim_writes import Known
from pumice.cluster.base import Lane, Write, Writer
from pumice.errors import ClusterError, RejectedError

_log = logs.get("locks")


class _Locked(msgspec.Struct, frozen=True):
    """What was written on a node, or is about to be."""

    node: str
    names: tuple[str, ...]
    time: str


class NodeLocks:
    """Writes and removes locks, by the pod that they are for."""

    def __init__(self, writer: Writer, known: Known, now: Callable[[], float]) -> None:
        self._writer = writer
        self._known = known
        self._now = now
        self._wanted: dict[str, tuple[str, ...]] = {}
        """Pods ("namespace/name") that are to be bound to the names of their locks."""
        self._locked: dict[tuple[str, str], _Locked] = {}
        """Pods by key and uid whose bind is not confirmed."""

    def expect(self, wanted: Mapping[str, tuple[str, ...]], pods: Iterable[str]) -> None:
        """Record the locks that decided pods need when they are bound."""
        for pod in pods if self._wanted else ():
            self._wanted.pop(pod, None)
        self._wanted |= wanted

    def writes(self, pod: str, uid: str, node: str) -> list[Write]:
        """Return what must be written on a node before a pod is bound to it.

        Raises:
            RejectedError: another client holds the lock.
        """
        names, known = self._wanted.get(pod, ()), self._known("Node", node)
        if not names or not isinstance(known, Node):
            return []
        mine = self._locked.get((pod, uid))
        time = rfc3339_micro(self._now()) if mine is None or mine.node != node else mine.time
        marks = known.metadata.annotations
        for name in names:
            if marks.get(name) != time and is_locked(marks.get(name, ""), self._now()):
                raise RejectedError("Node", "", node, f"is locked by {name} since {marks[name]}")
        self._locked[pod, uid] = _Locked(node, names, time)
        if all(marks.get(name) == time for name in names):
            return []
        seen = {"uid": known.metadata.uid, "resourceVersion": known.metadata.resource_version}
        metadata = {**seen, "annotations": dict.fromkeys(names, time)}
        return [_patch(node, {"metadata": metadata})]

    def unreserve(self, pod: str, uid: str) -> None:
        """Unlock the node of a pod that is not bound, unless it has a new lock by now."""
        self._wanted.pop(pod, None)
        locked = self._locked.pop((pod, uid), None)
        if locked is None:
            return
        for name in locked.names:
            path = "/metadata/annotations/" + name.replace("~", "~0").replace("/", "~1")
            patch = [
                {"op": "test", "path": path, "value": locked.time},
                {"op": "remove", "path": path},
            ]
            write = _patch(locked.node, patch, patch_type="json")
            self._writer.submit(write, lane=Lane.BIND, done=_log_failure(locked.node))

    def forget(self, pod: str, uid: str) -> None:
        """Forget a pod that is bound: its device plugin removes the lock."""
        self._wanted.pop(pod, None)
        self._locked.pop((pod, uid), None)

    def prune(self, waits: Callable[[str, str], bool]) -> None:
        """Forget pods that do not wait any more."""
        self._locked = {pod: kept for pod, kept in self._locked.items() if waits(*pod)}
        self._wanted = {
            pod: names for pod, names in self._wanted.items() if self._known("Pod", pod) is not None
        }


def _log_failure(node: str) -> Callable[[ClusterError | None], None]:
    def report(error: ClusterError | None) -> None:
        if error is not None:  # not locked, or by another client
            _log.v(2).info("node stays as it is", node=node, why=error)

    return report


def _patch(node: str, patch: Any, **more: str) -> Write:
    return Write("patch", {"kind": "Node", "namespace": "", "name": node, "patch": patch, **more})
