"""Keeps the status of disruption budgets and resource quotas true, as controllers do."""

from collections.abc import Iterator

from pumice.api.kinds import Manifest
from pumice.api.times import rfc3339
from pumice.cluster.embedded.budgets import BUDGETS, budget_status
from pumice.cluster.embedded.quotas import QUOTAS, Listing, quota_status
from pumice.cluster.embedded.store import EmbeddedCluster


class StatusUpkeep:
    """Works on one embedded cluster; ``sync`` costs nothing while there is nothing to keep."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._seen = -1

    def sync(self) -> int:
        """Bring every status up to date; gives how many were not."""
        cluster = self._cluster
        if cluster.version == self._seen:
            return 0
        written = 0
        for kind, manifest, status in self._statuses():
            meta, old = manifest["metadata"], manifest.get("status") or {}
            if any(old.get(key) != value for key, value in status.items()):
                cluster.merge_status(kind, meta["namespace"], meta["name"], status)
                written += 1
        self._seen = cluster.version
        return written

    def _statuses(self) -> Iterator[tuple[str, Manifest, Manifest]]:
        """Give each budget and quota with the status that it should have."""
        cluster, now = self._cluster, rfc3339(self._cluster.now())
        for budget in cluster.list(BUDGETS)[0]:
            pods = cluster.list("Pod", budget["metadata"]["namespace"])[0]
            yield BUDGETS, budget, budget_status(budget, pods, now)
        for quota in cluster.list(QUOTAS)[0]:
            yield QUOTAS, quota, quota_status(quota, self._listing(quota))

    def _listing(self, quota: Manifest) -> Listing:
        home = quota["metadata"]["namespace"]
        return lambda kind: self._cluster.list(kind, home)[0]
