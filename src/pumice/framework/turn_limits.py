"""How many turns of allocate, drawn up ahead, the limits of their queues allow."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from pumice.core.resources import Column
from pumice.core.shapes import Delta
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework.equal_tasks import longest
from pumice.framework.ordering import Key
from pumice.framework.plugin import Plugin
from pumice.framework.session_state import SessionState


class Turn(msgspec.Struct):
    """One turn: all tasks that a job needs to start, in order, and the queue's key after it."""

    queue: int
    job: int
    tasks: list[int]
    kinds: list[int]
    """Of which kind each task is."""
    more: Delta
    """What the turn adds to sums (3, R)."""
    key: Key = None


def amounts_of(turns: Sequence[Turn]) -> Column:
    """Return what each turn adds to sums (3, R, n)."""
    return np.array([turn.more for turn in turns]).transpose(1, 2, 0)


class _Counted:
    """The first of some turns, counted in sums as if they had been taken."""

    def __init__(self, snapshot: Snapshot, turns: Sequence[Turn]) -> None:
        self._snapshot = snapshot
        self._jobs = np.array([turn.job for turn in turns], dtype=np.intp)
        self._more = amounts_of(turns)
        self._n = 0

    def set(self, n: int) -> None:
        """Count so many turns."""
        low, high = sorted((n, self._n))
        if low < high:
            more = self._more[..., low:high] * (1 if n > self._n else -1)
            self._snapshot.add_each_to_sums(self._jobs[low:high], more)
            self._snapshot.journal.tick()
            self._n = n


class TurnLimits:
    """Asks queues about turns, on sums as these would be."""

    def __init__(self, state: SessionState, steps: Mapping[int, Delta]) -> None:
        """``steps``: what a task of each kind adds to sums (3, R)."""
        self._state = state
        self._steps = steps
        self._may_be_overused = bool(state.hooks.tiers(Plugin.overused))

    def count(self, turn: Turn) -> None:
        """Count a turn in sums as if it had been taken."""
        self._add(turn.job, turn.more)

    def discount(self, turn: Turn) -> None:
        """Undo ``count``."""
        self._add(turn.job, -turn.more)

    def _add(self, job: int, amounts: Delta) -> None:
        snapshot = self._state.snapshot
        snapshot.add_to_sums(job, amounts)
        snapshot.journal.tick()

    def allowed(self, turns: Sequence[Turn]) -> int:
        """Return how many turns queues allow one after the other, as far as it can be known.

        A queue that has less does not allow less, so all of some turns are allowed if the last
        ones are with all others counted.
        """
        if not turns:
            return 0
        counted = _Counted(self._state.snapshot, turns)

        def are_allowed(n: int) -> bool:
            counted.set(n)
            return self._allows_all(turns[:n])

        n = longest(len(turns), are_allowed)
        counted.set(0)
        return n

    def _allows_all(self, turns: Sequence[Turn]) -> bool:
        """Return whether queues allow turns that are counted.

        Asked about the last turn of each queue, and about its last task of each kind.
        """
        last_of_queue = {turn.queue: turn for turn in turns}
        last_of_kind = {
            (turn.queue, kind): (turn, row)
            for turn in turns
            for kind, row in zip(turn.kinds, turn.tasks, strict=True)
        }
        may_begin = not self._may_be_overused or all(map(self._may_begin, last_of_queue.values()))
        return may_begin and all(
            self._may_place(turn, kind, row) for (_, kind), (turn, row) in last_of_kind.items()
        )

    def _may_begin(self, turn: Turn) -> bool:
        self.discount(turn)
        try:
            return not self._state.policy.overused(turn.queue)
        finally:
            self.count(turn)

    def _may_place(self, turn: Turn, kind: int, row: int) -> bool:
        more = self._steps[kind]
        task = Task(self._state.snapshot, row)
        self._add(turn.job, -more)
        try:
            return bool(self._state.policy.allocatable(turn.queue, task))
        finally:
            self._add(turn.job, more)
