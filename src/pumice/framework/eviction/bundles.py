"""Bundles of victims: tasks that a job can lose without breaking its gang, and the others.

Used by gangpreempt and gangreclaim.  A safe bundle leaves its job able to run; a whole bundle ends
it, so it is evicted completely or not at all.
"""

import functools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.api.annotations import PREEMPTABLE
from pumice.api.meta import is_true
from pumice.core.resources import STEP, Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job
from pumice.framework.columns import Jobs
from pumice.framework.eviction.gang_eviction import GangEviction
from pumice.framework.roles import READY, count_roles, minima
from pumice.framework.session_state import SessionState


@dataclass(slots=True)
class Bundle:
    """Tasks of one job that are evicted together."""

    job: int
    tasks: list[int]
    is_whole: bool


def candidates(state: SessionState, eviction: GangEviction) -> dict[int, list[int]]:
    """Find the candidate tasks on a domain's nodes, by job."""
    snapshot = state.snapshot
    tasks, jobs, queues = snapshot.tasks, snapshot.jobs, snapshot.queues
    statuses = [Status.RUNNING] if eviction.reclaims else [Status.RUNNING, Status.BOUND]
    on_node = tasks.node[: tasks.n] != NOWHERE
    fit = on_node & tasks.preemptable[: tasks.n] & (tasks.job[: tasks.n] != NOWHERE)
    fit &= np.isin(tasks.status[: tasks.n], statuses)
    rows = np.flatnonzero(fit)
    rows = rows[eviction.domain.mask[tasks.node[rows]]]
    owner = tasks.job[rows]
    mine = eviction.job.queue
    if eviction.reclaims:
        may_pay = (jobs.queue != mine) & queues.reclaimable[jobs.queue]
    else:
        may_pay = (jobs.queue == mine) & (jobs.priority < eviction.job.priority)
    may_pay &= jobs.listed
    rows = rows[may_pay[owner]]
    rows = rows[np.argsort(tasks.job[rows], kind="stable")]
    known, starts = np.unique(tasks.job[rows], return_index=True)
    ends, local = np.append(starts, len(rows))[1:].tolist(), rows.tolist()
    return {
        job: local[start:end]
        for job, start, end in zip(known.tolist(), starts.tolist(), ends, strict=True)
        if _may_lose_tasks(Job(snapshot, job))
    }


def _may_lose_tasks(job: Job) -> bool:
    """Read the pod group's own annotation; without one its tasks decide for themselves."""
    meta = job.group.metadata
    mark = meta.annotations.get(PREEMPTABLE, meta.labels.get(PREEMPTABLE))
    return mark is None or is_true(mark)


def bundles_in_turn(
    state: SessionState, found: dict[int, list[int]], eviction: GangEviction, need: Column
) -> Iterator[Bundle]:
    """Return the bundles of all candidates in the order of eviction.

    Safe ones go first, then the least valuable, then those that free most.  A job is not
    divided before its turn.
    """
    rows = np.fromiter(found, dtype=np.intp, count=len(found))
    jobs = Jobs(state.snapshot, rows)
    can_spare = rows[jobs.ready != jobs.min_member].tolist()
    turn = _job_turns(state, found, eviction)  # the state before any eviction
    whole: list[Bundle] = []
    for job in (*sorted(can_spare, key=turn.__getitem__), *(found.keys() - set(can_spare))):
        safe, rest = _spare(state, Job(state.snapshot, job), found[job])
        if safe:
            yield Bundle(job, safe, is_whole=False)
        if rest:
            whole.append(Bundle(job, rest, is_whole=True))

    def key(bundle: Bundle) -> tuple[Any, ...]:
        queue, place = turn[bundle.job]
        worth = _worth(state.snapshot, bundle, need) if eviction.reclaims else 0.0
        return queue, -worth, place

    yield from sorted(whole, key=key)


def _spare(state: SessionState, job: Job, rows: list[int]) -> tuple[list[int], list[int]]:
    """Split tasks, least important first, into those a job can lose and those it cannot."""
    tasks = state.snapshot.tasks
    uids = [tasks.uids[row] for row in rows]
    worth = zip(tasks.priority[rows].tolist(), uids, rows, strict=True)
    ordered = [row for _, _, row in sorted(worth)]
    surplus = job.ready - job.min_member
    if surplus < 0:
        return ordered, []  # no longer a running gang: nothing left to break
    if not minima(job) and not job.group.spec.sub_group_policy:
        return ordered[:surplus], ordered[surplus:]
    spares: tuple[_RoleSpares, _SubGroupSpares] = (_RoleSpares(job), _SubGroupSpares(state, job))
    safe: list[int] = []
    rest: list[int] = []
    for row in ordered:
        if surplus > 0 and all(spare.allows(row) for spare in spares):
            surplus -= 1
            for spare in spares:
                spare.take(row)
            safe.append(row)
        else:
            rest.append(row)
    return safe, rest


class _RoleSpares:
    """How many tasks of each role a job can lose."""

    def __init__(self, job: Job) -> None:
        self._snapshot = job.snapshot
        placed = count_roles(job, READY, pending_best_effort=True)
        self._left = {role: placed.get(role, 0) - least for role, least in minima(job).items()}

    def _role(self, row: int) -> str:
        role = int(self._snapshot.tasks.role[row])
        return "" if role == NOWHERE else self._snapshot.roles[role]

    def allows(self, row: int) -> bool:
        """Return whether the task's role stays above its least number."""
        return self._left.get(self._role(row), 1) > 0

    def take(self, row: int) -> None:
        """Count a task as gone."""
        role = self._role(row)
        if role in self._left:
            self._left[role] -= 1


class _SubGroupSpares:
    """How many sub-groups of each policy a job can lose; a broken one costs nothing more."""

    def __init__(self, state: SessionState, job: Job) -> None:
        self._topology = state.topology
        policies = job.group.spec.sub_group_policy
        self._left = {policy.name: -(policy.min_sub_groups or 0) for policy in policies}
        self._broken: set[str] = set()
        self._applies = bool(policies)
        for part in state.topology.subgroups(job.row) if policies else ():
            if part.is_ready:
                self._left[part.policy] = self._left.get(part.policy, 0) + 1
            else:
                self._broken.add(part.id)

    def allows(self, row: int) -> bool:
        """Return whether enough sub-groups stay ready without the task."""
        if not self._applies:
            return True
        part = self._topology.subgroup_of(row)
        return part.id in self._broken or self._left.get(part.policy, 0) > 0

    def take(self, row: int) -> None:
        """Count a task as gone."""
        if self._applies:
            part = self._topology.subgroup_of(row)
            if part.id not in self._broken:
                self._broken.add(part.id)
                self._left[part.policy] -= 1


def _job_turns(
    state: SessionState, jobs: Collection[int], eviction: GangEviction
) -> dict[int, tuple[int, Any]]:
    """Return the order of jobs' bundles: the turn of their queue, and the place inside it."""
    if not eviction.reclaims:
        return {job: (0, -rank) for rank, job in enumerate(state.ordering.sort_jobs(jobs))}
    queue_of, keys = state.snapshot.jobs.queue, state.snapshot.jobs.keys
    mine, compare = eviction.job.queue, state.ordering.compare_victim_queues

    def order(left: int, right: int) -> int:
        return compare(left, right, mine)

    queues = sorted({int(queue_of[job]) for job in jobs}, key=functools.cmp_to_key(order))
    turn = {queue: at for at, queue in enumerate(queues)}
    return {job: (turn[int(queue_of[job])], keys[job]) for job in jobs}


def _worth(snapshot: Snapshot, whole: Bundle, need: Column) -> float:
    """Compare what a whole bundle frees with what its job loses, in units of the need."""
    asked = need >= STEP
    local = _parts(np.minimum(snapshot.sum_requests(whole.tasks), need), need, asked)
    lost = _parts(snapshot.sum_requests(snapshot.jobs.tasks[whole.job]), need, asked)
    return local / lost if lost else np.inf


def _parts(amounts: Column, need: Column, asked: Mask) -> float:
    return float((amounts[asked] / need[asked]).sum())
