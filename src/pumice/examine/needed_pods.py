"""Pods that a job can start without, and those that scheduling gates hold back."""

from collections import Counter

from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.framework.plugin import Plugin
from pumice.framework.roles import READY, count_roles, meets_minima, minima
from pumice.framework.session import Session


def held_back(ssn: Session, job: int) -> list[int]:
    """List the pending tasks behind gates of a job that cannot start without them."""
    gated = _gated(ssn, _pending(ssn, job))
    return gated if gated and needs_some(ssn, job, gated) else []


def pending_rows(ssn: Session, job: int) -> list[int]:
    """List the pending tasks of a job, those behind gates only if it cannot start without them."""
    rows = _pending(ssn, job)
    gated = {*_gated(ssn, rows)}
    if not gated or needs_some(ssn, job, [*gated]):
        return rows
    return [row for row in rows if row not in gated]


def _pending(ssn: Session, job: int) -> list[int]:
    status = ssn.snapshot.tasks.status
    return [row for row in ssn.snapshot.jobs.tasks[job] if int(status[row]) == Status.PENDING]


def _gated(ssn: Session, rows: list[int]) -> list[int]:
    """List the tasks that a gate holds back, other than those that their queue opens."""
    gated, opened = ssn.snapshot.tasks.gated, ssn.queue_gates.held
    return [row for row in rows if gated[row] and row not in opened]


def needs_some(ssn: Session, job: int, rows: list[int]) -> bool:
    """Return whether a job cannot start without some of its pending tasks.

    A gang counts those without requests as placed, so it does not need them.
    """
    view, best_effort = ssn.job(job), ssn.snapshot.tasks.best_effort
    pending = view.counts[Status.PENDING]
    if len(rows) == pending:
        return True
    if not ssn.hooks.bound(Plugin.job_ready):
        return False
    asking = [row for row in rows if not best_effort[row]]
    if view.ready + view.waiting + pending - len(asking) < view.min_member:
        return True
    names, role = ssn.snapshot.roles, ssn.snapshot.tasks.role
    roles = Counter(count_roles(view, READY | {Status.PIPELINED, Status.PENDING}))
    roles.subtract(names[role[row]] for row in asking if role[row] != NOWHERE)
    return not meets_minima(roles, minima(view))
