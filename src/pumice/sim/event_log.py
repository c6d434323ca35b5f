"""Everything that happens in a simulation, one row an event, in columns that cost little.

Written by the engine; all figures, charts and files are computed from it afterwards.
"""

from array import array
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

NONE = -1
"""No pod, no node."""


class EventKind(IntEnum):
    """Kinds of events."""

    ARRIVE = 0
    ENQUEUE = 1
    BIND = 2
    EVICT = 3
    FINISH = 4
    """A pod has run to its end."""
    LOSE = 5
    """A pod was evicted and does not come back, or can no longer start."""
    NOMINATE = 6

    @property
    def label(self) -> str:
        """The name in lower case."""
        return self.name.lower()


DECISIONS = (EventKind.ENQUEUE, EventKind.BIND, EventKind.EVICT, EventKind.NOMINATE)
"""Decisions of the scheduler; other events happen by themselves."""


class EventLog:
    """Columns of equal length: when, which kind, which job, which of its pods, which node."""

    def __init__(self) -> None:
        self._time = array("d")
        self._kind = array("b")
        self._job = array("i")
        self._task = array("i")
        self._node = array("i")

    def __len__(self) -> int:
        return len(self._time)

    def add(
        self, time: float, kind: EventKind, job: int, task: int = NONE, node: int = NONE
    ) -> None:
        """Append one event."""
        self._time.append(time)
        self._kind.append(kind)
        self._job.append(job)
        self._task.append(task)
        self._node.append(node)

    def add_all(self, time: float, kind: EventKind, job: int, nodes: Sequence[int]) -> None:
        """Append an event of each pod of a job, in their order, with its node."""
        n = len(nodes)
        if n == 1:
            self.add(time, kind, job, 0, nodes[0])
            return
        self._time.extend(array("d", (time,)) * n)
        self._kind.extend(array("b", (kind,)) * n)
        self._job.extend(array("i", (job,)) * n)
        self._task.extend(range(n))
        self._node.extend(nodes)

    @property
    def end(self) -> float:
        """When the last event happened; 0 if there is none."""
        return self._time[-1] if self._time else 0.0

    @property
    def time(self) -> NDArray[np.float64]:
        """Seconds since the first arrival (n,)."""
        return np.array(self._time, dtype=np.float64)

    @property
    def kind(self) -> NDArray[np.int8]:
        """Kinds of events (n,)."""
        return np.array(self._kind, dtype=np.int8)

    @property
    def job(self) -> NDArray[np.int32]:
        """Numbers of jobs in the workload (n,)."""
        return np.array(self._job, dtype=np.int32)

    @property
    def task(self) -> NDArray[np.int32]:
        """Numbers of pods within their job (n,)."""
        return np.array(self._task, dtype=np.int32)

    @property
    def node(self) -> NDArray[np.int32]:
        """Rows of nodes (n,)."""
        return np.array(self._node, dtype=np.int32)
