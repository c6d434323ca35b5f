"""What comes of a simulation: who ran when, the tables at the end, and what it cost."""

from dataclasses import dataclass, field

from pumice.core.snapshot import Snapshot
from pumice.sim.event_log import EventLog
from pumice.sim.job_run import JobRun


@dataclass(slots=True)
class SimulationCost:
    """What a simulation cost: numbers of steps, and seconds on the real clock."""

    events: int = 0
    cycles: int = 0
    decisions: int = 0
    deciding_seconds: float = 0.0
    seconds: float = 0.0


@dataclass(slots=True)
class Outcome:
    """A finished simulation: who ran when, and the tables at the end."""

    runs: list[JobRun]
    log: EventLog
    snapshot: Snapshot
    end: float
    """When the last thing happened."""
    cost: SimulationCost = field(default_factory=SimulationCost)
    failures: tuple[str, ...] = ()
    """What plugins did wrong, each once: the figures then tell of another policy."""
