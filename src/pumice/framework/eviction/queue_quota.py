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

    def takes(self, evicted: Column) -> bool:
        """Return whether the queue takes a task once so much is evicted (R,)."""
        return self._allows(-evicted, -evicted)

    def n_taken(self, evicted: Column) -> int:
        """Return how many tasks in a row it takes, before each of which more is evicted (R, n).

        It is not asked where it took a task when it had as much; less is no worse.
        """
        n = evicted.shape[1]
        held = -evicted.cumsum(axis=1)
        booked = held + self._task.request * np.arange(n)
        taken = np.zeros(n, dtype=bool)
        while not taken.all():
            at = int(taken.argmin())
            if not self._allows(held[:, at], booked[:, at]):
                return at
            taken |= (held <= held[:, [at]]).all(axis=0) & (booked <= booked[:, [at]]).all(axis=0)
        return n

    def _allows(self, held: Column, booked: Column) -> bool:
        """Ask the queue about one more task, with so much more or less held and booked (R,)."""
        snapshot, queue = self._state.snapshot, self._task.queue
        snapshot.journal.settle()
        change = np.zeros((3, len(held)))
        change[ALLOCATED], change[BOOKED], change[PENDING] = held, booked, held - booked
        sums = snapshot.queues.sums[:, :, queue]
        sums += change
        try:
            return bool(self._state.policy.allocatable(queue, self._task))
        finally:
            sums -= change
