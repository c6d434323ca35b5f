"""Rows of nodes."""

from collections.abc import Sequence
from math import isfinite

import numpy as np

from pumice.api.annotations import OVERSUBSCRIBED
from pumice.api.meta import is_touch
from pumice.api.nodes import Node, Taint
from pumice.api.times import epoch_or_zero
from pumice.cache.requests import learn
from pumice.cache.task_rows import TaskRows
from pumice.core.resources import MEMORY, Column
from pumice.core.snapshot import Snapshot
from pumice.core.tables import IDLE, NOWHERE, USED


class NodeRows:
    """Keeps nodes in step with Node objects."""

    def __init__(self, snapshot: Snapshot, tasks: TaskRows) -> None:
        self.snapshot = snapshot
        self._tasks = tasks
        self._taints: dict[tuple[Taint, ...], int] = {}
        self.gathers = False
        """Whether new nodes are gathered, to be written together."""
        self._new: list[Node] = []
        """Nodes that have rows, the last ones, but no cells yet."""

    def is_known(self, node: Node) -> bool:
        """Return whether a node is as it was, as with each of its heartbeats."""
        nodes = self.snapshot.nodes
        row = nodes.row_of.get(node.metadata.name)
        known = None if row is None else nodes.objects[row]
        return isinstance(known, Node) and is_touch(known, node)

    def upsert(self, node: Node) -> None:
        """Add a node or replace it; tasks that waited for it move in."""
        learn(self.snapshot, node.status.allocatable, node.status.capacity)
        nodes, name = self.snapshot.nodes, node.metadata.name
        row = nodes.row_of.get(name)
        if row is None:
            row = nodes.row_of[name] = nodes.new_row()
            nodes.names[row] = name
            nodes.tasks[row] = []
            self._new.append(node)
            if not self.gathers:
                self.write_gathered()
        else:
            self.write_gathered()
            self._write(slice(row, row + 1), [node])
        nodes.objects[row] = node
        nodes.labels[row] = node.metadata.labels
        nodes.generation += 1
        self.snapshot.other_changes += 1
        for task in self._tasks.take_waiting(name):
            self.snapshot.tasks.node[task] = row
            self._tasks.count_on_node(task, row, 1)

    def write_gathered(self) -> None:
        """Write the new nodes that were gathered, column by column."""
        new, self._new = self._new, []
        if new:
            n = self.snapshot.nodes.n
            self._write(slice(n - len(new), n), new)

    def _write(self, rows: slice, objects: Sequence[Node]) -> None:
        nodes, vectors = self.snapshot.nodes, self.snapshot.resources.vectors
        nodes.unschedulable[rows] = [each.spec.unschedulable for each in objects]
        nodes.taint_class[rows] = [self._taint_class(each.spec.taints) for each in objects]
        nodes.created[rows] = [epoch_or_zero(each.metadata.creation_timestamp) for each in objects]
        nodes.allocatable[:, rows] = vectors(each.status.allocatable for each in objects)
        nodes.capacity_amounts[:, rows] = vectors(each.status.capacity for each in objects)
        if any(note in each.metadata.annotations for each in objects for note in OVERSUBSCRIBED):
            more = _oversubscribed(objects)
            nodes.allocatable[: MEMORY + 1, rows] += more
            nodes.capacity_amounts[: MEMORY + 1, rows] += more
        nodes.books[IDLE, :, rows] = nodes.allocatable[:, rows] - nodes.books[USED, :, rows]

    def _taint_class(self, taints: tuple[Taint, ...]) -> int:
        known = self._taints.get(taints)
        if known is None:
            known = self._taints[taints] = len(self.snapshot.taint_sets)
            self.snapshot.taint_sets.append(taints)
        return known

    def delete(self, name: str) -> None:
        """Forget a node; its tasks wait for its return."""
        nodes, tasks = self.snapshot.nodes, self.snapshot.tasks
        row = nodes.row_of.pop(name, None)
        if row is None:
            return
        self.write_gathered()
        nodes.trim()
        for task in nodes.tasks[row]:
            tasks.node[task] = NOWHERE
            tasks.in_view[task] = False
            self._tasks.wait_for_node(task, name)
        nodes.delete_row(row)
        tasks.node[tasks.node > row] -= 1
        nodes.row_of = {known: i for i, known in enumerate(nodes.names)}
        nodes.generation += 1
        self.snapshot.other_changes += 1


def _oversubscribed(nodes: Sequence[Node]) -> Column:
    """Return cpu and memory of nodes that an agent offers once more (2, n)."""
    noted = (each.metadata.annotations for each in nodes)
    amounts = [[_number(notes.get(name, "")) for name in OVERSUBSCRIBED] for notes in noted]
    return np.array(amounts).T


def _number(text: str) -> float:
    """Read a number; anything else counts as nothing."""
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if isfinite(number) else 0.0
