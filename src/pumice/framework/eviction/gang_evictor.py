"""Evictions for a whole job at a time: choose victims in a domain and try the job there.

The one engine behind gangpreempt and gangreclaim.  Victims are added bundle by bundle until the job
fits; a failed attempt is rolled back.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from pumice.core.resources import Column, Mask, fits, need_of
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.arguments import AllocateArguments, GangEvictionArguments, arguments_of
from pumice.framework.eviction.bundle_consent import let_go
from pumice.framework.eviction.bundles import Bundle, bundles_in_turn, candidates
from pumice.framework.eviction.gang_eviction import GangEviction
from pumice.framework.fits import NO_ROOM
from pumice.framework.placing import vetoed
from pumice.framework.session_state import SessionState
from pumice.framework.statement import Statement
from pumice.framework.topology.domains import Domain, SubGroup
from pumice.framework.topology.search import Worksheet, make_worksheet


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
