"""The states of a task, and the classes of states that policies use."""

from enum import IntEnum
from typing import Final


class Status(IntEnum):
    """The state of a task; GONE marks a free row."""

    GONE = 0
    PENDING = 1
    ALLOCATED = 2
    PIPELINED = 3
    BINDING = 4
    BOUND = 5
    RUNNING = 6
    RELEASING = 7
    SUCCEEDED = 8
    FAILED = 9
    UNKNOWN = 10

    @property
    def label(self) -> str:
        """The name as Volcano writes it."""
        return self.name.capitalize()


N_STATUS = len(Status)
PENDING: Final = int(Status.PENDING)
"""To compare columns with: a member of an enumeration costs NumPy 10 µs more than a number."""
ALLOCATED_CLASS = frozenset({Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING})
"""Statuses that firmly hold their node's resources."""
HOLDING: Final = [*map(int, ALLOCATED_CLASS)]
"""The same, to index counts with."""

BOOKED_CLASS = ALLOCATED_CLASS | {Status.PIPELINED}
"""Statuses that count against a job, queue or namespace while a session decides."""

FINISHED = frozenset({Status.SUCCEEDED, Status.FAILED})

PHASES = ("", "Pending", "Running", "Unknown", "Inqueue", "Completed")
"""PodGroup phases by code; the empty one is a group that never had a phase."""
PHASE_CODE = {name: code for code, name in enumerate(PHASES)}
