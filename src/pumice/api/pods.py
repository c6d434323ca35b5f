"""Pods, in the parts that placing needs: requests, constraints, priority, phase.

Read by the cache and the testing builders. Types only; core and plugins give them meaning.
"""

from collections.abc import Sequence
from typing import ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import force_setattr, replace

from pumice.api.meta import Condition, Int32, KubeObject, LabelSelector, Part, ResourceList
from pumice.api.quantity import check_amounts, parse_quantity
from pumice.api.times import check_time

NodeOperator: TypeAlias = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
TaintEffect: TypeAlias = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
InclusionPolicy: TypeAlias = Literal["Honor", "Ignore"]

_RESIZE_PENDING: Final = "PodResizePending"
_INFEASIBLE: Final = "Infeasible"


class ResourceRequirements(Part):
    """Requests and limits of a container."""

    requests: ResourceList = {}
    limits: ResourceList = {}

    def __post_init__(self) -> None:
        if self.requests:
            check_amounts(self.requests, "requests")
        if self.limits:
            check_amounts(self.limits, "limits")


class ContainerPort(Part):
    """A port of a container; only ``host_port`` constrains placement."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = ""
    name: str = ""


class Container(Part):
    """A container; an init container with ``restart_policy`` Always is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""

    @property
    def is_sidecar(self) -> bool:
        """Whether an init container runs beside the containers."""
        return self.restart_policy == "Always"


class NodeSelectorRequirement(Part):
    """One condition on a label or field of a node."""

    key: str
    operator: NodeOperator
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Part):
    """Conditions that must all hold; a term without any matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Part):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Part):
    """A preference about nodes and its weight."""

    weight: Int32
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Part):
    """What a pod requires and prefers of its node."""

    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class PodAffinityTerm(Part):
    """Which pods to be near to or far from, and how near."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Part):
    """A preference about neighbours and its weight."""

    weight: Int32
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Part):
    """What a pod requires and prefers of its neighbours; used for affinity and anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(Part):
    """The three kinds of affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Part):
    """A taint that does not keep the pod away; an empty ``key`` with Exists means every taint."""

    key: str = ""
    operator: Literal["", "Exists", "Equal", "Lt", "Gt"] = ""
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(Part):
    """How unevenly matching pods may be spread over the domains of a label."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: InclusionPolicy | None = None
    node_taints_policy: InclusionPolicy | None = None
    match_label_keys: tuple[str, ...] = ()


class SchedulingGate(Part):
    """A reason not to schedule yet."""

    name: str


class ClaimSource(Part):
    """The claim that a volume uses."""

    claim_name: str
    read_only: bool = False


class EphemeralSource(Part):
    """A claim made for the pod, named after pod and volume; its template does not matter here."""


class Volume(Part):
    """A volume of a pod; kinds that constrain no placement have neither source."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None


class PodResourceClaim(Part):
    """A resource claim of the pod: one of that name, or one made for the pod from a template."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(Part):
    """The claim that was made for the pod; no name if none is needed."""

    name: str
    resource_claim_name: str | None = None


class PodSpec(Part):
    """What the pod asks for."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    host_network: bool = False
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None

    def __post_init__(self) -> None:
        if self.overhead:
            check_amounts(self.overhead, "overhead")


class ReportedResources(Part):
    """What a container has by its kubelet; read unchecked, as nearly all of it is not used."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerStatus(Part):
    """What a kubelet reports about a container that may be resized."""

    name: str = ""
    resources: ReportedResources | None = None
    allocated_resources: ResourceList = {}


POD_SCHEDULED: Final = "PodScheduled"
"""The type of the condition that shows whether a pod has a node."""


class PodStatus(Part):
    """The progress of the pod."""

    phase: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    start_time: str = ""
    nominated_node_name: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    """Empty in a pod: what counts of them is in its containers."""
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    """Like ``container_statuses``."""

    def __post_init__(self) -> None:
        if self.start_time:
            check_time(self.start_time, "startTime")

    @property
    def refuses_resize(self) -> bool:
        """Whether the kubelet can never grant what the specification asks for by now."""
        pending = (each for each in self.conditions if each.type == _RESIZE_PENDING)
        first = next(pending, None)
        return first is not None and first.reason == _INFEASIBLE


class Pod(KubeObject):
    """One pod.

    While a container is resized in place, it counts with the larger of what it asks for and what
    its kubelet reports: ``spec.containers`` hold that.
    """

    API_VERSION: ClassVar[str] = "v1"

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def __post_init__(self) -> None:
        spec, status = self.spec, self.status
        if status.container_statuses:
            self._hold("containers", spec.containers, status.container_statuses)
            # very many pods are kept, and nobody asks for these again
            force_setattr(status, "container_statuses", ())
        if status.init_container_statuses:
            sidecars = tuple(each for each in spec.init_containers if each.is_sidecar)
            self._hold("init_containers", sidecars, status.init_container_statuses)
            force_setattr(status, "init_container_statuses", ())

    def _hold(
        self, part: str, containers: Sequence[Container], statuses: Sequence[ContainerStatus]
    ) -> None:
        """Write what they hold into the containers of one part of the specification."""
        if len(statuses) == len(containers) and all(map(_is_as_asked, statuses, containers)):
            return
        told = {each.name: each for each in statuses}
        refused = self.status.refuses_resize
        resized = {
            each.name: _resized(each, told[each.name], refused=refused)
            for each in containers
            if each.name in told and not _is_as_asked(told[each.name], each)
        }
        if resized:
            held = tuple(resized.get(each.name, each) for each in getattr(self.spec, part))
            force_setattr(self, "spec", replace(self.spec, **{part: held}))


def _is_as_asked(status: ContainerStatus, container: Container) -> bool:
    """Return whether a kubelet reports nothing but what the container asks for."""
    told, allocated, asked = status.resources, status.allocated_resources, container.resources
    return status.name == container.name and (
        told is None
        or (
            told.requests == asked.requests
            and told.limits == asked.limits
            and (not allocated or allocated == asked.requests)
        )
    )


def _resized(container: Container, status: ContainerStatus, *, refused: bool) -> Container:
    asked, told = container.resources, status.resources or ReportedResources()
    requests = told.requests if refused else _larger(asked.requests, told.requests)
    held = ResourceRequirements(
        requests=_larger(requests, status.allocated_resources),
        limits=_larger(asked.limits, told.limits),
    )
    return replace(container, resources=held)


def _larger(amounts: ResourceList, others: ResourceList) -> ResourceList:
    """Return the larger amount of each resource, the first of equal ones."""
    check_amounts(others, "requests")
    return amounts | {
        name: other
        for name, other in others.items()
        if name not in amounts or parse_quantity(other) > parse_quantity(amounts[name])
    }
