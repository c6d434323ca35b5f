"""Rights that the deployment grants and that no test here uses, each with the reason.

The one table of such rights: one that is neither used nor listed fails ``test_rights.py``, and so
does one that is listed and used.
"""

from typing import Final

_HOME: Final = "volcano-system"
_METRICS: Final = "an API of a metrics server, which does not run here"
_OWNERS: Final = "for clusters with the admission plugin OwnerReferencesPermissionEnforcement"
_SHARES: Final = "the state of the plugin fairshare, which no configuration here has"
_CERTIFICATE: Final = "the command that makes the certificate runs with all rights here"

UNTRIED: Final[dict[str, dict[str, str]]] = {
    f"{_HOME}:volcano-scheduler": {
        "list nodes.metrics.k8s.io": _METRICS,
        "get nodes/node_cpu_usage_avg.custom.metrics.k8s.io": _METRICS,
        "get nodes/node_memory_usage_avg.custom.metrics.k8s.io": _METRICS,
        "patch resourceclaims/binding.resource.k8s.io": (
            "asked for beside the status of a claim, and never a request of its own"
        ),
        "create configmaps": _SHARES,
        "patch configmaps": _SHARES,
    },
    f"{_HOME}:volcano-controllers": {
        "patch cronjobs/status.batch.volcano.sh": "a schedule is due once a minute at most",
        "update cronjobs/finalizers.batch.volcano.sh": _OWNERS,
        "update jobs/finalizers.batch.volcano.sh": _OWNERS,
        "update jobflows/finalizers.flow.volcano.sh": _OWNERS,
        "update pods/finalizers": _OWNERS,
        "update podgroups/finalizers.scheduling.k8s.io": _OWNERS,
    },
    f"{_HOME}:volcano-admission-init": {
        "create secrets": _CERTIFICATE,
        "get secrets": _CERTIFICATE,
        "update secrets": _CERTIFICATE,
        "get mutatingwebhookconfigurations.admissionregistration.k8s.io": _CERTIFICATE,
        "patch mutatingwebhookconfigurations.admissionregistration.k8s.io": _CERTIFICATE,
        "get validatingwebhookconfigurations.admissionregistration.k8s.io": _CERTIFICATE,
        "patch validatingwebhookconfigurations.admissionregistration.k8s.io": _CERTIFICATE,
    },
}
"""By account, the right and why it is granted."""
BY_CHANCE: Final = {"patch events": "an event that is repeated in time is counted up"}
"""Rights of any account that some runs use and others do not."""
