"""Objects that group and account for pods: PodGroup, Queue and the policies over them.

Read by the cache and the testing builders. Types only.
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from pumice.api.kinds import KUBE_GROUP_VERSIONS
from pumice.api.meta import Condition, Int32, KubeObject, LabelSelector, Part, ResourceList
from pumice.api.quantity import check_amounts
from pumice.errors import ABSENT, InputError, Words


class NetworkTopology(Part):
    """How close the pods of a group must (hard) or should (soft) be."""

    mode: Literal["", "hard", "soft"] = ""
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(Part):
    """How a group divides into subgroups that are placed as one."""

    name: str = ""
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    sub_group_size: Int32 | None = None
    min_sub_groups: Int32 | None = None
    network_topology: NetworkTopology | None = None


class PodGroupSpec(Part):
    """What a gang needs before any of it may start."""

    min_member: Int32 | None = None
    min_task_member: dict[str, Int32] = {}
    queue: str = ""
    priority_class_name: str = ""
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()

    def __post_init__(self) -> None:
        check_amounts(self.min_resources, "minResources")


class PodGroupStatus(Part):
    """How far a gang is."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0


class PodGroup(KubeObject):
    """A gang: pods that are scheduled together."""

    API_VERSION: ClassVar[str] = "scheduling.volcano.sh/v1beta1"

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class GangPolicy(Part):
    """All or nothing: how many pods must be able to start together."""

    min_count: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class SchedulingPolicy(Part):
    """How the pods of a Kubernetes PodGroup start: each by itself, or together."""

    basic: dict[str, Any] | None = None
    gang: GangPolicy | None = None

    def __post_init__(self) -> None:
        if (self.basic is None) == (self.gang is None):
            found = ABSENT if self.basic is None else Words("both")
            raise InputError(wanted="basic or gang", found=found, field="basic")


class TopologyConstraint(Part):
    """The label of nodes whose value all pods must share."""

    key: Annotated[str, msgspec.Meta(min_length=1)]


class SchedulingConstraints(Part):
    """Where the pods of a Kubernetes PodGroup may be."""

    topology: tuple[TopologyConstraint, ...] = ()

    def __post_init__(self) -> None:
        if len(self.topology) > 1:
            found = len(self.topology)
            raise InputError(wanted="at most one constraint", found=found, field="topology")


class KubePodGroupSpec(Part):
    """What a Kubernetes PodGroup asks for, as far as it is read."""

    scheduling_policy: SchedulingPolicy
    scheduling_constraints: SchedulingConstraints | None = None
    priority_class_name: str = ""


class KubePodGroup(KubeObject):
    """A PodGroup of Kubernetes' own; its pods get a Volcano PodGroup that follows it."""

    API_VERSION: ClassVar[str] = f"scheduling.k8s.io/{KUBE_GROUP_VERSIONS[0]}"

    spec: KubePodGroupSpec


class Guarantee(Part):
    """What a queue always keeps."""

    resource: ResourceList = {}

    def __post_init__(self) -> None:
        check_amounts(self.resource, "resource")


class NodeGroupAffinity(Part):
    """Node groups that a queue requires or prefers; used for affinity and anti-affinity."""

    required: tuple[str, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )
    preferred: tuple[str, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class QueueAffinity(Part):
    """The node groups for a queue's pods."""

    node_group_affinity: NodeGroupAffinity | None = None
    node_group_anti_affinity: NodeGroupAffinity | None = None


class QueueSpec(Part):
    """A queue's share, its bounds and its place in the hierarchy."""

    weight: Int32 | None = None
    capability: ResourceList = {}
    deserved: ResourceList = {}
    guarantee: Guarantee = Guarantee()
    reclaimable: bool | None = None
    parent: str = ""
    priority: Int32 | None = None
    affinity: QueueAffinity | None = None
    type: str = ""
    dequeue_strategy: str = ""

    def __post_init__(self) -> None:
        check_amounts(self.capability, "capability")
        check_amounts(self.deserved, "deserved")


class QueueStatus(Part):
    """Whether a queue is open, what it uses and how many gangs of each phase it holds."""

    state: str = ""
    allocated: ResourceList = {}
    unknown: Int32 = 0
    pending: Int32 = 0
    running: Int32 = 0
    inqueue: Int32 = 0
    completed: Int32 = 0

    def __post_init__(self) -> None:
        check_amounts(self.allocated, "allocated")


class Queue(KubeObject):
    """Where gangs wait and what they share."""

    API_VERSION: ClassVar[str] = "scheduling.volcano.sh/v1beta1"

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class PriorityClass(KubeObject):
    """A name for a priority."""

    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1"

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = ""


class ScopeRequirement(Part):
    """One condition on the scope of a pod."""

    scope_name: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class ScopeSelector(Part):
    """Conditions on the scopes of a pod that must all hold."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(Part):
    """Bounds of a namespace; a quota with scopes counts only some pods."""

    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None

    def __post_init__(self) -> None:
        check_amounts(self.hard, "hard")


class ResourceQuotaStatus(Part):
    """Bounds in force and what is used of them."""

    hard: ResourceList = {}
    used: ResourceList = {}

    def __post_init__(self) -> None:
        check_amounts(self.hard, "hard")
        check_amounts(self.used, "used")


class ResourceQuota(KubeObject):
    """Bounds of what a namespace may use."""

    API_VERSION: ClassVar[str] = "v1"

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class LimitRangeItem(Part):
    """Defaults and bounds of each container, pod or claim of a namespace, by ``type``."""

    type: str = ""
    default: ResourceList = {}
    """Limits of a container that states none."""
    default_request: ResourceList = {}
    max: ResourceList = {}
    min: ResourceList = {}

    def __post_init__(self) -> None:
        for name in ("default", "default_request", "max", "min"):
            check_amounts(getattr(self, name), name)


class LimitRangeSpec(Part):
    """What a limit range states."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(KubeObject):
    """Amounts that containers of a namespace get where they state none."""

    API_VERSION: ClassVar[str] = "v1"

    spec: LimitRangeSpec = LimitRangeSpec()


class PodDisruptionBudgetSpec(Part):
    """How many matching pods must stay; numbers or percentages."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Part):
    """How many evictions the budget allows now."""

    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}
    """Pods whose eviction the API server has already allowed, and when."""


class PodDisruptionBudget(KubeObject):
    """A promise that not too many pods are evicted at once."""

    API_VERSION: ClassVar[str] = "policy/v1"

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class Namespace(KubeObject):
    """A namespace; selectors look at its labels."""

    API_VERSION: ClassVar[str] = "v1"
