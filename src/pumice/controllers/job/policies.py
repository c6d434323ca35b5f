"""Lifecycle policies: what happened to a job, and the reaction that its spec asks for.

Events are derived from the present state; what it no longer shows is tracked between
reconciliations, and losing that loses no job.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

import msgspec

from pumice.api.annotations import TASK_SPEC
from pumice.api.duration import parse_duration
from pumice.api.kinds import Manifest
from pumice.api.times import epoch
from pumice.controllers.base import Key
from pumice.controllers.job.state import (
    PARTITION_ID,
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


_FIRST_DELAY_S: Final = 0.005
_DOUBLINGS: Final = 20
_EventKey = tuple[str, str]


class TrackedJob(msgspec.Struct):
    """The state of one job."""

    gone: dict[str, tuple[Manifest, float]] = msgspec.field(default_factory=dict)
    """Pods that another client removed, by uid, with the time it was noticed."""

    restarts: dict[str, int] = msgspec.field(default_factory=dict)
    """The most container restarts that a pod reported, by uid; the next report may show fewer."""

    excused: set[str] = msgspec.field(default_factory=set)
    """Pods that the controller removed itself."""

    armed: dict[_EventKey, float] = msgspec.field(default_factory=dict)
    """Announced timers, with the time from which they count."""

    reported: set[_EventKey] = msgspec.field(default_factory=set)
    """Events that were answered by an event alone."""

    awaited: dict[_EventKey, int] = msgspec.field(default_factory=dict)
    """Events answered by a restart, and the retry count that proves the restart was written."""

    failures: int = 0
    """How many reconciliations in a row failed, not counting those before their time."""

    retry_at: float = 0.0
    """When to reconcile again after a failure."""

    def notice_restarts(self, pod: Manifest) -> None:
        """Remember how often the containers of a pod were restarted, whatever it reports later."""
        if count := restarts_of(pod):
            uid = str(pod["metadata"]["uid"])
            self.restarts[uid] = max(count, self.restarts.get(uid, 0))

    def notice_gone(self, pod: Manifest, now: float) -> None:
        """Remember a pod that is gone, unless the controller removed it."""
        uid = str(pod["metadata"]["uid"])
        self.restarts.pop(uid, None)
        if out_of_sync(pod):
            self.excused.add(uid)
        if uid in self.excused:
            self.gone.pop(uid, None)
        else:
            self.gone.setdefault(uid, (pod, now))

    def since(self, event: LifecycleEvent, now: float) -> float:
        """Return from when a timer counts, and keep it."""
        at = now if event.since is None else event.since
        return self.armed.setdefault(event_key(event), at)

    def answered(self, event: LifecycleEvent, retries: int) -> bool:
        """Return whether something that happened needs no (further) answer."""
        key = event_key(event)
        awaited = self.awaited.get(key)
        return key in self.reported or (awaited is not None and retries >= awaited)

    def failed(self, now: float) -> float:
        """Count a failure; return how long to wait, each time twice as long."""
        if self.failures == 0 or now >= self.retry_at:
            self.failures += 1
            self.retry_at = now + _FIRST_DELAY_S * 2.0 ** min(self.failures - 1, _DOUBLINGS)
        return self.retry_at - now

    def keep_only(self, present: set[_EventKey]) -> None:
        """Forget what no longer applies."""
        self.armed = {key: at for key, at in self.armed.items() if key in present}
        self.awaited = {key: count for key, count in self.awaited.items() if key in present}
        self.reported &= present


def event_key(event: LifecycleEvent) -> _EventKey:
    """Return the key of an event."""
    return event.subject, event.name


class JobTracker:
    """The state of all jobs, by job."""

    def __init__(self) -> None:
        """Start with no job."""
        self._jobs: dict[Key, tuple[str, TrackedJob]] = {}

    def of(self, key: Key, uid: str) -> TrackedJob:
        """Return the state of a job; another job of the same name starts empty."""
        known = self._jobs.get(key)
        if known is None or known[0] != uid:
            known = self._jobs[key] = (uid, TrackedJob())
        return known[1]

    def forget(self, key: Key) -> None:
        """Drop a job that is gone."""
        self._jobs.pop(key, None)
