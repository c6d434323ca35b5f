"""Evictable tasks of other queues: each victim is judged with the earlier ones gone."""

from dataclasses import dataclass, field

import numpy as np

from pumice.core.resources import PODS, STEP, Column, fits
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
        queue, request = task.queue, task.request[:, 0]
        if queue not in self.limits.tree.ancestors or not self._spares(queue, request):
            return False
        if not self._gives(queue, request):
            return False
        self._subtract([queue], request)
        return True

    def take_for(self, reclaimer: Task, task: Task) -> bool:
        """Take a task for a task of another queue that needs some of the same resources.

        Ancestors within ``level`` that the two queues do not share must exceed what they deserve,
        too.  Queues that both deserve nothing do not reclaim from each other below a shared one.
        """
        queue, request = task.queue, task.request[:, 0]
        if not self._may_ask(reclaimer, task) or not self._spares(queue, request):
            return False
        if not self._gives(queue, request):
            return False
        ancestors = self._unshared(reclaimer.queue, queue)
        if any(not self._gives(ancestor, request) for ancestor in ancestors):
            return False
        self._subtract([queue, *ancestors], request)
        return True

    def keeps_above(self, reclaimer: Task, task: Task) -> int | None:
        """Return the ancestor that keeps a task that its own queue would give up."""
        queue, request = task.queue, task.request[:, 0]
        if not self._may_ask(reclaimer, task) or not self._spares(queue, request):
            return None
        if not self._gives(queue, request):
            return None
        ancestors = self._unshared(reclaimer.queue, queue)
        return next((each for each in ancestors if not self._gives(each, request)), None)

    def _may_ask(self, reclaimer: Task, task: Task) -> bool:
        """Exclude queues without a place, useless tasks, and cousins without any claim."""
        queues, placed = (reclaimer.queue, task.queue), self.limits.tree.ancestors
        if any(queue not in placed for queue in queues):
            return False
        needs, request = reclaimer.request[:, 0], task.request[:, 0]
        shared = (needs >= STEP) & (request >= STEP)
        shared[PODS] = False
        if True not in shared.tolist():
            return False
        claimless = self._deserves_none(task.queue, request) and self._deserves_none(
            reclaimer.queue, needs
        )
        return not (claimless and self._are_cousins(*queues))

    def _spares(self, queue: int, request: Column) -> bool:
        return bool(fits(self.limits.guarantee[:, queue], self.held(queue) - request))

    def _gives(self, queue: int, request: Column) -> bool:
        return self._deserves_none(queue, request) or self._exceeds(queue, request)

    def _deserves_none(self, queue: int, request: Column) -> bool:
        """Return whether a queue deserves nothing of what a task requests."""
        deserved = self.limits.deserved[:, queue]
        return True not in ((request >= STEP) & (deserved >= STEP)).tolist()

    def _exceeds(self, queue: int, request: Column) -> bool:
        """Return whether a queue has more than it deserves of something a task requests."""
        over = self.held(queue) > self.limits.deserved[:, queue]
        over &= (request > 0) & self.limits.deserved_counts[:, queue]
        over[PODS] = False
        return True in over.tolist()

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

    def _subtract(self, queues: list[int], request: Column) -> None:
        for queue in queues:
            self._held[queue] = np.asarray(self.held(queue) - request)
