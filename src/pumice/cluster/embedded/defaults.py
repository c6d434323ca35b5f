"""The fields that an API server fills in when an object is created, and keeps when it changes.

Pure functions on manifests the store owns; used by the store alone.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pumice.api.annotations import CONTROLLER_UID, NAMESPACE_NAME
from pumice.api.cloning import clone
from pumice.api.kinds import CRON_JOB, CUSTOM_KIND, DEFAULT_QUEUE, JOB, POD_GROUP, QUEUE, Manifest
from pumice.api.pod_resources import default_requests
from pumice.api.quantity import amount_or_nothing

_POD: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }
)
_KEPT: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)
"""Metadata that only the server writes."""
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until no object of its kind is left."""
_GATED: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }
)


def _fill(part: Manifest, defaults: Mapping[str, Any]) -> None:
    for key, value in defaults.items():
        part.setdefault(key, value)


def _part(manifest: Manifest, name: str) -> Manifest:
    """Return a part of an object, made empty where it is missing or null."""
    if manifest.get(name) is None:
        manifest[name] = {}
    part: Manifest = manifest[name]
    return part


def _pod(pod: Manifest) -> None:
    spec = _part(pod, "spec")
    _fill(spec, _POD)
    default_requests(spec, amount_or_nothing)
    pod["status"] = {"phase": "Pending"}
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [dict(_GATED)]


def _job(job: Manifest) -> None:
    spec = _part(job, "spec")
    _fill(spec, {"queue": DEFAULT_QUEUE, "maxRetry": 3})
    for part in (spec, *(spec.get("tasks") or ())):
        if part.get("networkTopology") is not None:
            part["networkTopology"].setdefault("mode", "hard")
        if part.get("partitionPolicy") is not None:
            part["partitionPolicy"].setdefault("minPartitions", 0)


def _cron_job(cron: Manifest) -> None:
    limits = {"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
    spec = _part(cron, "spec")
    _fill(spec, {"concurrencyPolicy": "Allow", "suspend": False, **limits})
    template = spec.get("jobTemplate")
    if template and template.get("spec") is not None:
        _job(template)


def _pod_group(group: Manifest) -> None:
    spec = _part(group, "spec")
    spec.setdefault("queue", DEFAULT_QUEUE)
    for policy in spec.get("subGroupPolicy") or ():
        _fill(policy, {"minSubGroups": 0, "subGroupSize": 1})


def _queue(queue: Manifest) -> None:
    _fill(_part(queue, "spec"), {"weight": 1, "dequeueStrategy": "traverse"})


def _namespace(namespace: Manifest) -> None:
    labels = _part(namespace["metadata"], "labels")
    labels.setdefault(NAMESPACE_NAME, namespace["metadata"]["name"])
    _part(namespace, "status").setdefault("phase", "Active")


def _service(service: Manifest) -> None:
    spec = _part(service, "spec")
    _fill(spec, {"type": "ClusterIP", "sessionAffinity": "None"})
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if spec["type"] != "ExternalName" and "port" in port:
            port.setdefault("targetPort", port["port"])
    if spec["type"] != "ExternalName":
        _fill(spec, {"internalTrafficPolicy": "Cluster", "ipFamilyPolicy": "SingleStack"})
        spec.setdefault("ipFamilies", ["IPv4"])
    service["status"] = {"loadBalancer": {}}


def assign_cluster_ip(service: Manifest, number: int) -> None:
    """Assign a new service its address, in place, and ports of nodes where it asks for them."""
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    spec.setdefault("clusterIP", f"10.96.{number // 254 % 256}.{number % 254 + 1}")
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        for index, port in enumerate(spec.get("ports") or ()):
            port.setdefault("nodePort", 30000 + (7 * number + index) % 2768)


def _replicated(owner: Manifest) -> None:
    _part(owner, "spec").setdefault("replicas", 1)


def _deployment(owner: Manifest) -> None:
    _replicated(owner)
    spec = owner["spec"]
    _fill(spec, {"revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    strategy = _part(spec, "strategy")
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(_part(strategy, "rollingUpdate"), {"maxSurge": "25%", "maxUnavailable": "25%"})


def _stateful_set(owner: Manifest) -> None:
    _replicated(owner)
    spec = owner["spec"]
    _fill(spec, {"podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10})
    _part(spec, "updateStrategy").setdefault("type", "RollingUpdate")


def _batch_job(job: Manifest) -> None:
    spec = _part(job, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    defaults = {"backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    _fill(spec, {"parallelism": 1, **defaults})


def select_own_pods(job: Manifest) -> None:
    """Write the selector of a new job of ``batch/v1``, in place: its pods name its uid."""
    spec = job["spec"]
    if not spec.get("manualSelector") and not spec.get("selector"):
        uid = job["metadata"]["uid"]
        spec["selector"] = {"matchLabels": {CONTROLLER_UID: uid}}


def _custom_kind(definition: Manifest) -> None:
    """Accept the names of a new kind; its objects are served at once."""
    spec = _part(definition, "spec")
    names = _part(spec, "names")
    if not names.get("kind"):
        return  # admission refuses it
    _fill(spec, {"conversion": {"strategy": "None"}})
    _fill(names, {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List"})
    finalizers = definition["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    accepted = {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}
    definition["status"] = {
        "acceptedNames": clone(names),
        "conditions": [
            {"type": kind, "status": "True", "reason": reason, "message": ""}
            for kind, reason in accepted.items()
        ],
        "storedVersions": [one["name"] for one in spec.get("versions") or () if one.get("storage")],
    }


def _claim(claim: Manifest) -> None:
    claim["status"] = {"phase": "Pending"}


_BY_KIND: Final[Mapping[str, Callable[[Manifest], None]]] = MappingProxyType(
    {
        "Pod": _pod,
        "Namespace": _namespace,
        "PersistentVolumeClaim": _claim,
        "Service": _service,
        "Deployment.apps": _deployment,
        "ReplicaSet.apps": _replicated,
        "StatefulSet.apps": _stateful_set,
        "Job.batch": _batch_job,
        CUSTOM_KIND: _custom_kind,
        JOB: _job,
        CRON_JOB: _cron_job,
        POD_GROUP: _pod_group,
        QUEUE: _queue,
    }
)
_FIRST_STATUS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {
        "Deployment.apps": {},
        "ReplicaSet.apps": {"replicas": 0},
        "StatefulSet.apps": {"availableReplicas": 0, "replicas": 0},
        "Job.batch": {},
        "ResourceQuota": {},
        "PodDisruptionBudget.policy": dict.fromkeys(
            ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
        ),
    }
)
"""What Go writes of an empty status, which clients read before a controller has written one."""
_KEEP_STATUS: Final = frozenset({"Node", "PersistentVolume"})
"""Kinds whose first status comes with the object although it is a subresource."""


def fill_in(kind: str, manifest: Manifest, *, has_status: bool) -> None:
    """Fill in defaults of a new object, in place; its status starts empty where it has its own."""
    if has_status and kind not in _KEEP_STATUS:
        manifest.pop("status", None)
    if kind in _FIRST_STATUS:
        manifest["status"] = dict(_FIRST_STATUS[kind])
    default = _BY_KIND.get(kind)
    if default is not None:
        default(manifest)


def keep_fields(new: Manifest, old: Manifest, *, has_status: bool) -> None:
    """Restore in a changed object the fields that only the server and the kubelet write."""
    metadata, known = new["metadata"], old["metadata"]
    for field in _KEPT:
        if field in known:
            metadata[field] = known[field]
        else:
            metadata.pop(field, None)
    new["apiVersion"], new["kind"] = old["apiVersion"], old["kind"]
    if has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
