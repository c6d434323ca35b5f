"""Annotations and labels of Volcano that more than one part of Pumice reads or writes.

A mark that one plugin alone knows stands in that plugin.
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
