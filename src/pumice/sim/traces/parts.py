"""A workload in figures, and parts of it: a window of time, or jobs that are like all of them."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
import numpy as np

from pumice.api.times import rfc3339
from pumice.errors import InputError, Words
from pumice.sim.inputs import SimulationInput
from pumice.sim.readers.node_sizes import amounts_of
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


IN_GIB: Final = frozenset({"memory", "ephemeral-storage"})
"""Resources that are counted in GiB."""
_HOUR = 3600.0
_PERCENTILES = {"min": 0, "median": 50, "p95": 95, "max": 100}


def summarise(setup: SimulationInput) -> dict[str, Any]:
    """Return plain figures of a workload; ``setup`` has the nodes it would run on."""
    workload = setup.workload
    jobs = workload.jobs
    queues, users = (
        Counter(name for name in names if name)
        for names in ((job.queue for job in jobs), (job.user for job in jobs))
    )
    return {
        "trace": workload.name,
        "format": workload.format,
        "jobs": len(jobs),
        "pods": sum(job.size for job in jobs),
        "users": len(users),
        "queues": dict(queues.most_common()),
        "start": None if workload.start is None else rfc3339(workload.start),
        "span_seconds": round(jobs[-1].arrival, 6),
        "arrivals": _arrivals([job.arrival for job in jobs]),
        "pods_per_job": _spread([job.size for job in jobs]),
        "run_seconds": _spread([job.run_seconds for job in jobs]),
        "walltime": _walltime(workload),
        "work_hours": _work(workload),
        "notes": list(setup.notes),
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    column = np.asarray(values, dtype=float)
    found = {"mean": float(column.mean())}
    found |= {name: float(np.percentile(column, part)) for name, part in _PERCENTILES.items()}
    return {name: round(value, 3) for name, value in found.items()}


def _arrivals(times: Sequence[float]) -> dict[str, float]:
    """Return how often jobs come, and how unevenly: a Poisson process has a variation of 1."""
    column = np.asarray(times)
    gaps = np.diff(column)
    mean = float(gaps.mean()) if len(gaps) else 0.0
    return {
        "per_hour": round(_HOUR / mean if mean else len(times), 3),
        "busiest_hour": int(np.unique(column // _HOUR, return_counts=True)[1].max()),
        "gap_seconds": round(mean, 3),
        "gap_variation": round(float(gaps.std()) / mean, 3) if mean else 0.0,
    }


def _walltime(workload: Workload) -> dict[str, float]:
    """Return how many jobs state how long they expect to run, and what part of it they ran."""
    parts = [job.run_seconds / job.walltime for job in workload.jobs if job.walltime]
    if not parts:
        return {"stated": 0}
    return {"stated": len(parts), "used_median": round(float(np.median(parts)), 3)}


def _work(workload: Workload) -> dict[str, float]:
    """Return the hours of each resource that pods hold, memory in GiB."""
    found: dict[str, float] = {}
    known: dict[int, dict[str, float]] = {}
    for job in workload.jobs:
        for task in job.tasks:
            if id(task.spec) not in known:
                known[id(task.spec)] = amounts_of(task.spec)
            for name, amount in known[id(task.spec)].items():
                unit = 1 << 30 if name in IN_GIB else 1
                hours = amount / unit * task.count * task.run_seconds / _HOUR
                found[name] = found.get(name, 0.0) + hours
    return {name: round(hours, 3) for name, hours in found.items()}
