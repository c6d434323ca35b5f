"""All object types, chosen by apiVersion and kind; manifests in, manifests out.

The one module to import objects from. Used by the cluster edge, the loaders and the builders.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from pumice.api.decode import decode
from pumice.api.devices import (
    OLDER_VERSIONS,
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from pumice.api.groups import (
    Guarantee,
    KubePodGroup,
    LimitRange,
    Namespace,
    NetworkTopology,
    NodeGroupAffinity,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
    PriorityClass,
    Queue,
    QueueAffinity,
    QueueSpec,
    QueueStatus,
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    SubGroupPolicy,
)
from pumice.api.kinds import (
    CONFIG_MAP,
    KUBE_GROUP_VERSIONS,
    KUBE_POD_GROUP,
    LIMIT_RANGE,
    RESOURCE_CLAIM_TEMPLATE,
    kind_of,
)
from pumice.api.meta import (
    Condition,
    ConfigMap,
    KubeObject,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
    Part,
    ResourceList,
)
from pumice.api.nodes import (
    ContainerImage,
    CpuPlace,
    ExactMatch,
    HyperNode,
    HyperNodeSpec,
    Member,
    MemberSelector,
    Node,
    NodeShard,
    NodeSpec,
    NodeStatus,
    NumaResource,
    Numatopology,
    NumatopologySpec,
    RegexMatch,
    Taint,
)
from pumice.api.pods import (
    Affinity,
    ClaimSource,
    Container,
    ContainerPort,
    EphemeralSource,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    ResourceRequirements,
    SchedulingGate,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from pumice.api.quantity import Quantity
from pumice.api.storage import (
    CSIDriver,
    CSINode,
    CSINodeSpec,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
)
from pumice.api.times import epoch
from pumice.api.wording import nearest
from pumice.errors import ABSENT, ManifestError

DEFAULT_NAMESPACE: Final = "default"
_TYPES: Final[tuple[type[KubeObject], ...]] = (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    ConfigMap,
    DeviceClass,
    HyperNode,
    LimitRange,
    Namespace,
    Node,
    NodeShard,
    Numatopology,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    Queue,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceQuota,
    ResourceSlice,
    StorageClass,
)

_NAMESPACED: Final = frozenset(
    {
        "CSIStorageCapacity",
        "ConfigMap",
        "LimitRange",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "PodGroup",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceQuota",
    }
)
_CLUSTER_WIDE: Final = frozenset(cls.__name__ for cls in _TYPES) - _NAMESPACED
_DEVICE_TYPES: Final = (DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice)

KINDS: Final[Mapping[tuple[str, str], type[KubeObject]]] = MappingProxyType(
    {
        **{(cls.API_VERSION, cls.__name__): cls for cls in _TYPES},
        **{(old, cls.__name__): cls for cls in _DEVICE_TYPES for old in OLDER_VERSIONS},
        **{(f"scheduling.k8s.io/{each}", "PodGroup"): KubePodGroup for each in KUBE_GROUP_VERSIONS},
    }
)
"""(apiVersion, kind) to type."""
TYPES: Final[Mapping[str, type[KubeObject]]] = {
    kind_of({"apiVersion": version, "kind": kind}): cls for (version, kind), cls in KINDS.items()
}
"""The same by the names of kinds, whatever the version."""
_UNFOLLOWED: Final = (RESOURCE_CLAIM_TEMPLATE, CONFIG_MAP, LIMIT_RANGE, KUBE_POD_GROUP)
FOLLOWED: Final = tuple(kind for kind in TYPES if kind not in _UNFOLLOWED)
"""Every kind that the scheduler reads as a whole: claims, not their templates."""


def from_manifest(
    mapping: Mapping[str, Any], *, source: str = "", beside: Sequence[str] = ()
) -> KubeObject:
    """Read one object; unknown fields are ignored, absent ones stay absent.

    ``beside`` are kinds that the caller reads itself; errors name them as known.

    Raises:
        ManifestError: an unknown kind, or a field with a value that Kubernetes would refuse.
    """
    try:
        cls = KINDS[mapping["apiVersion"], mapping["kind"]]
    except (KeyError, TypeError):
        raise _unknown_type(mapping, source, beside) from None
    try:
        return msgspec.convert(mapping, cls)
    except msgspec.ValidationError:
        pass
    try:
        return decode(mapping, cls, source=source)
    except ManifestError as error:
        error.subject = _subject(mapping)
        raise


def in_namespace(mapping: Any) -> Any:
    """Put an object that lives in a namespace but names none into ``default``, as kubectl does.

    The namespace of an object that lives in none, such as a queue, is left out.
    """
    meta = mapping.get("metadata") if isinstance(mapping, (dict, Mapping)) else None
    kind = mapping.get("kind") if isinstance(meta, (dict, Mapping)) else None
    if meta is None or not isinstance(kind, str):
        return mapping
    if kind in _NAMESPACED:
        if meta.get("namespace"):
            return mapping
        return {**mapping, "metadata": {**meta, "namespace": DEFAULT_NAMESPACE}}
    if kind in _CLUSTER_WIDE and isinstance(meta.get("namespace"), str):
        return {**mapping, "metadata": {k: v for k, v in meta.items() if k != "namespace"}}
    return mapping


def is_in_namespaces(kind: str) -> bool:
    """Return whether objects of a kind live in namespaces."""
    return kind in _NAMESPACED


def to_manifest(thing: KubeObject) -> dict[str, Any]:
    """Write an object as a plain mapping; what is absent or empty is left out."""
    head = {"apiVersion": thing.API_VERSION, "kind": type(thing).__name__}
    # by way of JSON, since to_builtins leaves tuples as they are
    return head | msgspec.json.decode(msgspec.json.encode(thing))


def _unknown_type(mapping: Any, source: str, beside: Sequence[str]) -> ManifestError:
    """Return what is wrong with the type of an object, with the existing kinds."""
    if not isinstance(mapping, (dict, Mapping)):
        return ManifestError(
            wanted="an object with apiVersion and kind", found=mapping, file=source
        )
    version, kind = mapping.get("apiVersion"), mapping.get("kind")
    for field, value in (("apiVersion", version), ("kind", kind)):
        if not isinstance(value, str) or not value:
            return ManifestError(
                wanted="a non-empty string",
                found=mapping.get(field, ABSENT),
                field=field,
                file=source,
                subject=_subject(mapping),
                path=(field,),
            )
    versions = [known for known, name in KINDS if name == kind]
    field = "apiVersion" if versions else "kind"
    return ManifestError(
        wanted=f"{kind} of {' or '.join(versions)}" if versions else "a known kind",
        found=f"{kind} of {version}",
        field=field,
        file=source,
        hint="" if versions else _nearest(str(kind), beside),
        subject=_subject(mapping),
        path=(field,),
    )


def _nearest(kind: str, beside: Sequence[str]) -> str:
    """Suggest the kind that was probably meant, or list them all."""
    names = sorted([*(cls.__name__ for cls in _TYPES), *beside])
    near = nearest(kind, names)
    return f"did you mean {near}?" if near else f"known: {', '.join(names)}"


def _subject(mapping: Mapping[str, Any]) -> str:
    """Name an object that may not be well formed."""
    meta = mapping.get("metadata")
    names = [meta.get("namespace"), meta.get("name")] if isinstance(meta, Mapping) else []
    name = "/".join(part for part in names if isinstance(part, str) and part)
    kind = mapping.get("kind")
    return f"{kind if isinstance(kind, str) and kind else 'object'} {name}".rstrip()


__all__ = [
    "FOLLOWED",
    "KINDS",
    "TYPES",
    "Affinity",
    "CSIDriver",
    "CSINode",
    "CSINodeSpec",
    "CSIStorageCapacity",
    "ClaimSource",
    "Condition",
    "Container",
    "ContainerImage",
    "ContainerPort",
    "CpuPlace",
    "DeviceClass",
    "EphemeralSource",
    "ExactMatch",
    "Guarantee",
    "HyperNode",
    "HyperNodeSpec",
    "KubeObject",
    "LabelSelector",
    "LabelSelectorRequirement",
    "LimitRange",
    "Member",
    "MemberSelector",
    "Namespace",
    "NetworkTopology",
    "Node",
    "NodeAffinity",
    "NodeGroupAffinity",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeShard",
    "NodeSpec",
    "NodeStatus",
    "NumaResource",
    "Numatopology",
    "NumatopologySpec",
    "ObjectMeta",
    "OwnerReference",
    "Part",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeSpec",
    "PersistentVolumeStatus",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodDisruptionBudget",
    "PodDisruptionBudgetSpec",
    "PodDisruptionBudgetStatus",
    "PodGroup",
    "PodGroupSpec",
    "PodGroupStatus",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "PriorityClass",
    "Quantity",
    "Queue",
    "QueueAffinity",
    "QueueSpec",
    "QueueStatus",
    "RegexMatch",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceList",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ResourceQuotaStatus",
    "ResourceRequirements",
    "ResourceSlice",
    "SchedulingGate",
    "StorageClass",
    "SubGroupPolicy",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "WeightedPodAffinityTerm",
    "epoch",
    "from_manifest",
    "to_manifest",
]
