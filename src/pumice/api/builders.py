"""Keyword-only builders that return plain Kubernetes manifests for tests and scenarios.

Every builder writes only its arguments, so a test states only what matters.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api.annotations import GROUP_NAME, HOSTNAME, PREEMPTABLE, TASK_SPEC
from pumice.api.kinds import Manifest

Quantity = str | int | float

_VOLCANO = "scheduling.volcano.sh/v1beta1"
_DEVICES = "resource.k8s.io/v1"


def node(
    name: str,
    *,
    cpu: Quantity = 4,
    memory: Quantity = "8Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
    unschedulable: bool = False,
    resources: Mapping[str, Quantity] | None = None,
    created: str | None = None,
) -> Manifest:
    """Build a Node whose capacity equals its allocatable resources."""
    allocatable = _quantities({"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})})
    spec = _present(taints=[dict(taint) for taint in taints], unschedulable=unschedulable)
    status = {"allocatable": allocatable, "capacity": dict(allocatable)}
    metadata = _metadata(
        name,
        labels={HOSTNAME: name, **(labels or {})},
        annotations=annotations,
        created=created,
    )
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec} | {
        "status": status
    }


def pod(
    name: str,
    *,
    namespace: str = "default",
    group: str | None = None,
    role: str | None = None,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    resources: Mapping[str, Quantity] | None = None,
    limits: Mapping[str, Quantity] | None = None,
    node: str | None = None,
    phase: str | None = None,
    priority: int | None = None,
    priority_class: str | None = None,
    preemptable: bool | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    nominated_node: str | None = None,
    scheduler: str = "volcano",
    created: str | None = None,
    spec: Mapping[str, Any] | None = None,
) -> Manifest:
    """Build a Pod of one container; without cpu, memory and resources it is best effort.

    The phase is Running if a node is given and Pending otherwise, unless stated.
    Entries of `spec` are laid over the built pod spec.
    """
    requests = _quantities({**_present(cpu=cpu, memory=memory), **(resources or {})})
    amounts = _present(requests=requests, limits=_quantities(limits or {}))
    container = {"name": "main", "image": "busybox:1", "resources": amounts}
    notes = _present(**{GROUP_NAME: group, TASK_SPEC: role})
    if preemptable is not None:
        notes[PREEMPTABLE] = "true" if preemptable else "false"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(
            name,
            namespace=namespace,
            labels=labels,
            annotations={**notes, **(annotations or {})},
            created=created,
        ),
        "spec": {
            "schedulerName": scheduler,
            "containers": [container],
            **_present(nodeName=node, priority=priority, priorityClassName=priority_class),
            **(spec or {}),
        },
        "status": _present(
            phase=phase or ("Running" if node else "Pending"), nominatedNodeName=nominated_node
        ),
    }


def pod_group(
    name: str,
    *,
    namespace: str = "default",
    min_member: int | None = 1,
    queue: str | None = "default",
    phase: str | None = "Pending",
    min_resources: Mapping[str, Quantity] | None = None,
    min_task_member: Mapping[str, int] | None = None,
    priority_class: str | None = None,
    network_topology: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    created: str | None = None,
    spec: Mapping[str, Any] | None = None,
) -> Manifest:
    """Build a PodGroup; entries of `spec` are laid over the built one."""
    return {
        "apiVersion": _VOLCANO,
        "kind": "PodGroup",
        "metadata": _metadata(
            name, namespace=namespace, labels=labels, annotations=annotations, created=created
        ),
        "spec": {
            **_present(
                minMember=min_member,
                queue=queue,
                minResources=_quantities(min_resources or {}),
                minTaskMember=dict(min_task_member or {}),
                priorityClassName=priority_class,
                networkTopology=dict(network_topology or {}),
            ),
            **(spec or {}),
        },
        "status": _present(phase=phase),
    }


def queue(
    name: str,
    *,
    weight: int | None = 1,
    state: str | None = "Open",
    parent: str | None = None,
    priority: int | None = None,
    reclaimable: bool | None = None,
    capability: Mapping[str, Quantity] | None = None,
    deserved: Mapping[str, Quantity] | None = None,
    guarantee: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    created: str | None = None,
    spec: Mapping[str, Any] | None = None,
) -> Manifest:
    """Build a Queue in state Open; entries of `spec` are laid over the built one."""
    reserved = _quantities(guarantee or {})
    built = _present(
        weight=weight,
        parent=parent,
        priority=priority,
        capability=_quantities(capability or {}),
        deserved=_quantities(deserved or {}),
        guarantee={"resource": reserved} if reserved else None,
    )
    if reclaimable is not None:
        built["reclaimable"] = reclaimable
    return {
        "apiVersion": _VOLCANO,
        "kind": "Queue",
        "metadata": _metadata(name, labels=labels, annotations=annotations, created=created),
        "spec": {**built, **(spec or {})},
        "status": _present(state=state),
    }


def priority_class(
    name: str, *, value: int, global_default: bool = False, preemption_policy: str | None = None
) -> Manifest:
    """Build a PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": _metadata(name),
        "value": value,
        **_present(globalDefault=global_default, preemptionPolicy=preemption_policy),
    }


def hyper_node(
    name: str,
    *,
    tier: int = 1,
    nodes: Iterable[str] = (),
    children: Iterable[str] = (),
    tier_name: str | None = None,
    members: Iterable[Mapping[str, Any]] = (),
) -> Manifest:
    """Build a HyperNode over nodes and other HyperNodes; `members` are added as they are."""
    named = [("Node", each) for each in nodes] + [("HyperNode", each) for each in children]
    built = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for kind, each in named]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": _metadata(name),
        "spec": {
            "tier": tier,
            "members": [*built, *map(dict, members)],
            **_present(tierName=tier_name),
        },
    }


def pdb(
    name: str,
    *,
    namespace: str = "default",
    match_labels: Mapping[str, str],
    disruptions_allowed: int = 0,
    min_available: Quantity | None = None,
    max_unavailable: Quantity | None = None,
) -> Manifest:
    """Build a PodDisruptionBudget."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(name, namespace=namespace),
        "spec": {
            "selector": {"matchLabels": dict(match_labels)},
            **_present(minAvailable=min_available, maxUnavailable=max_unavailable),
        },
        "status": {"disruptionsAllowed": disruptions_allowed},
    }


def resource_slice(
    name: str,
    *,
    devices: Iterable[Mapping[str, Any]],
    node: str | None = None,
    driver: str = "gpu.example.com",
    pool: str | None = None,
    generation: int = 1,
    slices: int = 1,
    spec: Mapping[str, Any] | None = None,
) -> Manifest:
    """Build a ResourceSlice; its pool has the name of its node or its own unless stated."""
    built = {
        "driver": driver,
        "pool": {
            "name": pool or node or name,
            "generation": generation,
            "resourceSliceCount": slices,
        },
        "devices": [dict(each) for each in devices],
        **_present(nodeName=node),
    }
    return {
        "apiVersion": _DEVICES,
        "kind": "ResourceSlice",
        "metadata": _metadata(name),
        "spec": {**built, **(spec or {})},
    }


def device(
    name: str,
    *,
    attributes: Mapping[str, str | int | bool] | None = None,
    capacity: Mapping[str, Quantity] | None = None,
    **more: Any,
) -> Manifest:
    """Build a device of a slice; entries of `more` are added as they are."""
    kinds = {bool: "bool", int: "int", str: "string"}
    return {
        "name": name,
        "attributes": {key: {kinds[type(of)]: of} for key, of in (attributes or {}).items()},
        "capacity": {key: {"value": str(of)} for key, of in (capacity or {}).items()},
        **more,
    }


def device_class(
    name: str, *, expression: str | None = None, config: Iterable[Mapping[str, Any]] = ()
) -> Manifest:
    """Build a DeviceClass of the devices that an expression selects, or of all."""
    selectors = [] if expression is None else [{"cel": {"expression": expression}}]
    return {
        "apiVersion": _DEVICES,
        "kind": "DeviceClass",
        "metadata": _metadata(name),
        "spec": _present(selectors=selectors, config=[dict(each) for each in config]),
    }


def device_request(
    name: str = "gpu",
    *,
    device_class: str = "gpu",
    count: int | None = None,
    expression: str | None = None,
    **more: Any,
) -> Manifest:
    """Build an exact request of a claim; entries of `more` are added as they are."""
    selectors = [] if expression is None else [{"cel": {"expression": expression}}]
    exactly = _present(deviceClassName=device_class, count=count, selectors=selectors)
    return {"name": name, "exactly": {**exactly, **more}}


def resource_claim(
    name: str,
    *,
    namespace: str = "default",
    requests: Iterable[Mapping[str, Any]] = (),
    constraints: Iterable[Mapping[str, Any]] = (),
    status: Mapping[str, Any] | None = None,
    owner: str | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Manifest:
    """Build a ResourceClaim; `owner` names the pod for which it was made."""
    metadata = _metadata(name, namespace=namespace, annotations=annotations)
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": owner, "controller": True}
        metadata["ownerReferences"] = [{**reference, "uid": f"{namespace}-{owner}"}]
    asked = [dict(each) for each in requests] or [device_request()]
    devices = _present(requests=asked, constraints=[dict(each) for each in constraints])
    return {
        "apiVersion": _DEVICES,
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": devices},
        "status": dict(status or {}),
    }


def resource_claim_template(
    name: str,
    *,
    namespace: str = "default",
    requests: Iterable[Mapping[str, Any]] = (),
    constraints: Iterable[Mapping[str, Any]] = (),
) -> Manifest:
    """Build a ResourceClaimTemplate."""
    claim = resource_claim(name, namespace=namespace, requests=requests, constraints=constraints)
    return {
        "apiVersion": _DEVICES,
        "kind": "ResourceClaimTemplate",
        "metadata": _metadata(name, namespace=namespace),
        "spec": {"spec": claim["spec"]},
    }


def _metadata(
    name: str,
    *,
    namespace: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    created: str | None = None,
) -> Manifest:
    """Fill object metadata; the name also serves as the stem of a stable uid."""
    return {
        "name": name,
        "uid": f"{namespace}-{name}" if namespace else name,
        **_present(
            namespace=namespace,
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
            creationTimestamp=created,
        ),
    }


def _present(**fields: Any) -> Manifest:
    """Drop fields that are None, False or empty; zero stays."""
    return {
        key: value
        for key, value in fields.items()
        if value is not None and value is not False and value not in ("", [], {})
    }


def _quantities(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """Write amounts as quantity texts."""
    return {name: str(amount) for name, amount in amounts.items()}
