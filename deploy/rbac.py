"""Rights: the calls each component makes, as a table, and the roles made from it.

A test runs the components on an embedded cluster, records every call, and asserts that each is
granted here and that each line is used, or states in ``unseen`` why it is kept anyway.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Manifest = dict[str, Any]

READ: Final = ("list", "watch")
"""The verbs for watching a kind; single objects are read from the cache."""
WEBHOOKS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


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


def _grant(group: str, resources: str, verbs: str | Sequence[str], **more: Any) -> Grant:
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
        _grant("coordination.k8s.io", "leases", "create", unseen=_ELECTION),
        _grant("coordination.k8s.io", "leases", "get update", names=(name,), unseen=_ELECTION),
    )


_EVENTS: Final = (
    _grant("", "events", "create"),
    _grant("", "events", "patch", unseen="an event that is repeated is counted up"),
)

DEVICE_CONFIGS: Final = ("hami-scheduler-device", "volcano-vgpu-device-config")
"""The names that the device plugins give their ConfigMap."""
_DEVICES: Final = "deviceshare reads MIG geometries and Ascend chips"

SCHEDULER: Final = Component(
    "scheduler",
    everywhere=(
        _grant(
            "",
            "namespaces nodes persistentvolumeclaims persistentvolumes pods resourcequotas",
            READ,
        ),
        _grant("nodeinfo.volcano.sh", "numatopologies", READ),
        _grant("policy", "poddisruptionbudgets", READ),
        _grant("resource.k8s.io", "deviceclasses resourceclaims resourceslices", READ),
        _grant("scheduling.k8s.io", "priorityclasses", READ),
        _grant("scheduling.volcano.sh", "podgroups queues", READ),
        _grant("storage.k8s.io", "csidrivers csinodes csistoragecapacities storageclasses", READ),
        _grant("topology.volcano.sh", "hypernodes", READ),
        _grant("", "persistentvolumeclaims persistentvolumes", "patch"),
        _grant("", "nodes", "patch", unseen="deviceshare.NodeLockEnable locks nodes"),
        _grant("", "configmaps", "get", names=DEVICE_CONFIGS, unseen=_DEVICES),
        _grant("", "pods/binding", "create"),
        _grant("", "pods/status", "patch"),
        _grant("", "pods", "patch delete"),
        _grant("", "pods", "get", unseen="after a refused bind the pod is looked at once more"),
        _grant("resource.k8s.io", "resourceclaims resourceclaims/status", "patch"),
        _grant("resource.k8s.io", "resourceclaims/binding", "patch", unseen=_BINDING),
        _grant("scheduling.volcano.sh", "podgroups", "patch"),
        _grant("scheduling.volcano.sh", "queues", "create"),
        _grant("scheduling.volcano.sh", "queues/status", "patch"),
        _grant("metrics.k8s.io", "nodes", "list", unseen="metrics of type metrics_server"),
        _grant(
            "custom.metrics.k8s.io",
            "nodes/node_cpu_usage_avg nodes/node_memory_usage_avg",
            "get",
            unseen="metrics of type prometheus_adaptor",
        ),
        *_EVENTS,
    ),
    at_home=_lease("volcano"),
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
        _grant("", "nodes persistentvolumeclaims pods", READ),
        _grant("apps", "daemonsets replicasets statefulsets", READ),
        _grant("batch", "jobs", READ),
        _grant("batch.volcano.sh", "cronjobs jobs", READ),
        _grant("bus.volcano.sh", "commands", READ),
        _grant("flow.volcano.sh", "jobflows jobtemplates", READ),
        _grant("scheduling.k8s.io", "priorityclasses", READ),
        _grant("scheduling.volcano.sh", "podgroups queues", READ),
        _grant("topology.volcano.sh", "hypernodes", READ),
        _grant("", "pods", "create patch delete"),
        _grant("", "persistentvolumeclaims", "create"),
        _grant("", "configmaps", "get create update delete"),
        _grant("", "services", "get create delete"),
        _grant("networking.k8s.io", "networkpolicies", "get create delete"),
        _grant("batch.volcano.sh", "jobs", "create patch delete"),
        _grant("batch.volcano.sh", "jobs/status", "update"),
        _grant("batch.volcano.sh", "cronjobs/status", "patch"),
        _grant("bus.volcano.sh", "commands", "delete"),
        _grant("flow.volcano.sh", "jobflows/status", "update"),
        _grant("flow.volcano.sh", "jobtemplates/status", "patch"),
        _grant("scheduling.volcano.sh", "podgroups", "create update delete"),
        _grant("scheduling.volcano.sh", "queues queues/status", "patch"),
        _grant("topology.volcano.sh", "hypernodes", "create patch delete"),
        _grant("topology.volcano.sh", "hypernodes/status", "patch"),
        _grant(
            "batch.volcano.sh", "jobs/finalizers cronjobs/finalizers", "update", unseen=_ENFORCED
        ),
        _grant("flow.volcano.sh", "jobflows/finalizers", "update", unseen=_ENFORCED),
        _grant("", "pods/finalizers", "update", unseen=_ENFORCED),
        *_EVENTS,
    ),
    at_home=(
        *_lease("vc-controller-manager"),
        _grant("", "secrets", "get", names=("ufm-credentials",)),
    ),
    in_job_namespaces=(_grant("", "secrets", "get create delete"),),
)

_NEW_QUEUE: Final = "a queue is named before the webhooks have seen its creation"
ADMISSION: Final = Component(
    "admission",
    everywhere=(
        _grant("scheduling.volcano.sh", "queues", READ),
        _grant("scheduling.volcano.sh", "queues", "get", unseen=_NEW_QUEUE),
    ),
)
FOR_PODGROUPS: Final = (_grant("", "namespaces", "get"),)
"""Additional rights of admission if /podgroups/mutate is on: a namespace may name a queue."""

FOR_UI: Final = (_grant("", "events", "list"),)
"""What the scheduler may do besides if it serves the dashboard: a job page shows events."""
FOR_UI_LOGIN: Final = (
    _grant("authentication.k8s.io", "tokenreviews", "create"),
    _grant("authorization.k8s.io", "subjectaccessreviews", "create"),
)
"""And if people log in to it with tokens of the cluster."""
FOR_UI_ACTIONS: Final = (
    _grant("bus.volcano.sh", "commands", "create"),
    _grant("batch.volcano.sh", "jobs", "get delete"),
)
"""And if it lets people act."""


def admission_init(secret: str, webhooks: Iterable[str]) -> Component:
    """Return the component that makes the webhooks' certificate: it changes named objects only."""
    names = tuple(webhooks)
    unseen = "a command of its own with tests of its own"
    return Component(
        "admission-init",
        everywhere=(
            _grant(
                "admissionregistration.k8s.io",
                " ".join(WEBHOOKS),
                "get patch",
                names=names,
                unseen=unseen,
            ),
        ),
        at_home=(
            _grant("", "secrets", "create", unseen=unseen),
            _grant("", "secrets", "get update", names=(secret,), unseen=unseen),
        ),
    )


def rules(grants: Iterable[Grant]) -> list[Manifest]:
    """Return the rules of a role; lines about the same resources become one."""
    merged: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for grant in grants:
        for resource in grant.resources:
            verbs = merged.setdefault((grant.group, (resource,), grant.names), [])
            verbs += [verb for verb in grant.verbs if verb not in verbs]
    together: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resources, names), verbs in merged.items():
        together.setdefault((group, tuple(verbs), names), []).extend(resources)
    return [
        Grant(group, tuple(resources), verbs, names).rule()
        for (group, verbs, names), resources in together.items()
    ]


def table(components: Iterable[Component]) -> str:
    """Return all rights as a table for the documentation."""
    lines = ["| account | where | may | of |", "|---|---|---|---|"]
    for component in components:
        for where, grants in (
            ("everywhere", component.everywhere),
            ("its own namespace", component.at_home),
            ("namespaces named", component.in_job_namespaces),
        ):
            for rule in rules(grants):
                group = rule["apiGroups"][0]
                names = [f"`{one}{f'.{group}' if group else ''}`" for one in rule["resources"]]
                only = (
                    f" named {', '.join(rule['resourceNames'])}" if "resourceNames" in rule else ""
                )
                row = (component.name, where, " ".join(rule["verbs"]), ", ".join(names) + only)
                lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"
