"""What a session asks the cluster for, as far as it has decided."""

from collections.abc import Mapping

import numpy as np

from pumice.api.intents import Annotate, Bind, Evict, Intent
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status


class Intents:
    """Binds and evictions that stand, and what will go with them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.made: list[Intent] = []
        """In the order in which they were decided."""
        self.annotations: dict[int, Mapping[str, str]] = {}
        """Task to what is written on its pod when it is bound."""
        self.nominations: dict[int, int] = {}
        """Task to the node where evictions make room for it; -1 if not any more."""

    def bind(self, tasks: list[int]) -> None:
        """Bind placed tasks of one job."""
        snapshot = self._snapshot
        rows = np.asarray(tasks, dtype=np.intp)
        snapshot.set_status(rows, Status.BINDING)
        keys, names = snapshot.tasks.keys, snapshot.nodes.names
        for task, node in zip(tasks, snapshot.tasks.node[rows].tolist(), strict=True):
            if self.annotations.get(task):
                self.made.append(Annotate(keys[task], self.annotations[task]))
            self.made.append(Bind(keys[task], names[node]))

    def evict(self, eviction: Evict) -> None:
        """Evict a pod."""
        self.made.append(eviction)

    def annotate(self, task: int, annotations: Mapping[str, str]) -> None:
        """Add to what is written on a task's pod when it is bound; a rollback takes it back."""
        known = self.annotations.get(task, {})
        self._snapshot.journal.put(self.annotations, task, {**known, **annotations})

    def drop_annotations(self, task: int) -> None:
        """Write nothing on a task's pod after all."""
        self._snapshot.journal.put(self.annotations, task, {})

    def nominate(self, task: int, node: int) -> None:
        """Note that evictions make room for a task on a node."""
        self._snapshot.journal.put(self.nominations, task, node)

    def drop_nomination(self, task: int) -> None:
        """Note that a task no longer waits for its node."""
        if task in self.nominations:
            self._snapshot.journal.put(self.nominations, task, -1)
