"""Nodes and their place in the cluster: Node, HyperNode, Numatopology.

Read by the cache and the testing builders. Types, and when a node is locked.
"""

from typing import ClassVar, Final, Literal

import msgspec

from pumice.api.meta import Condition, KubeObject, LabelSelector, Part, ResourceList
from pumice.api.pods import TaintEffect
from pumice.api.quantity import check_amounts
from pumice.api.times import epoch
from pumice.errors import InputError


class Taint(Part):
    """A mark that keeps pods away unless they tolerate it."""

    key: str
    effect: TaintEffect
    value: str = ""


class NodeSpec(Part):
    """What an administrator states about a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(Part):
    """An image that is present on a node, under all its names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(Part):
    """What a node has; ``allocatable`` is what pods may use of ``capacity``."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        check_amounts(self.capacity, "capacity")
        check_amounts(self.allocatable, "allocatable")


class Node(KubeObject):
    """One machine."""

    API_VERSION: ClassVar[str] = "v1"

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ExactMatch(Part):
    """The one member of that name."""

    name: str


class RegexMatch(Part):
    """Every member whose name contains a match of the pattern."""

    pattern: str


class MemberSelector(Part):
    """How members are found; one of the three is set."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class Member(Part):
    """Nodes or hypernodes that belong to a hypernode."""

    type: Literal["Node", "HyperNode"]
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Part):
    """Place in the network; a lower tier is a closer domain."""

    tier: int = 0
    tier_name: str = ""
    members: tuple[Member, ...] = ()


class HyperNode(KubeObject):
    """A network domain."""

    API_VERSION: ClassVar[str] = "topology.volcano.sh/v1alpha1"

    spec: HyperNodeSpec = HyperNodeSpec()


class NodeShardSpec(Part):
    """The nodes that one of several schedulers should use."""

    nodes_desired: tuple[str, ...] = ()


class NodeShardStatus(Part):
    """The nodes that it uses."""

    nodes_in_use: tuple[str, ...] = ()
    nodes_to_add: tuple[str, ...] = ()
    nodes_to_remove: tuple[str, ...] = ()


class NodeShard(KubeObject):
    """A part of the cluster for one of several schedulers."""

    API_VERSION: ClassVar[str] = "shard.volcano.sh/v1alpha1"

    spec: NodeShardSpec = NodeShardSpec()
    status: NodeShardStatus = NodeShardStatus()


class NumaResource(Part):
    """One resource of a node by NUMA; ``allocatable`` lists ids, as in "0,2-5"."""

    allocatable: str = ""
    capacity: int = 0


class CpuPlace(Part):
    """The place of a logical cpu."""

    numa: int = 0
    socket: int = 0
    core: int = 0


class PodAllocation(Part):
    """A pod to which the kubelet has assigned cpus."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


class NumatopologySpec(Part):
    """Policies of the kubelet and the place of each cpu."""

    policies: dict[str, str] = {}
    res_reserved: ResourceList = {}
    numares: dict[str, NumaResource] = {}
    cpu_detail: dict[str, CpuPlace] = msgspec.field(name="cpuDetail", default_factory=dict)
    pod_allocations: tuple[PodAllocation, ...] = ()

    def __post_init__(self) -> None:
        check_amounts(self.res_reserved, "resReserved")


class Numatopology(KubeObject):
    """The NUMA layout of the node of the same name."""

    API_VERSION: ClassVar[str] = "nodeinfo.volcano.sh/v1alpha1"

    spec: NumatopologySpec = NumatopologySpec()


LOCK_LASTS: Final = 300.0
"""Seconds after which the lock of a node was forgotten; its device plugin removes it sooner."""


def is_locked(since: str, now: float) -> bool:
    """Return whether a node is locked by an annotation with this time; without one it is not."""
    try:
        return bool(since) and now - epoch(since) <= LOCK_LASTS
    except InputError:
        return False
