"""A workload in figures: how many jobs, how wide, how long, how often, whose."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from pumice.api.times import rfc3339
from pumice.sim.inputs import SimulationInput
from pumice.sim.readers.node_sizes import amounts_of
from pumice.sim.workload import Workload

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
