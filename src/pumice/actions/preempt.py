"""preempt: make room for starving jobs at the cost of others in their queue, then within a job."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from pumice.actions.preempt_dry_run import DryRun
from pumice.core.resources import STEP, Column, Mask, fits
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.arguments import PreemptArguments, arguments_of
from pumice.framework.eviction.candidates import Candidates, Scope, fits_after_evictions
from pumice.framework.eviction.eviction_runs import EvictionRuns
from pumice.framework.eviction.queue_quota import QueueQuota
from pumice.framework.ordering import Heap
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
            preemption.between_jobs(in_order[-1], heap)
        for job in in_order:  # Volcano takes them in no defined order
            preemption.within_job(job)


class Preemption:
    """One run of preempt: the candidates, and what need not be tried twice."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._snapshot = ssn.snapshot
        arguments = arguments_of(ssn.action_arguments, "preempt", PreemptArguments)
        self._remember = arguments.remember_errors
        self._candidates = Candidates(ssn, (Status.RUNNING, Status.BOUND))
        self._runs = EvictionRuns(ssn, self._candidates, Plugin.preemptable)
        guards = ssn.hooks.bound(Plugin.allocatable)
        self._foreseeable = all(plugin.foreseeable for plugin, _ in guards)
        self._adds_up = self._foreseeable and not any(each.coarse for each in ssn.snapshot.shapes)
        self._refused: dict[tuple[int, int], Mask] = {}
        self._hopeless: set[Hashable] = set()
        self._in_vain = False
        """Whether no room was found for the last task: the next is tried by itself first."""
        by_dry_run = arguments.by_dry_run
        self._dry_run = DryRun(ssn, self._candidates, self._over_quota) if by_dry_run else None

    def between_jobs(self, job: int, later: Heap) -> None:
        """Evict tasks of other jobs of the queue until the job no longer starves.

        ``later`` are the jobs of the queue that come after it.
        """
        ssn = self._ssn
        stmt = ssn.statement()
        tasks = ssn.ordering.sort_tasks(ssn.pending_tasks(job))
        for row in self._runs.rest(
            stmt, tasks, lambda left: self._serve_together(stmt, left, later)
        ):
            if not ssn.policy.job_starving(job):
                break
            task = Task(self._snapshot, row)
            scope = self._candidates.of_queue(task.queue, best_effort_only=task.best_effort)
            self._attempt(stmt, task, scope)
        if not ssn.policy.job_pipelined(job):
            stmt.discard()
            self._hopeless.clear()
        elif len(stmt):
            ssn.records.note_eviction(job, stmt.victims())
            stmt.commit()

    def _serve_together(self, stmt: Statement, tasks: list[int], later: Heap) -> int:
        """Make room for equal tasks of a job at once; returns for how many of the first."""
        task, policy, candidates = (
            Task(self._snapshot, tasks[0]),
            self._ssn.policy,
            self._candidates,
        )
        failed = self._hopeless or self._in_vain  # an equal one just failed, mostly
        if self._dry_run is not None or failed:
            return 0
        scope = candidates.of_queue(task.queue, best_effort_only=False)
        if self._over_quota(task, scope):
            return 0
        n = self._runs.equals(tasks, lambda: policy.job_starving(task.job))
        if not n:
            return 0
        jobs = (job for _, job in later.entries)
        served = self._runs.by_score(stmt, tasks[:n], scope, self._usable(task), jobs)
        if served:
            self._hopeless.clear()
        return served

    def within_job(self, job: int) -> None:
        """Evict less important tasks of the job itself; each success is committed by itself."""
        ssn = self._ssn
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

    def _attempt(self, stmt: Statement, task: Task, scope: Scope) -> bool:
        """Pipeline a task, evicting members of a scope where that helps."""
        if not self._may_preempt(task) or self._ssn.policy.filter_task(task) is not None:
            return False
        usable = self._usable(task)
        labels = int(self._snapshot.tasks.label_class[task.row])
        kind = self._ssn.placing.kind(task)
        attempt = (task.job, kind, task.priority, labels, scope.own_job, usable.tobytes())
        if attempt in self._hopeless:
            return False
        if self._dry_run is not None:
            done = self._dry_run.preempt(stmt, task, scope, usable)
        else:
            done = self._first_that_fits(stmt, task, scope, usable)
        self._in_vain = not done
        if done:
            self._hopeless.clear()
        else:
            # nothing has moved, so an equal task would fail, too
            self._hopeless.add(attempt)
        return done

    def _may_preempt(self, task: Task) -> bool:
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

    def _first_that_fits(self, stmt: Statement, task: Task, scope: Scope, usable: Mask) -> bool:
        """Take the best-scored node that can be made to fit."""
        hopeful = usable & self._candidates.with_room(scope, task)
        if not hopeful.any() or self._over_quota(task, scope):
            return False
        rows = np.flatnonzero(usable)
        scores = self._ssn.placing.scores(task, rows)
        kept = hopeful[rows]
        visit = self._candidates.visit(Plugin.preemptable, scope, task, rows[kept], scores[kept])
        sums = self._candidates.sums(scope)
        for node in visit:
            start = stmt.checkpoint()
            evicted = self._make_room(stmt, task, scope, node)
            if evicted is None:
                return True
            if self._foreseeable and not self._ssn.policy.allocatable(task.queue, task):
                # if this eviction leaves the queue over its quota, a smaller one does, too
                visit.keep(np.asarray((sums - evicted[:, None] >= STEP).any(axis=0)))
            stmt.rollback(start)
        return False

    def _make_room(self, stmt: Statement, task: Task, scope: Scope, node: int) -> Column | None:
        """Evict on a node until a task fits, and pipeline it; else return what was evicted (R,)."""
        snapshot = self._snapshot
        victims = self._candidates.victims(Plugin.preemptable, scope, task, node)
        evicted = np.zeros(len(task.request))
        in_all = sum((snapshot.request(row) for row in victims), start=evicted)
        if not fits(task.need[:, 0], snapshot.nodes.future_idle_of(node) + in_all):
            return evicted
        if self._quota_adds_up(victims) and not QueueQuota(self._ssn, task).takes(in_all):
            return in_all  # refused with all of them gone, so with some of them, too
        freed = False
        turn = self._ssn.ordering.victims_in_turn(victims, task.queue)
        while not fits_after_evictions(self._ssn, task, node):
            victim = next(turn, NOWHERE)
            if victim == NOWHERE:
                return evicted
            stmt.evict(victim, "preempt", task.key)
            evicted = evicted + snapshot.request(victim)
            freed = freed or not snapshot.tasks.best_effort[victim]
        stmt.pipeline(task.row, node, freed=freed)
        return None

    def _over_quota(self, task: Task, scope: Scope) -> bool:
        """Return whether the queue refuses a task whichever members of a scope leave a node."""
        if not self._adds_up:
            return False
        most = self._candidates.sums(scope).max(axis=1, initial=0.0)
        return not QueueQuota(self._ssn, task).takes(most)

    def _quota_adds_up(self, victims: list[int]) -> bool:
        """Return whether the queue's answer after evictions follows from the victims' requests."""
        shapes, shape = self._snapshot.shapes, self._snapshot.tasks.shape
        return self._foreseeable and not any(shapes[shape[row]].coarse for row in victims)


def _pod_priority(pod: Any) -> int:
    priority: int | None = pod.spec.priority
    return 0 if priority is None else priority


def _was_preempted(pod: Any) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget":
            by_scheduler: bool = condition.reason == "PreemptionByScheduler"
            return by_scheduler and condition.status == "True"
    return False
