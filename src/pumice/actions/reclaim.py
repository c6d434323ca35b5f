"""reclaim: make room for starving jobs at the cost of queues that have more than their share."""

from collections.abc import Hashable

import numpy as np

from pumice.core.resources import fits
from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.eviction.candidates import Candidates
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.framework.statement import Statement


def reclaim(ssn: Session) -> None:
    """Take queues in order, those that have their share left out, and all their starving jobs."""
    starving = ssn.starving_jobs()
    if not starving:
        return
    reclamation = Reclamation(ssn)
    queues = ssn.ordering.queue_heap(starving, live=True)
    while len(queues):
        queue = queues.pop()
        if ssn.policy.overused(queue):
            continue
        jobs = ssn.ordering.job_heap(starving[queue], live=True)
        while len(jobs):
            reclamation.serve(jobs.pop(), queue)


class Reclamation:
    """One run of reclaim: the candidates, and what need not be tried twice."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._snapshot = ssn.snapshot
        self._candidates = Candidates(ssn, (Status.RUNNING,))
        self._hopeless: set[Hashable] = set()

    def serve(self, job: int, queue: int) -> None:
        """Evict for a job until it no longer starves; keep the result if it can wait for it."""
        ssn = self._ssn
        stmt = ssn.statement()
        for row in ssn.ordering.sort_tasks(ssn.pending_tasks(job)):
            if not ssn.policy.job_starving(job):
                break
            task = Task(self._snapshot, row)
            if self._may_reclaim(task, queue):
                self._attempt(stmt, task)
        if not ssn.policy.job_pipelined(job):
            stmt.discard()
            self._hopeless.clear()
        elif len(stmt):
            ssn.records.note_eviction(job, stmt.victims())
            stmt.commit()

    def _may_reclaim(self, task: Task, queue: int) -> bool:
        if task.pod.spec.preemption_policy == "Never":
            return False
        if not self._ssn.policy.preemptive(queue, task.request[:, 0]):
            return False
        return self._ssn.policy.filter_task(task) is None

    def _attempt(self, stmt: Statement, task: Task) -> None:
        """Pipeline a task on the first node, in list order, that can be made to hold it."""
        placing, candidates = self._ssn.placing, self._candidates
        usable = ~placing.incurable(placing.fit(task))
        barred = self._ssn.records.barred.get(task.row)
        if barred is not None:
            usable &= ~barred
        attempt = (task.job, task.shape.id, task.priority, usable.tobytes())
        if attempt in self._hopeless:
            return
        scope = candidates.of_other_queues(task.queue)
        hopeful = usable & candidates.with_room(scope, task) & candidates.occupied(scope)
        for node in candidates.visit(Plugin.reclaimable, scope, task, np.flatnonzero(hopeful)):
            victims = candidates.victims(Plugin.reclaimable, scope, task, node)
            if self._make_room(stmt, task, node, victims):
                self._hopeless.clear()
                return
        # nothing has moved, so an equal task would fail, too
        self._hopeless.add(attempt)

    def _make_room(self, stmt: Statement, task: Task, node: int, victims: list[int]) -> bool:
        """Evict on a node just enough for a task, and pipeline it; False if all is not enough."""
        snapshot, request = self._snapshot, task.request[:, 0]
        room = snapshot.nodes.future_idle_of(node)
        in_all = sum((snapshot.request(row) for row in victims), start=room)
        if not fits(request, in_all):
            return False
        turn = self._ssn.ordering.victims_in_turn(victims, task.queue)
        freed = False
        while not fits(request, room):
            victim = next(turn)
            stmt.evict(victim, "reclaim", task.key)
            room = room + snapshot.request(victim)
            freed = True
        stmt.pipeline(task.row, node, freed=freed)
        return True
