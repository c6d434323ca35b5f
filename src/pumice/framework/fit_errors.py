"""Messages to a pod group about its tasks, in Volcano's words; rendered at close from counts.

Used by gang's condition and by the outcome of a session.  Decides nothing.
"""

from collections.abc import Mapping
from functools import lru_cache

from pumice.core.status import PENDING, Status
from pumice.core.views import Job
from pumice.framework.session_state import SessionState


def gang_message(state: SessionState, job: Job) -> str:
    """Describe how many tasks a gang lacks, and why."""
    lacking = lacking_tasks(state, job)
    return f"{lacking}/{len(job.tasks)} tasks in gang unschedulable: {fit_error(state, job)}"


def lacking_tasks(state: SessionState, job: Job) -> int:
    """Return the number of tasks that a gang lacks: those for which a node was found do not count.

    Below zero for a job that waits for a role although it has enough tasks.
    """
    return int(job.min_member - job.ready - len(_schedulable(state, job)))


def fit_error(state: SessionState, job: Job) -> str:
    """Count a job's tasks by status, its pending ones by reason, and name the first reason.

    Once actions are over, the text is written once: gang's condition and the outcome state it.
    """
    if state.fit_errors is None:
        return _fit_error(state, job)
    key = job.row, state.journal.mark()
    text = state.fit_errors.get(key)
    if text is None:
        text = state.fit_errors[key] = _fit_error(state, job)
    return text


def _fit_error(state: SessionState, job: Job) -> str:
    counts = tuple(job.counts)
    placeable = len(_schedulable(state, job)) if counts[PENDING] else 0
    standing = _standing(counts, job.min_member, placeable, is_ready=_is_ready(job))
    return standing + _origin(state, job)


@lru_cache(maxsize=1024)  # most jobs that wait have the same numbers as others
def _standing(counts: tuple[int, ...], min_member: int, placeable: int, *, is_ready: bool) -> str:
    """Count tasks by status, pending ones by whether a node was found for them."""
    numbers = {Status(code).label: n for code, n in enumerate(counts) if n}
    standing = "pod group is ready" if is_ready else "pod group is not ready"
    text = f"{standing}, {_histogram({**numbers, 'minAvailable': min_member})}"
    pending = counts[PENDING]
    if pending:
        reasons = {"Schedulable": placeable, "Unschedulable": pending - placeable}
        text += f"; Pending: {_histogram({name: n for name, n in reasons.items() if n})}"
    return text


def _schedulable(state: SessionState, job: Job) -> list[int]:
    """List pending tasks for which a node was found before the gang was given up."""
    status = state.snapshot.tasks.status
    return [row for row in state.records.schedulable(job.tasks) if status[row] == PENDING]


def _origin(state: SessionState, job: Job) -> str:
    """Describe why the first task that found no node found none, and in which network domain."""
    no_fit, tasks = state.records.no_fit, state.snapshot.tasks
    found = [row for row in job.tasks if row in no_fit]
    found.sort(key=lambda row: (int(tasks.index[row]), tasks.keys[row]))
    row = next((row for row in found if no_fit[row]), found[0] if found else None)
    if row is None:
        return ""
    return f". Origin reason is {_name(state, row)}: {no_node_text(state, job, row)}"


def no_node_text(state: SessionState, job: Job, row: int) -> str:
    """Describe why a task of a job found no node."""
    reasons = state.records.no_fit[row]
    if reasons:
        return f"{_domain(state, job)}{_unavailable(reasons)}"
    if not state.snapshot.nodes.n:
        return "0/0 nodes are unavailable"
    role = state.task(row).role
    return f"Task {_name(state, row)} with role spec {role} has already predicated failed, skip"


def _unavailable(reasons: Mapping[str, int]) -> str:
    return f"0/{sum(reasons.values())} nodes are unavailable: {_histogram(reasons)}."


def _name(state: SessionState, row: int) -> str:
    return state.snapshot.tasks.keys[row].partition("/")[2]


def _domain(state: SessionState, job: Job) -> str:
    """Name the network domain in which a job was placed; one that was given up tried them all."""
    domain = state.topology.allocated(job) if _is_ready(job) else None
    return f"In hyperNode {domain.name}: " if domain is not None and domain.parent else ""


def _is_ready(job: Job) -> bool:
    return bool(job.ready + job.pending_best_effort >= job.min_member)


def _histogram(numbers: Mapping[str, int]) -> str:
    """Write numbers with their names, sorted as text."""
    return ", ".join(sorted(f"{n} {name}" for name, n in numbers.items()))
