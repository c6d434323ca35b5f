"""Pods that controllers outside Volcano create again: those of replica sets and stateful sets.

The embedded cluster has no such controllers; forecasts need their reaction to a pod that is
evicted or lost.
"""

from typing import Final

from pumice.api.cloning import clone
from pumice.api.kinds import JOB, Manifest
from pumice.cluster.base import Event
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers.base import controller_of
from pumice.diagnosis.unseen_jobs import owner_of

AT_ONCE: Final = frozenset({"ReplicaSet", "ReplicationController"})
"""Owners that replace a pod as soon as it is deleted, under another name."""
_IN_PLACE: Final = frozenset({"StatefulSet", "Job"})
"""Owners that wait until a pod is gone; an unknown Volcano job counts as one."""
_DROPPED: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


class Replacements:
    """Makes pods again on one embedded cluster."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._due: list[Manifest] = []
        self._let_go: set[str] = set()
        """Uids of leaving pods that are not to be made again: they are, or their job is deleted."""
        cluster.listeners.append(self._on_event)

    def make(self) -> None:
        """Create the pods that are due."""
        due, self._due = self._due, []
        self._cluster.restore(due)  # their owners may be missing

    def _on_event(self, kind: str, event: Event) -> None:
        if kind == JOB and event.type == "DELETED":
            pods = self._cluster.owned_by(event.object["metadata"]["uid"], "Pod")
            self._let_go.update(pod["metadata"]["uid"] for pod in pods)
        elif kind == "Pod":
            self._on_pod(event.object, is_gone=event.type == "DELETED")

    def _on_pod(self, pod: Manifest, *, is_gone: bool) -> None:
        uid, owner = pod["metadata"]["uid"], controller_of(pod)
        is_let_go = uid in self._let_go
        if is_gone:
            self._let_go.discard(uid)
        if owner is None or is_let_go or self._is_managed(pod):
            return
        leaves = is_gone or bool(pod["metadata"].get("deletionTimestamp"))
        if owner.get("kind") in AT_ONCE and leaves:
            if not is_gone:
                self._let_go.add(uid)
            self._replace(pod, new_name=f"{owner.get('name')}-")
        elif owner.get("kind") in _IN_PLACE and is_gone and _phase(pod) != "Succeeded":
            self._replace(pod)

    def _is_managed(self, pod: Manifest) -> bool:
        """Return whether the controllers at hand create the pod again themselves."""
        job = owner_of(pod)
        space, _, name = job.partition("/")
        return bool(job) and self._cluster.peek(JOB, space, name) is not None

    def _replace(self, pod: Manifest, new_name: str = "") -> None:
        meta = {key: value for key, value in pod["metadata"].items() if key not in _DROPPED}
        if new_name:
            meta.pop("name", None)
            meta["generateName"] = new_name
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        self._due.append(
            clone({**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        )


def _phase(pod: Manifest) -> str:
    return str((pod.get("status") or {}).get("phase") or "")
