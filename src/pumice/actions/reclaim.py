"""reclaim: make room for starving jobs at the cost of queues that have more than their share."""

from collections.abc import Hashable

from pumice.core.resources import Mask, fits
from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.eviction.candidates import Candidates, Scope
from pumice.framework.eviction.eviction_runs import EvictionRuns
from pumice.framework.placing import vetoed
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.framework.statement import Statement


def reclaim(ssn: Session) -> None:
    """Take queues in order, those that have their share left out, and all their starving jobs."""
    starving = ssn.starving_jobs()
    if not starving:
        return
    reclamation = Reclamation(ssn)
    heaps = {queue: ssn.ordering.job_heap(rows, live=True) for queue, rows in starving.items()}
    queues = ssn.ordering.queue_heap(ssn.queues_with_jobs(starving), live=True)
    while len(queues):
        queue = queues.pop()
        jobs = heaps.get(queue)
        if jobs is None or ssn.policy.overused(queue):
            continue
        while len(jobs):
            reclamation.serve(jobs.pop(), queue, [row for _, row in jobs.entries])


class Reclamation:
    """One run of reclaim: the candidates, and what need not be tried twice."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._snapshot = ssn.snapshot
        self._candidates = Candidates(ssn, (Status.RUNNING,))
        self._runs = EvictionRuns(ssn, self._candidates, Plugin.reclaimable)
        self._hopeless: set[Hashable] = set()
        self._in_vain = False
        """Whether no room was found for the last task: the next is tried by itself first."""

    def serve(self, job: int, queue: int, later: list[int]) -> None:
        """Evict for a job until it no longer starves; keep the result if it can wait for it.

        ``later`` are the jobs of the queue that come after it.
        """
        ssn = self._ssn
        stmt = ssn.statement()
        tasks = ssn.ordering.sort_tasks(ssn.pending_tasks(job))
        for row in self._runs.rest(
            stmt, tasks, lambda left: self._serve_together(stmt, left, queue, later)
        ):
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

    def _serve_together(
        self, stmt: Statement, tasks: list[int], queue: int, later: list[int]
    ) -> int:
        """Make room for equal tasks at once; returns for how many of the first."""
        task, policy, candidates = (
            Task(self._snapshot, tasks[0]),
            self._ssn.policy,
            self._candidates,
        )
        request = task.request[:, 0]
        if self._hopeless or self._in_vain:  # mostly, because an equal one just failed
            return 0
        n = self._runs.equals(
            tasks, lambda: policy.job_starving(task.job) and policy.preemptive(queue, request)
        )
        if not n:
            return 0
        scope = candidates.of_other_queues(task.queue)
        served = self._runs.in_order(
            stmt,
            tasks[:n],
            scope,
            lambda: self._hopeful(task, scope, self._usable(task)).nonzero()[0],
            later,
        )
        if served:
            self._hopeless.clear()
        return served

    def _may_reclaim(self, task: Task, queue: int) -> bool:
        if task.pod.spec.preemption_policy == "Never":
            return False
        if not self._ssn.policy.preemptive(queue, task.request[:, 0]):
            return False
        return self._ssn.policy.filter_task(task) is None

    def _attempt(self, stmt: Statement, task: Task) -> None:
        """Pipeline a task on the first node, in list order, that can be made to hold it."""
        candidates, usable = self._candidates, self._usable(task)
        attempt = (task.job, self._ssn.placing.kind(task), task.priority, usable.tobytes())
        if attempt in self._hopeless:
            return
        scope = candidates.of_other_queues(task.queue)
        nodes = self._hopeful(task, scope, usable).nonzero()[0]
        for node in candidates.visit(Plugin.reclaimable, scope, task, nodes):
            victims = candidates.victims(Plugin.reclaimable, scope, task, node)
            if self._make_room(stmt, task, node, victims):
                self._hopeless.clear()
                self._in_vain = False
                return
        # nothing has moved, so an equal task would fail, too
        self._hopeless.add(attempt)
        self._in_vain = True

    def _usable(self, task: Task) -> Mask:
        """Mark nodes that evictions could open for a task (n,)."""
        placing = self._ssn.placing
        usable = ~placing.incurable(placing.judged(task))
        barred = self._ssn.records.barred.get(task.row)
        return usable if barred is None else usable & ~barred

    def _hopeful(self, task: Task, scope: Scope, usable: Mask) -> Mask:
        """Mark those of them that have room if all leave who may be asked for (n,)."""
        candidates = self._candidates
        return usable & candidates.with_room(scope, task) & candidates.occupied(scope)

    def _make_room(self, stmt: Statement, task: Task, node: int, victims: list[int]) -> bool:
        """Evict on a node just enough for a task, and pipeline it; False if all is not enough."""
        snapshot, need, start = self._snapshot, task.need[:, 0], stmt.checkpoint()
        room = snapshot.nodes.future_idle_of(node)
        in_all = sum((snapshot.request(row) for row in victims), start=room)
        if not fits(need, in_all):
            return False
        turn = self._ssn.ordering.victims_in_turn(victims, task.queue)
        freed = False
        while not fits(need, room):
            victim = next(turn)
            stmt.evict(victim, "reclaim", task.key)
            room = room + snapshot.request(victim)
            freed = True
        if vetoed(self._ssn.placing, task, node):
            stmt.rollback(start)
            return False
        stmt.pipeline(task.row, node, freed=freed)
        return True
