"""Tasks, jobs, nodes and queues as JSON in the form of Volcano's extenders.

Volcano sends its own structures with their field names; only the facts of a session are filled in.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pumice.api.annotations import HIERARCHY, HIERARCHY_WEIGHTS, REVOCABLE_ZONE
from pumice.api.json_text import FrozenJson
from pumice.api.objects import to_manifest
from pumice.core.resources import CPU, MEMORY, PODS, STEP, Column
from pumice.core.snapshot import Snapshot
from pumice.core.status import FINISHED, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Queue, Task

Json = dict[str, Any]

_READY_NODE = 1


def resource(amounts: Column, names: list[str]) -> Json:
    """Write amounts (R,): scalars by name, the pod number among them."""
    scalars = {
        name: float(amount)
        for row, (name, amount) in enumerate(zip(names, amounts.tolist(), strict=True))
        if row not in (CPU, MEMORY) and amount >= STEP
    }
    return {
        "MilliCPU": float(amounts[CPU]),
        "Memory": float(amounts[MEMORY]),
        "ScalarResources": scalars,
        "MaxTaskNum": int(amounts[PODS]),
    }


def task_info(snapshot: Snapshot, row: int) -> Json:
    """Write one task with its pod."""
    task, tasks = Task(snapshot, row), snapshot.tasks
    names = snapshot.resources.names
    request = resource(task.request[:, 0], names)
    job = task.job
    return {
        "UID": tasks.uids[row],
        "Job": "" if job == NOWHERE else snapshot.jobs.keys[job],
        "Name": task.name,
        "Namespace": task.namespace,
        "TaskRole": task.role,
        "Resreq": request,
        "InitResreq": request,
        "NodeName": "" if task.node == NOWHERE else snapshot.nodes.names[task.node],
        "Status": status_code(task.status),
        "Priority": task.priority,
        "Preemptable": task.preemptable,
        "BestEffort": task.best_effort,
        "SchGated": bool(tasks.gated[row]),
        "RevocableZone": task.pod.metadata.annotations.get(REVOCABLE_ZONE, ""),
        "Pod": to_manifest(task.pod),
    }


def status_code(status: Status) -> int:
    """Return the bit of a status in Volcano."""
    return 1 << (status - 1)


def job_info(snapshot: Snapshot, row: int) -> Json:
    """Write one job with all its tasks."""
    job, names = Job(snapshot, row), snapshot.resources.names
    tasks = {snapshot.tasks.uids[task]: task_info(snapshot, task) for task in job.tasks}
    by_status: dict[str, Json] = {}
    for uid, task in tasks.items():
        by_status.setdefault(str(task["Status"]), {})[uid] = task
    asking = [t for t in job.tasks if int(snapshot.tasks.status[t]) not in FINISHED]
    total = sum((snapshot.request(task) for task in asking), np.zeros(len(names)))
    spec = job.group.spec
    return {
        "UID": job.key,
        "PgUID": job.group.metadata.uid,
        "Name": job.group.metadata.name,
        "Namespace": job.group.metadata.namespace,
        "Queue": "" if job.queue == NOWHERE else snapshot.queues.names[job.queue],
        "Priority": job.priority,
        "MinAvailable": job.min_member,
        "Tasks": tasks,
        "TaskStatusIndex": by_status,
        "TaskMinAvailable": dict(spec.min_task_member),
        "TaskMinAvailableTotal": sum(spec.min_task_member.values()),
        "Allocated": resource(job.allocated, names),
        "TotalRequest": resource(total, names),
        "CreationTimestamp": job.group.metadata.creation_timestamp or None,
        "PodGroup": to_manifest(job.group),
    }


class NodePayloads:
    """Nodes as JSON, each written once and again when it has moved."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._kept: dict[int, FrozenJson] = {}
        self._seen = 0
        self._tasks: dict[int, list[int]] | None = None

    def of(self, rows: Iterable[int]) -> list[FrozenJson]:
        """Return some nodes."""
        self._follow()
        return [self._kept.get(row) or self._write(row) for row in rows]

    def _follow(self) -> None:
        """Forget the nodes in the log of moved rows."""
        moved = self._snapshot.journal.moved
        for entry in moved[self._seen :]:
            for row in [entry] if isinstance(entry, int) else entry.tolist():
                self._kept.pop(row, None)
                if self._tasks is not None:
                    self._tasks.pop(row, None)
        self._seen = len(moved)

    def _write(self, row: int) -> FrozenJson:
        if self._tasks is None:
            self._tasks = tasks_by_node(self._snapshot)
        on_node = self._tasks.get(row)
        if on_node is None:
            on_node = np.flatnonzero(
                self._snapshot.tasks.node[: self._snapshot.tasks.n] == row
            ).tolist()
        found = self._kept[row] = FrozenJson(node_info(self._snapshot, row, on_node))
        return found


def tasks_by_node(snapshot: Snapshot) -> dict[int, list[int]]:
    """List the tasks of every node, in the order of their rows."""
    tasks = snapshot.tasks.node[: snapshot.tasks.n]
    order = np.argsort(tasks, kind="stable")
    ends = np.searchsorted(tasks[order], np.arange(snapshot.nodes.n + 1))
    parts = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    rows = order.tolist()
    return {node: rows[start:end] for node, (start, end) in enumerate(parts)}


def node_info(snapshot: Snapshot, row: int, on_node: list[int]) -> Json:
    """Write one node with its books and its tasks."""
    nodes, names = snapshot.nodes, snapshot.resources.names
    node: Any = nodes.objects[row]
    return {
        "Name": nodes.names[row],
        "Node": to_manifest(node),
        "State": {"Phase": _READY_NODE, "Reason": ""},
        "Releasing": resource(nodes.releasing[:, row], names),
        "Pipelined": resource(nodes.pipelined[:, row], names),
        "Idle": resource(nodes.idle[:, row], names),
        "Used": resource(nodes.used[:, row], names),
        "Allocatable": resource(nodes.allocatable[:, row], names),
        "Capacity": resource(nodes.capacity_amounts[:, row], names),
        "Tasks": {snapshot.tasks.keys[task]: task_info(snapshot, task) for task in on_node},
        "RevocableZone": nodes.labels[row].get(REVOCABLE_ZONE, ""),
    }


def queue_info(queue: Queue) -> Json:
    """Write one queue."""
    marks = queue.object.metadata.annotations
    return {
        "UID": queue.name,
        "Name": queue.name,
        "Weight": queue.object.spec.weight,
        "Weights": marks.get(HIERARCHY_WEIGHTS, ""),
        "Hierarchy": marks.get(HIERARCHY, ""),
        "Queue": to_manifest(queue.object),
    }


def session_info(snapshot: Snapshot, jobs: list[int]) -> Json:
    """Write the initial state of a session."""
    queues = [row for row in range(snapshot.queues.n) if snapshot.queues.listed[row]]
    tasks = tasks_by_node(snapshot)
    rows = snapshot.nodes.row_of.items()
    nodes = {name: node_info(snapshot, row, tasks[row]) for name, row in rows}
    return {
        "Jobs": {snapshot.jobs.keys[row]: job_info(snapshot, row) for row in jobs},
        "Nodes": nodes,
        "Queues": {snapshot.queues.names[row]: queue_info(Queue(snapshot, row)) for row in queues},
        "NamespaceInfo": {name: {"Name": name} for name in snapshot.namespaces.row_of},
        "RevocableNodes": {name: node for name, node in nodes.items() if node["RevocableZone"]},
        "NodeList": list(nodes),
    }
