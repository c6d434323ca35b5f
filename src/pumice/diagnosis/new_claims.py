"""Claims that controllers make while time passes, served as those of pods yet to be made are."""

from pumice.api.kinds import CLAIM, STORAGE_CLASS, Manifest
from pumice.cluster.base import Event
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers.expected import class_of, served


class NewClaims:
    """Binds new claims of an embedded cluster; those that were there before stay as they are."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._new: list[Manifest] = []
        cluster.listeners.append(self._on_event)

    def sync(self) -> None:
        """Serve the claims that came since the last call."""
        new, self._new = self._new, []
        for given in new:
            known = self._cluster.peek(STORAGE_CLASS, "", class_of(given))
            claim, *volumes = served(given, known)
            for volume in volumes:
                self._cluster.restore([volume])
                place = claim["metadata"]["namespace"], claim["metadata"]["name"]
                changes = {"spec": {"volumeName": claim["spec"]["volumeName"]}}
                self._cluster.patch(CLAIM, *place, changes)
                self._cluster.merge_status(CLAIM, *place, claim["status"])

    def _on_event(self, kind: str, event: Event) -> None:
        if kind == CLAIM and event.type == "ADDED":
            self._new.append(event.object)
