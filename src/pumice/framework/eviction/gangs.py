"""Evictions for a whole job at a time: choose victims in a domain and try the job there.

The one engine behind gangpreempt and gangreclaim.  Victims are tasks of one job that go together: a
safe bundle leaves its job able to run; a whole bundle ends it, so it is evicted completely or not
at all.  Bundles are added until the job fits; a failed attempt is rolled back.
"""

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from pumice.api.annotations import PREEMPTABLE
from pumice.api.meta import is_true
from pumice.core.resources import STEP, Column, Mask, fits, need_of
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import READY, Job, Task, count_roles, minima
from pumice.framework.arguments import AllocateArguments, GangEvictionArguments, arguments_of
from pumice.framework.columns import Jobs
from pumice.framework.hooks import Ask
from pumice.framework.placing import NO_ROOM, vetoed
from pumice.framework.plugin import Plugin
from pumice.framework.session_state import SessionState
from pumice.framework.statement import Statement
from pumice.framework.topology.domains import Domain, GangEviction, SubGroup
from pumice.framework.topology.search import Worksheet, make_worksheet

_AT_ONCE = 64
"""Minimum number of tasks to ask plugins about together."""


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


# What plugins allow


def let_go(
    state: SessionState, eviction: GangEviction, bundles: Iterator[Bundle]
) -> Iterator[Bundle]:
    """Yield what plugins leave of bundles, in order.

    Plugins are asked about all candidates, and the first tier that names one of them decides.  If
    its plugins judge tasks one by one and agree on a single one, the tier decides whatever the
    others are: then bundles are asked about as they are needed.
    """
    hook = Plugin.gang_evictable
    first = next(iter(state.hooks.tiers(hook)), [])
    asks = [ask for plugin, ask in first if hook.__name__ in plugin.judges_alone]
    agreed = False
    for some in _few_at_a_time(bundles) if len(asks) == len(first) else ():
        rows = [row for bundle in some for row in bundle.tasks]
        allowed = _agreed(asks, eviction, rows)
        agreed = agreed or (allowed is not None and bool(allowed.any()))
        if not agreed or allowed is None:
            bundles = chain(some, bundles)
            break
        yield from keep_allowed(some, np.array(rows)[allowed].tolist())
    everything = list(bundles)
    if not everything:
        return
    rows = [row for bundle in everything for row in bundle.tasks]
    yield from keep_allowed(everything, state.policy.gang_evictable(eviction, rows))


def _few_at_a_time(bundles: Iterator[Bundle]) -> Iterator[list[Bundle]]:
    some, n = list[Bundle](), 0
    for bundle in bundles:
        some.append(bundle)
        n += len(bundle.tasks)
        if n >= _AT_ONCE:
            yield some
            some, n = [], 0
    if some:
        yield some


def _agreed(asks: list[Ask], eviction: GangEviction, rows: list[int]) -> Mask | None:
    """Mark the tasks that all plugins offer; None if they have no opinion."""
    kept: Mask | None = None
    for ask in asks:
        answer = ask(eviction, rows)
        if answer is not None:
            kept = answer if kept is None else kept & answer
    return kept


def keep_allowed(bundles: list[Bundle], allowed: Iterable[int]) -> list[Bundle]:
    """Remove what plugins did not allow: whole bundles altogether, safe ones task by task."""
    keep = set(allowed)
    out = []
    for bundle in bundles:
        left = [row for row in bundle.tasks if row in keep]
        if left and (not bundle.is_whole or len(left) == len(bundle.tasks)):
            out.append(Bundle(bundle.job, left, bundle.is_whole))
    return out


# The evictor


class GangEvictor:
    """Makes room for starving jobs, each as a whole."""

    def __init__(
        self, state: SessionState, action: str, configured: Mapping[str, Any], *, reclaims: bool
    ) -> None:
        self._state = state
        self._action = action
        self._reclaims = reclaims
        arguments = arguments_of(configured, action, GangEvictionArguments)
        self._max_domains = arguments.max_domains
        self._take_whole = arguments.take_whole
        # Volcano: placing here uses the arguments of allocate
        self._remembers = arguments_of(configured, "allocate", AllocateArguments).remember_errors
        self._found: dict[tuple[int, int, int], tuple[dict[int, list[int]], Column]] = {}

    def run(self) -> None:
        """Take queues in order and their starving jobs in order, each job once."""
        state, order = self._state, self._state.ordering
        starving = state.starving_jobs()
        heaps = {queue: order.job_heap(rows, live=True) for queue, rows in starving.items()}
        queues = order.queue_heap(state.queues_with_jobs(starving), live=True)
        while len(queues):
            queue = queues.pop()
            jobs = heaps.get(queue)
            if jobs is None or (self._reclaims and state.policy.overused(queue)):
                continue
            while len(jobs):
                self._serve(jobs.pop())

    def _serve(self, job: int) -> None:
        state = self._state
        stmt = Statement(state)
        self._make_room(stmt, job)
        if not state.policy.job_pipelined(job):
            stmt.discard()
        elif len(stmt):
            victims = stmt.victims()
            state.records.note_eviction(job, victims)
            stmt.commit()
            self._strike_off(victims)

    def _make_room(self, stmt: Statement, job: int) -> None:
        """Leave evictions and promises for a job in the statement, if any domain works."""
        state = self._state
        best_effort = state.snapshot.tasks.best_effort
        rows = [row for row in state.pending_tasks(job) if not best_effort[row]]
        sheet, _ = make_worksheet(state, job, rows)
        need = state.snapshot.sum_requests(self._demand(job, sheet))
        if not len(sheet):
            return
        if self._reclaims and not state.policy.preemptive(state.job(job).queue, need):
            return
        for domain in self._domains(job):
            eviction = GangEviction(state.job(job), domain, self._reclaims)
            if self._evict_in(stmt, eviction, sheet, need):
                return

    def _demand(self, job: int, sheet: Worksheet) -> list[int]:
        """List the tasks to make room for; of a running job, those of one sub-group."""
        left = sheet.copy()
        rows: list[int] = []
        while len(left):
            rows += left.tasks[left.pop().id]
            if self._state.policy.job_ready(job):
                break
        return rows

    def _domains(self, job: int) -> list[Domain]:
        """List the domains to look for victims in; without a limit, the whole cluster."""
        state = self._state
        top = state.topology.tree.top
        levels = state.policy.domain_levels(state.job(job), top, "evict")
        found = [domain for level in levels for domain in level][: self._max_domains]
        return found if found or state.topology.is_limited(job) else [top]

    def _evict_in(
        self, stmt: Statement, eviction: GangEviction, sheet: Worksheet, need: Column
    ) -> bool:
        """Add victims bundle by bundle until the job can be placed in a domain.

        Volcano: a plan is tried after the first, second, ... bundle, never with none.
        """
        snapshot, rows = self._state.snapshot, eviction.domain.rows
        nodes = snapshot.nodes
        room = (nodes.idle[:, rows] + nodes.releasing[:, rows]).sum(axis=1)
        found, amount = self._candidates(eviction)
        left = need_of(need)
        if not found or not fits(left, room + amount):
            return False
        start = stmt.checkpoint()
        for bundle in self._bundles(eviction, found, need):
            stmt.evict_many(bundle.tasks, self._action, eviction.job.key)
            room = room + snapshot.sum_requests(bundle.tasks)
            if fits(left, room) and self._place(stmt, eviction, sheet.copy()):
                return True
        stmt.rollback(start)
        return False

    def _candidates(self, eviction: GangEviction) -> tuple[dict[int, list[int]], Column]:
        """Find the candidate tasks and their sum; the same for a queue until one is evicted."""
        job = eviction.job
        key = (eviction.domain.index, job.queue, 0 if self._reclaims else job.priority)
        if key not in self._found:
            found = candidates(self._state, eviction)
            amount = self._state.snapshot.sum_requests(chain.from_iterable(found.values()))
            self._found[key] = (found, amount)
        return self._found[key]

    def _strike_off(self, victims: list[str]) -> None:
        """Remove evicted tasks from the candidates."""
        snapshot = self._state.snapshot
        gone = {snapshot.tasks.row_of[key] for key in victims}
        rows = np.fromiter(gone, dtype=np.intp)
        losers = set(snapshot.tasks.job[rows].tolist())
        shapes = np.unique(snapshot.tasks.shape[rows]).tolist()
        if any(snapshot.shapes[number].coarse for number in shapes):
            self._found.clear()  # an inexact sum cannot be reduced
        for key, (found, amount) in self._found.items():
            hit = losers & found.keys()
            lost = [row for job in hit for row in found[job] if row in gone]
            for job in hit:
                found[job] = [row for row in found[job] if row not in gone]
                if not found[job]:
                    del found[job]
            self._found[key] = (found, amount - snapshot.sum_requests(lost))

    def _bundles(
        self, eviction: GangEviction, found: dict[int, list[int]], need: Column
    ) -> Iterator[Bundle]:
        """Return the bundles of a domain that plugins offer, cheapest first."""
        state = self._state
        in_turn = bundles_in_turn(state, found, eviction, need)
        for bundle in let_go(state, eviction, in_turn):
            if self._take_whole or not bundle.is_whole:
                yield bundle

    def _place(self, stmt: Statement, eviction: GangEviction, sheet: Worksheet) -> bool:
        """Promise a job's sub-groups their room, one by one; undo if it falls short.

        A running job only asks for one more sub-group.
        """
        state, job = self._state, eviction.job.row
        start = stmt.checkpoint()
        was_ready = state.policy.job_ready(job)
        while len(sheet):
            part = sheet.pop()
            if not self._place_part(stmt, part, sheet.tasks[part.id], eviction.domain):
                break
            if state.policy.job_pipelined(job):
                return True
            if was_ready:
                break
        stmt.rollback(start)
        return False

    def _place_part(
        self, stmt: Statement, part: SubGroup, tasks: Sequence[int], within: Domain
    ) -> bool:
        """Promise a sub-group its room in the first domain that works, the widest first."""
        state = self._state
        levels = [[within]]
        if state.topology.is_limited(part.job):
            levels = state.policy.domain_levels(part, within, "evict")
        return any(
            self._pipeline_all(stmt, part, tasks, domain) for level in levels for domain in level
        )

    def _pipeline_all(
        self, stmt: Statement, part: SubGroup, tasks: Sequence[int], domain: Domain
    ) -> bool:
        """Pipeline every task of a sub-group on the nodes of a domain, or none."""
        state = self._state
        start = stmt.checkpoint()
        refused: dict[int, Mask] = {}
        for row in tasks:
            task = Task(state.snapshot, row)
            node = self._choose(task, domain, refused)
            if node is None or vetoed(state.placing, task, node):
                stmt.rollback(start)
                return False
            stmt.pipeline(row, node, freed=True)
        if state.policy.subgroup_ready(part) or state.policy.subgroup_pipelined(part):
            return True
        stmt.rollback(start)
        return False

    def _choose(self, task: Task, domain: Domain, refused: dict[int, Mask]) -> int | None:
        """Pick a node without a failure that evictions cannot cure, one with room now if any.

        ``refused`` holds, by role, the nodes that refused an earlier task of the attempt; they
        are not asked again.
        """
        state = self._state
        if (
            not state.policy.allocatable(task.queue, task)
            or state.policy.filter_task(task) is not None
        ):
            return None
        placing = state.placing
        fit = placing.fit(task)
        asked = domain.mask
        barred = state.records.barred.get(task.row)
        if barred is not None:
            asked = asked & ~np.asarray(barred)
        failing = asked & (placing.incurable(fit) | (fit.room == NO_ROOM))
        role = int(state.snapshot.tasks.role[task.row])
        if self._remembers and role != NOWHERE:
            failing = refused[role] = failing | refused.get(role, False)
        chosen = placing.choose_curable(task, fit, asked & ~failing)
        return None if chosen is None else chosen[0]
