"""The PodGroup of a job: made when it is missing, kept in step when the job is scaled."""

from collections.abc import Iterable
from typing import Any

from pumice.api.annotations import TASK_SPEC
from pumice.api.kinds import PRIORITY_CLASS, Manifest
from pumice.controllers.base import Create, Effect, Record, Update, View
from pumice.controllers.job.names import PARTITION_ID, podgroup_name
from pumice.controllers.job.state import JobState, replicas_of
from pumice.controllers.ownership import SOURCE, controlled_by
from pumice.controllers.quota_usage import pods_usage


def min_resources(job: Manifest, view: View) -> dict[str, str]:
    """Sum up the requests of the first ``minAvailable`` pods of a job, important tasks first."""
    tasks = _by_priority(job["spec"].get("tasks") or [], view)
    minimum = int(job["spec"].get("minAvailable") or 0)
    replicas = [replicas_of(task) for task in tasks]
    if minimum >= sum(int(task.get("minAvailable", replicas_of(task))) for task in tasks):
        needed = _first(minimum, [int(task.get("minAvailable") or 0) for task in tasks])
        more = [most - number for most, number in zip(replicas, needed, strict=True)]
        further = _first(minimum - sum(needed), more)
        counted = [a + b for a, b in zip(needed, further, strict=True)]
    else:
        counted = _first(minimum, replicas)
    return pods_usage(zip(map(_pod_spec, tasks), counted, strict=True))


def _pod_spec(task: Manifest) -> Manifest:
    return (task.get("template") or {}).get("spec") or {}


def _first(left: int, numbers: Iterable[int]) -> list[int]:
    """Take from numbers, one after the other, until the given total is reached."""
    taken: list[int] = []
    for number in numbers:
        taken.append(min(left, max(0, number)))
        left -= taken[-1]
    return taken


def _by_priority(tasks: Iterable[Manifest], view: View) -> list[Manifest]:
    """Order tasks by the value of their priority class, highest first."""

    def key(task: Manifest) -> int:
        name = _pod_spec(task).get("priorityClassName")
        found = view.get(PRIORITY_CLASS, "", str(name)) if name else None
        return -int((found or {}).get("value") or 0)

    return sorted(tasks, key=key)


def min_task_member(task: Manifest) -> int:
    """Return how many pods of a task its gang needs."""
    if task.get("minAvailable") is not None:
        return int(task["minAvailable"])
    policy = task.get("partitionPolicy") or {}
    partitions = int(policy.get("minPartitions") or 0) * int(policy.get("partitionSize") or 0)
    return partitions or replicas_of(task)


def podgroup_effects(state: JobState) -> list[Effect]:
    """Make the PodGroup, or update it to match the job."""
    group = new_podgroup(state)
    if state.podgroup is None:
        return [Create(group)]
    wanted = group["spec"]
    spec = {**(state.podgroup.get("spec") or {}), "minResources": wanted["minResources"]}
    for name in ("minMember", "priorityClassName"):
        _put(spec, name, wanted.get(name))
    spec["minTaskMember"] = {**(spec.get("minTaskMember") or {}), **wanted["minTaskMember"]}
    if wanted.get("subGroupPolicy") or spec.get("subGroupPolicy"):
        _put(spec, "subGroupPolicy", wanted.get("subGroupPolicy"))
    if spec == state.podgroup.get("spec"):
        return []
    return [Update({**state.podgroup, "spec": spec})]


def pending_event(state: JobState) -> list[Effect]:
    """Write on the job why its PodGroup is not scheduled, by the newest true condition."""
    status = (state.podgroup or {}).get("status") or {}
    true = [one for one in status.get("conditions") or [] if one.get("status") == "True"]
    newest = max(true, key=lambda one: str(one.get("lastTransitionTime") or ""), default=None)
    if not newest or newest.get("type") == "Scheduled":
        return []
    kind = str(newest.get("type") or "").lower()
    message = (
        f"PodGroup {state.namespace}:{state.name} {kind}, reason: {newest.get('message') or ''}"
    )
    return [Record(state.job, "Warning", "PodGroupPending", message, SOURCE)]


def _put(spec: Manifest, name: str, value: Any) -> None:
    """Set a field, or leave it out when it is empty."""
    if value in (None, "", 0, [], {}):
        spec.pop(name, None)
    else:
        spec[name] = value


def new_podgroup(state: JobState) -> Manifest:
    """Write the PodGroup of a job; labels and annotations are the job's own, all of them."""
    metadata: Manifest = {
        "name": podgroup_name(state.job),
        "namespace": state.namespace,
        "ownerReferences": [controlled_by(state.job)],
    }
    for name in ("labels", "annotations"):
        _put(metadata, name, dict(state.job["metadata"].get(name) or {}))
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": _spec(state),
    }


def _spec(state: JobState) -> Manifest:
    """Write the part that the scheduler needs about the gang."""
    spec: Manifest = {
        "minTaskMember": {
            str(task.get("name") or ""): min_task_member(task) for task in state.tasks
        },
        "queue": state.queue,
        "minResources": min_resources(state.job, state.view),
    }
    _put(spec, "minMember", state.min_available)
    _put(spec, "priorityClassName", state.spec.get("priorityClassName"))
    _put(spec, "networkTopology", _topology(state.spec.get("networkTopology")))
    parts = [_sub_group(task) for task in state.tasks if task.get("partitionPolicy") is not None]
    _put(spec, "subGroupPolicy", parts)
    return spec


def _topology(topology: Manifest | None) -> Manifest | None:
    """Copy a network topology; an allowed tier outranks a named one."""
    if topology is None:
        return None
    copied = {"mode": topology.get("mode") or "hard"}
    if topology.get("highestTierAllowed") is not None:
        copied["highestTierAllowed"] = topology["highestTierAllowed"]
    elif topology.get("highestTierName"):
        copied["highestTierName"] = topology["highestTierName"]
    return copied


def _sub_group(task: Manifest) -> Manifest:
    """Write the partitions of a task as sub groups of the gang."""
    policy = task["partitionPolicy"]
    part: Manifest = {
        "name": str(task.get("name") or ""),
        "subGroupSize": int(policy.get("partitionSize") or 0),
        "minSubGroups": int(policy.get("minPartitions") or 0),
        "labelSelector": {"matchLabels": {TASK_SPEC: str(task.get("name") or "")}},
        "matchLabelKeys": [PARTITION_ID],
    }
    _put(part, "networkTopology", _topology(policy.get("networkTopology")))
    return part
