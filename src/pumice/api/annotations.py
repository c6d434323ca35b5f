"""Annotations, labels and gates that more than one part of Pumice reads or writes.

One that a single plugin knows is declared in that plugin.
"""

from typing import Final

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
TASK_SPEC: Final = "volcano.sh/task-spec"
PREEMPTABLE: Final = "volcano.sh/preemptable"
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"
STRATEGY_TYPE: Final = "volcano.sh/resource-strategy-scoring-type"
STRATEGY_WEIGHT: Final = "volcano.sh/resource-strategy-weight"
HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
ALLOCATED_HYPER_NODE: Final = "volcano.sh/job-allocated-hypernode"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
NOT_READY_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints of unresponsive nodes."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""On the bookmark after the initial objects of a watch."""
HOSTNAME: Final = "kubernetes.io/hostname"
MIRROR: Final = "kubernetes.io/config.mirror"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
WAITING_CAUSE: Final = "pumice.dev/waiting-cause"
WAITING_WHY: Final = "pumice.dev/waiting-why"
RUN_SECONDS: Final = "pumice.dev/run-seconds"
QUEUE_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
GROUP_QUEUE: Final = "scheduling.volcano.sh/queue-name"
ZONE: Final = "topology.kubernetes.io/zone"
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
JDB_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
JDB_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
JOB_NAME: Final = "volcano.sh/job-name"
NODE_GROUP: Final = "volcano.sh/nodegroup-name"
QUEUE_NAME: Final = "volcano.sh/queue-name"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
