"""One object in, changed rows out.

The only writer of a snapshot outside a session.  Objects may come in any order: a pod before its
node, group or queue finds its place when they arrive.
"""

import contextlib
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from pumice.api.groups import PodGroup, PriorityClass, Queue
from pumice.api.meta import KubeObject, epoch
from pumice.api.nodes import Node
from pumice.api.pods import Pod
from pumice.api.quantity import Quantity
from pumice.cache.requests import pod_nonzero, pod_request, resource_lists
from pumice.core.resources import Column, is_empty
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.status import PHASE_CODE, Status
from pumice.core.tables import ALLOCATED, BOOKED, IDLE, NOWHERE, PENDING, RELEASING, USED, VIEW

GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
TASK_PRIORITY = "volcano.sh/task-priority"
PREEMPTABLE = "volcano.sh/preemptable"
_SHAPE_ANNOTATIONS = (
    "volcano.sh/numa-topology-policy",
    "volcano.sh/resource-strategy-scoring-type",
    "volcano.sh/resource-strategy-weight",
    "volcano.sh/revocable-zone",
    PREEMPTABLE,
)
"""Pod annotations that node hooks look at; pods that differ in them differ in shape."""

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_PHASE_STATUS = {
    "Succeeded": Status.SUCCEEDED,
    "Failed": Status.FAILED,
    "Unknown": Status.UNKNOWN,
}
_ON_NODE = frozenset({Status.BOUND, Status.RUNNING, Status.RELEASING, Status.UNKNOWN})


def is_true(text: str) -> bool:
    """Read a boolean as Go does; anything unreadable is False."""
    return text in _TRUE


def key_of(thing: KubeObject) -> str:
    """Name an object: ``namespace/name``, or the name alone."""
    meta = thing.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def time_of(text: str) -> float:
    """Read a time; none at all is the beginning of time."""
    return epoch(text) if text else 0.0


class Ingest:
    """Keeps a snapshot's tables in step with the objects of a cluster."""

    def __init__(self, snapshot: Snapshot, scheduler_names: Iterable[str] = ("volcano",)) -> None:
        self.snapshot = snapshot
        self._scheduler_names = frozenset(scheduler_names)
        self._shapes: dict[bytes, int] = {}
        self._label_classes: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
        self._taints: dict[bytes, int] = {}
        self._roles: dict[str, int] = {}
        self._homeless: dict[str, set[int]] = {}
        self._stale_links = False
        self._default_priority = 0

    def load(self, objects: Iterable[KubeObject]) -> Snapshot:
        """Take in many objects and settle."""
        for thing in objects:
            self.upsert(thing)
        return self.settle()

    def upsert(self, thing: KubeObject) -> None:
        """Add an object or replace the one of the same name."""
        match thing:
            case Pod():
                self._upsert_pod(thing)
            case Node():
                self._upsert_node(thing)
            case PodGroup():
                self._upsert_group(thing)
            case Queue():
                self._upsert_queue(thing)
            case _:
                self.snapshot.kind(type(thing).__name__)[key_of(thing)] = thing
                self._stale_links |= isinstance(thing, PriorityClass)

    def delete(self, thing: KubeObject) -> None:
        """Forget an object."""
        key = key_of(thing)
        match thing:
            case Pod():
                self._delete_pod(key)
            case Node():
                self._delete_node(key)
            case PodGroup():
                self._delete_group(key)
            case Queue():
                row = self.snapshot.queues.row_of.pop(key, None)
                if row is not None:
                    self.snapshot.queues.clear_row(row)
                self._stale_links = True
            case _:
                self.snapshot.kind(type(thing).__name__).pop(key, None)
                self._stale_links |= isinstance(thing, PriorityClass)

    def settle(self) -> Snapshot:
        """Bring links between objects up to date; call before a session opens."""
        self.snapshot.nodes.trim()
        if self._stale_links:
            self._link()
            self._stale_links = False
        return self.snapshot

    def _learn(self, *lists: Mapping[str, Quantity] | None) -> None:
        for amounts in lists:
            if amounts and self.snapshot.resources.learn(amounts):
                self.snapshot.widen()

    # Nodes

    def _upsert_node(self, node: Node) -> None:
        self._learn(node.status.allocatable, node.status.capacity)
        nodes, resources = self.snapshot.nodes, self.snapshot.resources
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
        nodes.taint_class[row] = self._taint_class(node)
        allocatable = resources.vector(node.status.allocatable)
        nodes.books[IDLE, :, row] += allocatable - nodes.allocatable[:, row]
        nodes.allocatable[:, row] = allocatable
        nodes.capacity_amounts[:, row] = resources.vector(node.status.capacity)
        nodes.generation += 1
        for task in self._homeless.pop(name, ()):
            self.snapshot.tasks.node[task] = row
            self._count_on_node(task, row, 1)

    def _taint_class(self, node: Node) -> int:
        key = msgspec.json.encode(node.spec.taints)
        known = self._taints.get(key)
        if known is None:
            known = self._taints[key] = len(self.snapshot.taint_sets)
            self.snapshot.taint_sets.append(node.spec.taints)
        return known

    def _delete_node(self, name: str) -> None:
        nodes, tasks = self.snapshot.nodes, self.snapshot.tasks
        row = nodes.row_of.pop(name, None)
        if row is None:
            return
        nodes.trim()
        for task in nodes.tasks[row]:
            tasks.node[task] = NOWHERE
            self._homeless.setdefault(name, set()).add(task)
        nodes.delete_row(row)
        tasks.node[tasks.node > row] -= 1
        tasks.nominated[tasks.nominated == row] = NOWHERE
        tasks.nominated[tasks.nominated > row] -= 1
        nodes.row_of = {known: i for i, known in enumerate(nodes.names)}
        nodes.generation += 1

    # Pods

    def _upsert_pod(self, pod: Pod) -> None:
        key = key_of(pod)
        self._delete_pod(key)
        ours = pod.spec.scheduler_name in self._scheduler_names
        if not ours and not pod.spec.node_name:
            return
        self._learn(*resource_lists(pod.spec))
        tasks = self.snapshot.tasks
        row = tasks.new_row()
        tasks.row_of[key] = row
        tasks.keys[row] = key
        tasks.uids[row] = pod.metadata.uid or key
        tasks.pods[row] = pod
        shape = self._shape(pod)
        tasks.shape[row] = shape
        tasks.best_effort[row] = is_empty(self.snapshot.shapes[shape].request[:, 0])
        tasks.label_class[row] = self._label_class(pod)
        self._set_marks(row, pod)
        group = pod.metadata.annotations.get(GROUP_NAME, "") if ours else ""
        tasks.job[row] = self._job(f"{pod.metadata.namespace}/{group}") if group else NOWHERE
        tasks.status[row] = _status(pod)
        self._settle_in(row, pod.spec.node_name)

    def _set_marks(self, row: int, pod: Pod) -> None:
        tasks, marks, labels = self.snapshot.tasks, pod.metadata.annotations, pod.metadata.labels
        priority = 1 if pod.spec.priority is None else pod.spec.priority
        with contextlib.suppress(ValueError):
            priority = int(marks.get(TASK_PRIORITY, priority))
        tasks.priority[row] = priority
        mark = marks.get(PREEMPTABLE, labels.get(PREEMPTABLE))
        tasks.preemptable[row] = mark is None or is_true(mark)
        role = marks.get(TASK_SPEC) or labels.get(TASK_SPEC) or ""
        tasks.role[row] = self._role(role) if role else NOWHERE
        tasks.gated[row] = bool(pod.spec.scheduling_gates)
        tasks.created[row] = time_of(pod.metadata.creation_timestamp)
        tasks.started[row] = epoch(pod.status.start_time) if pod.status.start_time else np.nan
        tasks.index[row] = _index(pod.metadata.name)
        nominee = pod.status.nominated_node_name
        tasks.nominated[row] = self.snapshot.nodes.row_of.get(nominee, NOWHERE)

    def _settle_in(self, row: int, node_name: str) -> None:
        tasks = self.snapshot.tasks
        if node_name and Status(int(tasks.status[row])) in _ON_NODE:
            node = self.snapshot.nodes.row_of.get(node_name)
            if node is None:
                self._homeless.setdefault(node_name, set()).add(row)
            else:
                tasks.node[row] = node
                self._count_on_node(row, node, 1)
        job = int(tasks.job[row])
        if job != NOWHERE:
            self.snapshot.jobs.tasks[job].append(row)
            self._count_in_job(row, job, 1)

    def _delete_pod(self, key: str) -> None:
        tasks = self.snapshot.tasks
        row = tasks.row_of.pop(key, None)
        if row is None:
            return
        node, job = int(tasks.node[row]), int(tasks.job[row])
        if node != NOWHERE:
            self._count_on_node(row, node, -1)
        for waiting in self._homeless.values():
            waiting.discard(row)
        if job != NOWHERE:
            self._count_in_job(row, job, -1)
            self.snapshot.jobs.tasks[job].remove(row)
            self._forget_empty_job(job)
        tasks.clear_row(row)

    def _count_on_node(self, task: int, node: int, sign: int) -> None:
        nodes, tasks = self.snapshot.nodes, self.snapshot.tasks
        shape = self.snapshot.shapes[tasks.shape[task]]
        amounts = sign * shape.request[:, 0]
        nodes.books[IDLE, :, node] -= amounts
        nodes.books[USED, :, node] += amounts
        nodes.books[VIEW, :, node] += amounts
        if tasks.status[task] == Status.RELEASING:
            nodes.books[RELEASING, :, node] += amounts
        nodes.view_pods[node] += sign
        nodes.view_nonzero[:, node] += sign * shape.nonzero[:, 0]
        tasks.in_view[task] = sign > 0
        if sign > 0:
            nodes.tasks[node].append(task)
        else:
            nodes.tasks[node].remove(task)

    def _count_in_job(self, task: int, job: int, sign: int) -> None:
        snapshot = self.snapshot
        jobs, status = snapshot.jobs, Status(int(snapshot.tasks.status[task]))
        jobs.counts[status, job] += sign
        jobs.n_tasks[job] += sign
        delta = _sums(status, sign * snapshot.request(task))
        jobs.sums[:, :, job] += delta
        for sums, row in (
            (snapshot.queues.sums, int(jobs.queue[job])),
            (snapshot.namespaces.sums, int(jobs.namespace[job])),
        ):
            if row != NOWHERE:
                sums[:, :, row] += delta
        if status is Status.PENDING and snapshot.tasks.best_effort[task]:
            jobs.n_pending_best_effort[job] += sign

    def _shape(self, pod: Pod) -> int:
        spec, marks = pod.spec, pod.metadata.annotations
        kept = {name: marks[name] for name in _SHAPE_ANNOTATIONS if name in marks}
        key = msgspec.json.encode(
            (
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                spec.volumes,
                pod.metadata.namespace,
                kept,
            )
        )
        known = self._shapes.get(key)
        if known is None:
            resources = self.snapshot.resources
            known = self._shapes[key] = len(self.snapshot.shapes)
            self.snapshot.shapes.append(
                Shape(
                    id=known,
                    request=pod_request(spec, resources)[:, None],
                    nonzero=pod_nonzero(spec, resources)[:, None],
                    namespace=pod.metadata.namespace,
                    spec=spec,
                    annotations=kept,
                )
            )
        return known

    def _label_class(self, pod: Pod) -> int:
        labels, namespace = pod.metadata.labels, pod.metadata.namespace
        key = (namespace, frozenset(labels.items()))
        known = self._label_classes.get(key)
        if known is None:
            known = self._label_classes[key] = len(self.snapshot.label_classes)
            self.snapshot.label_classes.append((namespace, labels))
        return known

    def _role(self, name: str) -> int:
        known = self._roles.get(name)
        if known is None:
            known = self._roles[name] = len(self.snapshot.roles)
            self.snapshot.roles.append(name)
        return known

    # Jobs, queues, namespaces

    def _job(self, key: str) -> int:
        jobs = self.snapshot.jobs
        row = jobs.row_of.get(key)
        if row is None:
            row = jobs.new_row()
            jobs.row_of[key] = row
            jobs.keys[row] = key
            jobs.tasks[row] = []
            jobs.namespace[row] = self._namespace(key.partition("/")[0])
        return row

    def _namespace(self, name: str) -> int:
        spaces = self.snapshot.namespaces
        row = spaces.row_of.get(name)
        if row is None:
            row = spaces.new_row()
            spaces.row_of[name] = row
            spaces.names[row] = name
        return row

    def _upsert_group(self, group: PodGroup) -> None:
        self._learn(group.spec.min_resources)
        jobs = self.snapshot.jobs
        row = self._job(key_of(group))
        jobs.groups[row] = group
        jobs.min_member[row] = group.spec.min_member or 0
        jobs.created[row] = time_of(group.metadata.creation_timestamp)
        jobs.phase[row] = PHASE_CODE.get(group.status.phase, PHASE_CODE["Unknown"])
        jobs.has_min_resources[row] = group.spec.min_resources is not None
        jobs.min_resources[:, row] = self.snapshot.resources.vector(group.spec.min_resources or {})
        self._stale_links = True

    def _delete_group(self, key: str) -> None:
        jobs = self.snapshot.jobs
        row = jobs.row_of.get(key)
        if row is None:
            return
        jobs.groups[row] = None
        jobs.listed[row] = False
        self._forget_empty_job(row)
        self._stale_links = True

    def _forget_empty_job(self, row: int) -> None:
        jobs = self.snapshot.jobs
        if jobs.groups[row] is None and not jobs.tasks[row]:
            del jobs.row_of[jobs.keys[row]]
            jobs.clear_row(row)

    def _upsert_queue(self, queue: Queue) -> None:
        spec = queue.spec
        self._learn(spec.capability, spec.deserved, spec.guarantee.resource)
        queues, resources = self.snapshot.queues, self.snapshot.resources
        name = queue.metadata.name
        row = queues.row_of.get(name)
        if row is None:
            row = queues.new_row()
            queues.row_of[name] = row
            queues.names[row] = name
        queues.objects[row] = queue
        queues.listed[row] = True
        queues.weight[row] = spec.weight or 0
        queues.priority[row] = spec.priority or 0
        queues.created[row] = time_of(queue.metadata.creation_timestamp)
        queues.reclaimable[row] = spec.reclaimable is not False
        queues.open[row] = queue.status.state == "Open"
        queues.capability[:, row] = resources.vector(spec.capability, missing=np.inf)
        queues.capability_given[:, row] = resources.mask(spec.capability)
        queues.deserved[:, row] = resources.vector(spec.deserved)
        queues.deserved_given[:, row] = resources.mask(spec.deserved)
        queues.guarantee[:, row] = resources.vector(spec.guarantee.resource)
        queues.guarantee_given[:, row] = resources.mask(spec.guarantee.resource)
        self._stale_links = True

    def _link(self) -> None:
        """Join groups to queues and priority classes, and add the sums up anew."""
        snapshot = self.snapshot
        jobs, queues = snapshot.jobs, snapshot.queues
        classes = {c.metadata.name: c for c in snapshot.kind("PriorityClass").values()}
        default = next((c.value for c in classes.values() if c.global_default), 0)
        for row, group in enumerate(jobs.groups[: jobs.n]):
            if not isinstance(group, PodGroup):
                jobs.queue[row] = NOWHERE
                continue
            named = classes.get(group.spec.priority_class_name)
            jobs.priority[row] = default if named is None else named.value
            jobs.queue[row] = queues.row_of.get(group.spec.queue, NOWHERE)
            jobs.listed[row] = jobs.queue[row] != NOWHERE
        for row, queue in enumerate(queues.objects[: queues.n]):
            if isinstance(queue, Queue):
                queues.parent[row] = queues.row_of.get(queue.spec.parent, NOWHERE)
        queues.sums[:] = 0
        for row in np.flatnonzero(jobs.queue[: jobs.n] != NOWHERE).tolist():
            queues.sums[:, :, jobs.queue[row]] += jobs.sums[:, :, row]


def _sums(status: Status, amounts: Column) -> Column:
    """Spread a request over the three sums of a job, by status."""
    out = np.zeros((3, len(amounts)))
    if status in (Status.BOUND, Status.RUNNING):
        out[ALLOCATED] = out[BOOKED] = amounts
    elif status is Status.PENDING:
        out[PENDING] = amounts
    return out


def _status(pod: Pod) -> Status:
    phase = pod.status.phase
    if phase in _PHASE_STATUS:
        return _PHASE_STATUS[phase]
    if pod.metadata.deletion_timestamp:
        return Status.RELEASING
    if phase == "Running":
        return Status.RUNNING
    return Status.BOUND if pod.spec.node_name else Status.PENDING


def _index(name: str) -> int:
    """Read the number at the end of a pod name of at least three parts; -1 if there is none."""
    parts = name.split("-")
    if len(parts) < 3:  # job, task, number
        return -1
    last = parts[-1]
    return int(last) if last.isascii() and last.isdigit() and len(last) < 10 else -1
