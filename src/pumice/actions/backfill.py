"""backfill: place tasks without requests: filters, and a pod slot that is idle now."""

from pumice.core.status import PENDING, Status
from pumice.core.views import Task
from pumice.framework.placing import Fit
from pumice.framework.plugin import Reason
from pumice.framework.refusals import NoNode, Stage, Why
from pumice.framework.session import Session


def backfill(ssn: Session) -> None:
    """Draw the order up once, then place task after task; no queue quota, no gang."""
    for job, row in _collect(ssn):
        _place(ssn, job, row)


def _collect(ssn: Session) -> list[tuple[int, int]]:
    """List best-effort tasks, pipelined ones too, as (job, task) in the order to place them."""
    snapshot = ssn.snapshot
    by_queue: dict[int, list[int]] = {}
    waiting: dict[int, list[int]] = {}
    pipelined = snapshot.jobs.counts[Status.PIPELINED] > 0
    for job in ssn.admitted_jobs(pipelined | (snapshot.jobs.n_pending_best_effort > 0)):
        rows = _best_effort(ssn, job)
        if rows and not ssn.policy.job_valid(job):
            waiting[job] = rows
            by_queue.setdefault(int(snapshot.jobs.queue[job]), []).append(job)
    if not waiting:
        return []
    # Volcano: promises are withdrawn before anything is ordered, and all compete again.
    for rows in waiting.values():
        for row in rows:
            if int(snapshot.tasks.status[row]) == Status.PIPELINED:
                ssn.statement().unpipeline(row)
    return [
        (job, row)
        for queue in ssn.ordering.sort_queues(by_queue)
        for job in ssn.ordering.sort_jobs(by_queue[queue])
        for row in ssn.ordering.sort_tasks(waiting[job])
    ]


def _best_effort(ssn: Session, job: int) -> list[int]:
    tasks = ssn.snapshot.tasks
    return [
        row
        for row in ssn.snapshot.jobs.tasks[job]
        if tasks.best_effort[row]
        and (
            int(tasks.status[row]) == Status.PIPELINED
            or (tasks.status[row] == PENDING and not tasks.gated[row])
        )
    ]


def _place(ssn: Session, job: int, row: int) -> None:
    """Place one task and bind it, with those that waited for it, as soon as its job is ready."""
    task = Task(ssn.snapshot, row)
    reason = ssn.policy.filter_task(task)
    if reason is not None:
        _note_no_node(ssn, task, reason)
        return
    fit = ssn.placing.fit(task)
    node = ssn.placing.choose_idle(task, fit)
    if node is None:
        _note_no_node(ssn, task, fit)
        return
    ssn.statement().place(row, node)
    if not ssn.policy.job_ready(job):
        return
    status = ssn.snapshot.tasks.status
    placed = [
        each for each in ssn.snapshot.jobs.tasks[job] if int(status[each]) == Status.ALLOCATED
    ]
    ssn.intents.bind(ssn.ordering.sort_tasks(placed))
    ssn.records.note(job, Stage.DONE, Why.SCHEDULED)


def _note_no_node(ssn: Session, task: Task, why: Fit | Reason) -> None:
    if isinstance(why, Reason):
        found = NoNode({why.text: ssn.snapshot.nodes.n})
    else:
        placing, refusals = ssn.placing, why.verdict
        found = NoNode(placing.count_reasons(refusals), placing.lasting[refusals])
    ssn.records.no_node(task, found)
