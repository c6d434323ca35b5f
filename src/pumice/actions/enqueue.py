"""enqueue: admit pending jobs to their queues while the plugins agree that there will be room."""

from pumice.framework.refusals import Stage, Why
from pumice.framework.session import Session


def enqueue(ssn: Session) -> None:
    """Take queues in order, one job each, and put the queue back while it has jobs."""
    jobs = ssn.snapshot.jobs
    waiting: dict[int, list[int]] = {}
    for row in ssn.pending_jobs():
        waiting.setdefault(int(jobs.queue[row]), []).append(row)
    if not waiting:
        return
    heaps = {queue: ssn.ordering.job_heap(rows) for queue, rows in waiting.items()}
    queues = ssn.ordering.queue_heap(heaps)
    while len(queues):
        queue = queues.pop()
        heap = heaps[queue]
        if not len(heap):
            continue
        job = heap.pop()
        admitted = not jobs.has_min_resources[job] or ssn.policy.job_enqueueable(job)
        if admitted:
            ssn.policy.job_enqueued(job)
            ssn.set_phase(job, "Inqueue")
        else:
            ssn.records.note_refused(job, Stage.ENQUEUE, admitted, Why.NOT_ENQUEUED, queue=queue)
        queues.push(queue)
