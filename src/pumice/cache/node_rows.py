"""Rows of nodes."""

import msgspec

from pumice.api.nodes import Node
from pumice.api.times import epoch_or_zero
from pumice.cache.requests import learn
from pumice.cache.task_rows import TaskRows
from pumice.core.snapshot import Snapshot
from pumice.core.tables import IDLE, NOWHERE, USED


class NodeRows:
    """Keeps nodes in step with Node objects."""

    def __init__(self, snapshot: Snapshot, tasks: TaskRows) -> None:
        self.snapshot = snapshot
        self._tasks = tasks
        self._taints: dict[bytes, int] = {}

    def upsert(self, node: Node) -> None:
        """Add a node or replace it; tasks that waited for it move in."""
        learn(self.snapshot, node.status.allocatable, node.status.capacity)
        nodes, resources = self.snapshot.nodes, self.snapshot.resources
        taint_class = self._taint_class(node)
        name = node.metadata.name
        row = nodes.row_of.get(name)
        if row is None:
            row = nodes.new_row()
            nodes.row_of[name] = row
            nodes.names[row] = name
            nodes.tasks[row] = []
        nodes.objects[row] = node
        nodes.labels[row] = node.metadata.labels
        nodes.unschedulable[row] = node.spec.unschedulable
        nodes.taint_class[row] = taint_class
        nodes.created[row] = epoch_or_zero(node.metadata.creation_timestamp)
        allocatable = resources.vector(node.status.allocatable)
        nodes.books[IDLE, :, row] = allocatable - nodes.books[USED, :, row]
        nodes.allocatable[:, row] = allocatable
        nodes.capacity_amounts[:, row] = resources.vector(node.status.capacity)
        nodes.generation += 1
        for task in self._tasks.take_waiting(name):
            self.snapshot.tasks.node[task] = row
            self._tasks.count_on_node(task, row, 1)

    def _taint_class(self, node: Node) -> int:
        key = msgspec.json.encode(node.spec.taints)
        known = self._taints.get(key)
        if known is None:
            known = self._taints[key] = len(self.snapshot.taint_sets)
            self.snapshot.taint_sets.append(node.spec.taints)
        return known

    def delete(self, name: str) -> None:
        """Forget a node; its tasks wait for its return."""
        nodes, tasks = self.snapshot.nodes, self.snapshot.tasks
        row = nodes.row_of.pop(name, None)
        if row is None:
            return
        nodes.trim()
        for task in nodes.tasks[row]:
            tasks.node[task] = NOWHERE
            tasks.in_view[task] = False
            self._tasks.wait_for_node(task, name)
        nodes.delete_row(row)
        tasks.node[tasks.node > row] -= 1
        nodes.row_of = {known: i for i, known in enumerate(nodes.names)}
        nodes.generation += 1
