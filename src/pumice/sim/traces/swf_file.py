"""Workloads written in the Standard Workload Format."""

import math
from collections.abc import Iterator, Mapping

from pumice.sim.traces.uniform_jobs import UniformJob
from pumice.sim.workload import Workload, seconds_text


def as_swf(workload: Workload) -> str:
    """Write jobs in the Standard Workload Format."""
    queues = {name: n for n, name in enumerate(dict.fromkeys(job.queue for job in workload.jobs))}
    users = {name: n for n, name in enumerate(dict.fromkeys(job.user for job in workload.jobs), 1)}
    lines = [*_header(workload, queues)]
    lines += [
        " ".join(_row(number, UniformJob.of(job), users, queues))
        for number, job in enumerate(workload.jobs, start=1)
    ]
    return "\n".join(lines) + "\n"


def _header(workload: Workload, queues: Mapping[str, int]) -> Iterator[str]:
    yield "; Version: 2.2"
    yield f"; Computer: {' '.join(workload.name.split())}"
    yield "; Note: written by pumice; each cpu is one processor"
    yield f"; MaxJobs: {len(workload.jobs)}"
    if workload.start is not None:
        yield f"; UnixStartTime: {int(workload.start)}"
    hint = workload.node_hint
    if hint is not None and hint.count is not None:
        cpus = math.ceil(float(hint.allocatable.get("cpu", "1")))
        yield f"; MaxNodes: {hint.count}"
        yield f"; MaxProcs: {hint.count * cpus}"
    yield f"; MaxQueues: {len(queues)}"
    yield from (f"; Queue: {number} {'-'.join(name.split())}" for name, number in queues.items())


def _row(
    number: int, each: UniformJob, users: Mapping[str, int], queues: Mapping[str, int]
) -> list[str]:
    job = each.job
    cpus = max(math.ceil(each.asked.get("cpu", 1.0) - 1e-9), 1)
    memory = math.ceil(each.asked.get("memory", -1024.0) / 1024 / cpus)
    walltime = "-1" if job.walltime is None else seconds_text(job.walltime)
    processors = str(each.pods * cpus)
    user = str(users[job.user]) if job.user else "-1"
    return [
        *(str(number), seconds_text(job.arrival), "-1", seconds_text(each.run), processors),
        *("-1", "-1", processors, walltime, str(memory or -1), "1", user, "-1", "-1"),
        *(str(queues[job.queue]), "-1", "-1", "-1"),
    ]
