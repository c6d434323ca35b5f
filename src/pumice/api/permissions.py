"""What each process may do: the calls it makes, as a table.

Roles are made from it, and ``pumice doctor`` asks the API server for each line.  A test runs the
components on an embedded cluster, records every call, and asserts that each is granted here and
that each line is used, or states in ``unseen`` why it is kept anyway.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Manifest = dict[str, Any]

READ: Final = ("list", "watch")
"""The verbs for watching a kind; single objects are read from the cache."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One line of the table."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only these objects; ``create`` and ``list`` cannot be narrowed so."""
    unseen: str = ""
    """Why it is granted although the recorded run never makes the call."""

    def rule(self) -> Manifest:
        """Return it as a rule of a role."""
        rule: Manifest = {"apiGroups": [self.group], "resources": [*self.resources]}
        if self.names:
            rule["resourceNames"] = [*self.names]
        return {**rule, "verbs": [*self.verbs]}

    def calls(self) -> set[tuple[str, str, str]]:
        """Return every call it allows: verb, group, resource with subresource."""
        return {(verb, self.group, one) for verb in self.verbs for one in self.resources}


@dataclass(frozen=True, slots=True)
class Component:
    """A service account, its rights everywhere, and those in its own namespace."""

    name: str
    everywhere: tuple[Grant, ...] = ()
    at_home: tuple[Grant, ...] = ()
    in_job_namespaces: tuple[Grant, ...] = field(default=())
    """Only in the namespaces that are listed at installation."""

    def grants(self) -> tuple[Grant, ...]:
        """Return all lines."""
        return self.everywhere + self.at_home + self.in_job_namespaces


def grant(group: str, resources: str, verbs: str | Sequence[str], **more: Any) -> Grant:
    """Return a line; resources and verbs are separated by spaces."""
    words = verbs.split() if isinstance(verbs, str) else verbs
    return Grant(group, tuple(resources.split()), tuple(words), **more)


_ELECTION: Final = "the recorded run has a single candidate and no election"
_BINDING: Final = (
    "from 1.36 on the API server asks for it, too, where the status of a claim says who has it"
)
_ENFORCED: Final = (
    "the admission plugin OwnerReferencesPermissionEnforcement asks for it when an object is made"
    " whose owner reference blocks the owner's deletion"
)


def _lease(name: str) -> tuple[Grant, ...]:
    return (
        grant("coordination.k8s.io", "leases", "create", unseen=_ELECTION),
        grant("coordination.k8s.io", "leases", "get update", names=(name,), unseen=_ELECTION),
    )


_EVENTS: Final = (
    grant("", "events", "create"),
    grant("", "events", "patch", unseen="an event that is repeated is counted up"),
)

DEVICE_CONFIGS: Final = ("hami-scheduler-device", "volcano-vgpu-device-config")
"""The names that the device plugins give their ConfigMap."""
STATES: Final = ("pumice-fairshare", "pumice-run-times")
"""ConfigMaps in which plugins keep their state, in the namespace of the scheduler."""
_STATE: Final = "fairshare keeps what was used, reservation how long jobs ran"
_SHARDS: Final = "nodes are divided among schedulers where flags say so"
_DEVICES: Final = "deviceshare reads MIG geometries and Ascend chips"

SCHEDULER: Final = Component(
    "scheduler",
    everywhere=(
        grant(
            "",
            "namespaces nodes persistentvolumeclaims persistentvolumes pods resourcequotas",
            READ,
        ),
        grant("nodeinfo.volcano.sh", "numatopologies", READ),
        grant("policy", "poddisruptionbudgets", READ),
        grant("resource.k8s.io", "deviceclasses resourceclaims resourceslices", READ),
        grant("scheduling.k8s.io", "priorityclasses", READ),
        grant("scheduling.volcano.sh", "podgroups queues", READ),
        grant("storage.k8s.io", "csidrivers csinodes csistoragecapacities storageclasses", READ),
        grant("shard.volcano.sh", "nodeshards", READ),
        grant("topology.volcano.sh", "hypernodes", READ),
        grant("shard.volcano.sh", "nodeshards/status", "patch", unseen=_SHARDS),
        grant("", "persistentvolumeclaims persistentvolumes", "patch"),
        grant("", "nodes", "patch", unseen="deviceshare.NodeLockEnable locks nodes"),
        grant("", "configmaps", "get", names=DEVICE_CONFIGS, unseen=_DEVICES),
        grant("", "pods/binding", "create"),
        grant("", "pods/status", "patch"),
        grant("", "pods", "patch delete"),
        grant("", "pods", "get", unseen="after a refused bind the pod is looked at once more"),
        grant("resource.k8s.io", "resourceclaims resourceclaims/status", "patch"),
        grant("resource.k8s.io", "resourceclaims/binding", "patch", unseen=_BINDING),
        grant("scheduling.volcano.sh", "podgroups", "patch"),
        grant("scheduling.volcano.sh", "queues", "create"),
        grant("scheduling.volcano.sh", "queues/status", "patch"),
        grant("metrics.k8s.io", "nodes", "list", unseen="metrics of type metrics_server"),
        grant(
            "custom.metrics.k8s.io",
            "nodes/node_cpu_usage_avg nodes/node_memory_usage_avg",
            "get",
            unseen="metrics of type prometheus_adaptor",
        ),
        *_EVENTS,
    ),
    at_home=(
        *_lease("volcano"),
        grant("", "configmaps", "create", unseen=_STATE),
        grant("", "configmaps", "get patch", names=STATES, unseen=_STATE),
    ),
)

SHADOW: Final = Component(
    "shadow",
    everywhere=tuple(
        each for each in SCHEDULER.everywhere if each.verbs == READ or each.names == DEVICE_CONFIGS
    ),
)
"""A scheduler that only reads: the rights for watching, and nothing else."""

CONTROLLERS: Final = Component(
    "controllers",
    everywhere=(
        grant("", "nodes persistentvolumeclaims pods", READ),
        grant("apps", "daemonsets replicasets statefulsets", READ),
        grant("batch", "jobs", READ),
        grant("batch.volcano.sh", "cronjobs jobs", READ),
        grant("bus.volcano.sh", "commands", READ),
        grant("flow.volcano.sh", "jobflows jobtemplates", READ),
        grant("scheduling.k8s.io", "podgroups priorityclasses", READ),
        grant("scheduling.volcano.sh", "podgroups queues", READ),
        grant("topology.volcano.sh", "hypernodes", READ),
        grant("", "pods", "create patch delete"),
        grant("", "persistentvolumeclaims", "create"),
        grant("", "configmaps", "get create update delete"),
        grant("", "services", "get create delete"),
        grant("networking.k8s.io", "networkpolicies", "get create delete"),
        grant("batch.volcano.sh", "jobs", "create patch delete"),
        grant("batch.volcano.sh", "jobs/status", "update"),
        grant("batch.volcano.sh", "cronjobs/status", "patch"),
        grant("bus.volcano.sh", "commands", "delete"),
        grant("flow.volcano.sh", "jobflows/status", "update"),
        grant("flow.volcano.sh", "jobtemplates/status", "patch"),
        grant("scheduling.k8s.io", "podgroups/status", "patch"),
        grant("scheduling.volcano.sh", "podgroups", "create update delete"),
        grant("scheduling.volcano.sh", "queues queues/status", "patch"),
        grant("topology.volcano.sh", "hypernodes", "create patch delete"),
        grant("topology.volcano.sh", "hypernodes/status", "patch"),
        grant("shard.volcano.sh", "nodeshards", "list watch create patch delete", unseen=_SHARDS),
        grant(
            "batch.volcano.sh", "jobs/finalizers cronjobs/finalizers", "update", unseen=_ENFORCED
        ),
        grant("flow.volcano.sh", "jobflows/finalizers", "update", unseen=_ENFORCED),
        grant("", "pods/finalizers", "update", unseen=_ENFORCED),
        grant("scheduling.k8s.io", "podgroups/finalizers", "update", unseen=_ENFORCED),
        *_EVENTS,
    ),
    at_home=(
        *_lease("vc-controller-manager"),
        grant("", "secrets", "get", names=("ufm-credentials",)),
    ),
    in_job_namespaces=(grant("", "secrets", "get create delete"),),
)

_NEW_QUEUE: Final = "a queue is named before the webhooks have seen its creation"
ADMISSION: Final = Component(
    "admission",
    everywhere=(
        grant("scheduling.volcano.sh", "queues", READ),
        grant("scheduling.volcano.sh", "queues", "get", unseen=_NEW_QUEUE),
    ),
)
FOR_PODGROUPS: Final = (grant("", "namespaces", "get"),)
"""Additional rights of admission if /podgroups/mutate is on: a namespace may name a queue."""

FOR_UI: Final = (grant("", "events", "list"),)
"""What the scheduler may do besides if it serves the dashboard: a job page shows events."""
FOR_UI_LOGIN: Final = (
    grant("authentication.k8s.io", "tokenreviews", "create"),
    grant("authorization.k8s.io", "subjectaccessreviews", "create"),
)
"""And if people log in to it with tokens of the cluster."""
FOR_UI_ACTIONS: Final = (
    grant("bus.volcano.sh", "commands", "create"),
    grant("batch.volcano.sh", "jobs", "get delete"),
)
"""And if it lets people act."""
