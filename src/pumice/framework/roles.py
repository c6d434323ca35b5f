"""Roles: minimum numbers of tasks (``minTaskMember``), the tasks that count, mixed kinds."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence

from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, PENDING, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Task

READY = ALLOCATED_CLASS | {Status.SUCCEEDED}


def mixed_roles(
    snapshot: Snapshot, rows: list[int], varying: Sequence[Callable[[Task], Hashable]]
) -> frozenset[int]:
    """Return the roles whose tasks differ in kind: a node may refuse one and take the next.

    Tasks differ by shape, and by what plugins look at besides: labels, annotations, the queue.
    """
    table = snapshot.tasks
    roles, kinds = table.role[rows].tolist(), [table.shape[rows].tolist()]
    tasks = [Task(snapshot, row) for row in rows] if varying else []
    kinds += [[vary_by(task) for task in tasks] for vary_by in varying]
    distinct = set(zip(roles, *kinds, strict=True))
    found = Counter(role for role, *_ in distinct if role != NOWHERE)
    return frozenset(role for role, n in found.items() if n > 1)


def minima(job: Job) -> dict[str, int]:
    """Return the minimum number of tasks of each role.

    They bind only if the job needs at least as many tasks as they add up to.
    """
    wanted: dict[str, int] = job.group.spec.min_task_member
    if not wanted or job.min_member < sum(wanted.values()):
        return {}
    return wanted


def count_roles(
    job: Job, statuses: Collection[Status], *, pending_best_effort: bool = False
) -> dict[str, int]:
    """Count a job's tasks by role over some statuses."""
    snapshot = job.snapshot
    tasks, names = snapshot.tasks, snapshot.roles
    counts: dict[str, int] = {}
    for row in job.tasks:
        status = int(tasks.status[row])
        extra = pending_best_effort and status == PENDING and tasks.best_effort[row]
        if status in statuses or extra:
            role = int(tasks.role[row])
            name = "" if role == NOWHERE else names[role]
            counts[name] = counts.get(name, 0) + 1
    return counts


def meets_minima(counts: dict[str, int], wanted: dict[str, int]) -> bool:
    """Return whether every role has its minimum number."""
    return all(counts.get(role, 0) >= least for role, least in wanted.items())


def roles_ready(job: Job, *, pipelined: bool = False) -> bool:
    """Return whether every role has its minimum number placed (or pipelined)."""
    wanted = minima(job)
    if not wanted:
        return True
    statuses = READY | {Status.PIPELINED} if pipelined else READY
    return meets_minima(count_roles(job, statuses, pending_best_effort=True), wanted)
