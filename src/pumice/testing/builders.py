"""The builders of manifests, by the name that tests import them by."""

from pumice.api.builders import (
    device,
    device_class,
    device_request,
    hyper_node,
    node,
    pdb,
    pod,
    pod_group,
    priority_class,
    queue,
    resource_claim,
    resource_claim_template,
    resource_slice,
)

__all__ = [
    "device",
    "device_class",
    "device_request",
    "hyper_node",
    "node",
    "pdb",
    "pod",
    "pod_group",
    "priority_class",
    "queue",
    "resource_claim",
    "resource_claim_template",
    "resource_slice",
]
