"""The resource claims of a pod: named, or made for it from a template."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pumice.api.devices import POD_CLAIM_NAME, ResourceClaim
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task


class UnmadeClaim(NamedTuple):
    """A claim that is yet to be made for a pod."""

    name: str
    """Namespace and the name that the pod uses."""
    template: str


class PodClaimKeys:
    """Finds the claims of pods in a snapshot; ask within one session only."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.by_key: Mapping[str, ResourceClaim] = snapshot.kind("ResourceClaim")
        self._made_for: dict[tuple[str, str], str] | None = None

    def of(self, task: Task) -> list[str] | UnmadeClaim:
        """List the claims ("namespace/name") that a pod needs, or name the first unmade one."""
        found: dict[str, None] = {}
        space, pod = task.namespace, task.pod
        for entry in task.shape.spec.resource_claims:
            name = entry.resource_claim_name or self._made(pod, entry.name)
            if name is None:
                template = str(entry.resource_claim_template_name)
                return UnmadeClaim(f"{space}/{entry.name}", template)
            if name:
                found[f"{space}/{name}"] = None
        return list(found)

    def _made(self, pod: Any, entry: str) -> str | None:
        """Return the claim made for a pod; empty if it needs none, None if it is missing."""
        for each in pod.status.resource_claim_statuses:
            if each.name == entry:
                return each.resource_claim_name or ""
        return self._owned().get((pod.metadata.uid, entry))

    def _owned(self) -> dict[tuple[str, str], str]:
        """Map pods and the names of their claims to claims that were made for them."""
        if self._made_for is None:
            self._made_for = {
                (owner.uid, claim.metadata.annotations.get(POD_CLAIM_NAME, "")): claim.metadata.name
                for claim in self.by_key.values()
                for owner in claim.metadata.owner_references
                if owner.controller
            }
        return self._made_for
