"""Evictable tasks of other queues: each victim is judged with the earlier ones gone."""

from dataclasses import dataclass, field

import numpy as np

from pumice.core.resources import PODS, STEP, Column, Mask, fits, holds_any
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.queue_limits.stated import StatedLimits


@dataclass
class Reclaim:
    """One walk over candidates; remembers what the queues would hold without its victims."""

    limits: StatedLimits
    level: int = 0
    """How many levels of ancestors are considered, too."""
    _held: dict[int, Column] = field(default_factory=dict)

    def held(self, queue: int) -> Column:
        """Return what a queue and those under it hold at this point of the walk (R,)."""
        if queue not in self._held:
            self._held[queue] = self.limits.held(queue)
        return self._held[queue]

    def take(self, task: Task) -> bool:
        """Take a task from a queue that stays above its guarantee and has more than it deserves."""
        return task.queue in self.limits.tree.ancestors and self._take([task.queue], task, 1) == 1

    def take_for(self, reclaimer: Task, task: Task, n: int = 1) -> int:
        """Take n equal tasks in a row for one of another queue that needs some of their resources.

        Ancestors within ``level`` that the two queues do not share must exceed what they deserve,
        too.  Queues that both deserve nothing do not reclaim from each other below a shared one.
        Returns how many of the first are taken.
        """
        if not self._may_ask(reclaimer, task):
            return 0
        return self._take([task.queue, *self._unshared(reclaimer.queue, task.queue)], task, n)

    def _take(self, losing: list[int], task: Task, n: int) -> int:
        """Take equal tasks from a queue and some of its ancestors, while all of them give."""
        queue, steps = task.queue, np.repeat(task.request, n, axis=1)
        held = {
            each: np.subtract.accumulate(np.column_stack([self.held(each), steps]), axis=1)
            for each in losing
        }
        goes = fits(self.limits.guarantee[:, [queue]], held[queue][:, 1:])
        for each in losing:
            goes &= self._gives(each, task.request, held[each][:, :-1])
        kept = np.flatnonzero(~goes)
        taken = int(kept[0]) if len(kept) else n
        self._held.update({each: held[each][:, taken] for each in losing} if taken else {})
        return taken

    def keeps_above(self, reclaimer: Task, task: Task) -> int | None:
        """Return the ancestor that keeps a task that its own queue would give up."""
        queue, request = task.queue, task.request
        if not self._may_ask(reclaimer, task) or not fits(
            self.limits.guarantee[:, queue], self.held(queue) - request[:, 0]
        ):
            return None
        above = self._unshared(reclaimer.queue, queue)
        keeps = [
            each
            for each in (queue, *above)
            if not self._gives(each, request, self.held(each)[:, None])
        ]
        return keeps[0] if keeps and keeps[0] != queue else None

    def _may_ask(self, reclaimer: Task, task: Task) -> bool:
        """Exclude queues without a place, useless tasks, and cousins without any claim."""
        queues, placed = (reclaimer.queue, task.queue), self.limits.tree.ancestors
        if any(queue not in placed for queue in queues):
            return False
        needs, request = reclaimer.request[:, 0], task.request[:, 0]
        shared = (needs >= STEP) & (request >= STEP)
        shared[PODS] = False
        if not holds_any(shared):
            return False
        claimless = self._deserves_none(task.queue, request) and self._deserves_none(
            reclaimer.queue, needs
        )
        return not (claimless and self._are_cousins(*queues))

    def _gives(self, queue: int, request: Column, held: Column) -> Mask:
        """Mark where a queue that holds so much gives up a request (R, 1) (n,)."""
        if self._deserves_none(queue, request[:, 0]):
            return np.ones(held.shape[1], dtype=bool)
        counts = (request[:, 0] > 0) & self.limits.deserved_counts[:, queue]
        counts[PODS] = False
        over = held[counts] > self.limits.deserved[counts, queue][:, None]
        return np.asarray(over.any(axis=0))

    def _deserves_none(self, queue: int, request: Column) -> bool:
        """Return whether a queue deserves nothing of what a task requests."""
        deserved = self.limits.deserved[:, queue]
        return not holds_any((request >= STEP) & (deserved >= STEP))

    def _are_cousins(self, left: int, right: int) -> bool:
        """Return whether two queues share an ancestor within ``level``, other than the root."""
        return bool(set(self._ancestors(left)) & set(self._ancestors(right)))

    def _ancestors(self, queue: int) -> list[int]:
        found = [self.limits.tree.ancestor(queue, steps) for steps in range(1, self.level + 1)]
        return [row for row in found if row != NOWHERE]

    def _unshared(self, reclaimer: int, queue: int) -> list[int]:
        """Find a victim's ancestors within ``level`` that are not the reclaimer's at that level."""
        steps = range(1, self.level + 1)
        up = self.limits.tree.ancestor
        pairs = [(up(reclaimer, n), up(queue, n)) for n in steps]
        return [theirs for mine, theirs in pairs if theirs not in (NOWHERE, mine)]
