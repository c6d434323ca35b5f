"""Patches of pods, groups and queues: what differs from what the cluster has, or None.

Pure functions used by the binder.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pumice.api.annotations import ALLOCATED_HYPER_NODE
from pumice.api.decisions import Condition, PodGroupState
from pumice.api.groups import PodGroup, PodGroupStatus, Queue
from pumice.api.kinds import Manifest
from pumice.api.meta import Condition as StatusCondition
from pumice.api.pods import Pod

SCHEDULED: Final = "PodScheduled"


def waiting_patch(
    pod: Pod, *, reason: str, message: str, nominated: str | None, time: str
) -> Manifest | None:
    """Write why a pod waits and, unless None, for which node ("" takes that back).

    The patch is for the pod as it was seen: one that has got a node meanwhile must not be
    said to wait.
    """
    status: Manifest = {}
    if message:
        condition = _waiting_condition(pod, reason, message, time)
        if condition is not None:
            status["conditions"] = [condition]
    if nominated is not None and nominated != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated or None
    if not status:
        return None
    metadata = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
    return {"metadata": metadata, "status": status}


def _waiting_condition(pod: Pod, reason: str, message: str, time: str) -> Manifest | None:
    """Return the condition of a pod that waits; its time moves only with its status."""
    since = time
    for said in pod.status.conditions:
        if said.type == SCHEDULED and said.status == "False":
            if said.reason == reason and said.message == message:
                return None
            since = said.last_transition_time or time
    return {
        "type": SCHEDULED,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


def group_status(
    group: PodGroup, state: PodGroupState, *, cycle: str, time: str
) -> PodGroupStatus | None:
    """Return the status a group is to have, None if it has it; unchanged conditions stay as is."""
    said = {Condition(c.type, c.status, c.reason, c.message): c for c in group.status.conditions}
    conditions = tuple(
        said.get(each)
        or StatusCondition(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message,
            last_transition_time=time,
            transition_id=cycle,
        )
        for each in state.conditions
    )
    status = PodGroupStatus(
        phase=state.phase,
        conditions=conditions,
        running=state.running,
        succeeded=state.succeeded,
        failed=state.failed,
    )
    return None if status == group.status else status


def group_annotations(group: PodGroup, state: PodGroupState) -> dict[str, str]:
    """Return the annotations a group is to have and has not."""
    wanted = {ALLOCATED_HYPER_NODE: state.hyper_node} if state.hyper_node else {}
    annotations = group.metadata.annotations
    return {name: value for name, value in wanted.items() if annotations.get(name) != value}


def group_patch(
    group: PodGroup, status: PodGroupStatus, annotations: Mapping[str, str]
) -> Manifest:
    """Write status and annotations of a group."""
    metadata: Manifest = {"uid": group.metadata.uid}
    if annotations:
        metadata["annotations"] = dict(annotations)
    counts = {"running": status.running, "succeeded": status.succeeded, "failed": status.failed}
    conditions = [_condition(each) for each in status.conditions]
    return {
        "metadata": metadata,
        "status": {"phase": status.phase, "conditions": conditions, **counts},
    }


def _condition(stated: StatusCondition) -> dict[str, str]:
    texts = {
        "type": stated.type,
        "status": stated.status,
        "reason": stated.reason,
        "message": stated.message,
        "transitionID": stated.transition_id,
        "lastTransitionTime": stated.last_transition_time,
    }
    return {key: text for key, text in texts.items() if text}


def queue_patch(queue: Queue, amounts: Mapping[str, str]) -> Manifest | None:
    """Write what is allocated of a queue."""
    old = queue.status.allocated
    if old == amounts:
        return None
    return {"status": {"allocated": {**_gone(old, amounts), **amounts}}}


def _gone(old: Iterable[str], new: Mapping[str, Any]) -> dict[str, None]:
    return dict.fromkeys(name for name in old if name not in new)
