"""Volumes, in the parts that restrict the nodes of a pod.

Read by the cache. Types only.
"""

from typing import ClassVar, Final

import msgspec

from pumice.api.annotations import BIND_COMPLETED, SELECTED_NODE
from pumice.api.meta import Int32, KubeObject, LabelSelector, ObjectMeta, Part, ResourceList
from pumice.api.pods import NodeSelector
from pumice.api.quantity import Quantity, check_amounts, value

STATIC_ONLY: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def _class_name(metadata: ObjectMeta, stated: str | None) -> str:
    """Return the storage class; in Kubernetes the old annotation still takes precedence."""
    return metadata.annotations.get(_OLD_CLASS, stated or "")


def _sort(mode: str | None, attributes: str | None) -> tuple[str, str]:
    """Return what a claim and its volume must agree on: how it is used, and its attributes."""
    return mode or "Filesystem", attributes or ""


def _storage(amounts: ResourceList) -> int:
    return value(amounts.get("storage", 0))


class ClaimResources(Part):
    """How much a claim asks for."""

    requests: ResourceList = {}

    def __post_init__(self) -> None:
        check_amounts(self.requests, "requests")


class PersistentVolumeClaimSpec(Part):
    """What a claim asks for; an empty class name differs from an absent one."""

    storage_class_name: str | None = None
    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    resources: ClaimResources = ClaimResources()
    selector: LabelSelector | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Part):
    """Whether a claim is bound."""

    phase: str = ""


class PersistentVolumeClaim(KubeObject):
    """A demand for storage."""

    API_VERSION: ClassVar[str] = "v1"

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def class_name(self) -> str:
        """Its storage class; empty: none."""
        return _class_name(self.metadata, self.spec.storage_class_name)

    @property
    def sort(self) -> tuple[str, str]:
        """Its volume mode and its volume attributes class."""
        return _sort(self.spec.volume_mode, self.spec.volume_attributes_class_name)

    @property
    def size(self) -> int:
        """The bytes that it asks for."""
        return _storage(self.spec.resources.requests)

    @property
    def is_bound(self) -> bool:
        """Whether it is finally bound to its volume."""
        done = BIND_COMPLETED in self.metadata.annotations or self.status.phase == "Bound"
        return bool(self.spec.volume_name) and done

    @property
    def selected_node(self) -> str | None:
        """The node for which a volume is to be provisioned, None while none is chosen."""
        return self.metadata.annotations.get(SELECTED_NODE)


class ClaimReference(Part):
    """The claim a volume is kept for."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


class VolumeNodeAffinity(Part):
    """The nodes that reach a volume."""

    required: NodeSelector | None = None


class CsiSource(Part):
    """The driver behind a volume."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Part):
    """What a volume offers and where it can be used."""

    storage_class_name: str = ""
    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None

    def __post_init__(self) -> None:
        check_amounts(self.capacity, "capacity")


class PersistentVolumeStatus(Part):
    """Whether a volume is free."""

    phase: str = ""


class PersistentVolume(KubeObject):
    """A piece of storage."""

    API_VERSION: ClassVar[str] = "v1"

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def class_name(self) -> str:
        """Its storage class; empty: none."""
        return _class_name(self.metadata, self.spec.storage_class_name)

    @property
    def sort(self) -> tuple[str, str]:
        """Its volume mode and its volume attributes class."""
        return _sort(self.spec.volume_mode, self.spec.volume_attributes_class_name)

    @property
    def size(self) -> int:
        """The bytes that it has."""
        return _storage(self.spec.capacity)

    def is_for(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether it is kept for a claim, by its user or by a controller."""
        owner, meta = self.spec.claim_ref, claim.metadata
        return (
            owner is not None
            and (owner.namespace, owner.name) == (meta.namespace, meta.name)
            and owner.uid in ("", meta.uid)
        )


class TopologyLabel(Part):
    """A label and the values a class can provision for."""

    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(Part):
    """Labels that must all match."""

    match_label_expressions: tuple[TopologyLabel, ...] = ()


class StorageClass(KubeObject):
    """How volumes are made, and whether that waits for a pod to be placed."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class VolumeLimit(Part):
    """How many volumes of a driver a node can attach."""

    count: Int32 | None = None


class CsiNodeDriver(Part):
    """A driver that runs on a node."""

    name: str
    node_id: str = msgspec.field(name="nodeID", default="")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeLimit | None = None


class CSINodeSpec(Part):
    """The drivers of a node."""

    drivers: tuple[CsiNodeDriver, ...] = ()


class CSINode(KubeObject):
    """The storage drivers of the node of the same name."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Part):
    """What a driver requires of the cluster."""

    storage_capacity: bool | None = None


class CSIDriver(KubeObject):
    """A storage driver, by its provisioner name in storage classes."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject):
    """How much a class can still provision on some nodes."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None

    def __post_init__(self) -> None:
        for field, given in (
            ("capacity", self.capacity),
            ("maximumVolumeSize", self.maximum_volume_size),
        ):
            check_amounts({} if given is None else {"storage": given}, field)

    @property
    def largest(self) -> int:
        """The bytes that one volume may have; -1: unknown, and so none."""
        limit = self.capacity if self.maximum_volume_size is None else self.maximum_volume_size
        return -1 if limit is None else value(limit)
