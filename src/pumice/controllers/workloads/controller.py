"""One controller for all workloads: a pod is looked at once to find the owner that it concerns."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from pumice.api.kinds import CLAIM, POD, Manifest
from pumice.controllers.base import Key, Plan, View, controller_of, key_of
from pumice.controllers.workloads.batch_job import reconcile_job
from pumice.controllers.workloads.replicated import (
    BATCH_JOB,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    reconcile_deployment,
    reconcile_replica_set,
    reconcile_stateful_set,
)

_RECONCILERS: Final[Mapping[str, Callable[[Manifest, View], Plan]]] = MappingProxyType(
    {
        DEPLOYMENT: reconcile_deployment,
        REPLICA_SET: reconcile_replica_set,
        STATEFUL_SET: reconcile_stateful_set,
        BATCH_JOB: reconcile_job,
    }
)
_OWNERS: Final = {
    ("apps", "Deployment"): DEPLOYMENT,
    ("apps", "ReplicaSet"): REPLICA_SET,
    ("apps", "StatefulSet"): STATEFUL_SET,
    ("batch", "Job"): BATCH_JOB,
}


class WorkloadController:
    """Makes the pods of Deployments, ReplicaSets, StatefulSets and Jobs of ``batch/v1``."""

    name = "workload"
    watches: tuple[str, ...] = (*_RECONCILERS, POD, CLAIM)

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:  # noqa: ARG002
        """Look at each workload that changed, and at the one that controls what changed."""
        keys = [key_of(manifest)] if kind in _RECONCILERS else []
        if not manifest["metadata"].get("ownerReferences"):
            return keys
        owner = controller_of(manifest)
        if owner is not None:
            group = str(owner.get("apiVersion") or "").partition("/")[0]
            owned_by = _OWNERS.get((group, str(owner.get("kind"))))
            if owned_by is not None:
                space = str(manifest["metadata"].get("namespace") or "")
                keys.append(Key(owned_by, space, str(owner["name"])))
        return keys

    def reconcile(self, key: Key, view: View) -> Plan:
        """Bring the pods of a workload closer to its spec; what is being deleted is left alone."""
        found = view.get(key.kind, key.namespace, key.name)
        if found is None or found["metadata"].get("deletionTimestamp"):
            return Plan()
        return _RECONCILERS[key.kind](found, view)
