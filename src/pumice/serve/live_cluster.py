"""What serving needs of a cluster beyond objects and writes: caches, and word of their state."""

import threading
from typing import Protocol

from pumice.api.kinds import Manifest
from pumice.cluster.base import Cluster, Writer


class LiveCluster(Cluster, Writer, Protocol):
    """A cluster that is followed: reads come from caches that watches keep, writes go in lanes."""

    def wait_synced(self, timeout_s: float) -> list[str]:
        """Wait until caches are complete; return the kinds whose caches are not."""

    def read(self, kind: str, namespace: str, name: str, *, timeout_s: float) -> Manifest:
        """Return one object as it is now, whatever the cache has; one attempt, in time or not."""

    def troubles(self) -> dict[str, str]:
        """Return by kind why it is not followed just now; empty when all is well."""

    def absent(self) -> list[str]:
        """Return the kinds that the server does not have."""

    def new_wake(self) -> threading.Event:
        """Return an event that is set whenever something changed, for one loop."""
