"""Tasks, jobs, nodes and queues as JSON in the shape that extenders of Volcano know.

Volcano sends its own structures with their field names; only what a session knows is filled in.
"""

from typing import Any

import numpy as np

from pumice.api.annotations import HIERARCHY, HIERARCHY_WEIGHTS, REVOCABLE_ZONE
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
    """Give the bit by which Volcano writes a status."""
    return 1 << (status - 1)


def job_info(snapshot: Snapshot, row: int) -> Json:
    """Write one job with all its tasks."""
    job, names = Job(snapshot, row), snapshot.resources.names
    tasks = {snapshot.tasks.uids[task]: task_info(snapshot, task) for task in job.tasks}
    by_status: dict[str, Json] = {}
    for uid, task in tasks.items():
        by_status.setdefault(str(task["Status"]), {})[uid] = task
    asking = [t for t in job.tasks if snapshot.tasks.status[t] not in FINISHED]
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


def node_info(snapshot: Snapshot, row: int) -> Json:
    """Write one node with its books and its tasks."""
    nodes, names = snapshot.nodes, snapshot.resources.names
    on_node = np.flatnonzero(snapshot.tasks.node[: snapshot.tasks.n] == row).tolist()
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
    """Write everything a session starts from."""
    queues = [row for row in range(snapshot.queues.n) if snapshot.queues.listed[row]]
    nodes = {name: node_info(snapshot, row) for name, row in snapshot.nodes.row_of.items()}
    return {
        "Jobs": {snapshot.jobs.keys[row]: job_info(snapshot, row) for row in jobs},
        "Nodes": nodes,
        "Queues": {snapshot.queues.names[row]: queue_info(Queue(snapshot, row)) for row in queues},
        "NamespaceInfo": {name: {"Name": name} for name in snapshot.namespaces.row_of},
        "RevocableNodes": {name: node for name, node in nodes.items() if node["RevocableZone"]},
        "NodeList": list(nodes),
    }
