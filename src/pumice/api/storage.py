"""Volumes, as far as they say on which nodes a pod can run.

Read by the cache. Types only.
"""

from typing import ClassVar

import msgspec

from pumice.api.meta import Int32, KubeObject, Part, ResourceList
from pumice.api.pods import NodeSelector
from pumice.api.quantity import check_amounts


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


class PersistentVolumeClaimStatus(Part):
    """Whether a claim is bound."""

    phase: str = ""


class PersistentVolumeClaim(KubeObject):
    """A demand for storage."""

    API_VERSION: ClassVar[str] = "v1"

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


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


class CsiDriver(Part):
    """A driver that runs on a node."""

    name: str
    node_id: str = msgspec.field(name="nodeID", default="")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeLimit | None = None


class CSINodeSpec(Part):
    """The drivers of a node."""

    drivers: tuple[CsiDriver, ...] = ()


class CSINode(KubeObject):
    """The storage drivers of the node of the same name."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    spec: CSINodeSpec = CSINodeSpec()
