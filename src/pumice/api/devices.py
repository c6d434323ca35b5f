"""Devices and claims to them (``resource.k8s.io``), in the parts that placing pods needs.

Read by the cache, the predicates and capacity plugins and the embedded cluster.  Types only.  The
layouts of v1beta1, v1beta2 and v1 are all read: a field that one of them nests is looked up in both
places.
"""

from typing import Any, ClassVar, Final

import msgspec

from pumice.api.meta import KubeObject, ObjectMeta, Part, ResourceList
from pumice.api.pods import NodeSelector, Toleration
from pumice.api.quantity import Quantity, check_amounts

GROUP: Final = "resource.k8s.io"
OLDER_VERSIONS: Final = (f"{GROUP}/v1beta1", f"{GROUP}/v1beta2")
MOST_RESERVATIONS: Final = 256
"""How many pods may share a claim."""
DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer of allocated claims."""
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim made from a template: which of its pod's claims it is."""
ADMIN_ACCESS: Final = ("resource.kubernetes.io/admin-access", "resource.k8s.io/admin-access")
"""The label of namespaces whose claims may have administrative access: its new and old name."""


class DeviceAttribute(Part):
    """One attribute of a device; exactly one of these is set."""

    as_int: int | None = msgspec.field(name="int", default=None)
    as_bool: bool | None = msgspec.field(name="bool", default=None)
    as_string: str | None = msgspec.field(name="string", default=None)
    as_version: str | None = msgspec.field(name="version", default=None)

    @property
    def value(self) -> tuple[str, int | bool | str] | None:
        """The value with its type, so that no two types are ever equal; None if none is set."""
        for kind, found in (
            ("int", self.as_int),
            ("bool", self.as_bool),
            ("string", self.as_string),
            ("version", self.as_version),
        ):
            if found is not None:
                return kind, found
        return None


class DeviceCapacity(Part):
    """How much a device has of something."""

    value: Quantity = "0"


class Counter(Part):
    """An amount, available or taken, of a resource that several devices share."""

    value: Quantity = "0"


class CounterSet(Part):
    """Counters that devices of a pool share, such as the memory of a card cut into pieces."""

    name: str
    counters: dict[str, Counter] = {}


class CounterConsumption(Part):
    """What a device takes of a counter set."""

    counter_set: str
    counters: dict[str, Counter] = {}


class DeviceTaint(Part):
    """Why a device should not be used."""

    key: str
    value: str = ""
    effect: str = ""


class BasicDevice(Part):
    """A device as v1beta1 nests it."""

    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False

    def __post_init__(self) -> None:
        check_amounts({name: each.value for name, each in self.capacity.items()}, "capacity")


class Device(BasicDevice):
    """One device of a slice."""

    name: str = ""
    basic: BasicDevice | None = None

    @property
    def content(self) -> BasicDevice:
        """Its description, wherever its version puts that."""
        return self if self.basic is None else self.basic


class ResourcePool(Part):
    """The pool that slices make up; older generations are replaced by newer ones."""

    name: str
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(Part):
    """Devices of one driver, and the nodes that reach them."""

    driver: str
    pool: ResourcePool
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubeObject):
    """A part of a pool of devices."""

    API_VERSION: ClassVar[str] = f"{GROUP}/v1"

    spec: ResourceSliceSpec


class CelSelector(Part):
    """An expression that is true for matching devices."""

    expression: str = ""


class DeviceSelector(Part):
    """A test of devices."""

    cel: CelSelector | None = None


class OpaqueConfiguration(Part):
    """Settings that only the driver understands."""

    driver: str = ""
    parameters: dict[str, Any] = {}


class DeviceConfiguration(Part):
    """Settings that go to the driver with an allocation."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(Part):
    """The devices of a class, and settings for all of them."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class DeviceClass(KubeObject):
    """A kind of device that claims can ask for."""

    API_VERSION: ClassVar[str] = f"{GROUP}/v1"

    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(Part):
    """How much of a device's capacity is asked for."""

    requests: ResourceList = {}

    def __post_init__(self) -> None:
        check_amounts(self.requests, "requests")


class ExactRequest(Part):
    """A demand for devices of one class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int | None = None
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements = CapacityRequirements()

    @property
    def wants_all(self) -> bool:
        """Whether it asks for every matching device."""
        return self.allocation_mode == "All"

    @property
    def number(self) -> int:
        """How many devices it asks for, unless for all."""
        return 1 if self.count is None else self.count


class SubRequest(ExactRequest):
    """One of several alternatives of a request."""

    name: str = ""


class DeviceRequest(ExactRequest):
    """A demand of a claim; v1beta1 has what v1 puts under ``exactly`` in the request itself."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[SubRequest, ...] = ()

    @property
    def ways(self) -> tuple[tuple[str, ExactRequest], ...]:
        """The alternatives that meet it, the best first, each with the name that results carry."""
        if self.first_available:
            return tuple((f"{self.name}/{sub.name}", sub) for sub in self.first_available)
        return ((self.name, self.exactly or self),)


class DeviceConstraint(Part):
    """What the devices of some requests, or of all, must have in common, or must not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Part):
    """Everything that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(Part):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(Part):
    """One device that a claim got."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()


class AllocatedConfiguration(DeviceConfiguration):
    """Settings for the driver, from the class or from the claim."""

    source: str = ""


class DeviceAllocation(Part):
    """The devices that a claim got, and their settings."""

    results: tuple[DeviceResult, ...] = ()
    config: tuple[AllocatedConfiguration, ...] = ()


class Allocation(Part):
    """The devices that a claim got, and the nodes on which they can be used."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None


class ClaimConsumer(Part):
    """A user of a claim: a pod, unless another resource is named."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class ResourceClaimStatus(Part):
    """The devices and users of a claim."""

    allocation: Allocation | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()


class ResourceClaim(KubeObject):
    """A demand for devices, met once a pod that has it is placed."""

    API_VERSION: ClassVar[str] = f"{GROUP}/v1"

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class TemplateMeta(Part):
    """Labels and annotations of the claims that a template makes."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ResourceClaimTemplateSpec(Part):
    """The claims that a template makes."""

    metadata: TemplateMeta = TemplateMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubeObject):
    """A pattern of claims, one for each pod that names it."""

    API_VERSION: ClassVar[str] = f"{GROUP}/v1"

    metadata: ObjectMeta
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class ClaimReservation(Part):
    """A claim that a pod needs before it is bound, with its allocation and its user."""

    claim: str
    """``namespace/name``."""
    uid: str
    allocation: Allocation | None = None
    """None if it already has devices."""
