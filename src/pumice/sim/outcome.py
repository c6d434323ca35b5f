"""The outcome of a simulation: the runs of jobs, the final tables, and the cost."""

from dataclasses import dataclass, field

from pumice.core.snapshot import Snapshot
from pumice.sim.event_log import EventLog
from pumice.sim.job_run import JobRun


@dataclass(slots=True)
class SimulationCost:
    """The cost of a simulation: numbers of steps, and seconds on the real clock."""

    events: int = 0
    cycles: int = 0
    decisions: int = 0
    deciding_seconds: float = 0.0
    seconds: float = 0.0


@dataclass(slots=True)
class Outcome:
    """A finished simulation: the runs of jobs, and the final tables."""

    runs: list[JobRun]
    log: EventLog
    snapshot: Snapshot
    end: float
    """Time of the last event."""
    cost: SimulationCost = field(default_factory=SimulationCost)
    failures: tuple[str, ...] = ()
    """Errors of plugins, each once: the figures are then not those of the policy."""
