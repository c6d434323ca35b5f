"""Every hook a plugin may have: one row with its Volcano switch and its combining rule.

The session turns tiers and switches into tables of bound methods by these rows; a reader can hold
them against Volcano's extension points in five minutes.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hook:
    """One extension point."""

    name: str
    switch: str
    """The key of the configuration file that turns it off; empty: cannot be turned off."""
    rule: str
    """How answers of several plugins become one."""
    volcano: str
    """What Volcano calls it."""


ALL_AGREE = "all must agree"
ANY = "one yes decides"
TIER_ALL = "first tier with an answer decides, all of it must agree"
VOTE = "a reject decides; a permit ends its tier; else yes"
SUM = "sum"
FIRST_DIFFERENCE = "first difference decides"
TIER_INTERSECT = "intersection within a tier, first tier with victims"
TIER_UNION = "union within a tier, first tier with victims"
FIRST = "first answer"
EACH = "all are told"

HOOKS = (
    Hook("filter_task", "enablePredicate", ALL_AGREE, "PrePredicate"),
    Hook("filter_shape", "enablePredicate", ALL_AGREE, "Predicate"),
    Hook("filter_nodes", "enablePredicate", ALL_AGREE, "Predicate"),
    Hook("score_shape", "enableNodeOrder", SUM, "NodeOrder"),
    Hook("score_nodes", "enableNodeOrder", SUM, "NodeOrder"),
    Hook("rank_nodes", "enableNodeOrder", SUM, "BatchNodeOrder"),
    Hook("best_node", "enableBestNode", FIRST, "BestNode"),
    Hook("order_queues", "enableQueueOrder", FIRST_DIFFERENCE, "QueueOrder"),
    Hook("compare_queues", "enableQueueOrder", FIRST_DIFFERENCE, "QueueOrder"),
    Hook("compare_victim_queues", "", FIRST_DIFFERENCE, "VictimQueueOrder"),
    Hook("order_jobs", "enableJobOrder", FIRST_DIFFERENCE, "JobOrder"),
    Hook("order_tasks", "enableTaskOrder", FIRST_DIFFERENCE, "TaskOrder"),
    Hook("order_subgroups", "enabledSubJobOrder", FIRST_DIFFERENCE, "SubJobOrder"),
    Hook("job_valid", "", ALL_AGREE, "JobValid"),
    Hook("job_enqueueable", "enableJobEnqueued", VOTE, "JobEnqueueable"),
    Hook("on_enqueued", "enableJobEnqueued", EACH, "JobEnqueued"),
    Hook("job_ready", "enableJobReady", ALL_AGREE, "JobReady"),
    Hook("job_pipelined", "enableJobPipelined", VOTE, "JobPipelined"),
    Hook("subgroup_ready", "enabledSubJobReady", ALL_AGREE, "SubJobReady"),
    Hook("subgroup_pipelined", "enabledSubJobPipelined", VOTE, "SubJobPipelined"),
    Hook("job_starving", "enableJobStarving", TIER_ALL, "JobStarving"),
    Hook("overused", "enabledOverused", ANY, "Overused"),
    Hook("allocatable", "enabledAllocatable", ALL_AGREE, "Allocatable"),
    Hook("preemptive", "enablePreemptive", ALL_AGREE, "Preemptive"),
    Hook("preemptable", "enablePreemptable", TIER_INTERSECT, "Preemptable"),
    Hook("reclaimable", "enableReclaimable", TIER_INTERSECT, "Reclaimable"),
    Hook("gang_evictable", "", TIER_INTERSECT, "UnifiedEvictable"),
    Hook("victims", "enabledVictim", TIER_UNION, "VictimTasks"),
    Hook("domain_levels", "enabledHyperNodeGradient", FIRST, "HyperNodeGradient"),
    Hook("score_domains", "enabledHyperNodeOrder", SUM, "HyperNodeOrder"),
    Hook("rank_domains", "enabledHyperNodeOrder", SUM, "HyperNodeOrder"),
    Hook("on_place", "", EACH, "AllocateFunc"),
    Hook("on_evict", "", EACH, "DeallocateFunc"),
    Hook("on_open", "", EACH, "OnSessionOpen"),
    Hook("on_close", "", EACH, "OnSessionClose"),
)
BY_NAME = {hook.name: hook for hook in HOOKS}
