"""Lifecycle policies: what happened to a job, and the reaction that its spec asks for.

Events are derived from the present state; what it no longer shows must be remembered.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

import msgspec

from pumice.api.annotations import TASK_SPEC
from pumice.api.duration import parse_duration
from pumice.api.kinds import Manifest
from pumice.api.times import epoch
from pumice.controllers.job.names import PARTITION_ID
from pumice.controllers.job.state import (
    JobState,
    annotation,
    container_statuses,
    deleting,
    out_of_sync,
    pod_phase,
    replicas_of,
    restarts_of,
    version_of,
)

_ANY: Final = "*"
_DEFAULT_RESTARTS: Final = 3  # default for a task that does not state it


class LifecycleEvent(msgspec.Struct, frozen=True):
    """Something that happened to a job and that a policy may react to."""

    name: str
    subject: str
    """The uid of the object it happened to."""

    task: str = ""
    pod: str = ""
    partition: str = ""
    exit_code: int = 0
    since: float | None = None
    """When it happened, where the object shows it."""


class PastEvents(Protocol):
    """Past events that the objects of a job no longer show."""

    @property
    def gone(self) -> Mapping[str, tuple[Manifest, float]]:
        """Pods that another client removed, by uid, with the time it was noticed."""

    @property
    def restarts(self) -> Mapping[str, int]:
        """The most container restarts that a pod has reported, by uid."""


class Reaction(msgspec.Struct, frozen=True):
    """The reaction of a policy to an event."""

    event: LifecycleEvent
    action: str
    delay_s: float = 0.0


def reactions(state: JobState, past: PastEvents) -> Iterator[Reaction]:
    """Match what happened with the policies of the task and then of the job, first match wins.

    Pods of an older version of the job count for nothing: their version is dead.
    """
    if not any(one.get("policies") for one in (state.spec, *state.tasks)):
        return
    for event in _events(state, past):
        task = state.task(event.task) if event.task else None
        policies = [*((task or {}).get("policies") or []), *(state.spec.get("policies") or [])]
        for policy in policies:
            if _matches(policy, event):
                delay_s = parse_duration(str(policy.get("timeout") or "0"))
                yield Reaction(event, str(policy.get("action") or ""), delay_s)
                break


def _matches(policy: Manifest, event: LifecycleEvent) -> bool:
    """Return whether a policy is about an event; a pending pod matters only after a while."""
    events = [*(policy.get("events") or []), policy.get("event")]
    if event.name in events or _ANY in events:
        return event.name != "PodPending" or policy.get("timeout") is not None
    code = policy.get("exitCode")
    return code is not None and int(code) != 0 and int(code) == event.exit_code


def _events(state: JobState, past: PastEvents) -> Iterator[LifecycleEvent]:
    """List what happened to the job."""
    for pod in state.all_pods():
        if not deleting(pod) and not out_of_sync(pod) and version_of(pod) >= state.version:
            yield from _pod_events(pod)
    for task in state.tasks:
        yield from _task_events(state, task, past.restarts)
    for pod, at in past.gone.values():
        if version_of(pod) >= state.version:
            yield _about("PodEvicted", pod, since=at)
    group = state.podgroup
    if group is not None and (group.get("status") or {}).get("phase") == "Unknown":
        yield LifecycleEvent("Unknown", str(group["metadata"]["uid"]))


def _about(
    name: str, pod: Manifest, exit_code: int = 0, since: float | None = None
) -> LifecycleEvent:
    """Describe what happened to a pod."""
    metadata = pod["metadata"]
    return LifecycleEvent(
        name,
        str(metadata["uid"]),
        task=annotation(pod, TASK_SPEC),
        pod=str(metadata["name"]),
        partition=str((metadata.get("labels") or {}).get(PARTITION_ID, "")),
        exit_code=exit_code,
        since=since,
    )


def _pod_events(pod: Manifest) -> Iterator[LifecycleEvent]:
    """Yield the events that the phase of a pod shows."""
    phase = pod_phase(pod)
    if phase == "Failed":
        ended = [(one.get("state") or {}).get("terminated") for one in container_statuses(pod)]
        first = ended[0] if ended else None
        at = (first or {}).get("finishedAt")
        code = int((first or {}).get("exitCode") or 0)
        yield _about("PodFailed", pod, code, epoch(at) if at else None)
    elif phase == "Pending":
        created = pod["metadata"].get("creationTimestamp")
        yield _about("PodPending", pod, since=epoch(created) if created else None)


def _task_events(
    state: JobState, task: Manifest, seen: Mapping[str, int]
) -> Iterator[LifecycleEvent]:
    """Yield the events that the pods of a task show together."""
    wanted = replicas_of(task)
    pods = state.pods.get(str(task.get("name") or ""), {})
    live = [
        pods[name]
        for name in sorted(pods)
        if not deleting(pods[name]) and not out_of_sync(pods[name])
    ]
    current = [pod for pod in live if version_of(pod) >= state.version]
    if not wanted or not current:
        return
    succeeded = [pod for pod in current if pod_phase(pod) == "Succeeded"]
    if succeeded and sum(pod_phase(pod) == "Succeeded" for pod in live) >= wanted:
        yield _about("TaskCompleted", succeeded[-1])
    limit = int(task.get("maxRetry") or _DEFAULT_RESTARTS)
    active = [pod for pod in live if pod_phase(pod) in ("Pending", "Running")]
    suspects = (pod for pod in active if version_of(pod) >= state.version)

    def restarts(pod: Manifest) -> int:
        return max(restarts_of(pod), seen.get(str(pod["metadata"]["uid"]), 0))

    worst = max(suspects, key=restarts, default=None)
    if worst is not None and 0 < limit <= sum(map(restarts, active)):
        yield _about("TaskFailed", worst)
