"""Part of a workload: a window of time, and some of its jobs that are like all of them."""

import math
from dataclasses import replace

import msgspec
import numpy as np

from pumice.errors import InputError, Words
from pumice.sim.workload import JobSpec, Workload


def window(workload: Workload, since: float, until: float) -> Workload:
    """Keep the jobs that come from one second on and before another; the first is second 0 again.

    Raises:
        InputError: No job comes then.
    """
    kept = [job for job in workload.jobs if since <= job.arrival < until]
    if not kept:
        span = workload.jobs[-1].arrival
        wanted = f"a time in which jobs arrive, from 0 to {span:g} seconds"
        found = f"{since:g} and later" if math.isinf(until) else f"{since:g} to {until:g}"
        raise InputError(wanted=wanted, found=Words(found), file=workload.name)
    return _with_jobs(workload, kept)


def sample(workload: Workload, count: int, seed: int) -> Workload:
    """Draw jobs so that queues, widths and run times are as frequent as among all jobs.

    Jobs are put in order by these, and some at equal distances are taken, from a random first on:
    each part of the order has its share of the sample, to within one job.

    Raises:
        InputError: There are fewer jobs.
    """
    jobs = workload.jobs
    if count > len(jobs):
        raise InputError(
            wanted=f"at most {len(jobs):,} jobs, as the trace has", found=count, field="--jobs"
        )
    order = sorted(
        range(len(jobs)), key=lambda i: (jobs[i].queue, jobs[i].size, jobs[i].run_seconds)
    )
    step = len(jobs) / count
    first = np.random.default_rng(seed).uniform(0, step)
    taken = sorted(order[min(int(first + step * i), len(jobs) - 1)] for i in range(count))
    return _with_jobs(workload, [jobs[i] for i in taken])


def _with_jobs(workload: Workload, jobs: list[JobSpec]) -> Workload:
    first = jobs[0].arrival
    moved = tuple(msgspec.structs.replace(job, arrival=job.arrival - first) for job in jobs)
    start = None if workload.start is None else workload.start + first
    return replace(workload, jobs=moved, start=start)
