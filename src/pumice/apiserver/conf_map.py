"""The scheduler configuration of a served cluster as the ConfigMap that Volcano keeps it in.

Written when the cluster starts and followed from then on: an edit holds from the next cycle, one
that cannot be used is told by an event and changes nothing.
"""

from typing import Final

from pumice.api.conf import parse_conf
from pumice.api.kinds import Manifest
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.services import SERVICES
from pumice.errors import AlreadyExistsError, PumiceError
from pumice.scheduler import Scheduler
from pumice.serve.embedded import EmbeddedControlPlane

NAMESPACE: Final = "volcano-system"
NAME: Final = "volcano-scheduler-configmap"
KEY: Final = "volcano-scheduler.conf"
_SOURCE: Final = "pumice"


class SchedulerConfigMap:
    """Keeps the scheduler of a control plane at what the ConfigMap says."""

    def __init__(self, cluster: EmbeddedCluster, plane: EmbeddedControlPlane, text: str) -> None:
        self._cluster = cluster
        self._plane = plane
        self._seen = text

    def publish(self) -> None:
        """Write the ConfigMap, unless there is one, which then counts."""
        metadata = {"name": NAME, "namespace": NAMESPACE}
        data = {KEY: self._seen}
        try:
            self._cluster.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            )
        except AlreadyExistsError:
            self.follow()

    def follow(self, _cycle: object = None) -> None:
        """Take over what was edited; for ``on_cycle`` of the control plane."""
        found = self._cluster.peek("ConfigMap", NAMESPACE, NAME)
        text = (found or {}).get("data", {}).get(KEY)
        if found is None or text is None or text == self._seen:
            return
        self._seen = text
        live = self._plane.scheduler
        try:
            conf = parse_conf(text, source=NAME)
            live.scheduler = Scheduler(conf, seed=live.scheduler.seed, services=SERVICES)
        except PumiceError as error:
            self._tell(found, "Warning", "InvalidConfiguration", f"{error}; the last one is kept")
        else:
            self._tell(
                found, "Normal", "Reloaded", f"actions: {', '.join(live.scheduler.conf.actions)}"
            )

    def _tell(self, about: Manifest, event_type: str, reason: str, message: str) -> None:
        self._cluster.record(about, event_type, reason, message, _SOURCE)
