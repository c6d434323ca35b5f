"""A group of moves that happen together or not at all.

Actions make moves only through a statement; ``commit`` turns them into intents, ``discard`` and
``rollback`` undo them through the journal.
"""

from collections.abc import Mapping
from itertools import groupby

import msgspec
import numpy as np

from pumice.api.decisions import Evict
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Place
from pumice.framework.session_state import SessionState

Moves = list[tuple[int, int, bool]]
"""Placements: task, node, and whether the task is only pipelined."""


class Statement:
    """Moves since it was opened; one statement is open at a time."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._snapshot = state.snapshot
        self._mark, self._lots = state.journal.mark(), state.placing.state
        self._policy = state.policy
        self._moves: list[tuple[str, int]] = []
        self._evictions: dict[int, Evict] = {}

    def __len__(self) -> int:
        return len(self._moves)

    def place(self, task: int, node: int) -> None:
        """Put a task on a node that has room now."""
        self._snapshot.place(task, node)
        self._moves.append(("place", task))
        self._policy.on_place(Task(self._snapshot, task), node)

    def place_many(self, tasks: list[int], nodes: list[int]) -> None:
        """Put equal tasks of one job on nodes, all at once; if no plugin follows moves."""
        self._snapshot.place_many(np.asarray(tasks), np.asarray(nodes))
        self._moves.extend([("place", task) for task in tasks])

    def pipeline(self, task: int, node: int, *, freed: bool = False) -> None:
        """Promise a task room on a node; ``freed`` if evictions of this attempt made it."""
        self._snapshot.pipeline(task, node)
        self._moves.append(("pipeline", task))
        if freed:
            self._state.intents.nominate(task, node)
        self._policy.on_place(Task(self._snapshot, task), node)

    def unpipeline(self, task: int) -> None:
        """Withdraw a promise."""
        node = int(self._snapshot.tasks.node[task])
        self._snapshot.unpipeline(task)
        self._state.intents.drop_nomination(task)
        self._policy.on_evict(Task(self._snapshot, task), node)

    def take_back(self, task: int) -> None:
        """Withdraw a promise, or a place that is not bound yet."""
        if self._snapshot.tasks.status[task] == Status.PIPELINED:
            self.unpipeline(task)
            return
        node = int(self._snapshot.tasks.node[task])
        self._snapshot.unplace(task)
        self._policy.on_evict(Task(self._snapshot, task), node)

    def depart(self, task: int) -> None:
        """See a pod that was leaving as one that is gone."""
        self._snapshot.depart(task)
        self._policy.on_evict(Task(self._snapshot, task), int(self._snapshot.tasks.node[task]))

    def evict(self, task: int, action: str, beneficiary: str = "") -> None:
        """Evict a running task from its node, for a pod or job if there is one."""
        node = int(self._snapshot.tasks.node[task])
        self._snapshot.evict(task)
        self._moves.append(("evict", task))
        self._evictions[task] = Evict(self._snapshot.tasks.keys[task], action, beneficiary)
        if node != NOWHERE:
            self._policy.on_evict(Task(self._snapshot, task), node)

    def evict_many(self, tasks: list[int], action: str, beneficiary: str = "") -> None:
        """Evict running tasks of jobs; all at once where nobody can tell the difference."""
        if not self._go_together(tasks):
            for task in tasks:
                self.evict(task, action, beneficiary)
            return
        self._snapshot.evict_each(np.array(tasks, dtype=np.intp))
        keys = self._snapshot.tasks.keys
        for task in tasks:
            self._moves.append(("evict", task))
            self._evictions[task] = Evict(keys[task], action, beneficiary)

    def _go_together(self, tasks: list[int]) -> bool:
        """Return whether no plugin follows evictions, and amounts of tasks on nodes add up."""
        table, shapes = self._snapshot.tasks, self._snapshot.shapes
        return (
            len(tasks) > 1
            and not self._state.hooks.tiers(Plugin.on_evict)
            and bool((table.node[tasks] != NOWHERE).all())
            and not any(shapes[each].coarse for each in set(table.shape[tasks].tolist()))
        )

    def explain(self, notes: Mapping[int, str]) -> None:
        """Add to the events of tasks that it evicts."""
        for task, note in notes.items():
            self._evictions[task] = msgspec.structs.replace(self._evictions[task], note=note)

    def checkpoint(self) -> tuple[int, int]:
        """Name this moment of the statement."""
        return self._state.journal.mark(), len(self._moves)

    def moves_since(self, checkpoint: tuple[int, int]) -> Moves:
        """List the placements made since a checkpoint, so that they can be made again."""
        tasks = self._snapshot.tasks
        return [
            (task, int(tasks.node[task]), kind == "pipeline")
            for kind, task in self._moves[checkpoint[1] :]
            if kind in ("place", "pipeline")
        ]

    def repeat(self, moves: Moves) -> None:
        """Make placements that were made and rolled back before."""
        shape, quiet = self._snapshot.tasks.shape, not self._policy.follows_placements
        for (pipelined, _), some in groupby(moves, key=lambda move: (move[2], shape[move[0]])):
            batch = list(some)
            if quiet and not pipelined and len(batch) > 1:
                self.place_many([task for task, _, _ in batch], [node for _, node, _ in batch])
                continue
            for task, node, _ in batch:
                (self.pipeline if pipelined else self.place)(task, node)

    def rollback(self, checkpoint: tuple[int, int]) -> None:
        """Undo everything since a checkpoint."""
        mark, moves = checkpoint
        self._state.journal.rollback(mark)
        del self._moves[moves:]

    def discard(self) -> None:
        """Undo everything, drawn lots too; what tasks had found is remembered."""
        lost = {task: kind == "pipeline" for kind, task in self._moves if kind != "evict"}
        nodes = self._snapshot.tasks.node[[*lost]].tolist()
        self._state.records.given_up.update(
            (task, Place(node, pipelined))
            for (task, pipelined), node in zip(lost.items(), nodes, strict=True)
        )
        self._state.journal.rollback(self._mark)
        self._state.placing.state = self._lots  # others go where they would without this attempt
        self._moves.clear()

    def evictions(self) -> dict[int, str]:
        """Return the tasks it evicts, in order, and for whom."""
        evicted = [task for kind, task in self._moves if kind == "evict"]
        return {task: self._evictions[task].beneficiary for task in evicted}

    def victims(self) -> list[str]:
        """Name the pods it evicts, in order."""
        keys = self._snapshot.tasks.keys
        return [keys[task] for kind, task in self._moves if kind == "evict"]

    def commit(self) -> None:
        """Hand placements and evictions over."""
        placed = [task for kind, task in self._moves if kind == "place"]
        gone = [self._evictions[task] for kind, task in self._moves if kind == "evict"]
        self._state.intents.evict(gone)
        self._state.records.found_again(task for _, task in self._moves)
        if placed:
            self._state.intents.bind(placed)
        self._moves.clear()
