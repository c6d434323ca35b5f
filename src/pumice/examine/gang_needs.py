"""The pods that a gang still needs, and the queue that refuses all of them together."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pumice.api.codes import Cause
from pumice.api.decisions import Short, short_of
from pumice.api.wording import counted, first_of
from pumice.core.resources import Column
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import READY, count_roles, meets_minima, minima
from pumice.examine.findings import Finding, ObjectRef
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Record, Refusal, Stage
from pumice.framework.session import Session
from pumice.framework.topology.domains import SubGroup

_NAMED: Final = 3


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


# Sub-groups that lack pods

_ALIVE: Final = frozenset(Status) - {Status.FAILED, Status.RELEASING, Status.UNKNOWN}


def incomplete_parts(ssn: Session, job: int) -> Finding | None:
    """Return that pods make too few sub-groups of full size; None if they make enough.

    A sub-group that lacks pods is not placed at all, so its pods do not count for the gang.
    """
    if not ssn.topology.has_policy(job) or not ssn.hooks.bound(Plugin.job_ready):
        return None
    view, status = ssn.job(job), ssn.snapshot.tasks.status
    parts = ssn.topology.subgroups(job)
    pods = {part.id: sum(Status(int(status[row])) in _ALIVE for row in part.rows) for part in parts}
    full = [part for part in parts if pods[part.id] >= part.size]
    usable = sum(pods[part.id] for part in full)
    for policy in view.group.spec.sub_group_policy:
        least, size = policy.min_sub_groups or 0, policy.sub_group_size or 1
        made = [part for part in parts if part.policy == policy.name]
        complete = sum(part in full for part in made)
        is_short = complete < least
        if not is_short and (len(made) == complete or usable >= view.min_member):
            continue
        numbers = {
            "policy": policy.name,
            "complete": complete,
            "minSubGroups": least,
            "subGroupSize": size,
            "pods": usable,
            "minMember": view.min_member,
        }
        text = (
            f"its pods make {complete} of the {counted(least, 'sub-group')} of "
            f"{counted(size, 'pod')} that policy {policy.name} needs"
            if is_short
            else f"only {usable} of the {view.min_member} pods that it needs to start are in "
            f"complete sub-groups of {counted(size, 'pod')} (policy {policy.name})"
        )
        few = [f"{_short_id(part)} has {pods[part.id]}" for part in made if part not in full]
        lacking = f"no pod has the label {' and '.join(policy.match_label_keys)}"
        more = first_of(few, _NAMED) if few else "" if made else lacking
        text += f"; {more}" if more else ""
        return Finding(Cause.TOO_FEW_PODS, text, ObjectRef.of_key("PodGroup", view.key), numbers)
    return None


def _short_id(part: SubGroup) -> str:
    return part.id.rpartition("/")[2]


# What a queue answers to the whole gang


@dataclass(frozen=True)
class _Refused:
    """A pod that the queue refuses, and what the gang asked for with it."""

    refusal: Refusal
    row: int
    task: str
    pods: int
    """Pods of the gang up to this one."""
    before: Column
    """What those before it ask for (R,)."""
    asked: Column
    """The same with this one (R,)."""


def gang_refused(ssn: Session, job: int) -> Record | None:
    """Return the refusal of a queue that cannot take the gang of a job; None if it can.

    None also where devices are refused, which are not among the requests.
    """
    rows, needed = _asking(ssn, job)
    if _is_settled(ssn, rows, needed):
        refused = list(_asked(ssn, job, rows[:needed], skips=False))
        return _of_all(ssn, refused, rows[:needed]) if refused else None
    refused = list(_asked(ssn, job, rows, skips=True))
    return _of_some(ssn, refused[0]) if len(rows) - len(refused) < needed else None


def gang_request(ssn: Session, job: int) -> Column | None:
    """Return what the pods ask for that a gang still needs (R,); None if it is open which."""
    rows, needed = _asking(ssn, job)
    if not rows or not _is_settled(ssn, rows, needed):
        return None
    return np.asarray(np.sum([ssn.snapshot.request(row) for row in rows[:needed]], axis=0))


def _asking(ssn: Session, job: int) -> tuple[list[int], int]:
    """Return the pending tasks with requests of a job, and how many of them it needs to start."""
    best_effort = ssn.snapshot.tasks.best_effort
    pending = ssn.ordering.sort_tasks(pending_rows(ssn, job))
    rows = [row for row in pending if not best_effort[row]]
    return rows, min(max(still_needed(ssn, job), 1), len(rows))


def _is_settled(ssn: Session, rows: list[int], needed: int) -> bool:
    """Return whether it is known what the pods ask for with which a gang starts.

    Else it is open, but for those that the queue lets pass.
    """
    shapes = ssn.snapshot.tasks.shape
    return needed == len(rows) or len({int(shapes[row]) for row in rows}) == 1


def still_needed(ssn: Session, job: int) -> int:
    """Count the pods that a job must still place to start: one, if no plugin asks for a gang."""
    view = ssn.job(job)
    if not ssn.hooks.bound(Plugin.job_ready):
        return 1
    return view.min_member - view.ready - view.waiting - view.pending_best_effort


def pod_refused(ssn: Session, job: int, record: Record, before: list[int]) -> Record:
    """Return the refusal of a pod, with those placed ``before`` it as asked for and not as used."""
    row = ssn.snapshot.tasks.row_of[record.numbers["task"]]
    for one in _asked(ssn, job, [*before, row], skips=False):
        if one.row == row:
            return _of_some(ssn, one) or record
    return record


def _asked(ssn: Session, job: int, rows: list[int], *, skips: bool) -> Iterator[_Refused]:
    """Ask the queue for pods in turn; yield those refused, which are skipped or taken all the same.

    Best-effort pods are not asked for: nothing limits them.
    """
    queue = int(ssn.snapshot.jobs.queue[job])
    with _restored(ssn, queue) as sums:
        before, pods = sums[:, queue].copy(), 0
        for row in rows:
            task = ssn.task(row)
            verdict = ssn.policy.allocatable(queue, task)
            pods += 1
            if isinstance(verdict, Refusal):
                own = sums[:, queue] - before
                asked = own + ssn.snapshot.request(row)
                yield _Refused(verdict, row, task.key, pods, own, asked)
                if skips:
                    pods -= 1
                    continue
            sums[:, queue] += ssn.snapshot.request(row)


@contextmanager
def _restored(ssn: Session, queue: int) -> Iterator[Column]:
    """Yield what queues hold, to be added to; that of one is as before in the end (R, Q)."""
    sums = ssn.snapshot.queues.allocated_or_pipelined
    before = sums[:, queue].copy()
    try:
        yield sums
    finally:
        sums[:, queue] = before


def _of_all(ssn: Session, refused: list[_Refused], rows: list[int]) -> Record | None:
    """Return the amounts of all pods of a gang, for the queue that refuses the first one."""
    first = refused[0]
    at = first.refusal.numbers.get("at")
    asked = np.sum([ssn.snapshot.request(row) for row in rows], axis=0)
    shorts: dict[str, Short] = {}
    for one in refused:
        if one.refusal.numbers.get("at") == at:
            for short in _amounts(ssn, one, asked):
                shorts.setdefault(short.resource, short)
    return _record(first, list(shorts.values()), len(rows))


def _of_some(ssn: Session, refused: _Refused) -> Record | None:
    return _record(refused, _amounts(ssn, refused, refused.asked), refused.pods)


def _amounts(ssn: Session, refused: _Refused, asked: Column) -> list[Short]:
    """Return what is short, with the pods of the gang as asked for and not as used."""
    names = ssn.snapshot.resources.names
    return [
        Short(
            short.resource,
            short.used - float(refused.before[at]),
            float(asked[at]),
            short.limit,
        )
        for short in short_of(refused.refusal.numbers)
        if short.resource in names
        for at in (names.index(short.resource),)
    ]


def _record(refused: _Refused, shorts: list[Short], pods: int) -> Record | None:
    if not shorts:
        return None
    first, *more = (short.numbers() for short in shorts)
    numbers: dict[str, Any] = {**refused.refusal.numbers, **first, "task": refused.task}
    numbers = {key: value for key, value in numbers.items() if key != "more"}
    numbers |= ({"more": more} if more else {}) | ({"pods": pods} if pods > 1 else {})
    return Record(Stage.QUOTA, refused.refusal.why, numbers, refused.refusal.code)
