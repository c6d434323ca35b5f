"""The closed lists of codes: why a job waits, and why a pod was not evicted for it.

Every answer about a waiting job names its causes by these codes: `explain`, conditions of pod
groups, metrics, pages.  `docs/codes.md` has a row for each.
"""

from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """Why a job waits."""

    QUEUE_MISSING = "QueueMissing"
    SUSPENDED = "Suspended"
    INVALID = "Invalid"
    OTHER_SCHEDULER = "OtherScheduler"
    PRIORITY_CLASS_MISSING = "PriorityClassMissing"
    QUOTA_EXCEEDED = "QuotaExceeded"
    DEPENDS_ON = "DependsOn"
    NO_PODS = "NoPods"
    TOO_FEW_PODS = "TooFewPods"
    GATED = "Gated"
    ACTION_MISSING = "ActionMissing"
    PLUGIN_FAILED = "PluginFailed"
    PLUGIN_REFUSED = "PluginRefused"
    EXTENDER_REFUSED = "ExtenderRefused"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_MISPLACED = "QueueMisplaced"
    NOT_ADMITTED = "NotAdmitted"
    QUEUE_OVER_CAPABILITY = "QueueOverCapability"
    QUEUE_OVER_DESERVED = "QueueOverDeserved"
    JOB_AHEAD = "JobAhead"
    WOULD_DELAY = "WouldDelay"
    GANG_SHORT = "GangShort"
    ROLE_SHORT = "RoleShort"
    NETWORK_DOMAIN = "NetworkDomain"
    INSUFFICIENT_RESOURCE = "InsufficientResource"
    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    NODE_NOT_READY = "NodeNotReady"
    NODE_SELECTOR = "NodeSelector"
    NODE_AFFINITY = "NodeAffinity"
    TAINT = "Taint"
    NODE_GROUP = "NodeGroup"
    NODE_SHARD = "NodeShard"
    WINDOW_CLOSED = "WindowClosed"
    VOLUME = "Volume"
    DEVICE = "Device"
    NUMA_POLICY = "NumaPolicy"
    POD_LIMIT = "PodLimit"
    HOST_PORT = "HostPort"
    POD_AFFINITY = "PodAffinity"
    POD_ANTI_AFFINITY = "PodAntiAffinity"
    TOPOLOGY_SPREAD = "TopologySpread"
    NODE_USAGE = "NodeUsage"
    WAITING_FOR_EVICTED = "WaitingForEvicted"


class Spared(StrEnum):
    """Why a pod was not evicted for a waiting job."""

    ACTION_MISSING = "ActionMissing"
    NOT_ADMITTED = "NotAdmitted"
    NOT_STARVING = "NotStarving"
    PREEMPTION_NEVER = "PreemptionNever"
    OTHER_QUEUE = "OtherQueue"
    QUEUE_NOT_RECLAIMABLE = "QueueNotReclaimable"
    RECLAIMER_OVER_DESERVED = "ReclaimerOverDeserved"
    NOT_PREEMPTABLE = "NotPreemptable"
    NODE_EXCLUDED = "NodeExcluded"
    NO_LOWER_PRIORITY = "NoLowerPriority"
    VICTIM_GANG = "VictimGang"
    CRITICAL = "Critical"
    BUDGET = "Budget"
    COOLDOWN = "Cooldown"
    QUEUE_WITHIN_DESERVED = "QueueWithinDeserved"
    ANCESTOR_LEVEL = "AncestorLevel"
    FAIR_SHARE = "FairShare"
    PLUGIN_FAILED = "PluginFailed"
    PLUGIN_REFUSED = "PluginRefused"
    VICTIMS_TOO_SMALL = "VictimsTooSmall"


SPARED_MEANINGS: Final[dict[Spared, str]] = {
    Spared.ACTION_MISSING: "No configured action evicts such pods for the job.",
    Spared.NOT_ADMITTED: "The job is not admitted to its queue yet, so it may not evict.",
    Spared.NOT_STARVING: "The job has what its gang needs, so it may not evict.",
    Spared.PREEMPTION_NEVER: "The job's own pods have the preemption policy Never.",
    Spared.OTHER_QUEUE: "Only reclaim evicts pods of other queues, and it is not configured.",
    Spared.QUEUE_NOT_RECLAIMABLE: "A queue that is not reclaimable keeps its pods.",
    Spared.RECLAIMER_OVER_DESERVED: "The job's queue may not reclaim: it has its share or limit.",
    Spared.NOT_PREEMPTABLE: "Pods that are marked as not preemptable stay.",
    Spared.NODE_EXCLUDED: "The node refuses the job for a reason that no eviction changes.",
    Spared.NO_LOWER_PRIORITY: "Only pods of lower priority may be evicted.",
    Spared.VICTIM_GANG: "A gang keeps the pods that it needs to run.",
    Spared.CRITICAL: "Pods that are critical for the cluster stay.",
    Spared.BUDGET: "A disruption budget allows no further eviction.",
    Spared.COOLDOWN: "Pods are protected for some time after their start.",
    Spared.QUEUE_WITHIN_DESERVED: "A queue keeps what it deserves.",
    Spared.ANCESTOR_LEVEL: "A queue above keeps what it deserves.",
    Spared.FAIR_SHARE: "No job is left with a smaller share than the waiting one would have.",
    Spared.PLUGIN_FAILED: "A plugin failed when it was asked for victims, so it spares them.",
    Spared.PLUGIN_REFUSED: "A plugin that is not built in keeps pods from being evicted.",
    Spared.VICTIMS_TOO_SMALL: "Evicting all allowed pods of a node makes too little room there.",
}
"""Each in one sentence."""
