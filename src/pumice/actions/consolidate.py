"""consolidate: start a waiting gang by moving a few restartable pods to other nodes.

The whole plan is made in a statement before anything is written: each pod that moves has a new
place in room that is idle now, and all tasks that the gang needs have theirs.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from pumice.api.annotations import RESTARTABLE
from pumice.api.wording import counted
from pumice.core.resources import IndexArray, Mask, fits, fits_one
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Task
from pumice.framework.arguments import ConsolidateArguments, arguments_of
from pumice.framework.plugin import Plugin
from pumice.framework.session import NewPlaces, Session
from pumice.framework.statement import Statement

_NAME: Final = "consolidate"


def consolidate(ssn: Session) -> None:
    """Take queues and their waiting gangs in order; plan for the first few that find no room."""
    plans = Consolidation(ssn)
    waiting: dict[int, list[int]] = {}
    for job in ssn.waiting_jobs():
        if plans.may_start(job):
            waiting.setdefault(int(ssn.snapshot.jobs.queue[job]), []).append(job)
    for queue in ssn.ordering.sort_queues(waiting):
        for job in ssn.ordering.sort_jobs(waiting[queue]):
            if ssn.policy.overused(queue) or not plans.tries_left:
                break
            plans.serve(job)


class _Move(NamedTuple):
    """A pod and its new node."""

    task: int
    node: int


class Consolidation:
    """One run of consolidate."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._snapshot = ssn.snapshot
        self._arguments = arguments_of(ssn.action_arguments, _NAME, ConsolidateArguments)
        self.tries_left = self._arguments.max_jobs
        self._done: dict[str, float] = ssn.memory.setdefault(_NAME, {})
        """Jobs that were started or moved so, and when."""
        for key, at in list(self._done.items()):
            if not 0 <= ssn.now - at < self._arguments.pause:
                del self._done[key]
        if self._done:
            ssn.journal.put({}, _NAME, ssn.now)  # so that no later cycle is taken for this one
        self._booked = np.zeros_like(ssn.snapshot.nodes.future_idle)
        """What pods that move get on their new nodes (R, N)."""
        self._moves: list[_Move] = []

    def may_start(self, job: int) -> bool:
        """Return whether a job waits as a whole, for room that is not on its way."""
        view = Job(self._snapshot, job)
        return (
            not self._ssn.policy.job_valid(job)
            and not self._ssn.topology.has_topology(job)
            and self._snapshot.jobs.keys[job] not in self._done
            and view.waiting == 0
            and view.ready + view.pending_best_effort < view.min_member
        )

    def serve(self, job: int) -> None:
        """Plan for a job; keep the plan if it can start as soon as the moved pods are gone."""
        ssn, view = self._ssn, Job(self._snapshot, job)
        self.tries_left -= 1
        stmt = ssn.statement()
        self._booked[:] = 0.0
        self._moves = []
        for row in ssn.ordering.sort_tasks(ssn.tasks_to_allocate(job)):
            if view.ready + view.waiting + view.pending_best_effort >= view.min_member:
                break
            task = Task(self._snapshot, row)
            if ssn.policy.filter_task(task) is not None or not self._place(stmt, task):
                break
        placed = view.ready + view.waiting + view.pending_best_effort
        if placed < view.min_member or not self._moves or not ssn.policy.job_pipelined(job):
            stmt.discard()
            return
        stmt.explain(self._account(view.key, view.min_member))
        self._remember(view.key)
        ssn.records.note_eviction(job, stmt.victims())
        stmt.commit()

    # The gang

    def _place(self, stmt: Statement, task: Task) -> bool:
        """Pipeline a task where there is room, else where the fewest pods have to move."""
        judged = self._ssn.placing.judged(task)
        room = fits(task.need, self._snapshot.nodes.future_idle - self._booked)
        free = np.flatnonzero((judged.verdict == 0) & room)
        if len(free):
            if not self._ssn.policy.allocatable(task.queue, task):
                return False
            stmt.pipeline(task.row, self._best(task, free))
            return True
        best: list[_Move] | None = None
        into = NOWHERE
        for node in np.flatnonzero(~self._ssn.placing.incurable(judged)).tolist():
            moves = self._clear(stmt, task, node)
            if moves is not None and (best is None or self._cost(moves) < self._cost(best)):
                best, into = moves, node
        if best is None:
            return False
        for move in best:
            self._book(move)
            stmt.evict(move.task, _NAME, task.key)
        stmt.pipeline(task.row, into, freed=True)
        return True

    def _clear(self, stmt: Statement, task: Task, node: int) -> list[_Move] | None:
        """Find the pods of a node that move so that a task fits; None if none suffice."""
        rows = self._movable(task, node)
        left = self._arguments.max_moves - len(self._moves)
        room = self._snapshot.nodes.future_idle_of(node) - self._booked[:, node]
        chosen: list[int] = []
        for row in sorted(rows, key=self._ran):
            if fits_one(task.need, room):
                break
            chosen.append(row)
            room = room + self._snapshot.request(row)
        for row in sorted(chosen, key=self._ran, reverse=True):
            if fits_one(task.need, room - self._snapshot.request(row)):
                room = room - self._snapshot.request(row)
                chosen.remove(row)
        if not chosen or len(chosen) > left or not fits_one(task.need, room):
            return None
        return self._tried(stmt, task, node, chosen)

    def _tried(self, stmt: Statement, task: Task, node: int, rows: list[int]) -> list[_Move] | None:
        """Find new places for pods, and try whether the task may have theirs."""
        booked, start = self._booked.copy(), stmt.checkpoint()
        moves: list[_Move] = []
        for row in rows:
            place = self._new_place(row, node, task)
            if place == NOWHERE:
                break
            moves.append(_Move(row, place))
            self._booked[:, place] += self._snapshot.request(row)
        for row in rows:
            stmt.evict(row, _NAME, task.key)
        takes = bool(self._ssn.policy.allocatable(task.queue, task))
        works = takes and bool(self._ssn.placing.judged(task).verdict[node] == 0)
        stmt.rollback(start)
        self._booked = booked
        return moves if works and len(moves) == len(rows) else None

    # Pods that move

    def _movable(self, task: Task, node: int) -> list[int]:
        """List the pods of a node that may move for a task."""
        tasks = self._snapshot.tasks
        rows = [
            row
            for row in self._snapshot.nodes.tasks[node]
            if int(tasks.status[row]) == Status.RUNNING
            and tasks.preemptable[row]
            and not tasks.best_effort[row]
            and tasks.job[row] not in (NOWHERE, task.job)
            and tasks.priority[row] <= task.priority
            and self._is_restartable(row)
        ]
        guards = [
            ask
            for plugin, ask in self._ssn.hooks.bound(Plugin.preemptable)
            if plugin.protects and _NAME in plugin.protects_in
        ]
        for ask in guards:
            mask: Mask | None = ask(task, rows) if rows else None
            if mask is not None:
                rows = [row for row, may_go in zip(rows, mask, strict=True) if may_go]
        return rows

    def _is_restartable(self, row: int) -> bool:
        """Return whether a pod starts again elsewhere, and no gang falls apart without it."""
        pod = Task(self._snapshot, row).pod
        job = Job(self._snapshot, int(self._snapshot.tasks.job[row]))
        if job.key in self._done:
            return False
        stated = pod.metadata.annotations.get(RESTARTABLE, job.annotations.get(RESTARTABLE))
        if stated is not None:
            return stated == "true"
        is_made_again = any(each.controller for each in pod.metadata.owner_references)
        return is_made_again and (job.min_member <= 1 or job.ready > job.min_member)

    def _new_place(self, row: int, old: int, gang: Task) -> int:
        """Return the best node with room for a pod that is idle now; NOWHERE without any.

        Nodes of no use to the gang come first: it has more tasks.
        """
        task, nodes, placing = Task(self._snapshot, row), self._snapshot.nodes, self._ssn.placing
        idle = nodes.idle - nodes.pipelined - self._booked
        allowed = (placing.judged(task).verdict == 0) & fits(task.need, idle)
        allowed[old] = False
        for move in self._moves:  # a node that is emptied is not filled again
            allowed[int(self._snapshot.tasks.node[move.task])] = False
        useful = fits(gang.need, nodes.allocatable) & ~placing.incurable(placing.judged(gang))
        found = np.flatnonzero(allowed & ~useful if (allowed & ~useful).any() else allowed)
        return self._best(task, found) if len(found) else NOWHERE

    def _best(self, task: Task, nodes: IndexArray) -> int:
        return int(nodes[int(np.argmax(self._ssn.placing.scores(task, nodes)))])

    def _book(self, move: _Move) -> None:
        self._booked[:, move.node] += self._snapshot.request(move.task)
        self._moves.append(move)

    def _remember(self, job: str) -> None:
        """Leave these jobs alone for a while, and show pods that start again their new places."""
        now, names = self._ssn.now, self._snapshot.nodes.names
        self._done[job] = now
        places: dict[str, list[str]] = {}
        for move in self._moves:
            places.setdefault(self._owner(move.task), []).append(names[move.node])
        for key, nodes in places.items():
            self._done[key] = now
            until = now + self._arguments.pause
            self._ssn.new_places[key] = NewPlaces(tuple(nodes), now, until)

    # Cost and gain

    def _ran(self, row: int) -> float:
        """Return how long a pod ran, which is lost."""
        started = float(self._snapshot.tasks.started[row])
        return 0.0 if np.isnan(started) else max(0.0, self._ssn.now - started)

    def _cost(self, moves: list[_Move]) -> tuple[int, float]:
        return len(moves), sum(self._ran(move.task) for move in moves)

    def _owner(self, row: int) -> str:
        return self._snapshot.jobs.keys[int(self._snapshot.tasks.job[row])]

    def _account(self, job: str, started: int) -> Mapping[int, str]:
        """Describe cost and gain for each pod that moves."""
        names, keys = self._snapshot.nodes.names, self._snapshot.tasks.keys
        lost = sum(self._ran(move.task) for move in self._moves)
        gain = f"{counted(started, 'pod')} of {job} can start"
        cost = f"{counted(len(self._moves), 'pod')} restart, {lost:.0f}s of work lost"
        return {
            move.task: f"{keys[move.task]} has room on {names[move.node]}; {gain}; {cost}"
            for move in self._moves
        }
