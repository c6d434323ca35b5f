"""How a workload is run: what `pumice sim` and `pumice sweep` let one choose alike."""

from dataclasses import dataclass
from typing import Final, Literal

FORMATS: Final = ("manifests", "openb", "philly", "swf", "synthetic")
"""What a trace can be."""
Evicted = Literal["requeue", "restart", "lose"]
"""What becomes of an evicted pod: a new one waits in its place; so do all pods of its job, if too
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
    """How many times as fast as in the trace jobs come."""
    late_pods: bool = False
    """Whether pods are made only once their job is admitted."""
    start: float | None = None
    """When the first job comes, in seconds since 1970; None: as the trace states."""
