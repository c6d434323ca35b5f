"""Evictions for one task after the other: the base of preempt and reclaim.

For each task the nodes are visited in order.  On a node the plugins name victims, and these are
evicted, the least valuable first, until the task fits.  Where it does not, that is rolled back.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from functools import partial
from itertools import islice

from pumice.core.resources import Column, Mask, fits_one
from pumice.core.status import Status
from pumice.core.tables import ALLOCATED, BOOKED, NOWHERE
from pumice.core.views import Task
from pumice.framework.arguments import MinimalVictimsArguments
from pumice.framework.dispatch import Method
from pumice.framework.eviction.candidates import Candidates, Scope, Visit
from pumice.framework.eviction.minimal import MOST_NODES, MinimalVictims, Plan, Question
from pumice.framework.placement.equal_jobs import RefusedTurns
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.framework.session_state import SessionState
from pumice.framework.statement import Moves, Statement


class Evictor(ABC):
    """One run of an action: the candidates, and what need not be tried twice."""

    def __init__(
        self,
        ssn: Session,
        action: str,
        hook: Method,
        statuses: Iterable[Status],
        arguments: MinimalVictimsArguments,
    ) -> None:
        """Make it; plugins name victims by ``hook``, among tasks in one of some states."""
        self._ssn = ssn
        self._snapshot = ssn.snapshot
        self._action = action
        self._candidates = Candidates(ssn, hook, statuses)
        across = hook is Plugin.reclaimable  # within a queue, what it deserves does not matter
        limits = ssn.queue_limits if across else _unlimited
        is_minimal = arguments.minimal_victims
        self._minimal = MinimalVictims(ssn, arguments, limits) if is_minimal else None
        shares = not is_minimal and len(ssn.waiting_jobs()) > 1  # a budget of its own is asked
        self._refused_turns = RefusedTurns(ssn, ssn.equal_jobs) if shares else None
        self._hopeless: set[Hashable] = set()
        """Tasks that found no room since anything moved, by all that their attempt depends on."""
        self._failed = False
        """Whether the last node or attempt failed: the next one may fail for the same reason."""

    def serve(self, job: int) -> None:
        """Evict for a job until it no longer starves; keep the result if it can wait for it."""
        rows = self._ssn.ordering.sort_tasks(self._ssn.pending_tasks(job))
        if not self._is_refused(job, rows):
            self._serve(job, rows)
            self._end_turn()

    def _serve(self, job: int, rows: list[int]) -> None:
        ssn, minimal = self._ssn, self._minimal
        if minimal is not None and not minimal.may_ask(job):
            return
        stmt = ssn.statement()
        start = stmt.checkpoint()
        for row in rows:
            if not ssn.policy.job_starving(job):
                break
            task = Task(self._snapshot, row)
            self._attempt(stmt, task, self._scope(task))
        if not ssn.policy.job_pipelined(job):
            if len(stmt):
                self._hopeless.clear()
            stmt.discard()
        elif len(stmt):
            if minimal is not None:
                self._spare(stmt, start, job, minimal)
                minimal.note(stmt.evictions())
            ssn.records.note_eviction(job, stmt.victims())
            stmt.commit()

    def _is_refused(self, job: int, rows: list[int], *more: Hashable) -> bool:
        """Return whether an equal job was refused since anything moved; else a turn begins."""
        if self._refused_turns is None:
            return False
        barred = self._ssn.records.barred
        closed = tuple([id(barred.get(row, NOWHERE)) for row in rows])
        equal = self._refused_turns.begin(job, rows, closed, *more)
        if equal == NOWHERE:
            return False
        self._follow(job, equal)
        return True

    def _attempt(self, stmt: Statement, task: Task, scope: Scope) -> bool:
        """Pipeline a task, evicting members of a scope where that helps."""
        if not self._may_evict(task) or self._ssn.policy.filter_task(task) is not None:
            return False
        usable = self._usable(task)
        labels = int(self._snapshot.tasks.label_class[task.row])
        kind = self._ssn.placing.kind(task)
        attempt = (task.job, kind, task.priority, labels, scope.own_job, usable.tobytes())
        if attempt in self._hopeless:
            return False
        done = self._make_room(stmt, task, scope, usable)
        self._failed = not done
        if done:
            self._hopeless.clear()
        else:
            self._hopeless.add(attempt)
        return done

    def _visit(self, stmt: Statement, task: Task, scope: Scope, visit: Visit) -> bool:
        """Evict on the first node on which a task then fits, and pipeline it there."""
        if self._minimal is not None:
            return self._visit_cheapest(stmt, task, scope, visit, self._minimal)
        snapshot = self._snapshot
        for node in visit:
            victims = self._candidates.victims(scope, task, node)
            free = room = snapshot.nodes.future_idle_of(node)
            for victim in victims:
                room = room + snapshot.request(victim)
            if not fits_one(task.need, room) or self._is_in_vain(visit, task, scope, room - free):
                continue
            start = stmt.checkpoint()
            if self._evict_on(stmt, task, node, victims):
                return True
            self._failed = True
            stmt.rollback(start)
        return False

    def _evict_on(self, stmt: Statement, task: Task, node: int, victims: list[int]) -> bool:
        """Evict on a node until a task fits; False if it does not with all of them gone."""
        turn = self._ssn.ordering.victims_in_turn(victims, task.queue)
        freed = False
        while not self._fits(task, node):
            victim = next(turn, NOWHERE)
            if victim == NOWHERE:
                return False
            stmt.evict(victim, self._action, task.key)
            freed = freed or self._makes_room(victim)
        if not self._may_stay(task, node):
            return False
        stmt.pipeline(task.row, node, freed=freed)
        return True

    def _end_turn(self) -> None:
        if self._refused_turns is not None:
            self._refused_turns.end()

    def _follow(self, job: int, equal: int) -> None:  # noqa: B027  # not every action does
        """Keep of a job what a turn would have left, by an equal one."""

    # The fewest victims

    def _visit_cheapest(
        self, stmt: Statement, task: Task, scope: Scope, visit: Visit, minimal: MinimalVictims
    ) -> bool:
        """Evict on the node whose victims cost least, and pipeline a task there."""
        best: Plan | None = None
        taken = [*stmt.evictions()]
        for node in islice(visit, MOST_NODES):
            offered = minimal.offered(task, self._candidates.victims(scope, task, node))
            works = partial(self._works, stmt, task, node)
            plan = minimal.cheapest(Question(task, node, offered, taken, works))
            if plan is not None and (best is None or plan.cost < best.cost):
                best = plan
            if best is not None and not best.victims:
                break
        if best is None:
            return False
        for victim in best.victims:
            stmt.evict(victim, self._action, task.key)
        freed = any(map(self._makes_room, best.victims))
        stmt.pipeline(task.row, best.node, freed=freed)
        return True

    def _works(self, stmt: Statement, task: Task, node: int, victims: list[int]) -> bool:
        """Try whether a task fits on a node without some pods."""
        start = stmt.checkpoint()
        for victim in victims:
            stmt.evict(victim, self._action, task.key)
        works = self._fits(task, node) and self._may_stay(task, node)
        stmt.rollback(start)
        return works

    def _spare(
        self, stmt: Statement, start: tuple[int, int], job: int, minimal: MinimalVictims
    ) -> None:
        """Keep each victim without which all tasks that got a place still have it.

        A later task may have emptied a node further than the one before had to.
        """
        evictions, moves = stmt.evictions(), stmt.moves_since(start)
        freed = {task for task, _, _ in moves if task in self._ssn.intents.nominations}

        def works(kept: dict[int, str]) -> bool:
            stmt.rollback(start)
            placed = self._repeats(stmt, kept, moves, freed)
            return placed and bool(self._ssn.policy.job_pipelined(job))

        for victim in minimal.spared_first(evictions):
            fewer = {row: whom for row, whom in evictions.items() if row != victim}
            if works(fewer):
                evictions = fewer
        works(evictions)

    def _repeats(
        self, stmt: Statement, evictions: dict[int, str], moves: Moves, freed: set[int]
    ) -> bool:
        """Make evictions and placements once more; return whether all tasks fit."""
        for victim, whom in evictions.items():
            stmt.evict(victim, self._action, whom)
        for row, node, _ in moves:
            task = Task(self._snapshot, row)
            if not self._fits(task, node) or not self._may_stay(task, node):
                return False
            stmt.pipeline(row, node, freed=row in freed)
        return True

    # What the actions decide

    @abstractmethod
    def _scope(self, task: Task) -> Scope:
        """Return the candidates that a task may evict."""

    @abstractmethod
    def _may_evict(self, task: Task) -> bool:
        """Return whether a task may evict anything at all."""

    @abstractmethod
    def _usable(self, task: Task) -> Mask:
        """Mark nodes that evictions could open for a task (n,)."""

    @abstractmethod
    def _make_room(self, stmt: Statement, task: Task, scope: Scope, usable: Mask) -> bool:
        """Pipeline a task on one of the usable nodes, evicting members of a scope."""

    @abstractmethod
    def _fits(self, task: Task, node: int) -> bool:
        """Return whether a task fits on a node once the pods that were evicted are gone."""

    def _may_stay(self, task: Task, node: int) -> bool:  # noqa: ARG002  # for subclasses
        """Return whether a task that fits on a node may be placed there."""
        return True

    def _makes_room(self, victim: int) -> bool:  # noqa: ARG002  # for subclasses
        """Return whether the eviction of a task counts as room made for another."""
        return True

    def _is_in_vain(self, visit: Visit, task: Task, scope: Scope, evicted: Column) -> bool:  # noqa: ARG002  # for subclasses
        """Return whether evicting so much (R,) cannot help; may drop further nodes, too."""
        return False


def _unlimited() -> None:
    return None


def fits_after_evictions(state: SessionState, task: Task, node: int) -> bool:
    """Return whether queue, node and filters would take a task once evicted pods are gone."""
    room = state.snapshot.nodes.future_idle_of(node)
    if not fits_one(task.need, room) or not state.policy.allocatable(task.queue, task):
        return False
    return bool(state.placing.judged(task).verdict[node] == 0)


def queue_takes(state: SessionState, task: Task, evicted: Column) -> bool:
    """Return whether the queue of a task takes it once so much of its own is evicted (R,).

    Only for plugins that are ``foreseeable``: they are asked about sums that do not exist yet.
    """
    snapshot, queue = state.snapshot, task.queue
    snapshot.journal.settle()
    sums = snapshot.queues.sums[:, :, queue]
    sums[ALLOCATED] -= evicted
    sums[BOOKED] -= evicted
    try:
        return bool(state.policy.allocatable(queue, task))
    finally:
        sums[ALLOCATED] += evicted
        sums[BOOKED] += evicted
