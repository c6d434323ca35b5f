"""The figures of a simulation by name: what conditions and objectives may state."""

import math
from typing import Final

import numpy as np

from pumice.core.resources import Column
from pumice.sim.job_run import DELETED
from pumice.sim.measure import Measures, spread

SPREADS: Final = ("wait", "slowdown")
PARTS: Final = ("mean", "p50", "p90", "p95", "p99", "max")
NAMES: Final = (
    *(f"{name}.{part}" for name in SPREADS for part in PARTS),
    *("utilisation", "utilisation.", "evictions", "started", "finished", "makespan", "fairness"),
)
"""What conditions may name; a name that ends with a dot stands for all that begin so."""


def figures_of(measures: Measures) -> dict[str, float]:
    """Return the figures of a simulation; a figure of no jobs at all is 0.

    ``wait.p99@research`` is that of the jobs of a queue; a job that never starts waits for ever.
    """
    runs = measures.outcome.runs
    waits = {
        run.key: math.inf if math.isnan(run.started) else run.started - run.spec.arrival
        for run in runs
        if not (math.isnan(run.started) and run.reason == DELETED)
    }
    found = _spread("wait", np.array([*waits.values()]))
    found |= _spread("slowdown", np.sort(measures.bounded_slowdowns))
    queues: dict[str, list[float]] = {}
    for run in runs:
        if run.key in waits:
            queues.setdefault(run.spec.queue, []).append(waits[run.key])
    for queue, some in queues.items():
        found |= {
            f"{name}@{queue}": value for name, value in _spread("wait", np.array(some)).items()
        }
    used = measures.mean_use
    return found | {
        **{f"utilisation.{measures.resources[i]}": float(used[i]) for i in measures.shown},
        "utilisation": float(used[measures.main_resource]),
        "evictions": float(measures.evictions),
        "jobs": float(len(runs)),
        "started": float(sum(not math.isnan(run.started) for run in runs)),
        "finished": float(len(measures.ends)),
        "makespan": measures.makespan,
        "fairness": 1.0 if measures.fairness.mean is None else measures.fairness.mean,
    }


def _spread(name: str, values: Column) -> dict[str, float]:
    if not len(values):
        return {f"{name}.{part}": 0.0 for part in PARTS}
    if np.isinf(
        values
    ).any():  # a percentile between two jobs, of which one never starts, is neither
        ordered = np.sort(values)
        ranks = {part: float(part[1:]) / 100 for part in PARTS if part.startswith("p")}
        found = {
            part: float(ordered[max(0, math.ceil(len(ordered) * rank) - 1)])
            for part, rank in ranks.items()
        }
        return {f"{name}.{part}": found.get(part, math.inf) for part in PARTS}
    known = spread(np.sort(values))
    return {f"{name}.{part}": float(known[part] or 0.0) for part in PARTS}
