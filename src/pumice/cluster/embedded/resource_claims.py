"""The upkeep of resource claims in an embedded cluster, as by a control plane.

Used by the embedded control plane.
"""

from pumice.api.devices import DELETE_PROTECTION
from pumice.api.kinds import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, Manifest
from pumice.cluster.embedded.claim_changes import (
    claim_from,
    pods_there,
    unmade_claims,
    with_made_claim,
    without_users,
)
from pumice.cluster.embedded.store import EmbeddedCluster


class ResourceClaimUpkeep:
    """Works on one embedded cluster; ``sync`` costs little while there are no claims."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._seen = -1

    def sync(self) -> None:
        """Make claims that pods wait for; free those whose pods have ended."""
        cluster = self._cluster
        if cluster.version == self._seen:
            return
        templates, _ = cluster.list(RESOURCE_CLAIM_TEMPLATE)
        claims, _ = cluster.list(RESOURCE_CLAIM)
        if templates or claims:
            pods = cluster.list("Pod")[0]
            for pod in pods if templates else ():
                self._make(pod)
            there = pods_there(pods)
            for claim in claims:
                self._free(claim, there)
        self._seen = cluster.version

    def _make(self, pod: Manifest) -> None:
        meta = pod["metadata"]
        for entry, template in list(unmade_claims(pod)):
            found = self._cluster.peek(RESOURCE_CLAIM_TEMPLATE, meta["namespace"], template)
            if found is None or meta.get("deletionTimestamp"):
                continue
            name = {"generateName": f"{meta['name']}-{entry}-"}
            made = self._cluster.create(claim_from(found, pod, entry, name))
            pod = self._cluster.get("Pod", meta["namespace"], meta["name"])
            statuses = with_made_claim(pod, entry, made["metadata"]["name"])
            changes = {"resourceClaimStatuses": statuses}
            self._cluster.merge_status("Pod", meta["namespace"], meta["name"], changes)

    def _free(self, claim: Manifest, there: set[str]) -> None:
        meta = claim["metadata"]
        place = meta["namespace"], meta["name"]
        status = without_users(claim, lambda user: user.get("uid") not in there)
        if status is not None:
            self._cluster.update_status({**claim, "status": status})
        else:
            status = claim.get("status") or {}
        if "allocation" not in status and DELETE_PROTECTION in (meta.get("finalizers") or ()):
            patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [DELETE_PROTECTION]}}
            self._cluster.patch(RESOURCE_CLAIM, *place, patch, patch_type="strategic")
