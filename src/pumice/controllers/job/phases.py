"""The state machine of a job: which phase follows when nothing but the counts has changed.

Each rule reads the status just counted and names the next phase, or None to stay.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from pumice.controllers.job.state import JobState
from pumice.controllers.job.status import Status

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
