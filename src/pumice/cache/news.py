"""Which changes of a cluster may let a pod start, so that a cycle is worth its cost.

Used by the informer.  A status that a scheduler, a kubelet or a controller keeps up to date lets
nothing start, except where a pod ends or is resized, a claim is free or a queue opens.
"""

from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from pumice.api.annotations import ALLOCATED_HYPER_NODE, WAITING_CAUSE, WAITING_WHY
from pumice.api.devices import ResourceClaim
from pumice.api.groups import PodGroup, Queue
from pumice.api.kinds import ENDED_PHASES
from pumice.api.meta import KubeObject, ObjectMeta, is_touch
from pumice.api.pods import ContainerStatus, Pod, PodStatus

_OWN_MARKS: Final = frozenset((ALLOCATED_HYPER_NODE, WAITING_CAUSE, WAITING_WHY))
"""Annotations that the scheduler itself writes on pod groups."""


@dataclass
class News:
    """What changed since it was last taken."""

    pods: set[str] = field(default_factory=set)
    """Pods ("namespace/name") without a node that are new or have changed."""
    groups: set[str] = field(default_factory=set)
    """Pod groups that are new or have changed."""
    others: bool = False
    """Whether anything else changed that may let a waiting pod start."""

    def add(
        self, key: str, before: KubeObject | None, after: KubeObject | None, *, is_own: bool = False
    ) -> None:
        """Note that an object appeared, changed or is gone; ``is_own``: bound as assumed."""
        if not _may_let_start(before, after, is_own=is_own):
            return
        if isinstance(after, Pod) and not after.spec.node_name and not _has_ended(after):
            self.pods.add(key)
        elif isinstance(after, PodGroup):
            self.groups.add(key)
        else:
            self.others = True


def _may_let_start(before: KubeObject | None, after: KubeObject | None, *, is_own: bool) -> bool:
    if before is None or after is None or before.metadata.uid != after.metadata.uid:
        return True
    match before, after:
        case Pod(), Pod():
            return _is_other_pod(before, after, is_own=is_own)
        case PodGroup(), PodGroup():
            marks = (_foreign_marks(before.metadata), _foreign_marks(after.metadata))
            return before.spec != after.spec or marks[0] != marks[1]
        case Queue(), Queue():
            states = (before.status.state, after.status.state)
            return before.spec != after.spec or states[0] != states[1]
        case ResourceClaim(), ResourceClaim():
            return _is_freer(before, after)
        case _:
            return not is_touch(before, after)


def _is_other_pod(before: Pod, after: Pod, *, is_own: bool) -> bool:
    """Return whether a pod has ended, is asked for differently, or got a node from others."""
    if _has_ended(after):
        return not _has_ended(before)
    is_bound = after.spec.node_name != before.spec.node_name
    if is_bound and not is_own:
        return True
    spec = replace(before.spec, node_name=after.spec.node_name) if is_bound else before.spec
    return (
        spec != after.spec
        or before.metadata.labels != after.metadata.labels
        or (not is_bound and before.metadata.annotations != after.metadata.annotations)
        or before.status.resource_claim_statuses != after.status.resource_claim_statuses
        or _is_resized(before.status, after.status)
    )


def _is_resized(before: PodStatus, after: PodStatus) -> bool:
    """Return whether containers that ran before have other resources now."""
    pairs = (
        (before.container_statuses, after.container_statuses),
        (before.init_container_statuses, after.init_container_statuses),
    )
    return any(
        bool(old) and [_amounts(each) for each in old] != [_amounts(each) for each in new]
        for old, new in pairs
    )


def _amounts(container: ContainerStatus) -> tuple[object, ...]:
    return container.name, container.resources, container.allocated_resources


def _is_freer(before: ResourceClaim, after: ResourceClaim) -> bool:
    """Return whether a claim was changed by others: what schedulers write takes it."""
    lost = set(before.status.reserved_for) - set(after.status.reserved_for)
    is_given_back = before.status.allocation is not None and after.status.allocation is None
    return before.spec != after.spec or bool(lost) or is_given_back


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in ENDED_PHASES


def _foreign_marks(metadata: ObjectMeta) -> tuple[dict[str, str], dict[str, str]]:
    marks = metadata.annotations
    return metadata.labels, {name: marks[name] for name in marks if name not in _OWN_MARKS}
