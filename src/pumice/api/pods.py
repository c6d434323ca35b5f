"""Pods, in the parts that placing needs: requests, constraints, priority, phase.

Read by the cache and the testing builders. Types only; core and plugins give them meaning.
"""

from typing import ClassVar, Literal, TypeAlias

import msgspec

from pumice.api.meta import Condition, Int32, KubeObject, LabelSelector, Part, ResourceList
from pumice.api.quantity import check_amounts
from pumice.api.times import check_time

NodeOperator: TypeAlias = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
TaintEffect: TypeAlias = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
InclusionPolicy: TypeAlias = Literal["Honor", "Ignore"]


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

    def __post_init__(self) -> None:
        if self.overhead:
            check_amounts(self.overhead, "overhead")


class PodStatus(Part):
    """The progress of the pod."""

    phase: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    start_time: str = ""
    nominated_node_name: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()

    def __post_init__(self) -> None:
        if self.start_time:
            check_time(self.start_time, "startTime")


class Pod(KubeObject):
    """One pod."""

    API_VERSION: ClassVar[str] = "v1"

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
