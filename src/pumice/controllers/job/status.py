"""The status of a job: its counts, and which phase follows them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from pumice.api.annotations import TASK_SPEC
from pumice.api.cloning import clone
from pumice.api.kinds import Manifest
from pumice.api.times import epoch, rfc3339
from pumice.controllers.job.state import JobState, annotation, pod_phase

COUNTED: Final = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
_PHASES: Final = {
    "Pending": "pending",
    "Running": "running",
    "Succeeded": "succeeded",
    "Failed": "failed",
}


class Counts(msgspec.Struct):
    """How many pods are in which phase, for the job and for each task."""

    totals: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    tasks: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)

    def add(self, pod: Manifest) -> None:
        """Count a pod that stays."""
        self.add_phase(annotation(pod, TASK_SPEC), pod_phase(pod))

    def add_phase(self, task: str, phase: str) -> None:
        """Count a pod of a task by its phase."""
        self.totals[_PHASES.get(phase, "unknown")] += 1
        phases = self.tasks.setdefault(task, {})
        known = phase if phase in _PHASES else "Unknown"
        phases[known] = phases.get(known, 0) + 1

    def add_terminating(self, number: int = 1) -> None:
        """Count pods that are terminating."""
        self.totals["terminating"] += number

    def with_pending(self, tasks: Mapping[str, int]) -> "Counts":
        """Return the counts with so many further pods of tasks that are pending."""
        found = Counts({**self.totals}, {task: {**phases} for task, phases in self.tasks.items()})
        for task, number in tasks.items():
            found.totals["pending"] += number
            phases = found.tasks.setdefault(task, {})
            phases["Pending"] = phases.get("Pending", 0) + number
        return found

    def add_all(self, pods: Iterable[Manifest]) -> None:
        """Count pods that stay."""
        for pod in pods:
            self.add(pod)


class Status(msgspec.Struct):
    """A status in the making; ``write`` returns the manifest form."""

    manifest: Manifest

    @classmethod
    def of(cls, job: Manifest) -> "Status":
        """Start from the present status of the job."""
        return cls(clone(job.get("status") or {}))

    @property
    def phase(self) -> str:
        """The phase that was last set."""
        return str((self.manifest.get("state") or {}).get("phase") or "")

    def count(self, name: str) -> int:
        """Read a number of the status; absent is zero."""
        return int(self.manifest.get(name) or 0)

    def succeeded(self, task: str) -> int | None:
        """Count the succeeded pods of a task, None when the task has no counted pod at all."""
        state = (self.manifest.get("taskStatusCount") or {}).get(task)
        return None if state is None else int((state.get("phase") or {}).get("Succeeded") or 0)

    def set_count(self, name: str, number: int) -> None:
        """Write a number; zero is left out, as the API server shows it."""
        if number:
            self.manifest[name] = number
        else:
            self.manifest.pop(name, None)

    def set_counts(self, counts: Counts) -> None:
        """Write the counts of all pods."""
        for name, number in counts.totals.items():
            self.set_count(name, number)
        tasks = {task: {"phase": dict(phases)} for task, phases in counts.tasks.items()}
        if tasks:
            self.manifest["taskStatusCount"] = tasks
        else:
            self.manifest.pop("taskStatusCount", None)

    def set_phase(self, phase: str, now: float) -> None:
        """Enter a phase; each phase is once in the conditions, the newest last."""
        at = rfc3339(now)
        self.manifest["state"] = {**(self.manifest.get("state") or {}), "phase": phase}
        self.manifest["state"]["lastTransitionTime"] = at
        earlier = [one for one in self.manifest.get("conditions") or [] if one["status"] != phase]
        self.manifest["conditions"] = [*earlier, {"status": phase, "lastTransitionTime": at}]

    def set_resources(self, resources: dict[str, str]) -> None:
        """Write which objects the controller made for the job."""
        if resources:
            self.manifest["controlledResources"] = resources
        else:
            self.manifest.pop("controlledResources", None)

    def set_duration(self, job: Manifest) -> None:
        """Write how long the job took until its last change of phase."""
        last = (self.manifest.get("state") or {}).get("lastTransitionTime")
        created = job["metadata"].get("creationTimestamp")
        if last and created:
            self.manifest["runningDuration"] = go_duration(max(0.0, epoch(last) - epoch(created)))

    def on(self, job: Manifest) -> Manifest:
        """Return the job with this status."""
        return {**job, "status": self.manifest}


def go_duration(seconds: float) -> str:
    """Write seconds as Go prints a duration: 6s, 1m30s, 1h0m0s, 500ms."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:g}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


NextPhase: TypeAlias = Callable[[JobState, Status], str | None]

FINISHED: Final = frozenset({"Completed", "Failed", "Terminated"})
"""Final phases; an Aborted job may be resumed and is not among them."""

ENDING: Final = {"Aborting": "Aborted", "Terminating": "Terminated", "Completing": "Completed"}
"""Phases that last until the last live pod is gone, and what follows."""

QUIET: Final = frozenset({*FINISHED, *ENDING, "Aborted"})
"""Phases in which pods are removed and none is created."""


def after_pending(state: JobState, status: Status) -> str | None:
    """Run as soon as enough pods run or have run."""
    active = status.count("running") + status.count("succeeded") + status.count("failed")
    return "Running" if state.min_available <= active else None


def after_running(state: JobState, status: Status) -> str | None:
    """Finish when the outcome is certain; wait again when too few pods are left to run."""
    if state.replicas == 0:
        return None
    minimum = state.spec.get("minSuccess")
    if minimum is not None and status.count("succeeded") >= int(minimum):
        return "Completed"
    if status.count("succeeded") + status.count("failed") == state.replicas:
        return _outcome(state, status)
    if status.count("pending") > state.replicas - state.min_available:
        return "Pending"
    return None


def _outcome(state: JobState, status: Status) -> str:
    """Judge a job whose pods have all ended."""
    if state.min_available >= state.task_minimum:
        for task in state.tasks:
            succeeded = status.succeeded(str(task.get("name") or ""))
            if succeeded is None or task.get("minAvailable") is None:
                continue
            if succeeded < int(task["minAvailable"]):
                return "Failed"
    if state.spec.get("minSuccess") is not None:
        return "Failed"  # if it had been reached, the job would have completed earlier
    return "Completed" if status.count("succeeded") >= state.min_available else "Failed"


def after_restarting(state: JobState, status: Status) -> str | None:
    """Start over once enough of the old pods are gone, unless the retries are used up."""
    if status.count("retryCount") >= int(state.spec.get("maxRetry") or 0):
        return "Failed"
    left = state.replicas - status.count("terminating")
    return "Pending" if left >= status.count("minAvailable") else None


def after_ending(state: JobState, status: Status) -> str | None:
    """Settle when no live pod is left."""
    alive = status.count("terminating") + status.count("pending") + status.count("running")
    return None if alive else ENDING.get(state.phase)


def no_change(state: JobState, status: Status) -> str | None:  # noqa: ARG001
    """Return None: a finished or aborted job does not change by itself."""
    return None


NEXT: Final[dict[str, NextPhase]] = {
    "": after_pending,
    "Pending": after_pending,
    "Running": after_running,
    "Restarting": after_restarting,
    **dict.fromkeys(ENDING, after_ending),
    **dict.fromkeys((*FINISHED, "Aborted"), no_change),
}
