"""A storm of evictions: jobs that evict each other again and again, without progress."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pumice.sim.event_log import EventKind
from pumice.sim.log_columns import LogColumns
from pumice.sim.wording import duration

TIMES = 10
"""A job is in a storm if its pods were evicted more often than this, on average."""


@dataclass(frozen=True, slots=True)
class EvictionStorm:
    """The extent of a storm: its jobs, their evictions, its time, the worst job."""

    jobs: int
    evictions: int
    since: float
    until: float
    worst: str
    times: float
    """How often a pod of the worst job was evicted, on average."""

    def as_data(self) -> dict[str, Any]:
        """Return the figures, and a sentence."""
        return {**asdict(self), "text": str(self)}

    def __str__(self) -> str:
        return (
            f"storm of evictions: pods of {self.jobs:,} jobs were evicted more than {TIMES} times "
            f"each, {self.evictions:,} evictions in all from {duration(self.since)} to "
            f"{duration(self.until)}; those of {self.worst} {self.times:,.0f} times each. The "
            "policy does not settle on this workload, so the figures are of little use"
        )


def find_storm(log: LogColumns) -> EvictionStorm | None:
    """Find jobs whose pods were evicted again and again; None if there are none."""
    runs = log.outcome.runs
    often = np.array([run.evictions / run.kind.size for run in runs])
    stormy = np.flatnonzero(often > TIMES)
    if not len(stormy):
        return None
    rows = log.rows(EventKind.EVICT)
    times = log.time[rows[np.isin(log.job[rows], stormy)]]
    worst = int(np.argmax(often))
    return EvictionStorm(
        jobs=len(stormy),
        evictions=len(times),
        since=round(float(times[0]), 6),
        until=round(float(times[-1]), 6),
        worst=runs[worst].key,
        times=round(float(often[worst]), 1),
    )
