"""What a queue would say to a task while victims of its own go and tasks are promised room."""

import numpy as np

from pumice.core.resources import Column
from pumice.core.tables import ALLOCATED, BOOKED, PENDING
from pumice.core.views import Task
from pumice.framework.session_state import SessionState


class QueueQuota:
    """The queue of equal tasks while victims of that queue go and tasks are promised room."""

    def __init__(self, state: SessionState, task: Task) -> None:
        self._state = state
        self._task = task
        self._evicted = np.zeros(len(task.request))
        self._promised = np.zeros(len(task.request))
        self._known: list[Column] = []

    def takes(self, evicted: Column) -> bool:
        """Evict so much more, and promise one more task room if the queue takes it."""
        self._evicted = self._evicted + evicted
        allowed = self._allows()
        self._promised = self._promised + self._task.request[:, 0]
        return allowed

    def _allows(self) -> bool:
        """Ask the queue, unless it took the task when it had as much; less is no worse."""
        held = np.stack([-self._evicted, self._promised - self._evicted])
        if any((held <= known).all() for known in self._known):
            return True
        snapshot, queue = self._state.snapshot, self._task.queue
        snapshot.journal.settle()
        change = np.zeros((3, len(self._evicted)))
        change[ALLOCATED], change[BOOKED], change[PENDING] = *held, -self._promised
        sums = snapshot.queues.sums[:, :, queue]
        sums += change
        try:
            allowed = bool(self._state.policy.allocatable(queue, self._task))
        finally:
            sums -= change
        if allowed:
            self._known.append(held)
        return allowed
