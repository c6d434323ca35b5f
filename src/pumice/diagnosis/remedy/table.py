"""The changes worth trying for each cause, the smallest first; nothing is tried here."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pumice.api.codes import Cause
from pumice.diagnosis.changes import Change, chain
from pumice.diagnosis.remedy import cluster_changes, job_changes
from pumice.diagnosis.remedy.job_changes import Target
from pumice.examine.findings import Finding


@dataclass(frozen=True)
class Proposal:
    """A family of changes from small (1) to large; most have one size."""

    make: Callable[[int], Change | None]
    largest: int = 1
    group: str = ""
    """Of proposals with the same group the first that works is enough."""


Sized = tuple[Callable[[int], Change | None], int]
_Maker = Callable[[Target, Finding], Iterator[Change | Sized | None]]


def _revocable_all_day(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Open the zones for pods that may not use them yet: neither change helps without the other."""
    for pods in job_changes.revocable(target, cause):
        for conf in cluster_changes.open_window(target, cause):
            yield None if pods is None or conf is None else chain([pods, conf])


_ANY: Final[Mapping[str, _Maker]] = {
    "nodes": cluster_changes.more_nodes,
    "wait": cluster_changes.endings,
    "evict": cluster_changes.evicting,
    "deserve": cluster_changes.more_deserved,
    "less": job_changes.ask_for_less,
    "gang": job_changes.smaller_gang,
    "first": job_changes.go_first,
}
_ROOM: Final = ("nodes", "wait", "less", "gang", "evict", "deserve", "first")
_BY_CAUSE: Final[Mapping[Cause, tuple[_Maker, ...]]] = {
    Cause.QUEUE_MISSING: (cluster_changes.another_queue, cluster_changes.new_queue),
    Cause.QUEUE_CLOSED: (cluster_changes.reopen_queue, cluster_changes.another_queue),
    Cause.QUEUE_MISPLACED: (cluster_changes.place_in_tree, cluster_changes.another_queue),
    Cause.QUEUE_OVER_CAPABILITY: (
        job_changes.smaller_reservation,
        cluster_changes.raise_limit,
        cluster_changes.lower_guarantees,
        cluster_changes.another_queue,
    ),
    Cause.QUEUE_OVER_DESERVED: (cluster_changes.heavier, cluster_changes.another_queue),
    Cause.NOT_ADMITTED: (
        job_changes.smaller_reservation,
        cluster_changes.wider_quota,
        cluster_changes.larger_factor,
    ),
    Cause.SUSPENDED: (job_changes.resume,),
    Cause.INVALID: (
        job_changes.valid_gang,
        job_changes.fewer_parts,
        cluster_changes.without_plugin,
    ),
    Cause.DEPENDS_ON: (job_changes.no_dependencies,),
    Cause.OTHER_SCHEDULER: (job_changes.our_scheduler,),
    Cause.PRIORITY_CLASS_MISSING: (job_changes.another_class, job_changes.new_priority_class),
    Cause.NO_PODS: (job_changes.gather_strays,),
    Cause.QUOTA_EXCEEDED: (
        cluster_changes.quota_for_pods,
        job_changes.ask_for_less,
        job_changes.smaller_gang,
        cluster_changes.endings,
    ),
    Cause.TOO_FEW_PODS: (
        job_changes.gather_strays,
        job_changes.complete_parts,
        job_changes.gang_of_those_there,
    ),
    Cause.ROLE_SHORT: (job_changes.fewer_of_role,),
    Cause.GATED: (job_changes.without_gates,),
    Cause.ACTION_MISSING: (cluster_changes.add_action,),
    Cause.PLUGIN_FAILED: (cluster_changes.without_plugin,),
    Cause.PLUGIN_REFUSED: (cluster_changes.without_plugin,),
    Cause.EXTENDER_REFUSED: (cluster_changes.without_plugin,),
    Cause.NODE_SELECTOR: (cluster_changes.label_nodes, job_changes.without_selector),
    Cause.NODE_AFFINITY: (job_changes.without_affinity,),
    Cause.TAINT: (job_changes.tolerate, cluster_changes.untaint),
    Cause.NODE_NOT_READY: (cluster_changes.untaint,),
    Cause.NODE_UNSCHEDULABLE: (cluster_changes.uncordon,),
    Cause.NODE_GROUP: (cluster_changes.use_node_groups,),
    Cause.NETWORK_DOMAIN: (job_changes.wider_domain, job_changes.fewer_parts),
    Cause.POD_AFFINITY: (job_changes.without_affinity,),
    Cause.POD_ANTI_AFFINITY: (job_changes.without_affinity,),
    Cause.TOPOLOGY_SPREAD: (job_changes.without_spread,),
    Cause.HOST_PORT: (job_changes.without_host_ports,),
    Cause.NUMA_POLICY: (
        job_changes.without_numa_policy,
        job_changes.within_numa_node,
        cluster_changes.without_plugin,
    ),
    Cause.VOLUME: (cluster_changes.provide_volumes,),
    Cause.NODE_SHARD: (cluster_changes.without_plugin,),
    Cause.NODE_USAGE: (cluster_changes.without_plugin,),
    Cause.WAITING_FOR_EVICTED: (cluster_changes.remove_stuck,),
    Cause.WINDOW_CLOSED: (job_changes.revocable, cluster_changes.open_window, _revocable_all_day),
}
_NOT_BY_OTHERS: Final = frozenset(
    {
        Cause.NODE_SELECTOR,
        Cause.NODE_AFFINITY,
        Cause.TAINT,
        Cause.NODE_NOT_READY,
        Cause.NODE_UNSCHEDULABLE,
        Cause.NODE_GROUP,
        Cause.NODE_SHARD,
        Cause.NODE_USAGE,
        Cause.WINDOW_CLOSED,
    }
)
"""Refusals of nodes that no priority changes: nodes with room for it are found before them."""
_FOR_ROOM: Final = _NOT_BY_OTHERS | frozenset(
    {
        Cause.INSUFFICIENT_RESOURCE,
        Cause.GANG_SHORT,
        Cause.JOB_AHEAD,
        Cause.NOT_ADMITTED,
        Cause.QUEUE_OVER_CAPABILITY,
        Cause.QUEUE_OVER_DESERVED,
        Cause.POD_LIMIT,
        Cause.HOST_PORT,
        Cause.POD_AFFINITY,
        Cause.POD_ANTI_AFFINITY,
        Cause.TOPOLOGY_SPREAD,
        Cause.NETWORK_DOMAIN,
        Cause.NUMA_POLICY,
        Cause.DEVICE,
        Cause.VOLUME,
        Cause.WOULD_DELAY,
        Cause.ROLE_SHORT,
        Cause.WAITING_FOR_EVICTED,
    }
)
_GROUPS: Final[Mapping[_Maker, str]] = {
    job_changes.ask_for_less: "less",
    cluster_changes.endings: "wait",
    job_changes.smaller_gang: "gang",
    job_changes.fewer_of_role: "gang",
    job_changes.gang_of_those_there: "gang",
    job_changes.valid_gang: "gang",
}
"""Changes near one cause that do the same as a change for room."""


def proposals(target: Target, causes: list[Finding]) -> Iterator[Proposal]:
    """List what is worth trying, the nearest to the decisive cause first."""
    for cause in causes:
        for make in _BY_CAUSE.get(cause.code, ()):
            yield from _proposals(make(target, cause), _GROUPS.get(make, make.__name__))
    for name in _ROOM:
        for cause in causes[:2]:
            if cause.code in _FOR_ROOM and (name != "first" or cause.code not in _NOT_BY_OTHERS):
                yield from _proposals(_ANY[name](target, cause), name)


def _proposals(made: Iterator[Change | Sized | None], group: str) -> Iterator[Proposal]:
    for each in made:
        if isinstance(each, Change):
            yield Proposal(_always(each), group=group)
        elif each is not None:
            make, largest = each
            yield Proposal(make, largest, group)


def _always(change: Change) -> Callable[[int], Change]:
    return lambda _: change
