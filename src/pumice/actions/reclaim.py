"""reclaim: make room for starving jobs at the cost of queues that have more than their share."""

from pumice.core.resources import Mask, fits_one
from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.arguments import ReclaimArguments, arguments_of
from pumice.framework.eviction.candidates import Scope
from pumice.framework.eviction.evictor import Evictor
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
    while heaps and len(queues):  # those that come after the last starving one change nothing
        queue = queues.pop()
        jobs = heaps.pop(queue, None)
        if jobs is None or ssn.policy.overused(queue):
            continue
        while len(jobs):
            reclamation.serve(jobs.pop())


class Reclamation(Evictor):
    """One run of reclaim: the first node, in list order, that can be made to hold the task."""

    def __init__(self, ssn: Session) -> None:
        arguments = arguments_of(ssn.action_arguments, "reclaim", ReclaimArguments)
        super().__init__(ssn, "reclaim", Plugin.reclaimable, (Status.RUNNING,), arguments)

    def _scope(self, task: Task) -> Scope:
        return self._candidates.of_other_queues(task.queue)

    def _may_evict(self, task: Task) -> bool:
        if task.pod.spec.preemption_policy == "Never":
            return False
        if self._minimal is not None and not self._minimal.is_owed(task):
            return False
        return bool(self._ssn.policy.preemptive(task.queue, task.request[:, 0]))

    def _usable(self, task: Task) -> Mask:
        placing = self._ssn.placing
        usable = ~placing.incurable(placing.judged(task))
        barred = self._ssn.records.barred.get(task.row)
        return usable if barred is None else usable & ~barred

    def _make_room(self, stmt: Statement, task: Task, scope: Scope, usable: Mask) -> bool:
        candidates = self._candidates
        nodes = usable & candidates.with_room(scope, task) & candidates.occupied(scope)
        return self._visit(stmt, task, scope, candidates.visit(scope, task, nodes))

    def _fits(self, task: Task, node: int) -> bool:
        return fits_one(task.need, self._snapshot.nodes.future_idle_of(node))

    def _may_stay(self, task: Task, node: int) -> bool:
        return not vetoed(self._ssn.placing, task, node)
