"""The resource claims of pods: their keys, their devices, and their allocations."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from pumice.api.devices import (
    ADMIN_ACCESS,
    MOST_RESERVATIONS,
    AllocatedConfiguration,
    Allocation,
    DeviceAllocation,
    DeviceClass,
    DeviceConfiguration,
    DeviceResult,
    ResourceClaim,
)
from pumice.api.pods import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from pumice.core.labels import NAME_FIELD
from pumice.core.pod_claims import PodClaimKeys, UnmadeClaim
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.plugins.predicates.devices.demands import Demand, UnmetDemandError, demand_of
from pumice.plugins.predicates.devices.inventory import DeviceId, KnownDevice
from pumice.plugins.predicates.devices.search import Grant


class ClaimProblem(msgspec.Struct, frozen=True):
    """Why no node can meet one of a pod's claims."""

    claim: str
    problem: str

    def __str__(self) -> str:
        return f"resourceclaim {self.claim}: {self.problem}"


class PodClaims:
    """The claims of a session's pods, as the cluster has them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._spaces: Mapping[str, Any] = snapshot.kind("Namespace")
        self._classes: Mapping[str, DeviceClass] = snapshot.kind("DeviceClass")
        self._keys = PodClaimKeys(snapshot)
        self.by_key: Mapping[str, ResourceClaim] = self._keys.by_key
        self._demands: dict[str, Demand | UnmetDemandError] = {}

    def keys(self, task: Task) -> list[str] | ClaimProblem:
        """List the claims that a pod needs, or return which of them is missing."""
        found = self._keys.of(task)
        if isinstance(found, UnmadeClaim):
            return ClaimProblem(found.name, f"not created yet from template {found.template}")
        missing = next((key for key in found if key not in self.by_key), None)
        return found if missing is None else ClaimProblem(missing, "not found")

    def problem(self, task: Task, key: str, more: int) -> ClaimProblem | None:
        """Return why a pod cannot have a claim, whatever the node; ``more`` pods just got it."""
        claim = self.by_key[key]
        if claim.metadata.deletion_timestamp:
            return ClaimProblem(key, "is being deleted")
        uid = task.pod.metadata.uid
        owner = next((each for each in claim.metadata.owner_references if each.controller), None)
        if owner is not None and owner.kind == "Pod" and owner.uid != uid:
            return ClaimProblem(key, f"was made for another pod, {owner.name}")
        reserved = claim.status.reserved_for
        n = len(reserved) + more
        if n >= MOST_RESERVATIONS and all(each.uid != uid for each in reserved):
            return ClaimProblem(key, f"is in use by {n} pods already")
        demand = None if claim.status.allocation is not None else self.demand(key)
        return ClaimProblem(key, str(demand)) if isinstance(demand, UnmetDemandError) else None

    def demand(self, key: str) -> Demand | UnmetDemandError:
        """Return the request of a claim, or why nothing can meet it."""
        found = self._demands.get(key)
        if found is None:
            claim = self.by_key[key]
            space = self._spaces.get(claim.metadata.namespace)
            labels = {} if space is None else space.metadata.labels
            may_admin = any(labels.get(name) == "true" for name in ADMIN_ACCESS)
            try:
                found = demand_of(key, claim, self._classes, may_admin=may_admin)
            except UnmetDemandError as error:
                found = error
            self._demands[key] = found
        return found

    def held(self) -> Iterator[tuple[DeviceId, str]]:
        """Return every device that a claim holds, with the claim; admins hold none."""
        for key, claim in self.by_key.items():
            allocation = claim.status.allocation
            for each in allocation.devices.results if allocation is not None else ():
                if not each.admin_access:
                    yield DeviceId(each.driver, each.pool, each.device), key

    def allocation(self, key: str, grants: Iterable[Grant], node: str) -> Allocation:
        """Write the allocation of a claim."""
        mine = [grant for grant in grants if grant.claim == key]
        results = tuple(
            DeviceResult(
                request=grant.way.name,
                driver=grant.device.id.driver,
                pool=grant.device.id.pool,
                device=grant.device.id.name,
                admin_access=grant.way.admin or None,
                tolerations=grant.way.tolerations,
            )
            for grant in mine
        )
        config = tuple(self._configuration(key, mine))
        selector = _selector([grant.device for grant in mine], node)
        return Allocation(
            devices=DeviceAllocation(results=results, config=config), node_selector=selector
        )

    def _configuration(self, key: str, grants: list[Grant]) -> Iterator[AllocatedConfiguration]:
        """Return the settings of classes, then those of the claim for its devices."""
        ways = {grant.way.name: grant.way for grant in grants}
        for name, way in ways.items():
            for each in self._classes[way.class_name].spec.config:
                yield _allocated(each, "FromClass", (name,))
        for each in self.by_key[key].spec.devices.config:
            mains = {name.partition("/")[0] for name in ways}
            if not each.requests or not (ways.keys() | mains).isdisjoint(each.requests):
                yield _allocated(each, "FromClaim", each.requests)


def _allocated(
    given: DeviceConfiguration, source: str, requests: tuple[str, ...]
) -> AllocatedConfiguration:
    return AllocatedConfiguration(source=source, requests=requests, opaque=given.opaque)


def _selector(devices: list[KnownDevice], node: str) -> NodeSelector | None:
    """Return the nodes on which devices can be used together; None: all."""
    if any(device.reach.node for device in devices):
        here = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node,))
        return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
    terms = {
        id(device.reach.selector): device.reach.selector.node_selector_terms[0]
        for device in devices
        if device.reach.selector is not None and device.reach.selector.node_selector_terms
    }
    if not terms:
        return None
    merged = NodeSelectorTerm(
        match_expressions=_joined(term.match_expressions for term in terms.values()),
        match_fields=_joined(term.match_fields for term in terms.values()),
    )
    return NodeSelector(node_selector_terms=(merged,))


def _joined(
    parts: Iterable[tuple[NodeSelectorRequirement, ...]],
) -> tuple[NodeSelectorRequirement, ...]:
    return tuple(dict.fromkeys(each for part in parts for each in part))
