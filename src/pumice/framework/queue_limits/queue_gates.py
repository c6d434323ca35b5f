"""Pods that a scheduling gate holds back until their queue has room for them.

A pod opts in with an annotation.  Once its gate is open the room stays reserved until the pod is
placed: for the rest of the session, and in later ones too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from pumice.api.annotations import QUEUE_GATE
from pumice.core.resources import Column, sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.status import PENDING
from pumice.core.tables import NOWHERE
from pumice.core.views import Task

_ONLY: Final = (QUEUE_GATE,)
Opened = set[tuple[str, str]]
"""Pods, by key and uid."""


def has_only_queue_gate(task: Task) -> bool:
    """Return whether the queue gate is the only one of a task's pod."""
    return tuple(gate.name for gate in task.pod.spec.scheduling_gates) == _ONLY


class QueueGates:
    """The queue gates of one session; without ``enabled`` none is considered.

    ``opened`` are the pods whose gates the last session opened: the cluster may not have confirmed
    yet that the gates are gone, and the room is still theirs.
    """

    def __init__(self, snapshot: Snapshot, opened: Opened, *, enabled: bool) -> None:
        self._snapshot = snapshot
        self.held: set[int] = set()
        """Tasks that only the queue gate holds back."""
        self.opened: dict[int, None] = {}
        """Tasks whose gates this session opens, in that order."""
        self._reserving: dict[int, None] = {}
        self._memory = opened
        if enabled:
            self._open(frozenset(opened))
        opened.clear()

    def _open(self, opened: frozenset[tuple[str, str]]) -> None:
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        waiting = tasks.opted_in & (tasks.status == PENDING) & (tasks.job != NOWHERE)
        for row in np.flatnonzero(waiting).tolist():
            if not jobs.listed[tasks.job[row]]:
                continue
            if not tasks.gated[row]:
                self._reserving[row] = None
            elif has_only_queue_gate(Task(self._snapshot, row)):
                self.held.add(row)
                if (tasks.keys[row], tasks.uids[row]) in opened:
                    self._reserving[row] = None

    def open(self, task: int) -> None:
        """Remove a task's gate; its request is reserved from now on."""
        tasks = self._snapshot.tasks
        self.opened[task] = None
        self._reserving[task] = None
        self._memory.add((tasks.keys[task], tasks.uids[task]))

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Undo any gates that are opened meanwhile."""
        opened, reserving, memory = dict(self.opened), dict(self._reserving), set(self._memory)
        try:
            yield
        finally:
            self.opened, self._reserving = opened, reserving
            self._memory &= memory

    @property
    def is_reserving(self) -> bool:
        """Whether any task may reserve something."""
        return bool(self._reserving)

    def reserved(self, beside: int) -> Column:
        """Sum by queue the reservations of tasks that wait for a node (R, Q), one task left out."""
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        rows = np.fromiter(self._reserving, dtype=np.intp)
        rows = rows[(tasks.status[rows] == PENDING) & (rows != beside)]
        queues = jobs.queue[tasks.job[rows]]
        return sum_by(self._snapshot.requests(rows), queues, self._snapshot.queues.capacity)
