"""What every decision leaves behind: where a job stopped, why, and the numbers compared.

Messages are rendered from records; nothing is decided from them.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pumice.core.snapshot import Snapshot


class Stage(Enum):
    """How far a job got in this cycle."""

    VALIDATE = "validate"
    ENQUEUE = "enqueue"
    QUEUE = "queue"
    QUOTA = "quota"
    NODES = "nodes"
    GANG = "gang"
    EVICTION = "eviction"
    DONE = "done"


class Why(Enum):
    """The closed list of reasons, most basic first; a job shows the first that holds."""

    NOT_VALID = "not valid"
    NOT_ENQUEUED = "not enqueued"
    QUEUE_OVERUSED = "queue has its share"
    QUEUE_CLOSED = "queue is not open"
    OVER_QUOTA = "over quota"
    NO_NODE_FITS = "no node fits"
    GANG_SHORT = "gang short of members"
    WAITING_FOR_EVICTION = "waiting for evicted pods to leave"
    SCHEDULED = "scheduled"


@dataclass(slots=True)
class Record:
    """One job in one cycle."""

    stage: Stage
    why: Why
    numbers: dict[str, Any] = field(default_factory=dict)


class Records:
    """Records by job row; the last word of a cycle stands."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.by_job: dict[int, Record] = {}
        self.no_fit: dict[int, dict[str, int]] = {}
        """Task row to nodes by reason, of the last attempt that found no node."""
        self.barred: dict[int, Any] = {}
        """Task row to the mask of nodes that no eviction could cure, of that attempt."""

    def note(self, job: int, stage: Stage, why: Why, **numbers: Any) -> None:
        """Write down where a job stands."""
        self.by_job[job] = Record(stage, why, numbers)
