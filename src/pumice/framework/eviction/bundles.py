"""Bundles of victims: what can be taken from a job without breaking its gang, and what cannot.

Used by gangpreempt and gangreclaim.  A safe bundle leaves its job able to run; a whole bundle ends
it, so it goes complete or not at all.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pumice.api.annotations import PREEMPTABLE
from pumice.api.meta import is_true
from pumice.core.resources import STEP, Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job
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
    """Find the tasks on a domain's nodes that may be asked for, by job."""
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
    found: dict[int, list[int]] = {}
    for row in rows[may_pay[owner]].tolist():
        found.setdefault(int(tasks.job[row]), []).append(row)
    return {job: local for job, local in found.items() if _may_lose_tasks(Job(snapshot, job))}


def _may_lose_tasks(job: Job) -> bool:
    """Read the pod group's own mark; without one its tasks decide for themselves."""
    meta = job.group.metadata
    mark = meta.annotations.get(PREEMPTABLE, meta.labels.get(PREEMPTABLE))
    return mark is None or is_true(mark)


def make_bundles(state: SessionState, found: dict[int, list[int]]) -> list[Bundle]:
    """Divide the candidates of each job into what it can spare and the rest."""
    bundles = []
    for job, rows in found.items():
        safe, rest = _spare(state, Job(state.snapshot, job), rows)
        if safe:
            bundles.append(Bundle(job, safe, is_whole=False))
        if rest:
            bundles.append(Bundle(job, rest, is_whole=True))
    return bundles


def _spare(state: SessionState, job: Job, rows: list[int]) -> tuple[list[int], list[int]]:
    """Split tasks, least important first, into those a job can lose and those it cannot."""
    tasks = state.snapshot.tasks
    ordered = sorted(rows, key=lambda row: (int(tasks.priority[row]), tasks.uids[row]))
    surplus = job.ready - job.min_member
    if surplus < 0:
        return ordered, []  # not a running gang any more: nothing left to break
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
        """Say whether the task's role stays above its least number."""
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
        """Say whether enough sub-groups stay ready without the task."""
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


def sort_bundles(
    state: SessionState, bundles: Iterable[Bundle], eviction: GangEviction, need: Column
) -> list[Bundle]:
    """Order bundles: safe ones first, then who is least worth keeping, then what brings most."""
    found = list(bundles)
    jobs = state.snapshot.jobs
    rank = {job: i for i, job in enumerate(state.ordering.sort_jobs({b.job for b in found}))}
    worth = {id(bundle): _worth(state.snapshot, bundle, need) for bundle in found}
    uids = state.snapshot.tasks.uids

    def compare(left: Bundle, right: Bundle) -> int:
        if left.is_whole != right.is_whole:
            return -1 if right.is_whole else 1
        if not eviction.reclaims:
            return rank[right.job] - rank[left.job]
        queues = int(jobs.queue[left.job]), int(jobs.queue[right.job])
        if queues[0] != queues[1]:
            order = state.ordering.compare_victim_queues(*queues, eviction.job.queue)
            if order:
                return order
        keys = [
            (-worth[id(each)], jobs.keys[each.job], uids[each.tasks[0]], len(each.tasks))
            for each in (left, right)
        ]
        return (keys[0] > keys[1]) - (keys[0] < keys[1])

    return sorted(found, key=functools.cmp_to_key(compare))


def _worth(snapshot: Snapshot, bundle: Bundle, need: Column) -> float:
    """Compare what a bundle brings with what its job loses, in units of what is needed."""
    if not bundle.is_whole:
        return np.inf
    asked = need >= STEP
    local = _parts(np.minimum(snapshot.sum_requests(bundle.tasks), need), need, asked)
    lost = _parts(snapshot.sum_requests(snapshot.jobs.tasks[bundle.job]), need, asked)
    return local / lost if lost else np.inf


def _parts(amounts: Column, need: Column, asked: Mask) -> float:
    return float((amounts[asked] / need[asked]).sum())


def keep_allowed(bundles: list[Bundle], allowed: Iterable[int]) -> list[Bundle]:
    """Leave out what plugins did not allow: whole bundles altogether, safe ones task by task."""
    keep = set(allowed)
    out = []
    for bundle in bundles:
        left = [row for row in bundle.tasks if row in keep]
        if left and (not bundle.is_whole or len(left) == len(bundle.tasks)):
            out.append(Bundle(bundle.job, left, bundle.is_whole))
    return out
