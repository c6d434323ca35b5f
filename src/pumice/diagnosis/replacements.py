"""Pods that controllers outside Volcano create again: those of replica sets and stateful sets.

The embedded cluster has no such controllers; forecasts need their reaction to a pod that is
evicted or lost.
"""

from typing import Final

from pumice.api.cloning import clone
from pumice.api.kinds import JOB, Manifest
from pumice.cluster.base import Event
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers.ownership import controller_of
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
        self._replaced: set[str] = set()
        self._removed: set[str] = set()
        """Uids of Volcano jobs that were deleted here: their pods go with them."""
        cluster.listeners.append(self._on_event)

    def make(self) -> None:
        """Create the pods that are due."""
        due, self._due = self._due, []
        self._cluster.restore(due)  # their owners may be missing

    def _on_event(self, kind: str, event: Event) -> None:
        if kind == JOB and event.type == "DELETED":
            self._removed.add(str(event.object["metadata"].get("uid")))
        if kind != "Pod":
            return
        pod, meta = event.object, event.object["metadata"]
        owner = controller_of(pod)
        if owner is None or meta["uid"] in self._replaced or self._is_managed(pod):
            return
        if owner.get("uid") in self._removed:
            return
        leaves = bool(meta.get("deletionTimestamp")) or event.type == "DELETED"
        gone = event.type == "DELETED" and (pod.get("status") or {}).get("phase") != "Succeeded"
        if owner.get("kind") in AT_ONCE and leaves:
            self._replace(pod, new_name=f"{owner.get('name')}-")
        elif owner.get("kind") in _IN_PLACE and gone:
            self._replace(pod)

    def _is_managed(self, pod: Manifest) -> bool:
        """Return whether the controllers at hand create the pod again themselves."""
        job = owner_of(pod)
        space, _, name = job.partition("/")
        return bool(job) and self._cluster.peek(JOB, space, name) is not None

    def _replace(self, pod: Manifest, new_name: str = "") -> None:
        self._replaced.add(pod["metadata"]["uid"])
        meta = {key: value for key, value in pod["metadata"].items() if key not in _DROPPED}
        if new_name:
            meta.pop("name", None)
            meta["generateName"] = new_name
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        self._due.append(
            clone({**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        )
