"""preempt: make room for starving jobs at the cost of others in their queue, then within a job."""

from typing import Any

import numpy as np

from pumice.actions.preempt_dry_run import DryRun
from pumice.core.resources import STEP, Column, Mask
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.arguments import PreemptArguments, arguments_of
from pumice.framework.eviction.candidates import Scope, Visit
from pumice.framework.eviction.evictor import Evictor, fits_after_evictions, queue_takes
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.framework.statement import Statement


def preempt(ssn: Session) -> None:
    """Take queues in order: first job against job, then task against task of the same job."""
    found = {
        queue: [job for job in jobs if not ssn.topology.has_topology(job)]
        for queue, jobs in ssn.starving_jobs().items()
    }
    starving = {queue: jobs for queue, jobs in found.items() if jobs}
    if not starving:
        return
    preemption = Preemption(ssn)
    heaps = {queue: ssn.ordering.job_heap(rows, live=True) for queue, rows in starving.items()}
    queues = ssn.ordering.queue_heap(heaps, live=True)
    while len(queues):
        heap = heaps[queues.pop()]
        in_order = []
        while len(heap):
            in_order.append(heap.pop())
            preemption.serve(in_order[-1])
        for job in in_order:  # Volcano takes them in no defined order
            preemption.within_job(job)


class Preemption(Evictor):
    """One run of preempt: the best-scored node that can be made to hold the task."""

    def __init__(self, ssn: Session) -> None:
        arguments = arguments_of(ssn.action_arguments, "preempt", PreemptArguments)
        states = (Status.RUNNING, Status.BOUND)
        super().__init__(ssn, "preempt", Plugin.preemptable, states, arguments)
        self._remember = arguments.remember_errors
        self._refused: dict[tuple[int, int], Mask] = {}
        guards = ssn.hooks.bound(Plugin.allocatable)
        self._adds_up = all(plugin.foreseeable for plugin, _ in guards) and not any(
            shape.coarse for shape in ssn.snapshot.shapes
        )
        by_dry_run = arguments.by_dry_run and self._minimal is None
        self._dry_run = DryRun(ssn, self._candidates) if by_dry_run else None

    def within_job(self, job: int) -> None:
        """Evict less important tasks of the job itself; each success is committed by itself."""
        ssn = self._ssn
        if self._minimal is not None:  # no job evicts its own tasks
            return
        for row in ssn.ordering.sort_tasks(ssn.pending_tasks(job)):
            task = Task(self._snapshot, row)
            stmt = ssn.statement()
            scope = self._candidates.of_job(job, best_effort_only=task.best_effort)
            if not self._attempt(stmt, task, scope):
                break
            victims = stmt.victims()
            stmt.commit()
            if ssn.policy.job_pipelined(job):
                ssn.records.note_eviction(job, victims)
        self._candidates.forget_job(job)

    def _scope(self, task: Task) -> Scope:
        return self._candidates.of_queue(task.queue, best_effort_only=task.best_effort)

    def _may_evict(self, task: Task) -> bool:
        """Refuse pods that must not preempt, or whose room from an earlier cycle is on its way."""
        pod = task.pod
        if pod.spec.preemption_policy == "Never":
            return False
        if not pod.status.nominated_node_name:
            return True
        node = int(self._snapshot.tasks.nominated[task.row])
        if node == NOWHERE:
            return False
        verdict = self._ssn.placing.judged(task).verdict[node]
        if verdict == 0:
            return False
        if self._ssn.placing.lasting[verdict]:
            return True
        return not self._is_being_freed(node, _pod_priority(pod))

    def _is_being_freed(self, node: int, priority: int) -> bool:
        """Return whether a pod of lower priority is leaving a node because it was preempted."""
        pods = self._snapshot.tasks.pods
        leaving: list[Any] = [pods[row] for row in self._snapshot.nodes.tasks[node]]
        return any(
            pod.metadata.deletion_timestamp
            and _pod_priority(pod) < priority
            and _was_preempted(pod)
            for pod in leaving
        )

    def _usable(self, task: Task) -> Mask:
        """Mark nodes that evictions could open for a task (n,)."""
        placing = self._ssn.placing
        by_score = self._dry_run is None
        refused = placing.incurable(placing.fit(task) if by_score else placing.judged(task))
        barred = self._ssn.records.barred.get(task.row)
        if barred is None:
            barred = np.zeros_like(refused)
        role = int(self._snapshot.tasks.role[task.row])
        if role != NOWHERE and self._remember:
            known = self._refused.get((task.job, role))
            seen = refused & ~barred
            refused = seen if known is None else seen | known
            self._refused[task.job, role] = refused
        return ~(refused | barred)

    def _make_room(self, stmt: Statement, task: Task, scope: Scope, usable: Mask) -> bool:
        if self._dry_run is not None:
            return self._dry_run.preempt(stmt, task, scope, usable)
        hopeful = usable & self._candidates.with_room(scope, task)
        if not hopeful.any():
            return False
        visit = self._candidates.visit(scope, task, hopeful, self._scores(task, usable))
        return self._visit(stmt, task, scope, visit)

    def _scores(self, task: Task, usable: Mask) -> Column:
        """Score the usable nodes against each other (n,)."""
        fit = self._ssn.placing.fit(task)
        if not fit.rankers:
            return fit.score
        scores, rows = np.full(len(usable), -np.inf), usable.nonzero()[0]
        scores[rows] = self._ssn.placing.scores(task, rows)
        return scores

    def _fits(self, task: Task, node: int) -> bool:
        return fits_after_evictions(self._ssn, task, node)

    def _makes_room(self, victim: int) -> bool:
        return not self._snapshot.tasks.best_effort[victim]

    def _is_in_vain(self, visit: Visit, task: Task, scope: Scope, evicted: Column) -> bool:
        """Return whether the queue refuses a task; then it does so where less can be evicted."""
        if not self._failed or not self._adds_up or queue_takes(self._ssn, task, evicted):
            return False
        more = self._candidates.sums(scope) - evicted[:, None]
        visit.keep(np.asarray((more >= STEP).any(axis=0)))
        return True


def _pod_priority(pod: Any) -> int:
    priority: int | None = pod.spec.priority
    return 0 if priority is None else priority


def _was_preempted(pod: Any) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget":
            by_scheduler: bool = condition.reason == "PreemptionByScheduler"
            return by_scheduler and condition.status == "True"
    return False
