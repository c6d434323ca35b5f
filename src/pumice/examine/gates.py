"""Scheduling gates: the pods that they hold back, and whether a job can start without these."""

from collections import Counter

from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.framework.plugin import Plugin
from pumice.framework.roles import READY, count_roles, meets_minima, minima
from pumice.framework.session import Session


def held_back(ssn: Session, job: int) -> list[int]:
    """List the pending tasks behind gates of a job that cannot start without them."""
    gated = [row for row in _pending(ssn, job) if _is_gated(ssn, row)]
    return gated if gated and _needs(ssn, job, gated) else []


def pending_rows(ssn: Session, job: int) -> list[int]:
    """List the pending tasks of a job, those behind gates only if it cannot start without them."""
    rows = _pending(ssn, job)
    return rows if held_back(ssn, job) else [row for row in rows if not _is_gated(ssn, row)]


def _pending(ssn: Session, job: int) -> list[int]:
    status = ssn.snapshot.tasks.status
    return [row for row in ssn.snapshot.jobs.tasks[job] if int(status[row]) == Status.PENDING]


def _is_gated(ssn: Session, row: int) -> bool:
    """Return whether a gate holds a task back that its queue does not open."""
    return bool(ssn.snapshot.tasks.gated[row]) and row not in ssn.queue_gates.held


def _needs(ssn: Session, job: int, gated: list[int]) -> bool:
    """Return whether a job cannot start without some of its pending tasks.

    A gang counts those without requests as placed, so it does not need them.
    """
    view, best_effort = ssn.job(job), ssn.snapshot.tasks.best_effort
    pending = view.counts[Status.PENDING]
    if len(gated) == pending:
        return True
    if not ssn.hooks.bound(Plugin.job_ready):
        return False
    held = [row for row in gated if not best_effort[row]]
    if view.ready + view.waiting + pending - len(held) < view.min_member:
        return True
    names, role = ssn.snapshot.roles, ssn.snapshot.tasks.role
    roles = Counter(count_roles(view, READY | {Status.PIPELINED, Status.PENDING}))
    roles.subtract(names[role[row]] for row in held if role[row] != NOWHERE)
    return not meets_minima(roles, minima(view))
