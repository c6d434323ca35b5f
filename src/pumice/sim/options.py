"""How a workload is run: the common options of `pumice sim` and `pumice sweep`."""

from dataclasses import dataclass
from typing import Final, Literal

FORMATS: Final = (
    *("manifests", "openb", "philly", "swf", "synthetic", "alibaba2018", "alibaba2025", "jobs"),
)
"""Formats of a trace."""
WRITTEN: Final = ("jobs", "swf", "manifests")
"""Formats in which a trace can be written."""
Evicted = Literal["requeue", "restart", "lose"]
"""The fate of an evicted pod: a new one waits in its place; so do all pods of its job, if too
few are left; or it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """Choices that hold for every configuration, trace and seed alike."""

    period: float = 1.0
    """Seconds between two cycles, at least."""
    evicted: Evicted = "requeue"
    limit: int | None = None
    """How many jobs, from the first."""
    speed: float = 1.0
    """How many times faster than in the trace jobs arrive."""
    late_pods: bool = False
    """Whether pods are created only once their job is admitted."""
    start: float | None = None
    """When the first job arrives, in seconds since 1970; None: as the trace states."""
