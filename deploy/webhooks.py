"""The admission webhooks: the requests they handle, and their names.

The names are Volcano's, so that applying ours over a Volcano replaces its configurations.
"""

from dataclasses import dataclass
from typing import Any, Final

Manifest = dict[str, Any]

SERVICE: Final = "volcano-admission-service"
DEFAULT: Final = (
    "/jobs/mutate",
    "/jobs/validate",
    "/podgroups/validate",
    "/queues/mutate",
    "/queues/validate",
    "/hypernodes/validate",
    "/cronjobs/validate",
)
"""The webhooks that are enabled by default; none affects plain pods."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """One path of the webhook server."""

    path: str
    name: str
    group: str
    version: str
    operations: tuple[str, ...]
    namespaced: bool = True
    ours: bool = False
    """Only pods for our scheduler."""

    @property
    def resource(self) -> str:
        """The resource that it checks."""
        return self.path.split("/")[1]

    @property
    def mutates(self) -> bool:
        """Whether it changes objects."""
        return self.path.endswith("/mutate")

    @property
    def configuration(self) -> str:
        """The name of the configuration."""
        return f"{SERVICE}{self.path.replace('/', '-')}"

    def rules(self) -> list[Manifest]:
        """Return the requests that it handles."""
        return [
            {
                "apiGroups": [self.group],
                "apiVersions": [self.version],
                "operations": [*self.operations],
                "resources": [self.resource],
                "scope": "Namespaced" if self.namespaced else "Cluster",
            }
        ]

    def manifest(self, namespace: str) -> Manifest:
        """Return the configuration; the certificate is written into it by the init job."""
        webhook: Manifest = {
            "name": self.name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "service": {
                    "name": SERVICE,
                    "namespace": namespace,
                    "path": self.path,
                    "port": 443,
                }
            },
            "rules": self.rules(),
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": 10,
        }
        if self.namespaced:
            webhook["namespaceSelector"] = {
                "matchExpressions": [
                    {
                        "key": "kubernetes.io/metadata.name",
                        "operator": "NotIn",
                        "values": [namespace, "kube-system"],
                    }
                ]
            }
        if self.ours:
            condition = {"name": "ours", "expression": "object.spec.schedulerName == 'volcano'"}
            webhook["matchConditions"] = [condition]
        if self.mutates:
            webhook["reinvocationPolicy"] = "Never"
        kind = "MutatingWebhookConfiguration" if self.mutates else "ValidatingWebhookConfiguration"
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": self.configuration},
            "webhooks": [webhook],
        }


_BATCH: Final = ("batch.volcano.sh", "v1alpha1")
_FLOW: Final = ("flow.volcano.sh", "v1alpha1")
_SCHEDULING: Final = ("scheduling.volcano.sh", "v1beta1")
_TOPOLOGY: Final = ("topology.volcano.sh", "v1alpha1")
_NEW: Final = ("CREATE",)
_CHANGED: Final = ("CREATE", "UPDATE")
_ANY: Final = ("CREATE", "UPDATE", "DELETE")

WEBHOOKS: Final[tuple[Webhook, ...]] = (
    Webhook("/jobs/mutate", "mutatejob.volcano.sh", *_BATCH, _CHANGED),
    Webhook("/jobs/validate", "validatejob.volcano.sh", *_BATCH, _CHANGED),
    Webhook("/podgroups/mutate", "mutatepodgroup.volcano.sh", *_SCHEDULING, _NEW),
    Webhook("/podgroups/validate", "validatepodgroup.volcano.sh", *_SCHEDULING, _NEW),
    Webhook("/pods/mutate", "mutatepod.volcano.sh", "", "v1", _NEW),
    Webhook("/pods/validate", "validatepod.volcano.sh", "", "v1", _NEW, ours=True),
    Webhook("/queues/mutate", "mutatequeue.volcano.sh", *_SCHEDULING, _NEW, namespaced=False),
    Webhook("/queues/validate", "validatequeue.volcano.sh", *_SCHEDULING, _ANY, namespaced=False),
    Webhook(
        "/hypernodes/validate",
        "validatehypernodes.volcano.sh",
        *_TOPOLOGY,
        _CHANGED,
        namespaced=False,
    ),
    Webhook("/cronjobs/validate", "validatecronjob.volcano.sh", *_BATCH, _CHANGED),
    Webhook("/jobflows/validate", "validatejob.volcano.sh", *_FLOW, _CHANGED),
)
"""Every path."""
